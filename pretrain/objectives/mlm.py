"""The term mlm for masked words in rows of one language."""

from __future__ import annotations

from collections.abc import Sequence

from pretrain.data.batch import RowSource
from pretrain.objectives.term import Term, Texts
from synthlang.config import StrictModel


class Mlm(Term[StrictModel]):
    """The term mlm: −log p of the masked words of rows of one language (Devlin et al. 2019, section 3.1)."""

    name = kind = "mlm"

    def rows(self, settings: StrictModel, texts: Texts) -> Sequence[RowSource]:
        return texts.masked
