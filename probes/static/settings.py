"""Settings of static word vectors, which do not depend on context. The module does not import torch."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from typing import Annotated, Any, ClassVar, Literal, get_args

from pydantic import Field, model_validator

from probes.rotation.settings import Method
from synthlang.config import StrictModel
from synthlang.distribution import install_command
from synthlang.errors import InputError
from synthlang.references import UserFile

Pool = Literal["mean", "max", "min"]
POOLS: tuple[Pool, ...] = get_args(Pool)


class StaticConfig(StrictModel):
    """Settings for training word vectors. Most defaults are those of fastText."""

    smoke: ClassVar[Mapping[str, Any]] = {"size": 16, "epochs": 1, "min_count": 1, "buckets": 1000}

    kind: Literal["fasttext", "word2vec", "ppmi"] = "fasttext"
    """Method: ``fasttext``, ``word2vec`` or ``ppmi``.

    ``fasttext`` represents a word by the mean vector of the word and its character n-grams. ``ppmi`` factorises counts
    of nearby words. It does not need gensim, and uses only ``size``, ``window`` and ``min_count``.
    """
    size: int = Field(default=300, ge=1)
    """Number of dimensions. Cao et al. 2020 use 300."""
    epochs: int = Field(default=5, ge=1)
    """Number of passes over the text."""
    window: int = Field(default=5, ge=1)
    """Number of context words on each side."""
    min_count: int = Field(default=5, ge=1)
    """Minimum number of occurrences of a word. Rarer words have no vector."""
    negative: int = Field(default=5, ge=1)
    """Number of negative samples for each word."""
    sample: float = Field(default=1e-3, ge=0, le=1)
    """Relative frequency above which words are downsampled."""
    learning_rate: float = Field(default=0.025, gt=0)
    """Initial learning rate."""
    skipgram: bool = True
    """Predict the context from the word (skip-gram) if true, else the word from the context (CBOW)."""
    min_n: int = Field(default=3, ge=1)
    """Minimum length of character n-grams."""
    max_n: int = Field(default=6, ge=1)
    """Maximum length of character n-grams."""
    buckets: int = Field(default=200_000, ge=1)
    """Number of hash buckets for n-grams. Bojanowski et al. 2017 use 2,000,000.

    Memory is ``4 · size · (buckets + 2 · words)`` bytes.
    """
    seed: int = Field(default=0, ge=0, lt=2**32)
    """Seed of the training."""

    @model_validator(mode="after")
    def _lengths(self) -> StaticConfig:
        if self.max_n < self.min_n:
            key = "max_n" if "max_n" in self.model_fields_set else "min_n"
            reason = f"min_n is {self.min_n}, but max_n is only {self.max_n}"
            raise InputError(reason, keys=key, hint="increase max_n, or reduce min_n", code="range")
        return self


class StaticBaseline(StrictModel):
    """Static vectors that are normalised, rotated and extended by sentence vectors (Cao et al. 2020, section 3.4)."""

    supervision: Literal["parallel", "dictionary"] = "parallel"
    """Word pairs to fit the rotation on: aligned words (``parallel``, as in the paper) or the ``dictionary``."""
    pools: tuple[Pool, ...] = POOLS
    """Sentence vectors to append to each word: element-wise ``mean``, ``max`` and ``min`` of its words."""
    normalise: Method = "unit-centre-unit"
    """Normalisation of each language before the rotation, over all its words."""


def no_gensim(reason: str) -> InputError:
    """Return the error for training without gensim."""
    hint = f"run {install_command('probe')}, or set kind to ppmi"
    return InputError(reason, keys="kind", hint=hint, code="extra")


class TrainedVectors(StaticBaseline):
    """Static vectors that are trained on each side of the sentence pairs separately.

    All methods except ``ppmi`` need gensim, which the extra ``probe`` installs.
    """

    kind: Literal["train"] = "train"
    """Train the vectors."""
    text: Literal["fitted", "apart"] = "fitted"
    """Training text: the ``fitted`` sentence pairs, or different sentences for the two languages (``apart``).

    ``apart`` divides the sentences before the measured ones between the two languages. The vectors then resemble those
    of two Wikipedias. Vectors trained on translations of each other have almost the same shape before any rotation.
    """
    vectors: StaticConfig = StaticConfig()
    """Settings of the training."""


class LoadedVectors(StaticBaseline):
    """Static vectors from ``.vec`` files."""

    kind: Literal["load"]
    """Load the vectors."""
    left: UserFile
    """File of the target language."""
    right: UserFile
    """File of the source language."""
    words: int | None = Field(default=200_000, ge=1)
    """Maximum number of words to read from the start of each file (null: all)."""
    lower: bool = False
    """Give a word without a vector the vector of its lower-cased form, for files in lower case."""


StaticSettings = Annotated[TrainedVectors | LoadedVectors, Field(discriminator="kind")]


def check_static(static: StaticSettings | None) -> None:
    """Check that the packages that the settings need are installed.

    None stands for no static vectors, and needs no package.

    Raises:
        InputError: gensim is needed but not installed. The error has the key ``static``.
    """
    if isinstance(static, TrainedVectors) and static.vectors.kind != "ppmi" and find_spec("gensim") is None:
        raise no_gensim(f"{static.vectors.kind} needs gensim, which is not installed").inside("static", "vectors")
