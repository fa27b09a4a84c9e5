"""Settings of the probe ``maps``."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field, field_validator

from probes.measures.base import ProbeSettings
from probes.measures.maps.declared import MEASURES, SUPERVISIONS, Supervision
from probes.results.declared import Tree
from probes.rotation.settings import FitSettings
from probes.static.settings import StaticSettings, check_static
from synthlang.config import StrictModel
from synthlang.parallel.text import Splitter
from synthlang.references import UserFile


class SentenceFiles(StrictModel):
    """Two files of parallel lines to retrieve sentences in, such as Tatoeba (Schwenk et al. 2019)."""

    left: UserFile
    """File of the other language. Line n translates line n of ``right``."""
    right: UserFile
    """File of the source language."""
    words: Splitter = "rules"
    """Word splitter: our ``rules`` for raw text, or ``spaces`` that separate the words already."""


class MapsConfig(FitSettings, ProbeSettings):
    """Settings of orthogonal maps between the states of two languages, one for each layer."""

    title: ClassVar[str] = "Rotations"
    about: ClassVar[str] = (
        "Whether a rotation maps the representations of one language onto those of the other: an orthogonal map is "
        "fitted on some sentences and measured on others, at every layer."
    )
    run: ClassVar[str] = "probes.measures.maps.probe:maps_probe"
    measures: ClassVar[Tree] = MEASURES

    supervision: tuple[Supervision, ...] = Field(default=SUPERVISIONS, min_length=1)
    """Pairs of the fits, each by itself: means of all occurrences of the words of a ``dictionary``, linked words in
    context (``parallel``), or mean vectors of parallel ``sentences`` (Emerging Cross-lingual Structure, sections
    5.1.1 to 5.1.3).
    """
    dictionary: UserFile | None = None
    """MUSE file of words of the source and of the other language.

    None: the most frequent link of each word in the sentence pairs.
    """
    test_dictionary: UserFile | None = None
    """MUSE file to measure on. None: ``held_out``. Pairs of the dictionary with a measured word are not fitted on."""
    held_out: float = Field(default=0.2, gt=0, lt=1)
    """Share of the words of the dictionary that is drawn to measure on."""
    lower: bool | None = None
    """Whether words that differ in capital letters only are one word (None: yes if a dictionary is a file)."""
    min_count: int = Field(default=1, ge=1)
    """Smallest count of a candidate in the sentence pairs."""
    candidates: Literal["all", "linked"] = "all"
    """Candidates of the retrieval of words in context: ``all`` words of the measured sentences, or ``linked`` ones."""
    sentences: SentenceFiles | None = None
    """Further parallel sentences to retrieve."""
    embeddings: bool = False
    """Whether rows of the embedding matrix, without context, are measured for words that are one subword on both sides
    (section 5.1.1, figure 4a). With ``static``, its vectors of the same words stand beside them.
    """
    static: StaticSettings | None = None
    """Word vectors without context beside the states of the model."""
    save: str | None = None
    """Folder of the maps: SAVE/SUPERVISION, which ``rotation.map`` of a transfer reads."""

    def check_installed(self) -> None:
        check_static(self.static)

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
