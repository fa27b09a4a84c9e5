"""What a study would do, before anything starts: its stages, what is done and shared, about how long and how large."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderableType
from rich.markup import escape
from rich.table import Table

from probes.report.numbers import plural
from probes.study.config import StudyConfig
from probes.study.costs import disk, operations
from probes.study.index import entries
from probes.study.tasks import KINDS, CellTasks, Graph
from synthlang.progress import duration
from synthlang.store import Store

SHARE = 0.4  # of the speed of a matrix product that training comes to, about
START = 3.0  # seconds that a task takes besides, to load libraries and data
MEASURED = 0.5  # seconds of products, the quickest of which counts
SIDE = {"cpu": 512, "cuda": 8192}  # of the matrices
UNITS = ("bytes", "kB", "MB", "GB", "TB")


@dataclass(frozen=True)
class Kind:
    """The stages of one kind: how many, how many are done; ``shared`` is what cells need less by sharing them.

    seconds, size   of those to do, one after another
    told_by         what the seconds are told by
    """

    kind: str
    tasks: int
    done: int
    shared: int
    seconds: float
    size: float
    told_by: str

    @property
    def to_do(self) -> int:
        """How many are left."""
        return self.tasks - self.done


@dataclass(frozen=True)
class Plan:
    """The kinds of stages of a study; ``cells`` are the names of all with how many stages each has left."""

    name: str
    kinds: tuple[Kind, ...]
    cells: Mapping[str, int]
    seeds: int

    @property
    def seconds(self) -> float:
        """Of all that is to do."""
        return sum(kind.seconds for kind in self.kinds)

    @property
    def size(self) -> float:
        """Bytes of all that is to do; data and fits in progress are not counted."""
        return sum(kind.size for kind in self.kinds)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        del console, options
        title = f"{escape(self.name)}: {plural(len(self.cells), 'cell')} × {plural(self.seeds, 'fine-tuning seed')}"
        table = Table(title=title, caption="time: one task after another on this machine; both are rough")
        for column in ("stages", "all", "shared", "done", "to do", "time", "disk"):
            table.add_column(column, justify="left" if column == "stages" else "right")
        table.add_column("time told by")
        for kind in self.kinds:
            counts = (kind.tasks, kind.shared, kind.done, kind.to_do)
            cost = (duration(kind.seconds), shown_bytes(kind.size), kind.told_by) if kind.to_do else ("", "", "")
            table.add_row(kind.kind, *(f"{count:,}" for count in counts), *cost)
        counts = tuple(sum(getattr(k, name) for k in self.kinds) for name in ("tasks", "shared", "done", "to_do"))
        table.add_section()
        table.add_row("all", *(f"{c:,}" for c in counts), duration(self.seconds), shown_bytes(self.size), "")
        yield table
        cells = Table(title="cells", show_header=False)
        cells.add_column(overflow="fold")
        cells.add_column(justify="right")
        for name, left in self.cells.items():
            cells.add_row(escape(name), f"{left} to do" if left else "done")
        yield cells


def plan(study: StudyConfig, graph: Graph, store: Store, done: Collection[str]) -> Plan:
    """What there is to do for a study with this store; nothing is written. ``done``: the keys of tasks that are.

    Seconds are those that stages of the same kind took in the store, for as many operations; where there are none, of
    all kinds; in an empty store those of a matrix product on this machine.
    """
    needed = Counter(graph.tasks[key].kind for held in graph.of_cell.values() for key in held.keys)
    speeds = None if graph.tasks.keys() <= set(done) else Speeds(store)  # which reads all of the index
    kinds = []
    for name in (kind.kind for kind in KINDS):
        mine = {key: task for key, task in graph.tasks.items() if task.kind == name}
        if not mine:
            continue
        left = [task for key, task in mine.items() if key not in done]
        work = sum(operations(task) for task in left)
        seconds, told_by = speeds.seconds(name, work, len(left)) if left and speeds is not None else (0.0, "")
        size = sum(disk(task) for task in left)
        kinds.append(Kind(name, len(mine), len(mine) - len(left), needed[name] - len(mine), seconds, size, told_by))
    cells = {name: _left(held, done) for name, held in graph.of_cell.items()}
    return Plan(study.name, tuple(kinds), cells, len(study.seeds))


def _left(held: CellTasks, done: Collection[str]) -> int:
    return sum(key not in done for key in held.keys)


class Speeds:
    """How long so many operations take, by what stages of a store took."""

    def __init__(self, store: Store) -> None:
        self._seconds: Counter[str] = Counter()
        self._work: Counter[str] = Counter()
        self._count: Counter[str] = Counter()
        for entry in entries(store):
            for kind in (entry["kind"], ""):
                self._seconds[kind] += entry["seconds"]
                self._work[kind] += entry["work"]
                self._count[kind] += 1

    def seconds(self, kind: str, work: float, tasks: int) -> tuple[float, str]:
        """Seconds for ``work`` operations of so many tasks of a kind, and what tells it."""
        for held, whose in ((kind, f"{self._count[kind]} done"), ("", f"{self._count['']} done, other kinds")):
            if self._seconds[held] and self._work[held]:
                return work * self._seconds[held] / self._work[held], whose
        return START * tasks + work / (SHARE * matrix_speed()), "a matrix product"


_SPEED: list[float] = []


def matrix_speed() -> float:
    """Operations a second of a product of matrices here, on the GPU if there is one; measured once."""
    if not _SPEED:
        import torch

        device = "cuda" if torch.cuda.is_available() else "cpu"
        n = SIDE[device]
        a = torch.ones(n, n, device=device, dtype=torch.bfloat16 if device == "cuda" else torch.float32)
        best, end = float("inf"), time.perf_counter() + MEASURED
        while (start := time.perf_counter()) < end:  # the first one warms up; others may find the machine busy
            float((a @ a)[0, 0])  # waits for the device
            best = min(best, time.perf_counter() - start)
        _SPEED.append(2.0 * n**3 / best)
    return _SPEED[0]


def shown_bytes(size: float) -> str:
    """A size to two digits or so.

    >>> [shown_bytes(s) for s in (0, 999, 1500, 2_340_000, 7.5e12)]
    ['0 bytes', '999 bytes', '1.5 kB', '2.3 MB', '7.5 TB']
    """
    unit = 0
    while size >= 1000 and unit < len(UNITS) - 1:
        size, unit = size / 1000, unit + 1
    return f"{size:.0f} {UNITS[unit]}" if unit == 0 or size >= 100 else f"{size:.1f} {UNITS[unit]}"
