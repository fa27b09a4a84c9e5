"""What the model is given: masked rows of a step, or of one part of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pretrain.data.rows import Span

IGNORE = -100  # PyTorch's cross entropy leaves such a label out


@dataclass(frozen=True)
class Group:
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
    groups: tuple[Group, ...]
    samples: NDArray[np.int64]

    @property
    def targets(self) -> int:
        """How many masked positions have a label."""
        return int((self.labels != IGNORE).sum())
