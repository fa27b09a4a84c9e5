"""Rows of text before masking, what every source of rows offers, and what the model is given: masked rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Span = tuple[int, int, int]  # columns start … stop − 1 belong to a language
IGNORE = -100  # PyTorch's cross entropy leaves such a label out


@dataclass(frozen=True)
class Rows:
    """Rows of ``length`` tokens each.

    ids        [rows, length] int64
    languages  [rows, length] int64, the language of each token; padding has the first language of its row
    positions  [rows, length] int64, 0-based; None: 0 … length − 1 in every row
    valid      [rows, length] bool, False for padding; None: there is no padding
    sentences  [rows, length] int64, the number in its row of the sentence, or of the sentence pair, that a token is of
               and that alone it sees; −1 for padding; None: every token sees the whole row
    """

    ids: NDArray[np.int64]
    languages: NDArray[np.int64]
    positions: NDArray[np.int64] | None = None
    valid: NDArray[np.bool_] | None = None
    sentences: NDArray[np.int64] | None = None


class RowSource(Protocol):
    """A finite list of rows of one kind, any of which can be read at any time.

    name       the language or languages, as in ``en`` and ``en+fr``: for messages
    term       the term of the objective that the masked positions of its rows belong to
    languages  that occur in its rows
    length     tokens of a row
    rows       how many there are: an epoch
    counts     what was drawn and left out to get the rows, by reason
    optional   which fields of Rows that may be None are not
    spans      which columns belong to which language: one span for all of them, or one for each half
    """

    name: str
    term: str
    languages: tuple[int, ...]
    length: int
    rows: int
    counts: dict[str, int]
    optional: frozenset[str]
    spans: tuple[Span, ...]

    def read(self, numbers: NDArray[np.int64]) -> Rows:
        """The rows of the given numbers (0 … rows − 1), in that order."""
        ...


@dataclass(frozen=True)
class RowGroup:
    """Rows ``start`` … ``stop`` − 1 of a batch come from one source; ``spans``: which columns have which language."""

    start: int
    stop: int
    spans: tuple[Span, ...]


@dataclass(frozen=True)
class Batch:
    """Rows of fixed shape: every batch of a run has the same shapes and the same fields that are None.

    input_ids  [rows, length] int64, with masks and random words
    languages  [rows, length] int64, the language of each token
    masked     [rows, k] int64, the columns of the masked positions
    labels     [rows, k] int64, the ids to predict; IGNORE where nothing is
    terms      [rows, k] int64, the number of the term that a position is of (pretrain.objectives.TERMS)
    positions  [rows, length] int64, 0-based; None: 0 … length − 1 in every row
    valid      [rows, length] bool, False for padding; None: there is no padding
    sentences  [rows, length] int64, as in Rows; None: every token sees the whole row
    groups     the rows of one source stand together; sources without a row here are left out
    samples    [rows] int64, the number of each row in the whole run
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
        """How many masked positions have a label."""
        return int((self.labels != IGNORE).sum())
