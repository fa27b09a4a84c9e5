"""Sections on pretraining: perplexities of all conditions, and the logs of runs over their steps."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, zip_longest
from pathlib import Path

from pretrain.folder import read_metrics
from probes.figures.drawing import COLOURS, Figure
from probes.figures.lines import STEP, curve_figures
from probes.report.data import FAILED, Cell, Study
from probes.report.figures import FigureBudget, curves
from probes.report.numbers import bounds, number, where_bounds
from probes.report.page import Block, Figures, Folded, Paragraph, Section, Table
from probes.report.scores import FAILED_TRAINING, Material, axis_columns, by_rows, grouped
from probes.results.labels import settings_of
from probes.results.measures import PERPLEXITIES, interval_within
from probes.results.read import columns_of, distinct, labels_of
from probes.results.scores import PERPLEXITY
from probes.statistics import Interval, numbers_among
from synthlang.wording import first_few, plural

PARENT = "parent"
LANGUAGES = {PARENT: "source", "other": "other language"}
"""Language in the names of measures → its title on the page."""
ROWS = 120
"""Largest number of rows of the table of perplexities."""
CAPTION = (
    "Perplexity of masked words, or of all tokens for a decoder, on the dev set at the selected checkpoint, as logged "
    "during pretraining. Rows are means over models{}, the best first."
)
BANDS = "Bands are 95 % intervals over pretraining seeds."
READ = 60
"""Largest number of runs whose logs are read, because a log is long and a figure has no room for more lines."""
POINTS = 100
"""Approximate largest number of points of a line."""
PANELS = 4
"""Largest number of figures of a run."""
SINGLE = 8
"""Largest number of runs with separate figures. One run of each condition comes first, then other seeds."""
NAMED = 3
"""Largest number of runs that a note names."""
LEFT_OUT = 12
"""Largest number of conditions without curves that a note names."""


@dataclass(frozen=True)
class Pretrained:
    """Pretrainings that differ only in seeds. Excluded runs form separate groups.

    Attributes:
        labels: Axis → label, without the axes of seeds.
        failed: True if the runs are excluded.
        models: Number of models.
        perplexities: Language, by its name in measures → interval over models.
    """

    labels: Mapping[str, str]
    failed: bool
    models: int
    perplexities: Mapping[str, Interval]

    @property
    def order(self) -> tuple[bool, float]:
        """Sort key: the lowest perplexity of the source language comes first, and excluded runs come last."""
        parent = self.perplexities.get(PARENT)
        return self.failed, math.inf if parent is None else parent.mean


@dataclass(frozen=True, eq=False)
class Run:
    """A pretraining.

    Attributes:
        cells: The cells that share the pretraining.
        condition: Name of the condition of the first cell.
    """

    cells: Sequence[Cell]
    condition: str

    @property
    def first(self) -> str:
        """The name of the first cell."""
        return self.cells[0].name

    @property
    def name(self) -> str:
        """The names of the first cells, joined."""
        return first_few([cell.name for cell in self.cells], NAMED, "; ")

    @cached_property
    def records(self) -> list[dict[str, float]]:
        """The numbers of each line of the log, up to the first line that cannot be read."""
        lines = read_metrics(self.log)
        return [{key: value for key, value in line.items() if isinstance(value, int | float)} for line in lines]

    @property
    def unread(self) -> int:
        """The number of lines of the log that could not be read."""
        text = self.log.read_text(encoding="utf-8", errors="replace") if self.log.exists() else ""
        return sum(bool(line.strip()) for line in text.split("\n")) - len(self.records)

    @property
    def log(self) -> Path:
        """The path of the log."""
        folder = self.cells[0].folder
        assert folder is not None, "only the logs of existing folders are read"
        return folder / "metrics.jsonl"


def pretrained(study: Study) -> list[Pretrained]:
    """Return the perplexities of each group of pretrainings that differ only in seeds, the best first.

    A pretraining that several cells share counts once, with the labels of its first cell that is not excluded, or else
    of its first cell.
    """
    table = study.perplexities.astype({"cell": str, "pretrain": str})
    table = table.assign(beyond=table[FAILED] != "").sort_values("beyond", kind="stable")
    runs = table["pretrain"].where(table["pretrain"] != "", table["cell"])
    counted = table[table.groupby(runs)["cell"].transform("first") == table["cell"]]
    settings = {cell: settings_of(labels_of(text), cell) for cell, text in distinct(counted, "cell", "labels")}
    lines = zip(*columns_of(counted, ("cell", "beyond", "measure", "value")), strict=True)
    found = []
    for (failed, *labels), of in grouped(lines, lambda line: (line[1], *sorted(settings[line[0]].items()))).items():
        values = grouped(of, lambda line: line[2].removeprefix(PERPLEXITIES))
        numbers = {name: numbers_among(line[3] for line in lines) for name, lines in values.items()}
        intervals = {name: interval_within(known, PERPLEXITY) for name, known in numbers.items() if known}
        found.append(Pretrained(dict(labels), failed, len({line[0] for line in of}), intervals))
    return sorted(found, key=lambda one: one.order)


def pretraining(material: Material) -> Section | None:
    """Return the section with a table of the perplexities of all pretrainings, or None if no perplexity is known."""
    found, layout = pretrained(material.study), material.layout
    if not found:
        return None
    axes = [axis for axis in layout.axes if len({one.labels.get(axis, "–") for one in found}) > 1]
    columns = axis_columns(layout, [one.labels for one in found], axes)
    texts = len(columns)
    columns.append(("Seeds", [plural(one.models, "model") for one in found]))
    if any(one.failed for one in found):
        columns.append(("Training", [FAILED_TRAINING if one.failed else "–" for one in found]))
    for language in dict.fromkeys(name for one in found for name in one.perplexities):
        title = f"Perplexity\n{LANGUAGES.get(language, language.removeprefix('languages.'))}"
        columns.append((title, [one.perplexities.get(language) for one in found]))
    header, rows = by_rows(columns)
    caption = CAPTION.format(where_bounds(chain(*rows), " with 95 % intervals"))
    return Section("Pretraining", [Table(caption, header, rows, texts, "pretraining", ROWS)])


def best_perplexity(material: Material) -> str:
    """Return a sentence with the two conditions of lowest source perplexity, or "" for fewer than two conditions."""
    known = [one for one in pretrained(material.study) if PARENT in one.perplexities and not one.failed]
    if len(known) < 2:
        return ""
    best, second = (
        f"{material.layout.full_name(one.labels)} ({_with_bounds(one.perplexities[PARENT])})" for one in known[:2]
    )
    return f"The perplexity of the source language is lowest for {best}; next is {second}."


def _with_bounds(interval: Interval) -> str:
    between = bounds(interval.shown.low, interval.shown.high)
    return number(interval.mean) + (f", 95 % interval {between}" if between else "")


def training(material: Material) -> Section:
    """Return the section with the curves of the first runs over their steps. At most READ logs are read.

    Cells that share a run share its curves. Notes count the runs without curves, and name the first of them.
    """
    runs = _runs(material)
    if not runs:
        return Section("Training", [Paragraph("No pretraining run was recorded.", "note")])
    read = [run for run in runs[:READ] if run.cells[0].folder is not None]
    told = [
        f"{run.first}: {plural(n, 'line')} of metrics.jsonl could not be read." for run in read if (n := run.unread)
    ]
    if missing := [run.first for run in runs[:READ] if run not in read]:
        told.append(f"There are no curves where the run folder is missing: {first_few(missing, NAMED, '; ')}.")
    if silent := [run.first for run in read if not run.records]:
        told.append(f"No metrics were logged: {first_few(silent, NAMED, '; ')}.")
    if len(runs) > READ:
        told.append(f"The logs of {plural(len(runs) - READ, 'more run')} were not read for this page.")
    known = [run for run in read if run.records]
    together = _together(known) if known and material.budget.take() else None
    blocks: list[Block] = [Figures([together])] if together else []
    blocks += _single(known, material.budget)
    return Section("Training", [*blocks, *(Paragraph(text, "note") for text in told)])


def _runs(material: Material) -> list[Run]:
    """Return the runs in turns: the first run of each condition, then the second runs, and so on."""
    study, layout = material.study, material.layout
    failed = study.failed.keys() - set(study.table["cell"])
    runs = []
    for cells in grouped((cell for cell in study.cells if cell.run), lambda cell: cell.run).values():
        first = cells[0]
        name = layout.full_name(settings_of(first.labels, first.name))
        runs.append(Run(cells, f"{name} ({FAILED_TRAINING.text})" if first.name in failed else name))
    same = grouped(runs, lambda run: run.condition).values()
    return [run for turn in zip_longest(*same) for run in turn if run is not None]


def _single(known: Sequence[Run], budget: FigureBudget) -> list[Block]:
    """Draw the curves of the first runs. A note has the number of runs without curves.

    The budget must have room for all figures of a run.
    """
    blocks, drawn = list[Block](), list[Run]()
    for place, run in enumerate(known, 1):
        if len(drawn) == SINGLE or budget.left < PANELS:
            break
        if figures := curve_figures(run.name, run.records, place):
            budget.take(len(figures))
            blocks.append(Folded(f"{run.name}: curves", [Figures(figures)]))
            drawn.append(run)
    if left := [run.condition for run in known if run not in drawn]:
        named = first_few(list(dict.fromkeys(left)), LEFT_OUT, "; ")
        blocks.append(Paragraph(f"No curves are shown for {plural(len(left), 'further run')}: {named}.", "note"))
    return blocks


def _together(known: Sequence[Run]) -> Figure | None:
    """Draw the alignment of each condition over the steps, or the loss if no alignment was logged.

    The alignment is the mean over the languages.
    """
    keys = {key.split("/")[0] for run in known for record in run.records for key in record}
    key = next(name for name in ("alignment", "mlm", "loss") if name in keys or name == "loss")
    lines: dict[str, dict[float, Interval]] = {}
    for condition, runs in grouped(known, lambda run: run.condition).items():
        points: dict[float, list[float]] = {}
        for record in chain.from_iterable(run.records for run in runs):
            if values := [value for name, value in record.items() if name.split("/")[0] == key]:
                points.setdefault(record["step"], []).append(sum(values) / len(values))
        most = max(map(len, points.values()), default=0)
        steps = [step for step in sorted(points) if len(points[step]) == most]  # where all runs of a line were measured
        steps = steps[:: max(1, len(steps) // POINTS)]
        if len(steps) > 1:
            lines[condition] = {step: interval_within(points[step], key) for step in steps}
    if not lines:
        return None
    what, label = "Loss", f"{key} (nats per masked token)"
    if key == "alignment":
        what, label = "Alignment", "word-embedding alignment (%)"
    note = "Each line is a condition, as logged."
    if len(lines) > len(COLOURS):
        note += f" The first {len(COLOURS)} of {len(lines)} conditions."
    return curves("training", f"{what} over pretraining", lines, (STEP, label), note, BANDS)
