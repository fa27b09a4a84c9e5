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
    """

    @property
    def name(self) -> str:
        """The language or languages, as in ``en`` and ``en+fr``: for messages."""
        ...

    @property
    def term(self) -> str:
        """The term of the objective that the masked positions of its rows belong to."""
        ...

    @property
    def languages(self) -> tuple[int, ...]:
        """The languages that occur in its rows."""
        ...

    @property
    def length(self) -> int:
        """Tokens of a row."""
        ...

    @property
    def rows(self) -> int:
        """How many rows there are: an epoch."""
        ...

    @property
    def counts(self) -> dict[str, int]:
        """What was drawn and left out to get the rows, by reason."""
        ...

    @property
    def padded(self) -> bool:
        """Whether rows may end with padding."""
        ...

    @property
    def spans(self) -> tuple[Span, ...]:
        """Which columns belong to which language: one span for all of them, or one for each half."""
        ...

    def read(self, numbers: NDArray[np.int64]) -> Rows:
        """The rows of the given numbers (0 … rows − 1), in that order."""
        ...
