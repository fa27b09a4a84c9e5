"""Settings of rotations between two languages: of the probes, and of the features of a transfer; without torch."""

from __future__ import annotations

from typing import Annotated, Literal, get_args

from pydantic import Field, model_validator

from synthlang.config import StrictModel
from synthlang.parallel.pairs import PairConfig
from synthlang.parallel.prepare import DataConfig
from synthlang.references import OmitDefaultFromHash, UserFile

Method = Literal["none", "centre", "unit", "unit-centre-unit", "iterative", "iterative-as-printed"]
METHODS: tuple[Method, ...] = get_args(Method)
ToUnitLength = Literal["unit", "unit-centre-unit", "iterative", "iterative-as-printed"]
ROUNDS = 5  # Zhang et al. 2019 and their code


class FitSettings(StrictModel):
    """Settings of the orthogonal map of each layer."""

    normalise: Method = "iterative"
    """The normalisation of both languages before a map is fitted and applied: ``iterative`` (Emerging Cross-lingual
    Structure, section 5.1), ``none`` or ``centre`` (Kulshreshtha et al. 2020), or ``unit-centre-unit`` (Cao et al.
    2020, section 3.4)."""
    rounds: int = Field(default=ROUNDS, ge=1)
    """The rounds of ``iterative``."""
    moves: Literal["target", "source"] = "target"
    """The language whose states are mapped to those of the other."""
    words: int | None = Field(default=100_000, ge=2)
    """The number of aligned words or translations that are used, at most (null: all). With a normalisation that
    centres, their vectors wait in a temporary file (TMPDIR) of 8 · layers · d bytes for each word."""


class RotationConfig(StrictModel):
    """An orthogonal map of each layer between the languages (Kulshreshtha et al. 2020, section 2).

    The map is fitted before the model is fine-tuned and stays as it is. The body may be fine-tuned below it
    (``features.tune: all``, Cao et al. 2020, table 1) or stay as it is (``none``).
    """

    pairs: dict[str, PairConfig | None] = Field(default_factory=dict)
    """One pair of languages, ``left`` the target and ``right`` the source (default: the pretraining text in the derived
    language and in the source language, which are aligned by construction)."""
    moves: Literal["source", "target"] = "source"
    """The language whose features are mapped into the space of the other: the ``source`` (Kulshreshtha et al.) or the
    ``target`` (Conneau et al. 2020, section 5.1.2)."""
    centre: bool = True
    """Centre both languages first, and move the mapped one to the other's mean (NormRotateAlign, equations 4 and 5)."""
    normalise: Annotated[ToUnitLength | None, OmitDefaultFromHash()] = None
    """A normalisation in the place of ``centre``, which is not read then. The states of both languages are brought to
    unit length, as ``iterative`` does (Conneau et al. 2020, section 5.1), before the map is fitted and wherever
    features are read. The means that are subtracted are those of the words that the map was fitted on, for each
    language its own. A length cannot be given back once it is gone, so the head learns on normalised states."""
    supervision: Literal["parallel", "dictionary", "sentences"] = "parallel"
    """The pairs of vectors: ``parallel`` takes aligned words in context, ``dictionary`` the means of all occurrences of
    words that translate each other (section 2.2.1), and ``sentences`` the means of the tokens of parallel sentences
    (Aldarmaki and Diab 2019, as in Cao et al. 2020, table 1)."""
    dictionary: UserFile | None = None
    """A MUSE file of words of the source language and of the other language, for ``supervision: dictionary`` (section
    4.1; default: the most frequent word alignment of each word in the sentence pairs)."""
    lower: bool | None = None
    """Treat words that differ in case only as one (default: yes where ``dictionary`` is a file)."""
    data: DataConfig = DataConfig(dev=0, sentences=30_000)
    """The filters of the sentence pairs."""
    words: int = Field(default=100_000, ge=2)
    """The number of pairs of words, or of sentences, that are used, at most."""
    map: UserFile | None = None
    """A folder of maps that the probe ``maps`` saved for these models and languages (SAVE/SUPERVISION). Nothing is
    fitted then, and of the other keys only ``moves`` counts."""

    @property
    def in_small_letters(self) -> bool:
        """Whether words are compared in small letters."""
        return self.dictionary is not None if self.lower is None else self.lower

    @model_validator(mode="after")
    def _read(self) -> RotationConfig:
        if self.dictionary is not None and self.supervision != "dictionary":
            told = f"dictionary is not read with supervision: {self.supervision}"
            raise ValueError(f"{told}; set supervision: dictionary, or leave the file out")
        return self
