"""Progress of long work: bars on a terminal, plain lines elsewhere, messages from workers, rates and the time left.

A function reports its progress by calling ``report(task, done, total, note)`` or, in a stream, ``count(part, amount)``.
``done`` counts from 0 to ``total``, and the note is free text such as a loss. A task that ends often, such as a search
at each layer, is shown at most once in SECONDS_BETWEEN_LINES seconds.

``rich`` draws the bars. The rates are computed here, for bars and plain lines alike. All parts of a task share one
rate. Units that an earlier run finished do not count.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from types import TracebackType

from rich import progress as bars
from rich.console import Console
from rich.text import Text

from synthlang.wording import duration

WINDOW, FEWEST = 60.0, 5  # a rate covers at least this many seconds and steps
SHORTEST = 1.0  # seconds; a rate over less time would be unreliable
LEFT = " left"
"""End of a note that already contains the time left. The pace is then not shown."""
BAR, BESIDE = 16, 41
"""Width in characters of a bar, and of the numbers, the time and the pace beside it."""


class Pace:
    """Recent rate of work, measured from the first value of ``done`` on.

    The rate covers the last WINDOW seconds, or a longer time if ``done`` changed fewer than FEWEST times in them.

    Attributes:
        done: Number of units that are done, which the caller updates.
    """

    def __init__(self, done: int = 0) -> None:
        self.done = done
        self._began = time.monotonic()
        self._samples = deque([(self._began, done)])

    def shown(self, done: float, total: float | None) -> str:
        """Return the rate and, with a total, the time left, as text. The text is empty until the rate is known.

        The rate is computed from the attribute ``done``. The time left covers the units from the argument ``done`` to
        ``total``.
        """
        now = time.monotonic()
        if self.done > self._samples[-1][1]:
            self._samples.append((now, self.done))
        while len(self._samples) > FEWEST + 1 and now - self._samples[1][0] >= WINDOW:
            self._samples.popleft()
        (start, first), (end, last) = self._samples[0], self._samples[-1]
        if end == start or now - self._began < SHORTEST:
            return ""
        rate = (last - first) / (end - start)
        shown = f"{rate:,.0f}/s" if rate >= 10 else f"{rate:.1f}/s" if rate >= 0.1 else f"{60 * rate:.1f}/min"
        return shown if total is None or done >= total else f"{shown}, {duration((total - done) / rate)}{LEFT}"


class PaceColumn(bars.ProgressColumn):
    """Column with the pace of a task, computed when the bar is drawn and not at each report."""

    def render(self, task: bars.Task) -> Text:
        return Text("" if task.fields["note"].endswith(LEFT) else task.fields["pace"].shown(task.completed, task.total))


class NameColumn(bars.ProgressColumn):
    """Column with the name of a task or its note, shortened in the middle so that there is room for the bar.

    ``field`` is ``name`` or ``note``.
    """

    def __init__(self, console: Console, field: str) -> None:
        super().__init__()
        self._console, self._field = console, field

    def render(self, task: bars.Task) -> Text:
        room = max(20, self._console.width - BAR - BESIDE)
        name = squeezed(task.description, room)
        note = str(task.fields["note"])
        return Text(name if self._field == "name" else squeezed(note, max(0, room - len(name) - 1)))


def squeezed(text: str, length: int) -> str:
    """Shorten a text to ``length`` characters by leaving out its middle, or to "" if ``length`` is below 9.

    >>> squeezed("MLM, trans+inv, pretrain seed=0: pretrain", 24), squeezed("short", 24), squeezed("none", 0)
    ('MLM, trans+…=0: pretrain', 'short', '')
    """
    if len(text) <= length:
        return text
    half = (length - 1) // 2
    return f"{text[:half]}…{text[len(text) - (length - 1 - half) :]}" if length > 8 else ""


Report = Callable[[str, int, int, str], None]
Count = Callable[[str, int], None]
Say = Callable[[str], None]
SECONDS_BETWEEN_LINES = 10.0


def silent(task: str, done: int, total: int, note: str) -> None:
    """Ignore a report of progress."""


def unheard(text: str) -> None:
    """Ignore a message to the user."""


def already(count: Count, part: str, amount: int) -> None:
    """Count ``amount`` units of a part that an earlier run finished. These units do not affect the rate."""
    getattr(count, "already", count)(part, amount)


class Display:
    """Display of progress: a bar for each task on a terminal, occasional lines elsewhere.

    Attributes:
        console: Console to write to (default: standard error).
        live: True if the console is a terminal.
    """

    def __init__(self, console: Console | None = None) -> None:
        self.console = console or Console(stderr=True)
        self.live = self.console.is_terminal
        self._tasks: dict[str, bars.TaskID] = {}
        self._paces: dict[str, Pace] = {}
        self._printed: dict[str, float] = {}
        self._ended: dict[str, float] = {}
        self._bars = bars.Progress(
            bars.SpinnerColumn(),
            NameColumn(self.console, "name"),
            bars.BarColumn(bar_width=BAR),
            bars.MofNCompleteColumn(),
            bars.TimeElapsedColumn(),
            PaceColumn(),
            NameColumn(self.console, "note"),
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
        """Show that ``done`` of ``total`` units of a task are done, with a note such as a loss.

        A terminal has a bar for the task. Elsewhere a line is printed, at most once in SECONDS_BETWEEN_LINES seconds.
        """
        pace = self._paces.get(task)
        if pace is None or done < pace.done:  # the first report of a resumed run starts high
            pace = self._paces[task] = Pace(done)
        pace.done = done
        self._show(task, done, total, pace, note, ended=done >= total)

    def counter(self, task: str, size: Callable[[str], int | None] | None = None) -> Counter:
        """Return a counter of the work of a task in parts, such as splits.

        ``size(part)`` returns the approximate total of a part, or None if the total is unknown. Without ``size``, no
        total is known.
        """
        return Counter(self, task, size)

    def message(self, text: str) -> None:
        """Print a text as a line, above the bars on a terminal."""
        self.console.print(text, soft_wrap=True, markup=False, emoji=False)

    def _show(self, task: str, done: int, total: int | None, pace: Pace, note: str, ended: bool = False) -> None:
        now = time.monotonic()
        is_due = ended and now - self._ended.get(task, -SECONDS_BETWEEN_LINES) >= SECONDS_BETWEEN_LINES
        if is_due:
            self._ended[task] = now
        if self.live:
            if task not in self._tasks:
                self._tasks[task] = self._bars.add_task(task, total=total, note=note, pace=pace)
            # Called with total=None, update() keeps the total of an earlier call.
            self._bars.update(self._tasks[task], completed=done, total=total, note=note, pace=pace)
            if ended:  # a finished task becomes a line, so that a long grid of cells does not fill the screen
                self._bars.remove_task(self._tasks.pop(task))
                if is_due:
                    self.message(f"{task}: done ({total}) {note}".rstrip())
            return
        if is_due or now - self._printed.get(task, -SECONDS_BETWEEN_LINES) >= SECONDS_BETWEEN_LINES:
            self._printed[task] = now
            percent = "" if total is None else f"{100 * done / max(total, 1):.0f} %"
            facts = ", ".join(
                fact for fact in (percent, "" if note.endswith(LEFT) else pace.shown(done, total)) if fact
            )
            amount = str(done) if total is None else f"{done}/{total}"
            self.message(f"{task}: {amount}{f' ({facts})' if facts else ''} {note}".rstrip())


class Counter:
    """Counter of the work of one task. The parts of the task may run one after another or at the same time."""

    def __init__(self, display: Display, task: str, size: Callable[[str], int | None] | None) -> None:
        self._display, self._task, self._size = display, task, size
        self._done: dict[str, int] = {}
        # All parts share a pace: several may end together, and the time of one alone is not known.
        self._pace = Pace()

    def __call__(self, part: str, amount: int) -> None:
        """Show that ``amount`` more units of a part are done."""
        self._pace.done += amount
        self._count(part, amount)

    def already(self, part: str, amount: int) -> None:
        """Show that ``amount`` more units of a part were done before this run."""
        if not self._pace.done:  # the time until now, for example for checksums, was not spent on new units
            self._pace = Pace()
        self._count(part, amount)

    def _count(self, part: str, amount: int) -> None:
        done = self._done[part] = self._done.get(part, 0) + amount
        size = self._size(part) if self._size else None
        total = None if size is None else max(size, done)  # an estimate may be too low
        self._display._show(f"{self._task} {part}", done, total, self._pace, "")
