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
    """Settings of the training, the defaults mostly those of fastText.

    kind            ``fasttext``: a word is the mean of vectors of itself and its character n-grams; ``word2vec``; or
                    ``ppmi``, singular vectors of counts, which need no gensim: of the keys below only
                    ``size``, ``window`` and ``min_count`` are theirs
    size            dimensions; the vectors of Cao et al. 2020 have 300
    min_count       rarer words have no vector
    sample          words more frequent than about this share are thinned out
    min_n, max_n    lengths of n-grams
    buckets         n-grams share so many vectors; memory is ``4 · size · (buckets + 2 · words)`` bytes. The paper has
                    2,000,000
    """

    smoke: ClassVar[Mapping[str, Any]] = {"size": 16, "epochs": 1, "min_count": 1, "buckets": 1000}

    kind: Literal["fasttext", "word2vec", "ppmi"] = "fasttext"
    size: int = Field(default=300, ge=1)
    epochs: int = Field(default=5, ge=1)
    window: int = Field(default=5, ge=1)
    min_count: int = Field(default=5, ge=1)
    negative: int = Field(default=5, ge=1)
    sample: float = Field(default=1e-3, ge=0, le=1)
    learning_rate: float = Field(default=0.025, gt=0)
    skipgram: bool = True
    min_n: int = Field(default=3, ge=1)
    max_n: int = Field(default=6, ge=1)
    buckets: int = Field(default=200_000, ge=1)
    seed: int = Field(default=0, ge=0, lt=2**32)

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
    """One vector for a word (Cao et al. 2020, section 3.4), for comparison: normalised, rotated, with its sentence's.

    supervision   ``parallel``: linked words, as the paper has it, or the ``dictionary``
    pools         what a sentence adds to its words: mean, largest and smallest values
    normalise     of each language, over all its words, before the rotation
    """

    supervision: Literal["parallel", "dictionary"] = "parallel"
    pools: tuple[Pool, ...] = POOLS
    normalise: Method = "unit-centre-unit"


def no_gensim() -> InputError:
    """Return the error for word vectors that gensim would train, which is not installed."""
    hint = """pip install "synthlang[probe]", or take vectors.kind: ppmi"""
    return InputError("training word vectors needs gensim", keys="vectors.kind", hint=hint, code="extra")


class TrainedVectors(StaticBaseline):
    """Trained on each side of the sentence pairs by itself; gensim comes with the extra ``probe``, ``ppmi`` needs none.

    text   the sentence pairs that maps are ``fitted`` on; or all before those that are measured, with ``apart`` every
           other one for each language, so that no language reads what translates the other's text, as in vectors of
           two Wikipedias (vectors trained on translations have nearly one shape already)
    """

    kind: Literal["train"] = "train"
    text: Literal["fitted", "apart"] = "fitted"
    vectors: StaticConfig = StaticConfig()

    def check_installed(self) -> None:
        """Raise InputError if the training needs a package that is not installed."""
        if self.vectors.needs_gensim and find_spec("gensim") is None:
            raise no_gensim()


class LoadedVectors(StaticBaseline):
    """Read from ``.vec`` files of the other language (``left``) and the parent (``right``): their first ``words``.

    lower   a word without a vector gets that of the word in small letters, for files that have no others
    """

    kind: Literal["load"]
    left: UserFile
    right: UserFile
    words: int | None = Field(default=200_000, ge=1)
    lower: bool = False

    def check_installed(self) -> None:
        """Do nothing: files of vectors are read without optional packages."""


StaticSettings = Annotated[TrainedVectors | LoadedVectors, Field(discriminator="kind")]
