"""Tasks in data sets of the hub or a local folder, whose texts are plain: words are all they have."""

from __future__ import annotations

from typing import Any

from synthlang.corpus import FORM
from synthlang.tasks.base import TaskSet


class HubTask(TaskSet):
    """``_data`` holds the rows of each split that is one of the task."""

    _data: dict[str, Any]

    @property
    def splits(self) -> tuple[str, ...]:
        """The splits that map to train, dev or test and are of use."""
        return tuple(self._data)

    @property
    def columns(self) -> tuple[str, ...]:
        """Words only."""
        return (FORM,)

    def size(self, split: str) -> int | None:
        """The rows of a split."""
        return len(self._data[split]) if split in self._data else None
