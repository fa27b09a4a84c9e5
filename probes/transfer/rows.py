"""One text an item as rows of tokens, ``<s> … </s>``: a whole set at once, and padded batches of any rows of it.

text     the cats .            words      the   cats   .
tokens   <s> Ġthe Ġcat s Ġ. </s>  columns  1 1   2 3    4 4
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from pretrain.data.packing import ranges
from pretrain.model.text import Text
from probes.transfer.batch import Reader
from synthlang.tasks.batch import TaskBatch

Rows = NDArray[np.int64]

ROUND_WIDTH = 8  # rows are padded to a multiple of it, so that few shapes occur


@dataclass(frozen=True)
class TokenRows:
    """The rows of a set.

    ids       [tokens + 1] the rows one after another with their ``<s>`` and ``</s>``; the last one fills up rows
    bounds    [rows + 1] where each row starts
    columns   [words, 2] first and last column of the subwords of each word of the batch, in the row of its text
    pieces    [words] how many subwords each word has
    whole     [words] whether all of them are in the row, and there is one
    """

    reader: Reader
    ids: Rows
    bounds: Rows
    columns: Rows
    pieces: Rows
    whole: NDArray[np.bool_]

    def text(self, rows: Rows) -> Text:
        """The rows with these numbers, padded to the longest of them, rounded up."""
        at = places(self.bounds, rows, ROUND_WIDTH)
        return Text.of(torch.from_numpy(self.ids[at]), self.reader.member, torch.from_numpy(at >= 0)).without_padding()


def token_rows(batch: TaskBatch, reader: Reader, length: int) -> TokenRows:
    """The first text of every item as a row of at most ``length`` tokens; what is longer is cut.

    InputError for a language of tokens that the model reads as words.
    """
    encoded = reader.encode(batch.corpus)
    starts, pieces = encoded.word_offsets[:-1], np.diff(encoded.word_offsets)
    text_starts = encoded.word_offsets[batch.word_offsets]  # [texts + 1] in tokens
    kept = np.minimum(np.diff(text_starts), length - 2)  # [texts] tokens of each in its row
    text_of_word = np.repeat(np.arange(len(kept)), np.diff(batch.word_offsets))
    first = 1 + starts - text_starts[text_of_word]
    columns = np.stack([first, first + pieces - 1], axis=1)
    whole = (pieces > 0) & (columns[:, 1] <= kept[text_of_word])
    ids, bounds = _with_specials(encoded.ids, text_starts, kept, batch.texts[:, 0], reader)
    return TokenRows(reader, ids, bounds, columns, pieces, whole)


def _with_specials(tokens: Rows, text_starts: Rows, kept: Rows, texts: Rows, reader: Reader) -> tuple[Rows, Rows]:
    """The tokens of each item's text between ``<s>`` and ``</s>``, and the bounds of the rows."""
    index, _ = ranges(text_starts[texts], text_starts[texts] + kept[texts])
    bounds = np.concatenate([[0], np.cumsum(kept[texts] + 2)]).astype(np.int64)
    ids = np.empty(int(bounds[-1]) + 1, np.int64)
    is_token = np.ones(len(ids), bool)
    for at, special in ((bounds[:-1], reader.specials.bos), (bounds[1:] - 1, reader.specials.eos)):
        ids[at], is_token[at] = special, False
    ids[-1], is_token[-1] = reader.specials.pad, False
    ids[is_token] = tokens[index]
    return ids, bounds


def places(bounds: Rows, rows: Rows, multiple: int = 1) -> Rows:
    """[rows, width] where the values of lists stand that lie one after another; −1 beyond the end of a list.

    Of values with one more at their end that one is what fills up rows. Width is that of the longest of the
    lists, at least 1, rounded up to a ``multiple``.

    >>> places(np.array([0, 1, 4]), np.array([1, 0]))
    array([[ 1,  2,  3],
           [ 0, -1, -1]])
    """
    starts, stops = bounds[rows], bounds[rows + 1]
    width = -(-max(int((stops - starts).max(initial=0)), 1) // multiple) * multiple
    at = starts[:, None] + np.arange(width)
    return np.where(at < stops[:, None], at, -1)
