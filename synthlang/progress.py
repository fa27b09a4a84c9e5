"""Progress of long work: bars on a terminal, plain lines elsewhere, messages from workers.

Work reports through a function ``report(task, done, total, note)``; who shows it is not its
business. ``done`` counts from 0 to ``total``; the note is free text such as a loss.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.progress import TimeRemainingColumn as Remaining

Report = Callable[[str, int, int, str], None]
SECONDS_BETWEEN_LINES = 10.0


def silent(task: str, done: int, total: int, note: str) -> None:
    """Report to nobody."""


class Display:
    """Shows reports: a bar for each task on a terminal, a line now and then elsewhere."""

    def __init__(self, console: Console | None = None) -> None:
        self.console = console or Console(stderr=True)
        self.live = self.console.is_terminal
        self._tasks: dict[str, TaskID] = {}
        self._last = time.monotonic()  # when the work before ended: counted work is only heard of when a part is done
        self._started: dict[str, tuple[float, int]] = {}
        self._printed: dict[str, float] = {}
        self._bars = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TextColumn("{task.fields[rate]}"),
            TimeElapsedColumn(),
            Remaining(),
            TextColumn("{task.fields[note]}", markup=False),
            console=self.console,
        )

    def __enter__(self) -> Display:
        if self.live:
            self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.live:
            self._bars.stop()

    def report(self, task: str, done: int, total: int, note: str = "") -> None:
        """Show that ``done`` of ``total`` units of a task are done."""
        now = time.monotonic()
        start, first = self._started.setdefault(task, (now, done))
        rate = (done - first) / (now - start) if now > start else 0.0
        if self.live:
            self._bar(task, done, total, note, rate)
        elif done >= total or now - self._printed.get(task, 0.0) >= SECONDS_BETWEEN_LINES:
            self._printed[task] = now
            left = f", {(total - done) / rate:.0f} s left" if rate > 0 and done < total else ""
            percent = 100 * done / max(total, 1)
            self.console.print(
                f"{task}: {done}/{total} ({percent:.0f} %, {_rate(rate)}{left}) {note}".rstrip(),
                soft_wrap=True,
                markup=False,
                emoji=False,
            )

    def counter(self, task: str) -> Callable[[str, int], None]:
        """A function ``(part, amount)`` that counts work whose total is unknown."""
        totals: dict[str, int] = {}

        def count(part: str, amount: int) -> None:
            totals[part] = totals.get(part, 0) + amount
            self._count(f"{task} {part}", totals[part])

        return count

    def _count(self, task: str, done: int) -> None:
        now = time.monotonic()
        start, _ = self._started.setdefault(task, (self._last, 0))
        self._last = now
        rate = done / (now - start) if now > start else 0.0
        if self.live:
            if task not in self._tasks:
                self._tasks[task] = self._bars.add_task(task, total=None, note="", rate="")
            self._bars.update(self._tasks[task], completed=done, rate=_rate(rate))
        elif now - self._printed.get(task, 0.0) >= SECONDS_BETWEEN_LINES:
            self._printed[task] = now
            self.console.print(f"{task}: {done} ({_rate(rate)})", soft_wrap=True, markup=False, emoji=False)

    def message(self, text: str) -> None:
        """Print a line above the bars."""
        self.console.print(text, soft_wrap=True, markup=False, emoji=False)

    def _bar(self, task: str, done: int, total: int, note: str, rate: float) -> None:
        if task not in self._tasks:
            self._tasks[task] = self._bars.add_task(task, total=total, note=note, rate="")
        self._bars.update(self._tasks[task], completed=done, total=total, note=note, rate=_rate(rate))
        if done >= total:  # a finished task becomes a line, so that a long grid does not fill the screen
            self._bars.remove_task(self._tasks.pop(task))
            self.console.print(f"{task}: done ({total}) {note}".rstrip(), soft_wrap=True, markup=False, emoji=False)


def _rate(rate: float) -> str:
    return f"{rate:,.0f}/s" if rate >= 10 else f"{rate:.1f}/s"
