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
    words    answers have at most so many words
    tokens   and at most so many columns; None: no limit
    """

    def __init__(
        self, *, hidden: int, dropout: float, best: int = 20, words: int = 30, tokens: int | None = None
    ) -> None:
        super().__init__()
        assert best >= 1 and words >= 1 and (tokens is None or tokens >= 1), "at least one span of one column"
        self.best, self.longest_words, self.longest_tokens = best, words, tokens
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

        All columns of a span are in the mask, which but for column 0 is one run of columns. Of equal spans the one that
        starts first, then the shorter one.
        """
        start, stop = self.scores(states).double().cpu().numpy()
        mask = batch.mask.cpu().numpy()
        word_of = np.arange(mask.size).reshape(mask.shape) if batch.word_of is None else batch.word_of.cpu().numpy()
        spans = [self._spans(*row) for row in zip(start, stop, mask, word_of, strict=True)]
        return list(zip((start[:, 0] + stop[:, 0]).tolist(), spans, strict=True))

    def _spans(
        self, start: Floats, stop: Floats, mask: NDArray[np.bool_], word_of: NDArray[np.int64]
    ) -> list[tuple[float, int, int]]:
        """The best spans of a row [w]: all spans are a table [context, longest] of first column and length − 1."""
        context = 1 + np.flatnonzero(mask[1:])
        if not len(context):
            return []
        word = word_of[context]
        most = np.searchsorted(word, word + self.longest_words) - np.arange(len(context))  # columns from each one on
        if self.longest_tokens is not None:
            most = np.minimum(most, self.longest_tokens)
        widest = int(most.max())
        stops = sliding_window_view(np.pad(stop[context], (0, widest - 1)), widest)
        inside = np.arange(widest) < most[:, None]
        scores = np.where(inside, start[context][:, None] + stops, -np.inf).ravel()
        count = min(self.best, int(most.sum()))
        least = np.partition(scores, -count)[-count]
        found = np.flatnonzero(scores >= least)
        found = found[np.argsort(-scores[found], kind="stable")][:count]
        first, further = context[found // widest], found % widest
        return list(zip(scores[found].tolist(), first.tolist(), (first + further).tolist(), strict=True))
