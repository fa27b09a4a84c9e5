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
    """One language of a run with its data; ``spec`` names the source, ``language`` is bound to what it needs.

    copies   of ``train``, with other draws
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
    """Sentence pairs of two languages: ``rows`` [n, 2] are the sentences' rows in the shards of each side."""

    left: int
    right: int
    left_shards: Shards
    right_shards: Shards
    rows: NDArray[np.int64]


@dataclass(frozen=True)
class Artifacts:
    """What a run trains on; the first language is the parent.

    candidates   every pair of ids that is known to be translations, of which ``dictionary`` is a part
    own_rows     whether each language has an embedding of its own
    """

    id_space: IdSpace
    languages: tuple[RunLanguage, ...]
    dictionary: IdDictionary | None
    candidates: tuple[IdCandidates, ...]
    own_rows: bool
    parallel: tuple[Parallel, ...]
    extension: Extension | None
    parents: dict[str, str]
