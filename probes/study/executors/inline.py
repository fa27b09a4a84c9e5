"""Tasks one after another in this process: for debugging, and where no other process may be started."""

from __future__ import annotations

from collections import deque

from probes.study.executors import Outcome, Work, run_task
from probes.study.executors.resources import in_cell, use_threads
from synthlang.progress import Report
from synthlang.store import Store


class InlineExecutor:
    """One task at a time; ``wait`` does the work, with as many threads as a local worker would have."""

    def __init__(self, store: Store, threads: int) -> None:
        self._store = store
        self._given: deque[tuple[Work, str]] = deque()
        self._threads_before = use_threads(threads)

    def submit(self, task: Work, cell: str = "") -> None:
        """Keep it for ``wait``."""
        self._given.append((task, cell))

    def wait(self, report: Report, timeout: float) -> list[Outcome]:
        """Run the task that was submitted, however long it takes."""
        del timeout
        if not self._given:
            return []
        task, cell = self._given.popleft()
        return [run_task(task, self._store, in_cell(report, cell))]

    def capacity(self) -> int:
        """One, or none while a task waits to be run."""
        return 0 if self._given else 1

    def close(self) -> None:
        """Give the process the threads back that it had."""
        self._given.clear()
        use_threads(self._threads_before)
