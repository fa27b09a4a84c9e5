"""Settings of static word vectors (one for each word, whatever its context); nothing here needs torch."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from typing import Annotated, Any, ClassVar, Literal, get_args

from pydantic import Field, model_validator

from probes.rotation.settings import Method
from synthlang.config import StrictModel
from synthlang.errors import InputError
from synthlang.references import UserFile

Pool = Literal["mean", "max", "min"]
POOLS: tuple[Pool, ...] = get_args(Pool)


class StaticConfig(StrictModel):
    """Settings of the training of word vectors. Most defaults are those of fastText."""

    smoke: ClassVar[Mapping[str, Any]] = {"size": 16, "epochs": 1, "min_count": 1, "buckets": 1000}

    kind: Literal["fasttext", "word2vec", "ppmi"] = "fasttext"
    """The method. In ``fasttext`` a word is the mean of vectors of itself and of its character n-grams. ``ppmi`` takes
    singular vectors of counts and needs no gensim; it reads only ``size``, ``window`` and ``min_count``."""
    size: int = Field(default=300, ge=1)
    """The dimensions. The vectors of Cao et al. 2020 have 300."""
    epochs: int = Field(default=5, ge=1)
    """The number of passes over the text."""
    window: int = Field(default=5, ge=1)
    """The words of context on each side."""
    min_count: int = Field(default=5, ge=1)
    """The least number of occurrences of a word that gets a vector."""
    negative: int = Field(default=5, ge=1)
    """The number of negative samples."""
    sample: float = Field(default=1e-3, ge=0, le=1)
    """The share above which frequent words are downsampled."""
    learning_rate: float = Field(default=0.025, gt=0)
    """The learning rate at the start."""
    skipgram: bool = True
    """Predict the context from the word. ``false`` predicts the word from the context (CBOW)."""
    min_n: int = Field(default=3, ge=1)
    """The shortest character n-grams."""
    max_n: int = Field(default=6, ge=1)
    """The longest character n-grams."""
    buckets: int = Field(default=200_000, ge=1)
    """The number of vectors that n-grams share. Memory is ``4 · size · (buckets + 2 · words)`` bytes. The paper has
    2,000,000."""
    seed: int = Field(default=0, ge=0, lt=2**32)
    """The seed of the training."""

    @model_validator(mode="after")
    def _lengths(self) -> StaticConfig:
        if self.max_n < self.min_n:
            raise ValueError(f"max_n is {self.max_n}, smaller than min_n, {self.min_n}")
        return self

    @property
    def needs_gensim(self) -> bool:
        """Whether the extra ``probe`` must be installed."""
        return self.kind != "ppmi"


class StaticBaseline(StrictModel):
    """One normalised and rotated vector for a word, with its sentence's (Cao et al. 2020, section 3.4)."""

    supervision: Literal["parallel", "dictionary"] = "parallel"
    """The pairs of vectors of the rotation: aligned words, as in the paper, or the ``dictionary``."""
    pools: tuple[Pool, ...] = POOLS
    """The vectors that a sentence adds to its words: mean, largest and smallest values."""
    normalise: Method = "unit-centre-unit"
    """The normalisation of each language, over all its words, before the rotation."""


def no_gensim() -> InputError:
    """Return the error for word vectors that gensim would train, which is not installed."""
    hint = """pip install "synthlang[probe]", or take vectors.kind: ppmi"""
    return InputError("training word vectors needs gensim", keys="vectors.kind", hint=hint, code="extra")


class TrainedVectors(StaticBaseline):
    """Vectors that are trained on each side of the sentence pairs by itself.

    gensim comes with the extra ``probe``. ``vectors.kind: ppmi`` needs none.
    """

    kind: Literal["train"] = "train"
    """Train the vectors."""
    text: Literal["fitted", "apart"] = "fitted"
    """The text of the training. ``fitted`` takes the sentence pairs that maps are fitted on. ``apart`` takes all before
    the measured ones, every other one for each language, so that no language reads translations of the other's text,
    as in vectors of two Wikipedias. Vectors trained on translations have nearly one shape already."""
    vectors: StaticConfig = StaticConfig()
    """The settings of the training."""

    def check_installed(self) -> None:
        """Raise InputError if the training needs a package that is not installed."""
        if self.vectors.needs_gensim and find_spec("gensim") is None:
            raise no_gensim()


class LoadedVectors(StaticBaseline):
    """Vectors that are read from ``.vec`` files."""

    kind: Literal["load"]
    """Load the vectors."""
    left: UserFile
    """The file of the other language."""
    right: UserFile
    """The file of the source language."""
    words: int | None = Field(default=200_000, ge=1)
    """The number of words that are read from the start of each file (null: all)."""
    lower: bool = False
    """Give a word without a vector that of the word in lower case, for files that hold no other words."""

    def check_installed(self) -> None:
        """Do nothing: files of vectors are read without optional packages."""


StaticSettings = Annotated[TrainedVectors | LoadedVectors, Field(discriminator="kind")]


def check_static(static: StaticSettings | None) -> None:
    """Raise InputError, at the key ``static``, if the vectors need a package that is not installed."""
    if static is not None:
        try:
            static.check_installed()
        except InputError as error:
            raise error.inside("static") from error
