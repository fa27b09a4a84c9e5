"""Settings of the probe ``retrieval``."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from probes.measures.base import ProbeSettings
from probes.measures.retrieval.declared import MEASURES
from probes.results.declared import Tree
from probes.rotation.settings import FitSettings, Method
from probes.static.settings import StaticSettings
from synthlang.errors import InputError
from synthlang.references import OmitDefaultFromHash, ParserSpec

Pairs = Literal["linked", "unlike", "counted"]
Variant = Literal["context", "types"]


class RotationSettings(FitSettings):
    """An orthogonal map of each layer, fitted on the sentences that are not measured, before words are compared.

    supervision   ``parallel``: linked words in context (Cao et al. 2020, equation 1; Wang et al. 2019), or mean vectors
                  of parallel ``sentences`` (Aldarmaki & Diab 2019). Not a dictionary: its vectors are means of types,
                  and what is compared are words in context; the probe ``maps`` has those
    """

    normalise: Method = "none"
    supervision: Literal["parallel", "sentences"] = "parallel"


class RetrievalConfig(ProbeSettings):
    """Does a word find its translation among the words of the other language (Cao et al. 2020, section 3.2)?

    Three sets of pairs are scored. ``linked``: all links of the measured sentences. ``unlike``: without those that
    ``exact_matches`` drops. ``counted``: without those that ``seen`` drops either; the headline is about these.

    variants       ``context``: every word of the measured sentences is an item; ``types``: only the first occurrence
                   of each type is (the paper's non-contextual retrieval), and a link counts if both its words are
    candidates     what a word is sought among: ``all`` words of the other language's measured sentences (as-paper), or
                   the ``aligned`` ones, which have a link (as-code; the code's sentence tokens are left out)
    k              neighbours in the densities of CSLS
    exact_matches  pairs of words that are written alike: ``drop`` (as-paper) or ``keep``
    seen           pairs of types that are linked somewhere in the sentences that maps are fitted on: ``drop``
                   (as-paper) or ``keep``. They still compete as candidates, whatever is dropped
    parser         gives parts of speech where the text has none: ``spacy:NAME`` or ``stanza:NAME``, for the language of
                   ``tag_words``
    tag_words      whose word a link has its part of speech of: the ``parent``'s, or the ``other`` language's, by its
                   own tagger (Cao et al., section 5.2: spaCy, polyglot for Bulgarian)
    tag_pairs      the set of pairs that is broken down by part of speech. Cao et al. (table 4) keep the seen ones, and
                   have punctuation and numerals, which are mostly written alike
    rank_pairs     the set of pairs that is broken down by difference of frequency rank (figure 3)
    rank_bins      into so many bins of equally many pairs, at most
    examples       words of the parent: some occurrences of each, in their sentences, are listed with the nearest word
                   of the other language (appendix A.3)
    rotation       of the states before words are compared (table 3, "Word-aligned BERT (rotation)"); none: as they are
    static         word vectors without context beside those of their sentence, instead of the model's states (section
                   3.4 and table 3, "Aligned fastText + sentence"), rotated by all links of the sentences that maps are
                   fitted on. A word without a vector is no candidate, and its links count as not found
    """

    title: ClassVar[str] = "Words in context"
    about: ClassVar[str] = (
        "How often the nearest neighbour of a word, among the words of all sentences of the other language, is "
        "the word that it is linked to in the translation of its sentence, in percent (Cao et al. 2020)."
    )
    run: ClassVar[str] = "probes.measures.retrieval.probe:retrieval_probe"
    measures: ClassVar[Tree] = MEASURES

    variants: tuple[Variant, ...] = Field(default=("context", "types"), min_length=1)
    candidates: Literal["all", "aligned"] = "all"
    k: int = Field(default=10, ge=1)
    exact_matches: Literal["drop", "keep"] = "drop"
    seen: Literal["drop", "keep"] = "drop"
    parser: ParserSpec | None = None
    tag_words: Annotated[Literal["parent", "other"], OmitDefaultFromHash()] = "parent"
    tag_pairs: Pairs = "linked"
    rank_pairs: Pairs = "unlike"
    rank_bins: int = Field(default=10, ge=1)
    examples: Annotated[tuple[str, ...], OmitDefaultFromHash()] = ()
    rotation: RotationSettings | None = None
    static: StaticSettings | None = None

    def check_installed(self) -> None:
        if self.static is not None:
            try:
                self.static.check_installed()
            except InputError as error:
                raise error.inside("static") from error

    @model_validator(mode="after")
    def _one(self) -> RetrievalConfig:
        if self.rotation is not None and self.static is not None:
            raise ValueError("rotation moves a model's states, static vectors stand in their place: give one of them")
        return self

    @property
    def fits(self) -> bool:
        """Whether maps are fitted."""
        return self.rotation is not None or self.static is not None
