"""Settings and measures of the probe ``maps``."""

from __future__ import annotations

from typing import ClassVar, Literal, get_args

from pydantic import Field, field_validator

from probes.measures.base import ProbeSettings
from probes.results.declared import AT_LEAST_ZERO, PERCENT, Entries, Measure, Tree
from probes.rotation.settings import FitSettings
from probes.static.settings import StaticSettings, check_static
from synthlang.config import StrictModel
from synthlang.errors import InputError
from synthlang.parallel.text import Splitter
from synthlang.references import UserFile

Supervision = Literal["dictionary", "parallel", "sentences"]
SUPERVISIONS: tuple[Supervision, ...] = get_args(Supervision)
OVER = {
    "words": "word types",
    "context": "linked words",
    "alone": "linked words",
    "sentences": "sentence pairs",
    "files": "sentence pairs",
}
"""The items over which the accuracy of each kind of retrieval is a mean."""
AT = (1, 5, 10)
"""Values of k for the precision P@k of word translation."""
SCORES = ("cosine", "csls")


def _score(over: str, by_rank: bool, title: str) -> Tree:
    """Return the measures of a score: both directions and their mean, each by rank if ``by_rank`` is set."""
    found, mean = Measure("percent", over, PERCENT), Measure("percent", over, PERCENT, title, main=True)
    if not by_rank:
        return {"forward": found, "backward": found, "mean": mean}
    ranks = [f"p@{rank}" for rank in AT]
    at = dict.fromkeys(ranks, found)
    return {"forward": at, "backward": at, "mean": {**at, ranks[0]: mean}}


def _retrieval(what: str, how: str = "") -> Tree:
    """Return the measures of one kind of retrieval, with ``how`` in the titles of their figures."""
    return {
        score: _score(OVER[what], what == "words", f"retrieval of {what} {how}, {score}" if how else "")
        for score in SCORES
    }


def _all(how: str = "") -> Tree:
    return {what: _retrieval(what, how) for what in OVER}


_ROTATED: Tree = {"words": _retrieval("words")}
MEASURES: Tree = {
    "before": Entries(_all("without a rotation")),
    "maps": {name: {"layers": Entries(_all(f"after a rotation by {name}"))} for name in SUPERVISIONS},
    "files": Measure("sentence pairs", "sentence pairs", AT_LEAST_ZERO),
    "static": _all(),
    "embeddings": {"before": _retrieval("words"), **_ROTATED, "static": _ROTATED},
}


class SentenceFiles(StrictModel):
    """Two files of parallel sentences for sentence retrieval, such as Tatoeba (Schwenk et al. 2019)."""

    left: UserFile
    """File of the other language. Line n translates line n of ``right``."""
    right: UserFile
    """File of the source language."""
    words: Splitter = "rules"
    """Tokenization: built-in ``rules`` for raw text, or ``spaces`` for tokenized text."""


class MapsConfig(FitSettings, ProbeSettings):
    """Settings of orthogonal maps between the states of two languages, one for each layer."""

    title: ClassVar[str] = "Rotations"
    about: ClassVar[str] = (
        "Retrieval of translations before and after a rotation of one language onto the other. At every layer, an "
        "orthogonal map is fitted on some sentences and measured on others."
    )
    run: ClassVar[str] = "probes.measures.maps.probe:maps_probe"
    compares_vectors: ClassVar[bool] = True
    measures: ClassVar[Tree] = MEASURES

    supervision: tuple[Supervision, ...] = Field(default=SUPERVISIONS, min_length=1)
    """Vectors to fit maps on. A separate map is fitted for each entry.

    ``dictionary`` uses the mean over all occurrences of each dictionary word, ``parallel`` aligned words in context,
    and ``sentences`` mean vectors of parallel sentences ("Emerging Cross-lingual Structure", sections 5.1.1 to 5.1.3).
    """
    dictionary: UserFile | None = None
    """MUSE file of translations, source words first (null: the most frequent alignment of each word)."""
    test_dictionary: UserFile | None = None
    """MUSE file of translations to measure on (null: a share ``held_out`` of the dictionary).

    A pair of ``dictionary`` with a measured word is not used for fitting.
    """
    held_out: float = Field(default=0.2, gt=0, lt=1)
    """Share of the dictionary words to measure on, drawn at random."""
    lower: bool | None = None
    """Ignore case (null: ignore it if there is a dictionary file)."""
    min_count: int = Field(default=1, ge=1)
    """Minimum count of a candidate in the sentence pairs."""
    candidates: Literal["all", "linked"] = "all"
    """Candidates in retrieval of words in context: ``all`` words of the measured sentences, or ``linked`` words.

    Linked words are words with a word alignment.
    """
    sentences: SentenceFiles | None = None
    """Additional parallel sentences for sentence retrieval."""
    embeddings: bool = False
    """Also measure rows of the embedding matrix, which have no context (section 5.1.1, figure 4a).

    Only words that are one subword in both languages are measured. With ``static``, static vectors of the same words
    are measured, too.
    """
    static: StaticSettings | None = None
    """Static word vectors to measure in addition to the states of the model."""
    save: str | None = None
    """Folder to save the maps in, as SAVE/SUPERVISION, for ``rotation.map`` of a transfer."""

    def check_installed(self) -> None:
        """Raise InputError if static vectors need gensim and it is not installed."""
        check_static(self.static)

    @field_validator("supervision")
    @classmethod
    def _once(cls, value: tuple[Supervision, ...]) -> tuple[Supervision, ...]:
        if len(set(value)) < len(value):
            twice = next(name for name in value if value.count(name) > 1)
            raise InputError(f"{twice!r} is listed twice", hint="remove one of the two", code="duplicate")
        return value

    @property
    def fits(self) -> bool:
        """True, because maps are fitted for each supervision."""
        return True

    @property
    def in_small_letters(self) -> bool:
        """True if words are compared in lower case."""
        return bool(self.dictionary or self.test_dictionary) if self.lower is None else self.lower
