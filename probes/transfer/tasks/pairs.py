"""What the tasks of two texts share: how their data are opened."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from probes.transfer.batch import Reader
from probes.transfer.tasks.base import Task
from synthlang.errors import InputError
from synthlang.tasks import TaskSet, is_task, open_task
from synthlang.tasks.base import Kind


class PairTask(Task):
    """A task whose items have two texts; ``kind`` and ``fields`` are those that its data must have."""

    pairs: ClassVar[bool] = True
    kind: ClassVar[Kind]
    fields: ClassVar[tuple[str, str]]

    def open(self, spec: str) -> TaskSet:
        """The labelled items that ``spec`` names; InputError for one of another task."""
        task = open_task(spec if is_task(spec) else f"{self.name}:{spec}")
        if task.kind != self.kind or task.fields != self.fields:
            raise InputError(
                f"{spec}: the task {self.name} needs items of {' and '.join(self.fields)}, not {task.name}"
            )
        return task

    def readers_of(self, readers: Sequence[Reader]) -> tuple[Reader, Reader]:
        """Those of the two texts. InputError if they belong to two models: one row is read by one."""
        first, second = readers
        if self.config.target_model is not None and first.role != second.role:
            raise InputError("pairs of mixed languages are read by one model: leave mixed or target_model out")
        return first, second
