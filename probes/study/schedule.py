"""Order of the stages of a study, consequences of a failed stage, and a forecast of the remaining time."""

from __future__ import annotations

import time
from bisect import insort
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from statistics import fmean

from probes.stages.base import Stage
from probes.study.executors.base import StageOutcome
from synthlang.progress import LEFT
from synthlang.wording import duration

UNKNOWN = f"an unknown time{LEFT}"


class Schedule:
    """The state of every stage of a study.

    The next stage is the first stage, in the order of ``stages``, whose parents are all finished. If the last try of a
    stage fails, all stages that need it fail too, and all others continue.

    Args:
        stages: All stages: key → stage, parents first and cell by cell, so that a started cell is finished first.
        done: The keys of the finished stages.
        retry: Number of further tries of a failed stage.

    Attributes:
        failed: Key → outcome of each stage that failed, or was not run because of a failed stage.
    """

    def __init__(self, stages: Mapping[str, Stage], done: Collection[str], retry: int = 0) -> None:
        self.stages = stages
        self.failed: dict[str, StageOutcome] = {}
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
        """True if every stage has ended."""
        return not self._unfinished

    def next(self, waits: Callable[[str], bool] = lambda _: False) -> Stage | None:
        """Take the next stage to start, which then counts as running. Return None if no stage is ready.

        Args:
            waits: Function that returns whether the stage with a key should wait. The first ready stage that need not
                wait is taken, or else the first ready stage.
        """
        if not self._ready:
            return None
        place = next((place for place, (_, key) in enumerate(self._ready) if not waits(key)), 0)
        return self.stages[self._ready.pop(place)[1]]

    def ended(self, outcome: StageOutcome) -> list[StageOutcome]:
        """Record the end of a running stage.

        Returns:
            The outcome of the stage, and of all stages that fail because of it. The list is empty if the stage is tried
            again.
        """
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

    def _fail(self, outcome: StageOutcome) -> list[StageOutcome]:
        """Fail a stage and all of its descendants."""
        because = f"not run, because {self.stages[outcome.key].label} failed: {outcome.error}"
        over, below = {outcome.key: outcome}, [outcome.key]
        while below:
            for child in self._children[below.pop()]:
                if child in self._unfinished and child not in over:
                    over[child] = StageOutcome(child, because)
                    below.append(child)
        self.failed |= over
        self._unfinished -= over.keys()
        return list(over.values())


class TimeLeft:
    """Forecast of the remaining time of a study, updated when a stage starts or ends.

    The times are those of earlier stages of the same kind. A training takes a hundred times as long as a small probe,
    so the number of finished stages is a poor forecast.

    Args:
        left: The stages to make.
        took: Finished stages, each with the seconds that it took.
    """

    def __init__(self, left: Collection[Stage], took: Iterable[tuple[Stage, float]]) -> None:
        self._left = {stage.key: stage for stage in left}
        self._started: dict[str, float] = {}
        self._took: dict[tuple[str, str], list[float]] = defaultdict(list)
        for stage, seconds in took:
            self._took[_kind(stage)].append(seconds)

    def started(self, stage: Stage) -> None:
        """Record the start of a stage."""
        self._started[stage.key] = time.monotonic()

    def ended(self, key: str) -> None:
        """Record the end of a stage. A stage that did not start, because a parent failed, adds no time."""
        stage, started = self._left.pop(key, None), self._started.pop(key, None)
        if stage is not None and started is not None:
            self._took[_kind(stage)].append(time.monotonic() - started)

    def told(self) -> str:
        """Return the remaining time as text. The number of stages that run in parallel is assumed to stay the same.

        The text is UNKNOWN until a stage of each remaining kind and task has been timed, and "" if no stage is left.
        """
        if not self._left:
            return ""
        if not all(self._took[_kind(stage)] for stage in self._left.values()):
            return UNKNOWN
        means = {key: fmean(self._took[_kind(stage)]) for key, stage in self._left.items()}
        now = time.monotonic()
        elapsed = sum(min(means[key], now - started) for key, started in self._started.items())
        return f"about {duration((sum(means.values()) - elapsed) / max(1, len(self._started)))}{LEFT}"


def _kind(stage: Stage) -> tuple[str, str]:
    """Return the kind and the task (or "") of a stage. Stages with equal kinds and tasks have one mean time."""
    return stage.kind, str(getattr(getattr(stage, "config", None), "task", ""))
