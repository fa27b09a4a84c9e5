"""Plan of a study: the numbers of finished, shared and remaining stages, and the expected time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderableType
from rich.markup import escape
from rich.table import Table

from probes.stages.done import mean_seconds
from probes.stages.kinds import STAGE_KINDS
from probes.study.config import StudyConfig
from probes.study.graph import Graph
from synthlang.store import Store
from synthlang.wording import duration, plural


@dataclass(frozen=True)
class KindCounts:
    """The stages of one kind.

    Attributes:
        kind: The kind.
        stages: Number of stages.
        done: Number of finished stages.
        shared: Number of stages that sharing between cells saves.
        seconds: Expected seconds for the unfinished stages, one after another, or None if there is no unfinished stage
            or no measured stage.
        measured: Number of stages in the store with a note, whose mean time is the basis of ``seconds``. It is 0 if
            there is no unfinished stage.
    """

    kind: str
    stages: int
    done: int
    shared: int
    seconds: float | None
    measured: int

    @property
    def to_do(self) -> int:
        """Number of unfinished stages."""
        return self.stages - self.done

    @property
    def told(self) -> tuple[str, str]:
        """Text of the expected time, and text of the evidence for it. Both are "" if every stage is finished."""
        if not self.to_do:
            return "", ""
        return ("unknown yet", "") if self.seconds is None else (duration(self.seconds), f"{self.measured} done")


@dataclass(frozen=True)
class StudyPlan:
    """The plan of a study, which rich prints as two tables.

    Attributes:
        name: The name of the study.
        kinds: Counts of stages by kind.
        cells: Name of a cell → number of its unfinished stages.
        seeds: Number of fine-tuning seeds.
    """

    name: str
    kinds: tuple[KindCounts, ...]
    cells: Mapping[str, int]
    seeds: int

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        del console, options
        title = f"{escape(self.name)}: {plural(len(self.cells), 'cell')} × {plural(self.seeds, 'fine-tuning seed')}"
        table = Table(title=title, caption="time: one stage after another, by the mean of earlier stages in the store")
        for column in ("stages", "all", "shared", "done", "to do", "time"):
            table.add_column(column, justify="left" if column == "stages" else "right")
        table.add_column("evidence")
        for kind in self.kinds:
            counts = (kind.stages, kind.shared, kind.done, kind.to_do)
            table.add_row(kind.kind, *(f"{count:,}" for count in counts), *kind.told)
        counts = tuple(sum(getattr(k, name) for k in self.kinds) for name in ("stages", "shared", "done", "to_do"))
        known = [kind.seconds for kind in self.kinds if kind.to_do]
        seconds = [one for one in known if one is not None]
        more = "at least " if len(seconds) < len(known) else ""
        whole = "" if not known else f"{more}{duration(sum(seconds))}" if seconds else "unknown yet"
        table.add_section()
        table.add_row("all", *(f"{count:,}" for count in counts), whole, "")
        yield table
        cells = Table(title="cells", show_header=False)
        cells.add_column(overflow="fold")
        cells.add_column(justify="right")
        for name, left in self.cells.items():
            cells.add_row(escape(name), f"{left} to do" if left else "done")
        yield cells


def plan(study: StudyConfig, graph: Graph, store: Store, done: Collection[str]) -> StudyPlan:
    """Return the plan of a study. ``done`` are the keys of the finished stages. Nothing is written.

    Raises:
        InputError: The note of a finished stage in the store cannot be read.
    """
    needed = Counter(graph.stages[key].kind for keys in graph.of_cell.values() for key in keys.values())
    left = Counter(stage.kind for key, stage in graph.stages.items() if key not in done)
    means = mean_seconds(store, left)
    kinds = []
    for kind in STAGE_KINDS:
        if count := sum(stage.kind == kind for stage in graph.stages.values()):
            mean, measured = means.get(kind, (None, 0))
            seconds = None if mean is None else mean * left[kind]
            kinds.append(KindCounts(kind, count, count - left[kind], needed[kind] - count, seconds, measured))
    cells = {name: sum(key not in done for key in keys.values()) for name, keys in graph.of_cell.items()}
    return StudyPlan(study.name, tuple(kinds), cells, len(study.seeds))
