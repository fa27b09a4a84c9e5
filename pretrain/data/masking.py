"""Mask exactly k positions of each row by BERT's 80/10/10 rule, and apply the changes of other terms.

Masking is a pure function of (seed, sample, column), so a row has the same masks in any batch. The label of a masked
position is predicted. A masked position shows (Devlin et al. 2019, section 3.1):

    80 %   <mask>
    10 %   a random word
    10 %   the word itself
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pretrain.data.batch import IGNORE, Batch, Rows, RowSource
from synthlang.rng import key_of, random_bits, uniform
from synthlang.vocabularies import Specials

SHARE_MASK, SHARE_RANDOM = 0.8, 0.1
LAST = np.uint64(1 << 63)  # larger than any draw
Ids = NDArray[np.int64]


@dataclass(frozen=True)
class Masked:
    """The masked positions of some rows. Each array is [rows, k] int64, and ``labelled`` is [rows, k] bool.

    Attributes:
        columns: Columns of the positions.
        words: Ids of the words.
        labelled: True where a label is predicted.
        shown: Ids in the input in place of the words.
        languages: Numbers of the languages of the shown ids.
        labels: Ids to predict, or IGNORE where nothing is predicted.
    """

    columns: Ids
    words: Ids
    labelled: NDArray[np.bool_]
    shown: Ids
    languages: Ids
    labels: Ids


Draw = Callable[[str], NDArray[np.float64]]
"""Function from a name to uniform numbers in [0, 1), [rows, k]. Each name gives different numbers."""
Relabel = Callable[[Masked, Draw], tuple[Masked, NDArray[np.bool_]]]
"""Function that changes masked positions for a term, and flags the positions of the term, [rows, k] bool."""


class WordTables:
    """The ids from which a random word of each language is drawn, as ``tables`` with one array [ids] per language."""

    def __init__(self, tables: Sequence[Ids]) -> None:
        self.sizes = np.asarray([len(table) for table in tables], np.int64)
        self.starts = np.cumsum(self.sizes) - self.sizes
        self.flat = np.concatenate(tables)

    def draw(self, languages: Ids, random: NDArray[np.float64]) -> Ids:
        """Return a random word id for each of ``languages``, selected by uniform numbers ``random`` in [0, 1).

        Both arguments and the result have one shape.
        """
        sizes = self.sizes[languages]
        drawn: Ids = self.flat[self.starts[languages] + np.minimum((random * sizes).astype(np.int64), sizes - 1)]
        return drawn


def random_word_tables(trained: Sequence[Ids], choice: str) -> WordTables:
    """Return the tables of random words, where ``trained`` are the ids in the training text of each language.

    ``choice`` is the setting ``random_words``. A random word has any language with ``all`` (XLM), the language of the
    token with ``same-language``, or the first language with ``source-only`` (ALIGN-MLM's code).
    """
    if choice == "same-language":
        return WordTables(trained)
    table = trained[0] if choice == "source-only" else np.unique(np.concatenate(trained))
    return WordTables([table] * len(trained))


def masked_per_row(rate: float, length: int) -> int:
    """Return k = round(rate · length), the number of masked positions of a row of ``length`` tokens, at least 1."""
    return max(1, round(rate * length))


class Masker:
    """Masking of rows of ``length`` tokens. Specials among the ``size`` ids are never masked.

    Args:
        specials: The special ids.
        size: Number of ids.
        rate: Share of the positions that are masked.
        length: Number of tokens of a row.
        tables: Ids from which random words are drawn.
        seed: Seed of the masks.
        terms: Names of the terms, whose numbers batches use.
        relabels: Changes of the masked positions by term, in order.
    """

    def __init__(
        self,
        specials: Specials,
        size: int,
        rate: float,
        length: int,
        tables: WordTables,
        seed: int,
        terms: Sequence[str],
        relabels: Mapping[str, Relabel],
    ) -> None:
        self.rate, self.k, self.tables, self.seed = rate, masked_per_row(rate, length), tables, seed
        self.terms, self.relabels = tuple(terms), relabels
        self.length, self.mask_id = length, specials.mask
        self.is_word = np.ones(size, bool)
        self.is_word[list(specials.all)] = False
        # A draw and its column are one number, so sorting finds both.
        self._column_bits = np.uint64((1 << (length - 1).bit_length()) - 1)

    def mask(self, rows: Rows, source: RowSource, samples: Ids) -> Batch:
        """Mask rows, whose numbers in the whole run are ``samples`` [rows].

        Masked positions are sorted by column. Rows without flags of padding (``valid``) have k labels, or fewer if they
        have fewer words. Rows with such flags have labels for the share ``rate`` of their words, at most k, and at
        least one if they have a word. All other masked positions have the label IGNORE.
        """
        assert rows.ids.shape[1] == self.length, f"rows of {self.length} tokens"
        columns, labelled = self._choose(rows, samples)

        def draw(name: str) -> NDArray[np.float64]:
            return uniform(key_of(name, self.seed), samples[:, None], columns)

        languages, words = (np.take_along_axis(a, columns, axis=1) for a in (rows.languages, rows.ids))
        shown = np.where(labelled, self._noise(languages, words, draw), words)
        masked = Masked(columns, words, labelled, shown, languages, np.where(labelled, words, IGNORE))
        terms = np.full(columns.shape, self.terms.index(source.term), np.int64)
        for name, relabel in self.relabels.items():
            masked, taken = relabel(masked, draw)
            terms[taken] = self.terms.index(name)
        ids, languages = rows.ids.copy(), rows.languages.copy()
        np.put_along_axis(ids, columns, masked.shown, axis=1)
        np.put_along_axis(languages, columns, masked.languages, axis=1)
        labels = masked.labels
        return Batch(ids, languages, columns, labels, terms, rows.positions, rows.valid, rows.sentences, (), samples)

    def _choose(self, rows: Rows, samples: Ids) -> tuple[Ids, NDArray[np.bool_]]:
        """Draw k columns of each row in ascending order, and flag the columns that have a label, [rows, k] each."""
        column = np.arange(rows.ids.shape[1], dtype=np.uint64)
        draws = random_bits(key_of("slots", self.seed), samples[:, None], column)
        draws >>= np.uint64(1)
        draws &= ~self._column_bits
        draws |= column
        maskable = self.is_word[rows.ids]
        if rows.valid is not None:
            maskable &= rows.valid
        np.bitwise_or(draws, LAST, out=draws, where=~maskable)
        draws.partition(self.k - 1, axis=1)
        first = np.sort(draws[:, : self.k], axis=1)
        labelled = first < LAST
        if rows.valid is not None:
            words = maskable.sum(axis=1)
            labelled &= np.arange(self.k) < np.maximum(np.rint(self.rate * words), 1)[:, None]
        columns = (first & self._column_bits).astype(np.int64)
        order = np.argsort(columns, axis=1)
        return np.take_along_axis(columns, order, axis=1), np.take_along_axis(labelled, order, axis=1)

    def _noise(self, languages: Ids, words: Ids, draw: Draw) -> Ids:
        """Return the input ids of masked positions by the 80/10/10 rule, [rows, k]."""
        action, random = draw("action"), self.tables.draw(languages, draw("word"))
        return np.where(action < SHARE_MASK, self.mask_id, np.where(action < SHARE_MASK + SHARE_RANDOM, random, words))
