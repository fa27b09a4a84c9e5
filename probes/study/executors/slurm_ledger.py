"""jobs.json: which job does which stage, so that a restarted runner finds its jobs and sends none twice.

What is about to be sent is written first, under the name that its jobs will have in the queue, and stays there until
their ids are written. If the runner is killed in between, or sbatch gives no answer, nobody knows whether there are
such jobs: before anything else is sent, they are looked for by that name and cancelled.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from probes.study.executors.slurm_queue import cancel, queue
from synthlang.errors import InputError
from synthlang.files import read_json, write_json

FORMAT = 1
LATE = 10.0  # seconds that a submission without an answer may take to reach the queue


class Ledger:
    """{key of a stage: id of its last job}, on disk."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.jobs: dict[str, str] = {}
        self.requeues: dict[str, int] = {}
        self._unsure: str | None = None  # a name that jobs may have whose ids are not known
        self._since = float("-inf")
        if path.exists():
            self._read()

    def _read(self) -> None:
        held: Any = read_json(self.path)
        if not isinstance(held, dict) or held.get("format") != FORMAT:
            raise InputError(f"is no list of jobs of format {FORMAT}; cancel the study's jobs and delete it", self.path)
        self.jobs, self.requeues, self._unsure = dict(held["jobs"]), dict(held["requeues"]), held["sending"]

    def settle(self) -> bool:
        """Cancel jobs whose ids nobody noted; whether it is sure that there are none, so that more may be sent."""
        if self._unsure is None:
            return True
        found = queue(self._unsure)
        if found:
            cancel(name=self._unsure)
            found = queue(self._unsure)
        if found is None or found or time.monotonic() - self._since < LATE:
            return False
        self._write(None)
        return True

    @contextmanager
    def sending(self) -> Iterator[str]:
        """The name for the jobs that are sent inside the block; ``note`` their ids there.

        After an error the name stays: it may have come after sbatch took the jobs.
        """
        assert self._unsure is None, "settle first"
        name = f"synthlang-{uuid.uuid4().hex[:8]}"
        try:
            self._write(name)
            yield name
        finally:
            self._since = time.monotonic()
        self._write(None)

    def note(self, jobs: Mapping[str, str]) -> None:
        """Jobs that were sent; they are on disk after the block of ``sending``."""
        self.jobs.update(jobs)

    def count_requeue(self, key: str) -> int:
        """Note that a lost job is sent again; how often that was."""
        self.requeues[key] = self.requeues.get(key, 0) + 1
        return self.requeues[key]

    def _write(self, sending: str | None) -> None:
        self._unsure = sending
        write_json(self.path, {"format": FORMAT, "jobs": self.jobs, "requeues": self.requeues, "sending": sending})
