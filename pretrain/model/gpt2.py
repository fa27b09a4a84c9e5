"""GPT-2's decoder (Radford et al. 2019, section 2.3), with the separate parts of the encoder.

The model is numerically equal to transformers' GPT2LMHeadModel. It differs from the encoder in these points:

- Tokens attend only to themselves and to earlier tokens, unless the rows of a batch are masked (GPT-BERT, Charpentier
  and Samuel 2024).
- LayerNorm precedes each sublayer, and one more follows the last layer. There is none after the embeddings.
- The activation is the approximation of GELU by tanh.
- The output is the transposed word embedding, without a bias or layers before it.
- Initial weights of the layers whose output is added to the residual stream are divided by √(2 · layers).
"""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import functional as F

from pretrain.model.attention import Kept, Layer
from pretrain.model.dropout import add_dropout
from pretrain.model.language_model import LanguageModel
from pretrain.model.tensors import TensorBatch
from pretrain.model.text import Text


class PreNormLayer(Layer):
    """A layer of GPT-2: x + attention(LayerNorm(x)), then x + feed-forward(LayerNorm(x))."""

    causal: ClassVar[bool] = True

    def before(self, x: Tensor) -> Tensor:
        """Return LayerNorm(x), the input of the projections to queries, keys and values."""
        normed: Tensor = self.attention_norm(x)
        return normed

    def finish(self, context: Tensor, x: Tensor, keep: Kept) -> Tensor:
        """Apply the output projection of attention, LayerNorm and the feed-forward network, [r, ·, d].

        ``context`` is the result of ``attend``, ``x`` the input of the layer at the same columns, and ``keep`` has the
        dropout masks from ``draw``.
        """
        x = add_dropout(x, self.out(context), self.rate, keep[1], self.training)
        hidden = self.down(F.gelu(self.up(self.norm(x)), approximate="tanh"))
        return add_dropout(x, hidden, self.rate, keep[2], self.training)


class CausalLM(LanguageModel):
    """A causal language model of one or more languages. Its arguments are those of ``LanguageModel``.

    ``norm`` is the LayerNorm after the last layer, and there is none after the embeddings.
    """

    causal: ClassVar[bool] = True
    layer_type: ClassVar[type[Layer]] = PreNormLayer
    biased: ClassVar[bool] = False

    def _initialise(self, seed: int) -> None:
        super()._initialise(seed)
        with torch.no_grad():
            for name, parameter in self.named_parameters():
                if name.endswith((".out.weight", ".down.weight")):
                    parameter.mul_((2 * self.shape.layers) ** -0.5)

    def last(self, x: Tensor) -> Tensor:
        """Return LayerNorm(x) of the states ``x`` of the last layer, which transformers calls the last hidden state."""
        normed: Tensor = self.norm(x)
        return normed

    def _losses(self, x: Tensor, batch: TensorBatch, weights: Tensor | None) -> Tensor:
        if weights is None and not torch.is_grad_enabled():
            weights = torch.ones(batch.labels.shape, device=x.device)  # without gradients, any weights save memory
        return super()._losses(x, batch, weights)

    def seen(self, rows: TensorBatch | Text) -> Tensor | None:
        """Return the attention mask, [r, w, w] bool, or None if each token attends to all tokens up to itself.

        Padding after the last token of a row needs no mask, since no token attends to it.
        """
        seen, (count, width) = rows.seen(), rows.input_ids.shape
        masked = [g for g in rows.groups if not g.causal] if isinstance(rows, TensorBatch) else []
        if not masked and (rows.positions is None or seen is None):
            return None
        before = torch.ones(width, width, dtype=torch.bool, device=rows.input_ids.device).tril()
        whole = before.expand(count, -1, -1) if seen is None else seen & before
        for group in masked:  # whose tokens attend to the whole row or sentence
            own = slice(group.start, group.stop)
            every = torch.ones_like(before) if seen is None else seen[own].expand(-1, width, -1)
            whole = torch.cat([whole[: own.start], every.expand(own.stop - own.start, -1, -1), whole[own.stop :]])
        return whole

    def _languages_of_labels(self, batch: TensorBatch) -> Tensor:
        """Return the language of the label at each position, which is that of the next token."""
        return torch.cat([batch.languages[:, 1:], batch.languages[:, -1:]], dim=1)
