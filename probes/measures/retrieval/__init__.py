"""Settings of the probe ``retrieval``."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from probes.measures.base import ProbeSettings
from probes.measures.retrieval.declared import MEASURES
from probes.results.declared import Tree
from probes.rotation.settings import FitSettings, Method
from probes.static.settings import StaticSettings, check_static
from synthlang.references import OmitDefaultFromHash, ParserSpec

Pairs = Literal["linked", "unlike", "counted"]
Variant = Literal["context", "types"]


class RotationSettings(FitSettings):
    """Settings of an orthogonal map of each layer, fitted on the sentences that are not measured."""

    normalise: Method = "none"
    supervision: Literal["parallel", "sentences"] = "parallel"
    """Pairs of the fit: linked words in context, ``parallel`` (Cao et al.

    2020, equation 1; Wang et al. 2019), or mean vectors of parallel ``sentences`` (Aldarmaki & Diab 2019). A dictionary
    is no choice here, since its vectors are means of types and words in context are compared; the probe ``maps`` has
    it.
    """


class RetrievalConfig(ProbeSettings):
    """Settings of the retrieval of words, whose translations are looked for (Cao et al. 2020, section 3.2).

    Three sets of pairs are scored. ``linked`` has all links of the measured sentences, ``unlike`` those that
    ``exact_matches`` leaves, and ``counted`` those of them that ``seen`` leaves, too. The headline is about
    ``counted``.
    """

    title: ClassVar[str] = "Words in context"
    about: ClassVar[str] = (
        "How often the nearest neighbour of a word, among the words of all sentences of the other language, is "
        "the word that it is linked to in the translation of its sentence, in percent (Cao et al. 2020)."
    )
    run: ClassVar[str] = "probes.measures.retrieval.probe:retrieval_probe"
    measures: ClassVar[Tree] = MEASURES

    variants: tuple[Variant, ...] = Field(default=("context", "types"), min_length=1)
    """Items of the retrieval.

    In ``context``, every word of the measured sentences is an item. In ``types``, only the first occurrence of each
    type is (non-contextual retrieval in the paper), and a link counts if both its words are.
    """
    candidates: Literal["all", "aligned"] = "all"
    """Candidates: ``all`` words of the measured sentences of the other language (as the paper has it), or the
    ``aligned`` ones, which have a link (as the released code has it, without its sentence tokens).
    """
    k: int = Field(default=10, ge=1)
    """Number of neighbours in the densities of CSLS."""
    exact_matches: Literal["drop", "keep"] = "drop"
    """Treatment of pairs of words that are written alike: ``drop`` (as in the paper) or ``keep``."""
    seen: Literal["drop", "keep"] = "drop"
    """Treatment of pairs of types that are linked in the sentences that maps are fitted on: ``drop`` (as in the paper)
    or ``keep``. They compete as candidates in either case.
    """
    parser: ParserSpec | None = None
    """Parser of parts of speech where the text has none: ``spacy:NAME`` or ``stanza:NAME``, for the language of
    ``tag_words``.
    """
    tag_words: Annotated[Literal["parent", "other"], OmitDefaultFromHash()] = "parent"
    """Language whose word gives a link its part of speech: the source (``parent``), or the ``other`` language by its
    own tagger (Cao et al. 2020, section 5.2: spaCy, polyglot for Bulgarian).
    """
    tag_pairs: Pairs = "linked"
    """Set of pairs that is broken down by part of speech.

    Cao et al. 2020 (table 4) keep the seen pairs, and have punctuation and numerals, which are mostly written alike.
    """
    rank_pairs: Pairs = "unlike"
    """Set of pairs that is broken down by difference of frequency rank (figure 3)."""
    rank_bins: int = Field(default=10, ge=1)
    """Largest number of bins of equally many pairs."""
    examples: Annotated[tuple[str, ...], OmitDefaultFromHash()] = ()
    """Words of the source language.

    Some occurrences of each are listed in their sentences, with the nearest word of the other language (appendix A.3).
    """
    rotation: RotationSettings | None = None
    """Map of the states before words are compared (table 3, "Word-aligned BERT (rotation)").

    None: the states as they are.
    """
    static: StaticSettings | None = None
    """Word vectors without context, beside those of their sentence, in place of the states of the model (section 3.4
    and table 3, "Aligned fastText + sentence"). They are rotated by all links of the sentences that maps are fitted
    on. A word without a vector is no candidate, and its links count as not found.
    """

    def check_installed(self) -> None:
        check_static(self.static)

    @model_validator(mode="after")
    def _one(self) -> RetrievalConfig:
        if self.rotation is not None and self.static is not None:
            raise ValueError("rotation moves a model's states, static vectors stand in their place: give one of them")
        return self

    @property
    def fits(self) -> bool:
        """Whether maps are fitted."""
        return self.rotation is not None or self.static is not None
