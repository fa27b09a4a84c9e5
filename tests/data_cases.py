"""Shards of given sentences, and a masker that shows what it was given."""

from types import SimpleNamespace
from typing import Any

import numpy as np

from pretrain.data.batch import Batch
from pretrain.objectives.table import NAMES
from synthlang.shards import Shards
from synthlang.vocabularies import OURS


def shards_of(sentences):
    offsets = np.cumsum([0, *map(len, sentences)]).astype(np.int64)
    tokens = np.asarray([t for s in sentences for t in s], np.uint16)
    return Shards(tokens, offsets, np.bincount(tokens), np.arange(len(sentences)), {"fingerprint": "x"})


def random_sentences(count, longest, seed=0, low=5, shortest=0):
    """Sentence n begins with the tokens of n in base 50, so that no two are alike."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(shortest, longest + 1, count)
    made = [rng.integers(low, low + 50, length).tolist() for length in lengths]
    return [[low + n % 50, low + n // 50 % 50, *s][: len(s)] for n, s in enumerate(made)]


def parallel_of(left, right, rows=None, members=(0, 1)):
    pairs = np.arange(len(left)).repeat(2).reshape(-1, 2) if rows is None else np.asarray(rows)
    a, b = members
    return SimpleNamespace(left=a, right=b, left_shards=shards_of(left), right_shards=shards_of(right), rows=pairs)


def packed(sentences, width):
    """Return the expected row."""
    row = [OURS.bos, *(t for s in sentences for t in [*s, OURS.eos])]
    assert len(row) <= width
    return row + [OURS.pad] * (width - len(row))


class ShowingMasker:
    """Masks one position of each row. Its label is the sample, its column the language of the source."""

    def mask(self, rows, source, samples):
        column = np.full((len(samples), 1), source.languages[0])
        term = np.full_like(column, NAMES.index(source.term))
        labels = samples[:, None]
        return Batch(
            rows.ids, rows.languages, column, labels, term, rows.positions, rows.valid, rows.sentences, (), samples
        )


SHOWING: Any = ShowingMasker()
