"""A post-norm transformer layer as in BERT and RoBERTa (Vaswani et al. 2017, section 3.1).

A separate layer has a copy for each language, to which rows and columns are routed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from pretrain.config import ModelConfig
from pretrain.data.batch import RowGroup, Span
from pretrain.model.dropout import Noise, add_dropout, dropout
from pretrain.model.text import Packed

Kept = tuple[Tensor | None, Tensor | None, Tensor | None]
"""Dropout masks of attention, of its output, and of the output of the feed-forward network."""
ALL_KEPT: Kept = (None, None, None)


def at_columns(x: Tensor, columns: Tensor) -> Tensor:
    """Select the states ``x`` at ``columns`` of each row: [r, w, d] and [r, k] → [r, k, d]."""
    return x.gather(1, columns.unsqueeze(-1).expand(-1, -1, x.shape[-1]))


class Layer(nn.Module):
    """Self-attention and feed-forward, each with dropout, a residual and a LayerNorm after it.

        y = LayerNorm(x + dropout(attention(x)))
        z = LayerNorm(y + dropout(down(GELU(up(y)))))

    The projections to queries, keys and values are one matrix ``qkv`` [3d, d]. In shapes, r is the number of rows, w
    the number of positions of a row, k the number of selected columns, and d the width of the model.

    Args:
        shape: Sizes of the layer and the dropout rate.
        epsilon: Number that LayerNorms add to the variance.
    """

    causal: ClassVar[bool] = False
    """True if a token attends only to itself and to earlier tokens where no mask is given."""

    def __init__(self, shape: ModelConfig, epsilon: float) -> None:
        super().__init__()
        d = shape.hidden
        self.heads, self.rate = shape.heads, shape.dropout
        self.qkv = nn.Linear(d, 3 * d)
        self.out = nn.Linear(d, d)
        self.attention_norm = nn.LayerNorm(d, eps=epsilon)
        self.up = nn.Linear(d, shape.feed_forward)
        self.down = nn.Linear(shape.feed_forward, d)
        self.norm = nn.LayerNorm(d, eps=epsilon)

    def forward(self, x: Tensor, seen: Tensor | None, columns: Tensor | None, keep: Kept = ALL_KEPT) -> Tensor:
        """Map states [r, w, d] to [r, w, d], or to [r, k, d] at ``columns``.

        Args:
            x: Input of the layer, [r, w, d].
            seen: False where a token does not attend to another, [r, w, w], or [r, 1, w] if this is the same for all
                tokens. None means that every token attends to the whole row or, in a causal layer, to all tokens up to
                itself.
            columns: Columns to compute, [r, k] (None: all). Their states are exact, since keys and values are computed
                from all columns.
            keep: Dropout masks from ``draw``.
        """
        q, k, v = self.project(x, columns)
        context = self.attend(q, k, v, self.seen_at(seen, columns, x.shape[1]), keep[0])
        return self.finish(context, x if columns is None else at_columns(x, columns), keep)

    def seen_at(self, seen: Tensor | None, columns: Tensor | None, width: int) -> Tensor | None:
        """Return the rows of the attention mask ``seen`` for queries at ``columns`` [r, k] (None: all columns).

        The result is [r, k, width], or [r, 1, width] if all queries have one mask. It is None if queries attend to the
        whole row, or for all queries of a causal layer, whose order needs no mask.
        """
        if columns is None:
            return seen
        if seen is None:
            return torch.arange(width, device=columns.device) <= columns.unsqueeze(-1) if self.causal else None
        return at_columns(seen, columns) if seen.shape[1] > 1 else seen

    def of_tokens(self, x: Tensor, packed: Packed, seen: Tensor | None, keep: Kept = ALL_KEPT) -> Tensor:
        """Compute ``forward`` for the tokens [t, d] of padded rows. Only attention is computed on padded rows.

        Args:
            x: Input of the layer at the tokens without padding, [t, d].
            packed: The indices of the tokens in the padded rows.
            seen: As in ``forward``.
            keep: Dropout masks from ``draw``.
        """
        q, k, v = packed.pad(self.qkv(self.before(x))).chunk(3, dim=-1)
        return self.finish(packed.pick(self.attend(q, k, v, seen, keep[0])), x, keep)

    def before(self, x: Tensor) -> Tensor:
        """Return the input of the projections to queries, keys and values."""
        return x

    def project(self, x: Tensor, columns: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
        """Return queries at ``columns`` [r, k] (None: all), keys and values of ``x`` [r, w, d], each [r, ·, d]."""
        x, d = self.before(x), x.shape[-1]
        if columns is None:
            q, k, v = self.qkv(x).chunk(3, dim=-1)
            return q, k, v
        weight, bias = self.qkv.weight, self.qkv.bias
        k, v = F.linear(x, weight[d:], bias[d:]).chunk(2, dim=-1)
        return F.linear(at_columns(x, columns), weight[:d], bias[:d]), k, v

    def attend(self, q: Tensor, k: Tensor, v: Tensor, seen: Tensor | None, keep: Tensor | None) -> Tensor:
        """Return softmax(q kᵀ / √(d/heads)) v of all heads (Vaswani et al. 2017, equation 1), [r, ·, d].

        ``q`` is [r, ·, d], and ``k`` and ``v`` are [r, w, d]. ``seen`` [r, 1 or ·, w] is False where a query does not
        attend. None means that a query attends to the whole row or, in a causal layer, to all tokens up to itself.
        ``keep`` is the dropout mask of the probabilities, [r, heads, ·, w]. With None, torch draws the mask.
        """
        size, forwards = q.shape[-1] // self.heads, self.causal and seen is None
        q, k, v = (t.view(*t.shape[:2], self.heads, size).transpose(1, 2) for t in (q, k, v))
        mask = None if seen is None else seen.unsqueeze(1)
        rate = self.rate if self.training else 0.0
        if keep is None or rate == 0.0:
            context = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=rate, is_causal=forwards)
        else:  # the fused kernels of a CPU have no dropout
            scores = (q * size**-0.5) @ k.transpose(-1, -2)
            if forwards:
                mask = torch.ones(scores.shape[-2:], dtype=torch.bool, device=q.device).tril()
            if mask is not None:
                scores = scores.masked_fill(~mask, float("-inf"))
            context = dropout(scores.softmax(-1), rate, keep, self.training).to(v.dtype) @ v
        return context.transpose(1, 2).flatten(2)

    def finish(self, context: Tensor, x: Tensor, keep: Kept) -> Tensor:
        """Apply the output projection of attention and the feed-forward network, [r, ·, d].

        ``context`` is the result of ``attend``, ``x`` the input of the layer at the same columns, and ``keep`` has the
        dropout masks from ``draw``.
        """
        x = self.attention_norm(add_dropout(x, self.out(context), self.rate, keep[1], self.training))
        hidden = self.down(F.gelu(self.up(x)))
        normed: Tensor = self.norm(add_dropout(x, hidden, self.rate, keep[2], self.training))
        return normed

    def draw(self, noise: Noise, rows: int, queries: int, width: int, tokens: int | None = None) -> Kept:
        """Draw the dropout masks of a forward pass.

        Args:
            noise: Source of the masks.
            rows: Number of rows.
            queries: Number of positions of each row for which outputs are computed.
            width: Number of positions of each row to which these positions attend.
            tokens: Number of tokens without padding if ``of_tokens`` computes the pass, else None.
        """
        if not self.training or self.rate == 0.0:
            return ALL_KEPT
        d = self.out.out_features
        after = (rows, queries, d) if tokens is None else (tokens, d)
        a, b, c = (noise.keep(self.rate, *shape) for shape in ((rows, self.heads, queries, width), after, after))
        return a, b, c


Run = Callable[[Layer, Tensor, Tensor | None, Tensor | None], Tensor]


class SeparateLayers(nn.ModuleList):
    """One copy of a layer for each language (Conneau et al. 2020, "Emerging Cross-lingual Structure", section 4.3)."""

    def route(
        self,
        x: Tensor,
        seen: Tensor | None,
        columns: Tensor | None,
        groups: tuple[RowGroup, ...],
        noise: Noise,
        run: Run,
    ) -> Tensor:
        """Compute Layer.forward with the copies of each group's languages, [r, w, d] or [r, k, d].

        ``x``, ``seen`` and ``columns`` are as in Layer.forward. ``groups`` must cover all rows in order. ``noise``
        gives the dropout masks of rows of several languages, and ``run`` runs one copy on rows of one language.
        """
        outputs = []
        for group in groups:
            rows = slice(group.start, group.stop)
            part, own = x[rows], None if seen is None else seen[rows]
            at = None if columns is None else columns[rows]
            languages = {language for _, _, language in group.spans}
            if len(languages) == 1:
                outputs.append(run(self.copy(languages.pop()), part, own, at))
            else:
                mixed = self._mixed(part, own, group.spans, noise)
                outputs.append(mixed if at is None else at_columns(mixed, at))
        return outputs[0] if len(outputs) == 1 else torch.cat(outputs)

    def copy(self, language: int) -> Layer:
        """Return the copy of the layer that a language uses."""
        layer = self[language]
        assert isinstance(layer, Layer)
        return layer

    def _mixed(self, x: Tensor, seen: Tensor | None, spans: tuple[Span, ...], noise: Noise) -> Tensor:
        """Compute rows of several languages (TLM). Weights differ by span, and attention covers the whole row."""
        rows, width, _ = x.shape
        first = self.copy(spans[0][2])
        keep = first.draw(noise, rows, width, width)
        projected = [self.copy(language).project(x[:, start:stop]) for start, stop, language in spans]
        q, k, v = (torch.cat(parts, dim=1) for parts in zip(*projected, strict=True))
        context = first.attend(q, k, v, seen, keep[0])  # attention itself has no weights
        finished = []
        for start, stop, language in spans:
            out, down = (None if k is None else k[:, start:stop] for k in keep[1:])
            finished.append(self.copy(language).finish(context[:, start:stop], x[:, start:stop], (None, out, down)))
        return torch.cat(finished, dim=1)
