"""Settings of the probe ``maps``."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field, field_validator

from probes.measures.base import ProbeSettings
from probes.measures.maps.declared import MEASURES, SUPERVISIONS, Supervision
from probes.results.declared import Tree
from probes.rotation.settings import FitSettings
from probes.static.settings import StaticSettings
from synthlang.config import StrictModel
from synthlang.errors import InputError
from synthlang.parallel.text import Splitter
from synthlang.references import UserFile


class SentenceFiles(StrictModel):
    """Two files of parallel lines to retrieve sentences in, such as Tatoeba (Schwenk et al. 2019).

    left, right   the other language and the parent; line n translates line n
    words         our ``rules`` find the words of raw text, or ``spaces`` separate them already
    """

    left: UserFile
    right: UserFile
    words: Splitter = "rules"


class MapsConfig(FitSettings, ProbeSettings):
    """Orthogonal maps between the languages' states, one for each layer, and what they are good for.

    supervision      what they are fitted on, each by itself: the mean of all occurrences of the words of a
                     ``dictionary``, linked words in context (``parallel``), mean vectors of parallel ``sentences``
                     (Emerging Cross-lingual Structure, sections 5.1.1 to 5.1.3)
    dictionary       a MUSE file of words of the parent and of the other language; none: the most frequent link of each
                     word in the sentence pairs
    test_dictionary  the same to measure on; none: ``held_out``, the share of the dictionary's words that is drawn.
                     Pairs of the dictionary with a word that is measured are not fitted on
    lower            words that differ in capital letters only are one; none: yes where a dictionary is a file
    min_count        rarer words of the sentence pairs are no candidates
    candidates       of the retrieval of words in context: ``all`` words of the measured sentences, or ``linked`` ones
    sentences        further parallel sentences to retrieve
    embeddings       also the rows of the embedding matrix, without context, of words that are one subword on both
                     sides (section 5.1.1, figure 4a); with ``static`` its vectors of the same words beside them
    static           word vectors without context beside the model's
    save             a folder for the maps: SAVE/SUPERVISION, which ``rotation.map`` of a transfer reads
    """

    title: ClassVar[str] = "Rotations"
    about: ClassVar[str] = (
        "Whether a rotation maps the representations of one language onto those of the other: an orthogonal map is "
        "fitted on some sentences and measured on others, at every layer."
    )
    run: ClassVar[str] = "probes.measures.maps.probe:maps_probe"
    measures: ClassVar[Tree] = MEASURES

    supervision: tuple[Supervision, ...] = Field(default=SUPERVISIONS, min_length=1)
    dictionary: UserFile | None = None
    test_dictionary: UserFile | None = None
    held_out: float = Field(default=0.2, gt=0, lt=1)
    lower: bool | None = None
    min_count: int = Field(default=1, ge=1)
    candidates: Literal["all", "linked"] = "all"
    sentences: SentenceFiles | None = None
    embeddings: bool = False
    static: StaticSettings | None = None
    save: str | None = None

    def check_installed(self) -> None:
        if self.static is not None:
            try:
                self.static.check_installed()
            except InputError as error:
                raise error.inside("static") from error

    @field_validator("supervision")
    @classmethod
    def _once(cls, value: tuple[Supervision, ...]) -> tuple[Supervision, ...]:
        if len(set(value)) < len(value):
            raise ValueError("names a supervision twice")
        return value

    @property
    def fits(self) -> bool:
        """Whether it fits something."""
        return True

    @property
    def in_small_letters(self) -> bool:
        """Whether words are compared in small letters."""
        return bool(self.dictionary or self.test_dictionary) if self.lower is None else self.lower
