"""RoBERTa's encoder (Liu et al. 2019), with the separate parts of ``LanguageModel``.

The model is numerically equal to transformers' RobertaForMaskedLM and BertForMaskedLM, and with a linear output to
XLMWithLMHeadModel. Tokens attend to the whole row. A LayerNorm follows the embeddings and each sublayer.
"""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional as F

from pretrain.model.language_model import Head, LanguageModel
from synthlang.vocabularies.xlm_tokenizer import XLM


class DenseHead(Head):
    """The layers of RoBERTa and BERT between the last layer and the tied output: dense, GELU, LayerNorm.

    Args:
        hidden: Width d of the model.
        epsilon: Number that LayerNorm adds to the variance.
    """

    def __init__(self, hidden: int, epsilon: float) -> None:
        super().__init__()
        self.dense = nn.Linear(hidden, hidden)
        self.norm = nn.LayerNorm(hidden, eps=epsilon)

    def forward(self, x: Tensor) -> Tensor:
        """Apply the three layers to states of any shape […, d]."""
        y: Tensor = self.norm(F.gelu(self.dense(x)))
        return y


class MaskedLM(LanguageModel):
    """A masked language model of one or more languages. Its arguments are those of ``LanguageModel``.

    ``norm`` is the LayerNorm after the embeddings.
    """

    def _new_head(self) -> Head:
        return Head() if self.architecture == XLM else DenseHead(self.shape.hidden, self.epsilon)

    def first(self, x: Tensor) -> Tensor:
        """Return the input of the first layer, before dropout, from the sum of the embeddings ``x``."""
        normed: Tensor = self.norm(x)
        return normed
