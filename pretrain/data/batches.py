"""The batches of a run: the rows of each step, and of each micro-batch of each process.

Step s has ``rows`` samples, numbered s · rows … (s + 1) · rows − 1, in the order of their sources. The number of a
sample selects its masks. Micro-batch p of P takes every P-th sample from the p-th on. The step is therefore the same
for any P, and the sources are spread evenly over the micro-batches.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pretrain.data.batch import Batch, RowGroup, RowSource
from pretrain.data.masking import Masker
from pretrain.data.quotas import Draws, Quotas, Stages
from synthlang.rng import key_of, permutation

FIELDS = ("input_ids", "languages", "masked", "labels", "terms", "positions", "valid", "sentences", "samples")


class Epochs:
    """The order of a source's rows in training. Each epoch has every row once, in a new random order.

    Args:
        seed: Seed of the orders.
        source: Number of the source.
        rows: Number of rows of the source.
    """

    def __init__(self, seed: int, source: int, rows: int) -> None:
        self.rows = rows
        # An order is as long as the source. Two are cached, since a step may end one epoch and begin the next.
        self._order = lru_cache(maxsize=2)(lambda epoch: permutation(key_of("epoch", seed, source, epoch), rows))

    def rows_of(self, samples: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the row of each sample of this source, [samples] int64.

        The numbers ``samples`` [samples] count from 0 through all epochs.
        """
        epoch, place = np.divmod(samples, self.rows)
        result = np.empty_like(samples)
        for e in np.unique(epoch).tolist():
            mine = epoch == e
            result[mine] = self._order(e)[place[mine]]
        return result


class Batches:
    """Masked batches that draw from ``sources`` by ``quotas``.

    Args:
        sources: Sources of rows.
        quotas: Number of samples of each source before a step.
        masker: Masker of the rows.
        seed: Seed of the order.
        optional: Further optional fields of Rows that batches must have.
    """

    def __init__(
        self,
        sources: Sequence[RowSource],
        quotas: Quotas | Draws | Stages,
        masker: Masker,
        seed: int,
        optional: Collection[str] = (),
    ) -> None:
        assert len({source.length for source in sources}) == 1, "rows of one length"
        assert len(quotas.before(0)) == len(sources), "a weight for each source"
        self.sources, self.quotas, self.rows, self.masker = tuple(sources), quotas, quotas.rows, masker
        self.length = self.sources[0].length
        self.optional = frozenset(optional).union(*(source.optional for source in self.sources))
        self._epochs = [Epochs(seed, which, source.rows) for which, source in enumerate(self.sources)]

    def batch(self, step: int, which: int = 0, count: int = 1) -> Batch:
        """Return micro-batch ``which`` (from 0) of ``count`` equal parts of a step (from 0)."""
        assert self.rows % count == 0, "the config checks the number of micro-batches"
        assert 0 <= which < count, "micro-batches are counted from 0"
        return self.samples(step * self.rows + np.arange(which, self.rows, count))

    def samples(self, numbers: NDArray[np.int64]) -> Batch:
        """Return the samples with the given numbers [rows] of the whole run, sorted by source.

        ``samples`` of the batch has the number of each row.
        """
        which, count = self._drawn(numbers)
        order = np.argsort(which, kind="stable")
        bounds = np.searchsorted(which[order], np.arange(len(self.sources) + 1)).tolist()
        pieces, groups = [], []
        for source, (start, stop) in enumerate(pairwise(bounds)):
            if stop > start:
                mine = order[start:stop]
                pieces.append(self._piece(source, count[mine], numbers[mine]))
                groups.append(RowGroup(start, stop, self.sources[source].spans, self.sources[source].causal))
        return _joined(pieces, groups)

    def _drawn(self, numbers: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the source of each sample, and its number among the samples of this source."""
        steps, places = np.divmod(numbers, self.rows)
        which, count = np.empty_like(numbers), np.empty_like(numbers)
        for step in np.unique(steps).tolist():
            mine = steps == step
            before = self.quotas.before(step)
            stops = np.cumsum(self.quotas.before(step + 1) - before)
            source = np.searchsorted(stops, places[mine], side="right")
            starts = np.concatenate([[0], stops[:-1]])
            which[mine], count[mine] = source, before[source] + places[mine] - starts[source]
        return which, count

    def _piece(self, which: int, count: NDArray[np.int64], numbers: NDArray[np.int64]) -> Batch:
        """Return samples of one source. ``count`` numbers them in the source, and ``numbers`` in the run."""
        source = self.sources[which]
        rows = source.read(self._epochs[which].rows_of(count))
        masked = self.masker.mask(rows, source, numbers)
        positions, valid = rows.positions, rows.valid
        if "positions" in self.optional and positions is None:
            positions = np.broadcast_to(np.arange(self.length), rows.ids.shape)
        if "valid" in self.optional and valid is None:
            valid = np.ones(rows.ids.shape, bool)
        return replace(masked, positions=positions, valid=valid, sentences=rows.sentences, samples=numbers)


def _joined(pieces: list[Batch], groups: list[RowGroup]) -> Batch:
    def of(field: str) -> Any:
        each = [getattr(piece, field) for piece in pieces]
        return None if each[0] is None else np.concatenate(each)

    return Batch(groups=tuple(groups), **{field: of(field) for field in FIELDS})
