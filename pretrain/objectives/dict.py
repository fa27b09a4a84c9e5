"""The term dict: masked positions that predict, or show, a translation.

A share of the masked positions belong to it; what that means differs between the paper and its code:

             input                  label           a word without an entry
as-paper     80/10/10               a translation   stays as it is, with itself as label
as-code      a translation          the word        stays as it is, with itself as label
corrected    80/10/10               a translation   masked as usual, as a position of mlm

(Deshpande et al. 2021, "ALIGN-MLM", appendix G.4, and its released code.)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from pretrain.artifacts import Artifacts
from pretrain.data.batch import RowSource
from pretrain.data.masking import Draw, Masked, Relabel
from pretrain.objectives.term import Term, Texts
from synthlang.config import StrictModel
from synthlang.dictionary.ids import Synonyms

Target = Literal["as-paper", "as-code", "corrected"]


class DictSettings(StrictModel):
    """Which masked positions are of the term dict, and what they predict.

    dict_rate     share of the masked positions (DICT-MLM-50: half of them)
    dict_target   ``as-paper`` predicts the translation of the word (a word without one stays as it is), ``as-code``
                  shows the translation and predicts the word, ``corrected`` predicts the translation under its own
                  language id (a word without one is masked as usual)
    """

    dict_rate: float = Field(default=0.5, gt=0.0, le=1.0)
    dict_target: Target = "corrected"


class Dict(Term[DictSettings]):
    """Masked words that predict their translation (Chaudhary et al. 2020, "DICT-MLM", section 2)."""

    name, kind = "dict", "dict_mlm"
    settings = DictSettings
    needs = frozenset({"dictionary"})
    beside = ("mlm",)
    language_ids = other_languages = True

    def rows(self, settings: DictSettings, texts: Texts) -> Sequence[RowSource]:
        return texts.monolingual

    def relabel(self, settings: DictSettings, artifacts: Artifacts, language_ids: bool) -> Relabel:
        assert artifacts.dictionary is not None, "prepare draws the dictionary of dict"
        synonyms = Synonyms.of(artifacts.dictionary, len(artifacts.languages), artifacts.id_space.size)
        return Translated(synonyms, settings.dict_rate, settings.dict_target, language_ids)


@dataclass(frozen=True)
class Translated:
    """Takes over a share ``rate`` of the masked positions.

    language_ids   whether tokens show their language, so that a position with a translation shows that of its label
    """

    synonyms: Synonyms
    rate: float
    target: Target
    language_ids: bool

    def __call__(self, masked: Masked, draw: Draw) -> tuple[Masked, NDArray[np.bool_]]:
        """The positions with what they show and predict now, and which of them are of this term."""
        chosen = masked.labelled & (draw("dict") < self.rate)
        known, words, languages = self.synonyms.draw(masked.languages, masked.words, draw("translation"))
        translated = chosen & known
        if self.target == "corrected":
            chosen = translated
        shown, labels = masked.shown, masked.labels
        if self.target == "as-code":
            shown = np.where(chosen, words, shown)  # the word itself where there is no entry
        else:
            shown = np.where(chosen & ~known, masked.words, shown)
            labels = np.where(translated, words, labels)
        if self.target == "as-code" or (self.target == "corrected" and self.language_ids):
            masked = replace(masked, languages=np.where(translated, languages, masked.languages))
        return replace(masked, shown=shown, labels=labels), chosen
