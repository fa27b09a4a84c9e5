"""What every transform is: a frozen spec with a strength, and a rewrite of batches."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from synthlang.config import StrictModel
from synthlang.corpus import Column, Corpus
from synthlang.errors import InputError
from synthlang.files import user_path
from synthlang.rewrite import Rewrite
from synthlang.rng import key_of, uniform

MOST_WORDS = 1_000_000  # of a piece of a sentence


class Transform(StrictModel):
    """A transform; ``strength`` is its dial from 0 (identity) to 1 (full)."""

    short_name: ClassVar[tuple[str, str] | None] = None  # in names of languages, and the option after @: reorder@ga
    file_fields: ClassVar[tuple[str, ...]] = ()  # options that may name a file

    kind: str
    strength: float = Field(default=1.0, ge=0.0, le=1.0)

    @property
    def requires(self) -> tuple[str, ...]:
        """The columns it reads besides the forms; a subclass may also give a ClassVar."""
        return ()

    @property
    def invertible(self) -> bool:
        """Whether ``inverse`` restores the parent exactly; a subclass may also give a ClassVar."""
        return True

    @property
    def needs_counts(self) -> bool:
        """Whether ``bind`` must come first: the transform depends on how often words occur."""
        return False

    def bind(self, counts: Mapping[str, int]) -> Self:
        """The transform that knows how often each word occurs in the parent's training text."""
        del counts
        return self

    def redrawn(self, number: int) -> Self:
        """The transform with other draws where it draws for each word of a text anew, numbered; itself if it does not.

        What is of the language stays: which types of words change, and how.
        """
        del number
        return self

    def files(self) -> dict[str, Path]:
        """The files that options name, by option."""
        named = {field: getattr(self, field) for field in self.file_fields}
        paths = {field: user_path(value) for field, value in named.items() if value is not None}
        return {field: path for field, path in paths.items() if path.is_file()}

    def identity(self) -> dict[str, Any]:
        """What the fingerprint of a language takes: the settings, files by their content."""
        return self.model_dump(mode="json")

    @abstractmethod
    def rewrite(self, corpus: Corpus, key: int) -> Rewrite:
        """The rewrite of a batch: a function of its sentences, their ids and ``key``."""

    def inverse(self, corpus: Corpus, key: int) -> Rewrite:
        """The rewrite that undoes ``rewrite`` with the same key on its output."""
        del corpus, key
        raise InputError(f"{self.kind} has no inverse; the column origin of the data set has the parent's order")


def chosen_sentences(corpus: Corpus, key: int, strength: float) -> NDArray[np.bool_]:
    """[sentences] a share ``strength`` of them, by their ids; a larger share holds every smaller one."""
    return uniform(key_of("sentence", key), corpus.ids) < strength


def parent_words(corpus: Corpus) -> Column:
    """The parent's word of each word, ``_`` for an inserted one; of a corpus that is none of a language, its words."""
    return corpus.columns.get("parent", corpus.form)


def check_columns(corpus: Corpus, transform: Transform) -> None:
    """Raise InputError if the corpus lacks a column that the transform reads."""
    missing = [name for name in transform.requires if name not in corpus.columns]
    if missing and len(corpus):
        columns = ", ".join(name for name in corpus.columns if name != "parent")
        raise InputError(f"{transform.kind} needs the column {missing[0]!r}; the corpus has {columns}")
