"""The term clm for the next token of rows of one language."""

from __future__ import annotations

from collections.abc import Sequence

from pretrain.data.batch import RowSource
from pretrain.objectives.term import Term, Texts
from synthlang.config import StrictModel


class Clm(Term[StrictModel]):
    """The term clm: −log p of the next token at every position of rows of one language.

    See Radford et al. 2019, section 2.
    """

    name = causal_kind = "clm"

    def rows(self, settings: StrictModel, texts: Texts) -> Sequence[RowSource]:
        return texts.monolingual
