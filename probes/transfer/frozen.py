"""The states of frozen features, computed once for all epochs."""

from __future__ import annotations

import torch
from torch import Tensor

from probes.transfer.batch import Batch, Examples
from probes.transfer.batching import bounded_batches
from probes.transfer.features import TaskModel

MOST = 1 << 31  # bytes of memory for the states of one set; those of a larger one are computed again in each epoch


class FrozenStates:
    """What ``Features.read`` gave for each row of a set, [n, d] in memory, without the padding."""

    def __init__(self, rows: list[Tensor], reads_all: bool) -> None:
        self._rows, self._reads_all = rows, reads_all

    def of(self, batch: Batch) -> Tensor:
        """[r, n, d] of the rows of a batch; 0 where there is no word or column."""
        held = [self._rows[row] for row in batch.rows.tolist()]
        states: Tensor = held[0].new_zeros(len(held), _size(batch, self._reads_all), held[0].shape[-1])
        for row, known in zip(states, held, strict=True):
            row[: len(known)] = known
        return states


def frozen_states(model: TaskModel, examples: Examples, most: int = MOST) -> FrozenStates | None:
    """The states of a set, if they do not change and fit into ``most`` bytes.

    They are computed in batches of their own, the longest rows first, so that they are the same in a fit that was
    resumed. Rows of two languages are padded in the middle, by what their batch needs, so they are not kept.
    """
    features = model.features
    if not features.frozen or int(examples.lengths.sum()) * features.width * 4 > most:
        return None
    model.eval()
    held = [torch.empty(0)] * len(examples)
    for rows in bounded_batches(examples.lengths):
        batch = examples.batch(rows)
        if len(batch.text.spans) > 1:
            return None
        with torch.no_grad():
            states = model.read(batch.to(model.device)).cpu()
        for row, count, known in zip(rows.tolist(), _counts(batch, features.reads_all), states, strict=True):
            held[row] = known[:count].clone()
    return FrozenStates(held, features.reads_all)


def _size(batch: Batch, reads_all: bool) -> int:
    """How many states the rows of a batch have, padded."""
    return batch.text.input_ids.shape[1] if reads_all or batch.words is None else 1 + batch.words.shape[1]


def _counts(batch: Batch, reads_all: bool) -> list[int]:
    """How many states each row has: of its columns, or of ``<s>`` and its words, up to the last one that is there."""
    size = _size(batch, reads_all)
    if reads_all or batch.words is None:
        there = batch.text.valid if batch.text.valid is not None else torch.ones_like(batch.text.input_ids)
    else:
        there = torch.nn.functional.pad(batch.mask, (1, 0), value=True)
    counts: list[int] = (there * torch.arange(1, size + 1)).amax(1).tolist()
    return counts
