"""The losses of the steps since the last line of the log, kept on the device until they are read.

Reading a number from an accelerator waits for it, so that nothing is read between two lines: a loss
that is not finite is seen at the next line, which still names the step, and no checkpoint is saved before.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor


class NotFinite(Exception):  # noqa: N818  the loop says what to do
    """A step (counted from 0) whose losses are not finite, with their values."""

    def __init__(self, step: int, losses: dict[str, float]) -> None:
        self.step, self.losses = step, losses


class LossWindow:
    """Sums and counts of each loss of each step since the last line."""

    def __init__(self, reduce: Callable[[Tensor], Tensor]) -> None:
        self.reduce = reduce  # the sum over ranks
        self.names: list[str] = []
        self.rows: list[list[list[float]]] = []  # [steps, losses, (sum, count)] of steps that were read already
        self._pending: list[Tensor] = []

    def add(self, losses: dict[str, tuple[Tensor, Tensor]]) -> None:
        """Note a step: (sum, count) of each loss; this rank's sums, counts over all ranks."""
        self.names = list(losses)
        self._pending.append(torch.stack([torch.stack([s.float(), c.float()]) for s, c in losses.values()]))

    def read(self, step: int) -> None:
        """Bring what is pending to this side; ``step`` steps are done. Raises NotFinite."""
        if not self._pending:
            return
        values = torch.stack(self._pending)
        self._pending = []
        read = torch.stack([self.reduce(values[..., 0].contiguous()), values[..., 1]], dim=-1).tolist()
        for number, row in enumerate(read, step - len(read)):
            if not all(math.isfinite(total) for total, _ in row):
                found = {n: total / max(count, 1.0) for n, (total, count) in zip(self.names, row, strict=True)}
                raise NotFinite(number, found)
        self.rows.extend(read)

    def means(self) -> dict[str, float]:
        """Each loss over all its terms of the steps since the last line; starts anew."""
        means = {}
        for i, name in enumerate(self.names):
            total, count = (sum(row[i][side] for row in self.rows) for side in (0, 1))
            if count:  # a term may have no slot in a small batch
                means[name] = total / count
        self.rows = []
        return means

    def state(self) -> dict[str, Any]:
        """What a checkpoint keeps."""
        return {"names": self.names, "rows": self.rows}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from what a checkpoint kept."""
        self.names, self.rows, self._pending = state["names"], state["rows"], []
