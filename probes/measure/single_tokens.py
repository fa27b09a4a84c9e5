"""Words that are one token of a model."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from probes.transfer.batch import Reader
from synthlang.corpus import Corpus

Ids = NDArray[np.int64]


def single_tokens(reader: Reader, words: Sequence[str]) -> Ids:
    """[words] the id of each word that is one token, −1 for others."""
    encoded = reader.encode(Corpus.of([{"form": list(words)}]))
    first, pieces = encoded.word_offsets[:-1], np.diff(encoded.word_offsets)
    padded = np.append(encoded.ids, -1).astype(np.int64)
    single: Ids = np.where(pieces == 1, padded[np.minimum(first, len(encoded.ids))], -1)
    return single


def special_tokens(reader: Reader) -> Ids:
    """The ids of no word: the five, and others that the tokenizer calls special."""
    added = reader.tokenizer.tokenizer.get_added_tokens_decoder()
    named = [number for number, token in added.items() if token.special]
    return np.unique(np.asarray([*reader.specials.all, *named], np.int64))
