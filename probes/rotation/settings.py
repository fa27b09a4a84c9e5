"""Settings of rotations between two languages, for probes and transfers. The module does not import torch."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from synthlang.config import StrictModel
from synthlang.errors import InputError
from synthlang.parallel.pairs import PairConfig
from synthlang.parallel.prepare import DataConfig
from synthlang.references import OmitDefaultFromHash, UserFile

Method = Literal["none", "centre", "unit", "unit-centre-unit", "iterative", "iterative-as-printed"]
ToUnitLength = Literal["unit", "unit-centre-unit", "iterative", "iterative-as-printed"]
ROUNDS = 5  # Zhang et al. 2019 and their code


class FitSettings(StrictModel):
    """Settings of orthogonal maps, one for each layer."""

    normalise: Method = "iterative"
    """Normalisation of both languages before a map is fitted and applied.

    Conneau et al. 2020, "Emerging Cross-lingual Structure", section 5.1, use ``iterative``. Kulshreshtha et al. 2020
    use ``none`` and ``centre``. Cao et al. 2020, section 3.4, use ``unit-centre-unit``.
    """
    rounds: int = Field(default=ROUNDS, ge=1)
    """Number of rounds of ``iterative`` and ``iterative-as-printed``."""
    moves: Literal["target", "source"] = "target"
    """Language whose states are mapped to the space of the other language."""
    words: int | None = Field(default=100_000, ge=2)
    """Maximum number of aligned words or translations to use (null: all).

    A normalisation with centring stores their vectors in temporary files (in TMPDIR), with 8 · layers · d bytes for
    each word.
    """


class RotationConfig(StrictModel):
    """An orthogonal map between the languages at each layer (Kulshreshtha et al. 2020, section 2).

    The map is fitted before fine-tuning and then fixed. The pretrained weights may be fine-tuned (``features.tune:
    all``, as in Cao et al. 2020, table 1) or frozen (``none``).
    """

    pairs: dict[str, PairConfig | None] = Field(default_factory=dict)
    """Sentence pairs of one pair of languages (default: the pretraining text and its derived copy).

    The target language is ``left``, and the source language is ``right``.
    """
    moves: Literal["source", "target"] = "source"
    """Language to map: ``source`` (Kulshreshtha et al.) or ``target`` (Conneau et al. 2020, section 5.1.2)."""
    centre: bool = True
    """Centre both languages, and move the mapped language to the mean of the other language (NormRotateAlign)."""
    normalise: Annotated[ToUnitLength | None, OmitDefaultFromHash()] = None
    """Normalisation to unit length in place of ``centre``, such as ``iterative`` (Conneau et al. 2020, section 5.1).

    Both languages are normalised when the map is fitted and when features are read, so the head is trained on
    normalised states. The means that are subtracted are those of the fitted words of each language.
    """
    supervision: Literal["parallel", "dictionary", "sentences"] = "parallel"
    """Vectors to fit the map on: aligned words in context (``parallel``), ``dictionary`` words, or ``sentences``.

    A dictionary word has the mean vector of all its occurrences (section 2.2.1). A sentence has the mean vector of its
    tokens (Aldarmaki and Diab 2019, as in Cao et al. 2020, table 1).
    """
    dictionary: UserFile | None = None
    """MUSE file, source words first, for ``supervision: dictionary`` (default: the most frequent word alignments)."""
    lower: bool | None = None
    """Ignore case (default: ignore it if there is a ``dictionary`` file)."""
    data: DataConfig = DataConfig(dev=0, sentences=30_000)
    """Filters for the sentence pairs."""
    words: int = Field(default=100_000, ge=2)
    """Maximum number of pairs of words or sentences to use."""
    map: UserFile | None = None
    """Folder of maps that the probe ``maps`` saved for the same models and languages (SAVE/SUPERVISION).

    With a folder, no map is fitted, and all other keys except ``moves`` are ignored.
    """

    @property
    def in_small_letters(self) -> bool:
        """True if words are compared in lower case."""
        return self.dictionary is not None if self.lower is None else self.lower

    @model_validator(mode="after")
    def _read(self) -> RotationConfig:
        if self.dictionary is not None and self.supervision != "dictionary":
            reason = f"has no effect with supervision: {self.supervision}"
            hint = "set supervision: dictionary, or remove this key"
            raise InputError(reason, keys="dictionary", hint=hint, code="no_effect")
        return self
