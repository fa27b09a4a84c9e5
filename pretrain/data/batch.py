"""Rows of text before masking, the interface of sources of rows, and batches of masked rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Span = tuple[int, int, int]  # columns start … stop − 1 belong to a language
IGNORE = -100  # PyTorch's cross entropy skips this label


@dataclass(frozen=True)
class Rows:
    """Rows of ``length`` tokens each.

    Attributes:
        ids: Token ids, [rows, length] int64.
        languages: Number of the language of each token, [rows, length] int64. Padding has the first language of its
            row.
        positions: 0-based positions, [rows, length] int64. None means 0 … length − 1 in every row.
        valid: False for padding, [rows, length] bool. None means that there is no padding.
        sentences: Number of each token's sentence (or sentence pair) in the row, to which it attends, or −1 for
            padding, [rows, length] int64. None means that every token attends to the whole row.
    """

    ids: NDArray[np.int64]
    languages: NDArray[np.int64]
    positions: NDArray[np.int64] | None = None
    valid: NDArray[np.bool_] | None = None
    sentences: NDArray[np.int64] | None = None


class RowSource(Protocol):
    """A finite list of rows with random access, which all have the same languages and term.

    Attributes:
        name: The language or languages, as in ``en`` and ``en+fr``, for messages.
        term: Name of the term to which labelled positions belong, unless another term changes them.
        languages: Numbers of the languages of the rows.
        length: Number of tokens of a row.
        rows: Number of rows of an epoch.
        size: Number of sentences or drawn sentence pairs, including sentences and pairs that are left out.
        too_long: Number of sentences or sentence pairs that are left out because they do not fit into a row.
        counts: Counts of drawn and omitted sentences or sentence pairs by reason, or of tokens after the last row.
        optional: Names of the optional fields of Rows that ``read`` sets.
        causal: True if the rows are read from left to right.
        spans: The columns of each language: one span for all columns, or one for each half.
    """

    name: str
    term: str
    languages: tuple[int, ...]
    length: int
    rows: int
    size: int
    too_long: int
    counts: dict[str, int]
    optional: frozenset[str]
    causal: bool
    spans: tuple[Span, ...]

    def read(self, numbers: NDArray[np.int64]) -> Rows:
        """Return the rows with the given ``numbers`` [n], each 0 … rows − 1, in this order."""
        ...


@dataclass(frozen=True)
class RowGroup:
    """Rows ``start`` … ``stop`` − 1 of a batch, which have one source.

    ``spans`` has the columns of each language. ``causal`` rows are read from left to right.
    """

    start: int
    stop: int
    spans: tuple[Span, ...]
    causal: bool = False


@dataclass(frozen=True)
class Batch:
    """Rows of fixed shape. All batches of a run have the same shapes and the same fields.

    Attributes:
        input_ids: Token ids with masks and random words, [rows, length] int64.
        languages: Number of the language of each token, [rows, length] int64.
        masked: Columns of the masked positions, [rows, k] int64. For a decoder they are all columns in order.
        labels: Ids to predict, or IGNORE where nothing is predicted, [rows, k] int64.
        terms: Number of the term of each masked position in ``pretrain.objectives.table.TERMS``, [rows, k] int64.
        positions: As in Rows, [rows, length] int64 or None.
        valid: As in Rows, [rows, length] bool or None.
        sentences: As in Rows, [rows, length] int64 or None.
        groups: The adjacent rows of each source that has rows in the batch.
        samples: Number of each row in the whole run, [rows] int64.
    """

    input_ids: NDArray[np.int64]
    languages: NDArray[np.int64]
    masked: NDArray[np.int64]
    labels: NDArray[np.int64]
    terms: NDArray[np.int64]
    positions: NDArray[np.int64] | None
    valid: NDArray[np.bool_] | None
    sentences: NDArray[np.int64] | None
    groups: tuple[RowGroup, ...]
    samples: NDArray[np.int64]

    @property
    def targets(self) -> int:
        """Number of positions with a label."""
        return int((self.labels != IGNORE).sum())
