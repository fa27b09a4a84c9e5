"""Settings and measures of the probe ``retrieval``."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from probes.measures.base import ProbeSettings
from probes.results.declared import ANY, AT_LEAST_ZERO, DIFFERENCE, PERCENT, Entries, Measure, Tree
from probes.rotation.settings import FitSettings, Method
from probes.static.settings import StaticSettings, check_static
from synthlang.errors import InputError
from synthlang.references import OmitDefaultFromHash, ParserSpec

FOUND = Measure("percent", "linked words", PERCENT)
ACCURACY: Tree = {"forward": FOUND, "backward": FOUND, "mean": replace(FOUND, main=True)}
SIMILARITIES: Tree = {"csls": ACCURACY, "cosine": ACCURACY}
ZEROS = Measure("words", "words", AT_LEAST_ZERO)
GROUP: Tree = {"average": Measure("percent", "parts of speech", PERCENT), "pooled": ACCURACY, "tags": {ANY: ACCURACY}}
MEASURES: Tree = {
    "variants": {
        ANY: {
            "chance": FOUND,
            "layers": Entries({"pairs": {ANY: SIMILARITIES}, "zero_vectors": {"left": ZEROS, "right": ZEROS}}),
        }
    },
    "headline": SIMILARITIES,
    "tags": {
        "variants": {
            ANY: {"groups": {ANY: GROUP}, "left_out": {ANY: Measure("links", "linked words", AT_LEAST_ZERO)}},
        }
    },
    "ranks": {"drop": Measure("points", "linked words", DIFFERENCE)},
}


Pairs = Literal["linked", "unlike", "counted"]
Variant = Literal["context", "types"]


class RotationSettings(FitSettings):
    """Settings of an orthogonal map for each layer, fitted on sentences that are not measured."""

    normalise: Method = "none"
    supervision: Literal["parallel", "sentences"] = "parallel"
    """Vectors to fit the map on: aligned words in context (``parallel``), or means of parallel ``sentences``.

    Aligned words are used by Cao et al. 2020 (equation 1) and Wang et al. 2019, sentences by Aldarmaki & Diab 2019. The
    probe ``maps`` can also fit on a dictionary.
    """


class RetrievalConfig(ProbeSettings):
    """Settings of word retrieval, the search for the translation of each word (Cao et al. 2020, section 3.2).

    Three sets of word pairs are scored. ``linked`` has all aligned words of the measured sentences. ``unlike`` leaves
    out pairs by ``exact_matches``. ``counted`` also leaves out pairs by ``seen``, and gives the main score.
    """

    title: ClassVar[str] = "Words in context"
    about: ClassVar[str] = (
        "Percentage of words whose nearest neighbour, among the words of all sentences of the other language, is "
        "the word that they are aligned with in the translation of their sentence (Cao et al. 2020)."
    )
    run: ClassVar[str] = "probes.measures.retrieval.probe:retrieval_probe"
    compares_vectors: ClassVar[bool] = True
    measures: ClassVar[Tree] = MEASURES

    variants: tuple[Variant, ...] = Field(default=("context", "types"), min_length=1)
    """Words to retrieve: every word in its sentence (``context``), or the first occurrence of each type (``types``).

    The paper calls ``types`` non-contextual retrieval. A word alignment then counts only if both words are first
    occurrences.
    """
    candidates: Literal["all", "aligned"] = "all"
    """Candidates in the other language: ``all`` words of the measured sentences, or only ``aligned`` words.

    The paper describes ``all``. The released code uses ``aligned``, and also sentence tokens, which are left out here.
    """
    k: int = Field(default=10, ge=1)
    """Number of neighbours in the densities of CSLS."""
    exact_matches: Literal["drop", "keep"] = "drop"
    """Treatment of word pairs that are spelled alike: ``drop`` (as in the paper) or ``keep``."""
    seen: Literal["drop", "keep"] = "drop"
    """Treatment of type pairs that are aligned in the fitted sentences: ``drop`` (as in the paper) or ``keep``.

    Their words remain candidates in either case.
    """
    parser: ParserSpec | None = None
    """Parser for parts of speech if the text has none: ``spacy:NAME`` or ``stanza:NAME``.

    It must be for the language of ``tag_words``.
    """
    tag_words: Annotated[Literal["parent", "other"], OmitDefaultFromHash()] = "parent"
    """Language whose word gives a pair its part of speech: the source (``parent``) or the ``other`` language.

    Cao et al. 2020, section 5.2, tag the other language with spaCy, and with polyglot for Bulgarian.
    """
    tag_pairs: Pairs = "linked"
    """Set of word pairs to break down by part of speech.

    Cao et al. 2020 (table 4) keep seen pairs, and also punctuation and numerals, which are mostly spelled alike.
    """
    rank_pairs: Pairs = "unlike"
    """Set of word pairs to break down by difference of frequency rank (figure 3)."""
    rank_bins: int = Field(default=10, ge=1)
    """Maximum number of bins of frequency-rank differences.

    Bins have about the same number of word pairs. Pairs with the same difference are in one bin.
    """
    examples: Annotated[tuple[str, ...], OmitDefaultFromHash()] = ()
    """Words of the source language to show as examples (appendix A.3).

    At most five occurrences of each word are listed, with their sentence and the nearest word of the other language.
    """
    rotation: RotationSettings | None = None
    """Map to apply to the states before retrieval, as in table 3, "Word-aligned BERT (rotation)" (null: none)."""
    static: StaticSettings | None = None
    """Static word vectors in place of the states: "Aligned fastText + sentence" in table 3 (section 3.4).

    The vector of the sentence is appended to each word vector. By default, the rotation is fitted on all word
    alignments of the fitted sentences. A word without a vector is not a candidate, and its alignments count as not
    found.
    """

    def check_installed(self) -> None:
        """Raise InputError if static vectors need gensim and it is not installed."""
        check_static(self.static)

    @model_validator(mode="after")
    def _one(self) -> RetrievalConfig:
        if self.rotation is not None and self.static is not None:
            reason = "cannot be combined with static, because it maps states of the model"
            raise InputError(reason, keys="rotation", hint="remove one of the two", code="conflict")
        return self

    @property
    def fits(self) -> bool:
        """True if a rotation is fitted on sentence pairs outside the measured pairs."""
        return self.rotation is not None or self.static is not None
