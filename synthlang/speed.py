"""How fast work goes, and how long it takes yet."""

from __future__ import annotations

from collections import deque

PERIOD = 60.0  # seconds: old enough to even out parts that end together, new enough to follow a change
SHORTEST = 1.0  # seconds: what less time says is chance


class Speed:
    """Units a second over the last PERIOD seconds; the clock starts at ``now``, in seconds."""

    def __init__(self, now: float) -> None:
        self._done = 0
        self._samples = deque([(now, 0)])

    def add(self, now: float, amount: int) -> None:
        """``amount`` more units are done."""
        self._done += amount
        self._samples.append((now, self._done))
        while len(self._samples) > 2 and self._samples[1][0] <= now - PERIOD:
            self._samples.popleft()

    def wait(self, now: float) -> None:
        """Nothing was done until now; before the first unit that is no part of the work."""
        if not self._done:
            self._samples = deque([(now, 0)])

    @property
    def per_second(self) -> float | None:
        """None as long as there is too little to tell."""
        (start, first), (end, last) = self._samples[0], self._samples[-1]
        return (last - first) / (end - start) if last > first and end - start >= SHORTEST else None


def pace(speed: Speed, done: int, total: int | None) -> str:
    """The rate and, with a total, the time left; "" as long as there is too little to tell."""
    rate = speed.per_second
    if rate is None:
        return ""
    shown = f"{rate:,.0f}/s" if rate >= 10 else f"{rate:.1f}/s" if rate >= 0.1 else f"{60 * rate:.1f}/min"
    return shown if total is None or done >= total else f"{shown}, {duration((total - done) / rate)} left"


def duration(seconds: float) -> str:
    """A time to two digits or so.

    >>> [duration(s) for s in (0.4, 119.4, 150, 7199, 7200, 200_000)]
    ['0 s', '119 s', '2 min', '120 min', '2.0 h', '56 h']
    """
    if seconds < 120:
        return f"{seconds:.0f} s"
    if seconds < 7200:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h" if seconds < 36_000 else f"{seconds / 3600:.0f} h"
