"""Which stage comes next: those whose parents are done, first those of the cells that are nearest their end."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterable, Mapping
from typing import Literal

from probes.study.executors.base import Outcome
from probes.study.stage import Stage

State = Literal["waiting", "ready", "running", "done", "failed"]


class Schedule:
    """The state of every stage of a study.

    stages    key → stage, parents before those that need them
    cells    for each cell the keys of all its stages
    done     the keys of those that are
    retry    how often a stage that failed is tried again

    A failed stage fails all that need it; every other one goes on. Each change costs O(log n) for each cell of a stage.
    """

    def __init__(
        self,
        stages: Mapping[str, Stage],
        cells: Iterable[Collection[str]],
        done: Collection[str],
        retry: int = 0,
    ) -> None:
        self.stages = stages
        self.failed: dict[str, Outcome] = {}
        self._retry = retry
        self._tries: dict[str, int] = {}
        self._state: dict[str, State] = {key: "done" if key in done else "waiting" for key in stages}
        self._children: dict[str, list[str]] = {key: [] for key in stages}
        self._parents_left: dict[str, int] = {}
        self._order = {key: number for number, key in enumerate(stages)}
        self._of_cell = [[key for key in keys if key in stages] for keys in cells]
        self._left = [sum(key not in done for key in keys) for keys in self._of_cell]
        self._cells: dict[str, list[int]] = {key: [] for key in stages}
        for number, keys in enumerate(self._of_cell):
            for key in keys:
                self._cells[key].append(number)
        self._heap: list[tuple[int, int, str]] = []
        self._unfinished = sum(state != "done" for state in self._state.values())
        for key, stage in stages.items():
            parents = [parent.key for parent in stage.parents]
            for parent in parents:
                self._children[parent].append(key)
            self._parents_left[key] = sum(self._state[parent] != "done" for parent in parents)
            if self._state[key] == "waiting" and not self._parents_left[key]:
                self._make_ready(key)

    @property
    def is_over(self) -> bool:
        """Whether nothing runs or will run any more."""
        return self._unfinished == 0

    def next(self) -> Stage | None:
        """The stage to start now, which counts as running from here on; None if none is ready."""
        while self._heap:
            _, _, key = heapq.heappop(self._heap)
            if self._state[key] == "ready":  # else an entry that a later one of the same stage overtook
                self._state[key] = "running"
                return self.stages[key]
        return None

    def ended(self, outcome: Outcome) -> list[Outcome]:
        """Take in what became of a running stage: all that is over by it, itself first; [] if it is tried again."""
        key = outcome.key
        if outcome.error is None:
            self._finish(key)
            return [outcome]
        self._tries[key] = self._tries.get(key, 0) + 1
        if self._tries[key] <= self._retry:
            self._make_ready(key)
            return []
        return self._fail(outcome)

    def _finish(self, key: str) -> None:
        self._state[key] = "done"
        self._unfinished -= 1
        for cell in self._cells[key]:
            self._left[cell] -= 1
            for other in self._of_cell[cell]:  # they come sooner now
                if self._state[other] == "ready":
                    heapq.heappush(self._heap, (self._left[cell], self._order[other], other))
        for child in self._children[key]:
            self._parents_left[child] -= 1
            if self._state[child] == "waiting" and not self._parents_left[child]:
                self._make_ready(child)

    def _fail(self, outcome: Outcome) -> list[Outcome]:
        """Fail a stage and all that need it, however far down."""
        over = [outcome]
        because = f"because {self.stages[outcome.key].label} failed: {outcome.error}"
        below = [outcome.key]
        while below:
            for child in self._children[below.pop()]:
                if self._state[child] == "waiting":
                    self._state[child] = "failed"
                    over.append(Outcome(child, because))
                    below.append(child)
        self._state[outcome.key] = "failed"
        self.failed |= {lost.key: lost for lost in over}
        self._unfinished -= len(over)
        return over

    def _make_ready(self, key: str) -> None:
        self._state[key] = "ready"
        nearest = min((self._left[cell] for cell in self._cells[key]), default=len(self.stages))
        heapq.heappush(self._heap, (nearest, self._order[key], key))
