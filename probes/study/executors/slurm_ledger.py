"""jobs.json: which job does which task, so that a restarted runner finds its jobs and sends none twice.

What is about to be sent is written first, under the name that its jobs will have in the queue: if the runner is
killed in between, the next one cancels the jobs of that name, whose ids nobody noted.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from probes.study.executors.slurm_queue import cancel
from synthlang.errors import InputError
from synthlang.files import read_json, write_json

FORMAT = 1


class Ledger:
    """{key of a task: id of its last job}, on disk."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.jobs: dict[str, str] = {}
        self.requeues: dict[str, int] = {}
        if path.exists():
            self._read()

    def _read(self) -> None:
        held: Any = read_json(self.path)
        if not isinstance(held, dict) or held.get("format") != FORMAT:
            raise InputError(f"is no list of jobs of format {FORMAT}; cancel the study's jobs and delete it", self.path)
        self.jobs, self.requeues = dict(held["jobs"]), dict(held["requeues"])
        if held["sending"] is not None:
            cancel(name=held["sending"])
            self._write()

    @contextmanager
    def sending(self) -> Iterator[str]:
        """The name for jobs that are sent inside the block; ``note`` their ids there."""
        name = f"synthlang-{uuid.uuid4().hex[:8]}"
        self._write(name)
        try:
            yield name
        finally:
            self._write()

    def note(self, jobs: Mapping[str, str]) -> None:
        """Jobs that were sent; they are on disk after the block of ``sending``."""
        self.jobs.update(jobs)

    def count_requeue(self, key: str) -> int:
        """Note that a lost job is sent again; how often that was."""
        self.requeues[key] = self.requeues.get(key, 0) + 1
        return self.requeues[key]

    def _write(self, sending: str | None = None) -> None:
        write_json(self.path, {"format": FORMAT, "jobs": self.jobs, "requeues": self.requeues, "sending": sending})
