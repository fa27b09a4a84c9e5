"""Stages one after another in this process: for debugging, and where no other process may be started."""

from __future__ import annotations

from collections import deque

from probes.study.executors import Outcome, run_stage
from probes.study.executors.resources import in_cell, use_threads
from probes.study.stage import Stage
from synthlang.progress import Report
from synthlang.store import Store


class InlineExecutor:
    """One stage at a time; ``wait`` does the work, with as many threads as a local worker would have."""

    def __init__(self, store: Store, threads: int) -> None:
        self._store = store
        self._given: deque[tuple[Stage, str]] = deque()
        self._threads_before = use_threads(threads)

    def submit(self, stage: Stage, cell: str = "") -> None:
        """Keep it for ``wait``."""
        self._given.append((stage, cell))

    def wait(self, report: Report, timeout: float) -> list[Outcome]:
        """Run the stage that was submitted, however long it takes."""
        del timeout
        if not self._given:
            return []
        stage, cell = self._given.popleft()
        return [run_stage(stage, self._store, in_cell(report, cell))]

    def capacity(self) -> int:
        """One, or none while a stage waits to be run."""
        return 0 if self._given else 1

    def close(self) -> None:
        """Give the process the threads back that it had."""
        self._given.clear()
        use_threads(self._threads_before)
