"""The term dict: masked positions that predict, or show, a translation.

A share of the masked positions belongs to the term. "The masked token is changed to a cross-lingual synonym" if it
has one, "otherwise, we leave it as the original token" (Tang et al. 2022, "ALIGN-MLM", appendix G.4). This can mean
the label, as in Chaudhary et al. (2020), or the input, as in section 3 ("code-switched data") and the released code,
which shows derived words in place of original ones and the other way round:

                input           label           a word without an entry
label           80/10/10        a translation   is masked as for mlm
label-or-copy   80/10/10        a translation   is unchanged, with itself as label
switched        a translation   the word        is unchanged, with itself as label

A position that shows a translation has the translation's language id. With ``label``, a position that predicts a
translation also has this language id, and 90 % of the masked positions hide their label, as for mlm. With the other
targets, a share ``rate`` of the labels can be copied from the input or inferred from a translation in the input.
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

Target = Literal["label", "label-or-copy", "switched"]


class DictSettings(StrictModel):
    """Settings of the term dict."""

    dict_rate: float = Field(default=0.5, gt=0.0, le=1.0)
    """Share of the masked positions, or in a decoder of all tokens, that is drawn for the term.

    DICT-MLM-50 draws half of the masked positions.
    """
    dict_target: Target = "label"
    """Input and label of the positions of the term.

    ``label`` predicts the translation with the translation's language id, and masks words without a translation as
    usual. ``label-or-copy`` predicts the translation with the word's language id, and shows words without a translation
    unchanged. ``switched`` shows the translation and predicts the word, as the released code of ALIGN-MLM does.
    """


class Dict(Term[DictSettings]):
    """The term dict: masked positions that predict, or show, a translation.

    The loss of a position is −log p(translation), as in Chaudhary et al. 2020, "DICT-MLM", section 2, or −log p(word)
    if the input shows the translation, as in the released code of ALIGN-MLM.
    """

    name, kind, causal_kind, format = "dict", "dict_mlm", "dict_clm", 2
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
    """Change of a share ``rate`` of the masked positions, as the table of this module shows it.

    Attributes:
        synonyms: The translations of each id.
        rate: Share of the labelled positions that are chosen. With the target ``label``, only chosen positions with a
            translation belong to the term.
        target: Input and label of the positions (see ``DictSettings``).
        language_ids: True if a position that predicts a translation gets the language of the translation (``label``).
            A position that shows a translation always gets it.
    """

    synonyms: Synonyms
    rate: float
    target: Target
    language_ids: bool

    def __call__(self, masked: Masked, draw: Draw) -> tuple[Masked, NDArray[np.bool_]]:
        """Return the masked positions with the changes of this term, and flags [rows, k] of the term's positions."""
        chosen = masked.labelled & (draw("dict") < self.rate)
        known, words, languages = self.synonyms.draw(masked.languages, masked.words, draw("translation"))
        translated = chosen & known
        if self.target == "label":
            chosen = translated
        switched = self.target == "switched"
        shown, labels = masked.shown, masked.labels
        if switched:
            shown = np.where(chosen, np.where(known, words, masked.words), shown)
        else:
            shown = np.where(chosen & ~known, masked.words, shown)
            labels = np.where(translated, words, labels)
        if switched or (self.target == "label" and self.language_ids):
            masked = replace(masked, languages=np.where(translated, languages, masked.languages))
        return replace(masked, shown=shown, labels=labels), chosen
