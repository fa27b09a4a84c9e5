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
        name: Name of the language in metrics and exports.
        spec: The source as written in the config.
        source: The opened source of the sentences.
        language: The language, bound to its word counts and vocabulary.
        tokenizer: The tokenizer of the language.
        train: The token ids of the training text.
        dev: The token ids of the dev split, or None if the source has none.
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
    """Sentence pairs of two languages.

    Attributes:
        left: Number of the language of the left side among the languages of the run.
        right: Number of the language of the right side.
        left_shards: The token ids of the left text.
        right_shards: The token ids of the right text.
        rows: Rows of the sentences of each pair in the left and in the right text, [n, 2] int64.
    """

    left: int
    right: int
    left_shards: Shards
    right_shards: Shards
    rows: NDArray[np.int64]


@dataclass(frozen=True)
class Artifacts:
    """The data that a run trains on. The first language is the source language.

    Attributes:
        id_space: The ids of all languages, with their tokenizers.
        languages: The languages and their texts.
        dictionary: The word pairs of the terms dict and align, or None if no term needs them.
        candidates: All pairs of ids that are translations, for each language except the first. ``dictionary`` has some
            of these pairs.
        own_rows: True if each language has a separate embedding.
        parallel: Sentence pairs, or () if no term needs them.
        extension: New subwords that are added to the checkpoint from which the run starts, or None.
        parents: Fingerprint of each artifact by its name.
    """

    id_space: IdSpace
    languages: tuple[RunLanguage, ...]
    dictionary: IdDictionary | None
    candidates: tuple[IdCandidates, ...]
    own_rows: bool
    parallel: tuple[Parallel, ...]
    extension: Extension | None
    parents: dict[str, str]
