"""How long a study still takes, by what earlier stages of the same kind took.

A training takes a hundred times as long as an alignment, so the number of stages that are done says little.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Collection, Iterable

from probes.stages.base import Stage
from synthlang.progress import LEFT, duration

UNKNOWN = f"an unknown time{LEFT}"


class TimeLeft:
    """Told of every stage that starts and ends; ``took`` are the seconds of stages that are done."""

    def __init__(self, left: Collection[Stage], took: Iterable[tuple[Stage, float]]) -> None:
        self._left = {stage.key: stage for stage in left}
        self._started: dict[str, float] = {}
        self._took: dict[tuple[str, str], list[float]] = defaultdict(list)
        for stage, seconds in took:
            self._took[_kind(stage)].append(seconds)

    def started(self, stage: Stage) -> None:
        self._started[stage.key] = time.monotonic()

    def ended(self, key: str) -> None:
        """A stage that was never started failed with one that it needs; it tells no time."""
        stage, started = self._left.pop(key, None), self._started.pop(key, None)
        if stage is not None and started is not None:
            self._took[_kind(stage)].append(time.monotonic() - started)

    def told(self) -> str:
        """In words; what runs side by side now is taken to go on so."""
        if not self._left:
            return ""
        if not all(self._took[_kind(stage)] for stage in self._left.values()):
            return UNKNOWN
        means = {key: _mean(self._took[_kind(stage)]) for key, stage in self._left.items()}
        now = time.monotonic()
        elapsed = sum(min(means[key], now - started) for key, started in self._started.items())
        return f"about {duration((sum(means.values()) - elapsed) / max(1, len(self._started)))}{LEFT}"


def _kind(stage: Stage) -> tuple[str, str]:
    """What a time is of: the kind of the stage, and its task."""
    return stage.kind, str(getattr(getattr(stage, "config", None), "task", ""))


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)
