"""Which stage of a study is next, and what a failure takes with it."""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Collection, Mapping

from probes.stages.base import Stage
from probes.study.executors.base import Outcome


class Schedule:
    """The state of every stage of a study, and which is next: the first whose parents are done, in the order of cells.

    stages    key → stage, parents before those that need them, so that a cell that was begun is ended first
    done      the keys of those that are
    retry     how often a stage that failed is tried again

    A failed stage fails all that need it; every other one goes on.
    """

    def __init__(self, stages: Mapping[str, Stage], done: Collection[str], retry: int = 0) -> None:
        self.stages = stages
        self.failed: dict[str, Outcome] = {}
        self._retry = retry
        self._tries: dict[str, int] = {}
        self._order = {key: number for number, key in enumerate(stages)}
        self._unfinished = {key for key in stages if key not in done}
        self._missing = {
            key: {parent.key for parent in stages[key].parents if parent.key not in done} for key in self._unfinished
        }
        self._children: dict[str, list[str]] = {key: [] for key in stages}
        for key in stages:
            for parent in self._missing.get(key, ()):
                self._children[parent].append(key)
        self._ready = sorted((self._order[key], key) for key, parents in self._missing.items() if not parents)

    @property
    def is_over(self) -> bool:
        return not self._unfinished

    def next(self, waits: Callable[[str], bool] = lambda _: False) -> Stage | None:
        """The stage to start now, which counts as running from here on: of those that are ready the first that has
        nothing to wait for by its key, or the first of all; None if none is ready."""
        if not self._ready:
            return None
        place = next((place for place, (_, key) in enumerate(self._ready) if not waits(key)), 0)
        return self.stages[self._ready.pop(place)[1]]

    def ended(self, outcome: Outcome) -> list[Outcome]:
        """Take in what became of a running stage: all that is over by it, itself first; [] if it is tried again."""
        key = outcome.key
        if outcome.error is not None:
            self._tries[key] = self._tries.get(key, 0) + 1
            if self._tries[key] > self._retry:
                return self._fail(outcome)
            self._make_ready(key)
            return []
        self._unfinished.remove(key)
        for child in self._children[key]:
            self._missing[child].remove(key)
            if not self._missing[child] and child in self._unfinished:
                self._make_ready(child)
        return [outcome]

    def _make_ready(self, key: str) -> None:
        insort(self._ready, (self._order[key], key))

    def _fail(self, outcome: Outcome) -> list[Outcome]:
        """Fail a stage and all that need it, however far down."""
        because = f"because {self.stages[outcome.key].label} failed: {outcome.error}"
        over, below = {outcome.key: outcome}, [outcome.key]
        while below:
            for child in self._children[below.pop()]:
                if child in self._unfinished and child not in over:
                    over[child] = Outcome(child, because)
                    below.append(child)
        self.failed |= over
        self._unfinished -= over.keys()
        return list(over.values())
