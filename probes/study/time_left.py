"""Forecast of the remaining time of a study from the times of earlier stages of the same kind.

A training takes a hundred times as long as a small probe, so the number of finished stages is a poor forecast.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Collection, Iterable
from statistics import fmean

from probes.stages.base import Stage
from synthlang.progress import LEFT
from synthlang.wording import duration

UNKNOWN = f"an unknown time{LEFT}"


class TimeLeft:
    """Forecast of the remaining time, updated when a stage starts or ends.

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
