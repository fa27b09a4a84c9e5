"""What every task of a study is: a piece of work that makes one stage, a folder of the store.

A task is known by its ``key``, a fingerprint of its settings and of the tasks it needs, without a look at any data. The
stage that it makes is named by its content, so tasks that come to the same share it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import pydantic

from probes.study.digest import digest_of, json_of_config
from probes.study.inputs import files_of
from synthlang.fingerprint import fingerprint
from synthlang.language import FORMAT as LANGUAGE_FORMAT
from synthlang.progress import Report
from synthlang.store import Store

FORMAT = 1  # raise when a task of the same settings makes another stage, and no format of its kind says so


class Task(ABC):
    """One stage to make. Tasks hold those they need, so one alone says all that its work depends on."""

    kind: ClassVar[str]
    format: ClassVar[int]  # of the code that makes the stage
    content: ClassVar[tuple[str, ...]]  # the files without which the stage is none; the first is written last
    config: pydantic.BaseModel

    @property
    def needs(self) -> tuple[Task, ...]:
        """The tasks that have to be finished first."""
        return ()

    @property
    def parents(self) -> tuple[str, ...]:
        """Their keys."""
        return tuple(task.key for task in self.needs)

    @cached_property
    def key(self) -> str:
        """Of all settings; the same key is the same work."""
        formats = [FORMAT, self.format, LANGUAGE_FORMAT]
        settings = {"config": digest_of(self.config), **self._more()}
        return fingerprint("task", task=self.kind, formats=formats, settings=settings, parents=list(self.parents))

    @property
    @abstractmethod
    def label(self) -> str:
        """What people read in progress and logs."""

    @abstractmethod
    def run(self, store: Store, report: Report) -> str:
        """Make the stage and return its fingerprint; the tasks it needs are finished."""

    def files(self) -> list[Path]:
        """The user's files that the stage depends on, besides those of the tasks it needs."""
        return files_of(self.config)

    def to_json(self) -> dict[str, Any]:
        """As JSON values; ``task_from_json`` makes the same task again."""
        return {"kind": self.kind, "config": json_of_config(self.config), **self._held()}

    def _more(self) -> dict[str, Any]:
        """What the key covers besides the config and the parents."""
        return {}

    def _held(self) -> dict[str, Any]:
        """What JSON has besides the config."""
        return {}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Task) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)
