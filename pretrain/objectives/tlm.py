"""The term tlm for masked words, or next tokens in a decoder, in rows of sentences and their translations."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import Field

from pretrain.data.batch import RowSource
from pretrain.objectives.term import Term, Texts
from synthlang.config import StrictModel


class TlmSettings(StrictModel):
    """Settings of the term tlm."""

    tlm_rate: float = Field(default=0.25, gt=0.0, le=1.0)
    """Share of the sentence pairs that TLM trains on (XLM; ALIGN-MLM, appendix C)."""


class Tlm(Term[TlmSettings]):
    """The term tlm: −log p of the masked words, or of next tokens, in rows of sentence pairs.

    See Lample & Conneau 2019, section 3.3.
    """

    name, kind, causal_kind = "tlm", "xlm", "tlm_clm"
    settings = TlmSettings
    needs = frozenset({"pairs"})
    language_ids = True

    def rows(self, settings: TlmSettings, texts: Texts) -> Sequence[RowSource]:
        return texts.pairs(settings.tlm_rate)
