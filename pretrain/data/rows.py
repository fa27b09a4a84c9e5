"""Rows of text before masking, and what every source of rows offers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Span = tuple[int, int, int]  # columns start … stop − 1 belong to a language


@dataclass(frozen=True)
class Rows:
    """Rows of ``length`` tokens each.

    ids        [rows, length] int64
    languages  [rows, length] int64, the language of each token; padding has the first language of its row
    positions  [rows, length] int64, 0-based; None: 0 … length − 1 in every row
    valid      [rows, length] bool, False for padding; None: there is no padding
    """

    ids: NDArray[np.int64]
    languages: NDArray[np.int64]
    positions: NDArray[np.int64] | None = None
    valid: NDArray[np.bool_] | None = None


class RowSource(Protocol):
    """A finite list of rows of one kind, any of which can be read at any time.

    Its rows have ``valid`` if and only if it is ``padded``, and ``positions`` if and only if it has several spans.

    name       the language or languages, as in ``en`` and ``en+fr``: for messages
    term       the term of the objective that the masked positions of its rows belong to
    languages  that occur in its rows
    length     tokens of a row
    rows       how many there are: an epoch
    counts     what was drawn and left out to get the rows, by reason
    padded     whether rows may end with padding
    spans      which columns belong to which language: one span for all of them, or one for each half
    """

    name: str
    term: str
    languages: tuple[int, ...]
    length: int
    rows: int
    counts: dict[str, int]
    padded: bool
    spans: tuple[Span, ...]

    def read(self, numbers: NDArray[np.int64]) -> Rows:
        """The rows of the given numbers (0 … rows − 1), in that order."""
        ...
