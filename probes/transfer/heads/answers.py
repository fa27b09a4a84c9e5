"""Extractive question answering: where an answer starts and stops, or that there is none."""

from __future__ import annotations

import numpy as np
import torch
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray
from torch import Tensor, nn

from probes.transfer.batch import Batch
from probes.transfer.heads.head import Head
from probes.transfer.heads.precision import full_precision, mean_loss

Floats = NDArray[np.float64]
Answers = tuple[float, list[tuple[float, int, int]]]


class AnswerHead(Head):
    """A start and a stop score for each column (Devlin et al. 2019, section 4.3); column 0 stands for no answer.

    best     so many spans are kept of each row
    longest  answers have at most so many columns
    """

    def __init__(self, *, hidden: int, dropout: float, best: int = 20, longest: int = 30) -> None:
        super().__init__()
        assert best >= 1 and longest >= 1, "at least one span of one column"
        self.best, self.longest = best, longest
        self.dropout = nn.Dropout(dropout)
        self.linear = nn.Linear(hidden, 2)

    def scores(self, states: Tensor) -> Tensor:
        """States [r, w, d] → start and stop scores [2, r, w] float32."""
        with full_precision(states):
            y: Tensor = self.linear(self.dropout(states.float()))
            return y.permute(2, 0, 1)

    def loss(self, states: Tensor, batch: Batch) -> Tensor:
        """The mean of the cross entropies of start and stop over column 0 and those of the mask."""
        allowed = batch.mask.clone()
        allowed[:, 0] = True
        start, stop = self.scores(states).masked_fill(~allowed, -torch.inf)
        return (mean_loss(start, batch.targets["start"]) + mean_loss(stop, batch.targets["stop"])) / 2

    @torch.no_grad()
    def decode(self, states: Tensor, batch: Batch) -> list[Answers]:
        """For each row (score of no answer, best spans first); scores are sums of the two columns' scores.

        All columns of a span are in the mask. Of equal spans the one that starts first, then the shorter one.
        """
        start, stop = self.scores(states).double().cpu().numpy()
        mask = batch.mask.cpu().numpy().copy()
        mask[:, 0] = False
        spans = [self._spans(*row) for row in zip(start, stop, mask, strict=True)]
        return list(zip((start[:, 0] + stop[:, 0]).tolist(), spans, strict=True))

    def _spans(self, start: Floats, stop: Floats, mask: NDArray[np.bool_]) -> list[tuple[float, int, int]]:
        """The best spans of a row [w]: all spans are a table [w, longest] of first column and length − 1."""
        beyond = min(self.longest, len(mask)) - 1
        stops = sliding_window_view(np.pad(stop, (0, beyond)), beyond + 1)
        inside = np.logical_and.accumulate(sliding_window_view(np.pad(mask, (0, beyond)), beyond + 1), axis=1)
        scores = np.where(inside, start[:, None] + stops, -np.inf).ravel()
        count = min(self.best, int(inside.sum()))
        if not count:
            return []
        least = np.partition(scores, -count)[-count]
        found = np.flatnonzero(scores >= least)
        found = found[np.argsort(-scores[found], kind="stable")][:count]
        first, further = np.divmod(found, beyond + 1)
        return list(zip(scores[found].tolist(), first.tolist(), (first + further).tolist(), strict=True))
