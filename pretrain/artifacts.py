"""The data artifacts that a run trains on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from synthlang.dictionary.ids import IdCandidates, IdDictionary
from synthlang.language import Language
from synthlang.shards import Shards
from synthlang.sources.base import Source
from synthlang.vocabularies import Extension, IdSpace, LanguageTokenizer


@dataclass(frozen=True)
class RunLanguage:
    """One language of a run with its data.

    Attributes:
        spec: The spec of the source.
        language: The language, bound to its word counts and vocabulary.
        copies: Further copies of ``train`` with other random draws.
    """

    name: str
    spec: str
    source: Source
    language: Language
    tokenizer: LanguageTokenizer
    train: Shards
    dev: Shards | None
    copies: tuple[Shards, ...] = ()


@dataclass(frozen=True)
class Parallel:
    """Sentence pairs of two languages. ``rows`` [n, 2] are the rows of the sentences in the shards of each side."""

    left: int
    right: int
    left_shards: Shards
    right_shards: Shards
    rows: NDArray[np.int64]


@dataclass(frozen=True)
class Artifacts:
    """The data that a run trains on. The first language is the source language.

    Attributes:
        candidates: All pairs of ids that are translations, of which ``dictionary`` is a part.
        own_rows: True if each language has a separate embedding.
    """

    id_space: IdSpace
    languages: tuple[RunLanguage, ...]
    dictionary: IdDictionary | None
    candidates: tuple[IdCandidates, ...]
    own_rows: bool
    parallel: tuple[Parallel, ...]
    extension: Extension | None
    parents: dict[str, str]
