"""Sections on pretraining: perplexities of all conditions, and what runs logged over their steps."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pretrain.folder import read_metrics
from probes.figures.drawing import COLOURS, Figure
from probes.figures.lines import curve_figures, interval_series, over_steps
from probes.report.data import FAILED, FigureBudget, Study
from probes.report.numbers import bounds, first_few, number, plural
from probes.report.page import Block, Figures, Folded, Paragraph, Section, Table
from probes.report.scores import FAILED_TRAINING, Column, Material, by_rows, grouped
from probes.results.intervals import interval_within
from probes.results.labels import Layout, settings_of
from probes.results.measures import PERPLEXITIES
from probes.results.read import columns_of, labels_of
from probes.results.scores import PERPLEXITY
from probes.statistics import Interval, numbers_among

PARENT = "parent"
LANGUAGES = {PARENT: "parent", "other": "other language"}
"""Language as measures call it → language as the page calls it."""
ROWS = 120
"""Largest number of rows of the table of perplexities."""
CAPTION = (
    "Perplexity of masked words on the dev set at the selected checkpoint, as logged during pretraining. Rows are "
    "means over models with 95 % intervals, the best first."
)
READ = 60
"""Largest number of runs whose logs are read. A log is long, and a figure has no room for more lines."""
POINTS = 100
"""Approximate largest number of points of a line."""
PANELS = 4
"""Largest number of figures of one run."""
SINGLE = 8
"""Largest number of runs that have figures of their own: one of each condition first, then other seeds."""
NAMED = 3
"""Largest number of runs that a note names."""
LEFT_OUT = 12
"""Largest number of conditions without curves that a note names."""

Records = list[dict[str, float]]


@dataclass(frozen=True)
class Pretrained:
    """Pretrainings that differ only in seeds; those that failed training are grouped apart.

    Attributes:
        labels: Axis → label, without the axes of seeds.
        models: Number of models.
        perplexities: Language, as measures call it → the interval over models.
    """

    labels: Mapping[str, str]
    failed: bool
    models: int
    perplexities: Mapping[str, Interval]

    @property
    def order(self) -> tuple[bool, float]:
        """Sort key: the best first, failed training last."""
        parent = self.perplexities.get(PARENT)
        return self.failed, math.inf if parent is None else parent.mean


def pretrained(study: Study) -> list[Pretrained]:
    """Return the perplexities of all pretrainings, the best first.

    A pretraining that several cells share counts once, under the first cell that has learned, else under the first.
    """
    names = ("cell", "labels", "pretrain", FAILED, "measure", "value")
    lines = sorted(zip(*columns_of(study.perplexities, names), strict=True), key=lambda line: bool(line[3]))
    first: dict[str, str] = {}
    for cell, _, run, *_ in lines:
        first.setdefault(run or cell, cell)
    counted = [line for line in lines if first[line[2] or line[0]] == line[0]]
    found = []
    for (failed, *labels), of in grouped(counted, _pretrained_key).items():
        values = grouped(of, lambda line: line[4].removeprefix(PERPLEXITIES))
        numbers = {name: numbers_among(line[5] for line in lines) for name, lines in values.items()}
        intervals = {name: interval_within(known, PERPLEXITY) for name, known in numbers.items() if known}
        found.append(Pretrained(dict(labels), failed, len({line[0] for line in of}), intervals))
    return sorted(found, key=lambda one: one.order)


def _pretrained_key(line: Sequence[Any]) -> tuple[Any, ...]:
    cell, labels, _, failed, *_ = line
    return bool(failed), *sorted(settings_of(labels_of(labels), cell).items())


def pretraining(study: Study, layout: Layout) -> Section | None:
    """Return a table of the perplexities of all pretrainings; None where none is known."""
    found = pretrained(study)
    if not found:
        return None
    axes = [axis for axis in layout.axes if len({one.labels.get(axis, "–") for one in found}) > 1]
    columns: list[Column] = [(layout.titles[axis], [one.labels.get(axis, "–") for one in found]) for axis in axes]
    columns = columns or [("study", [layout.full_name(one.labels) for one in found])]
    texts = len(columns)
    columns.append(("Seeds", [plural(one.models, "model") for one in found]))
    if any(one.failed for one in found):
        columns.append(("Training", [FAILED_TRAINING if one.failed else "–" for one in found]))
    for language in dict.fromkeys(name for one in found for name in one.perplexities):
        title = f"Perplexity\n{LANGUAGES.get(language, language.removeprefix('languages.'))}"
        columns.append((title, [one.perplexities.get(language) for one in found]))
    return Section("Pretraining", [Table(CAPTION, *by_rows(columns), texts, "pretraining", ROWS)])


def best_perplexity(study: Study, layout: Layout) -> str:
    """Name the conditions of the lowest perplexities of the source language; "" where fewer than two are known."""
    known = [one for one in pretrained(study) if PARENT in one.perplexities and not one.failed]
    if len(known) < 2:
        return ""
    first, second = known[:2]
    best, next_best = (f"{layout.full_name(one.labels)} ({_with_bounds(one)})" for one in (first, second))
    return f"The perplexity of the source language is lowest for {best}; next is {next_best}."


def _with_bounds(one: Pretrained) -> str:
    interval = one.perplexities[PARENT]
    between = bounds(interval.shown.low, interval.shown.high)
    return number(interval.mean) + (f", 95 % interval {between}" if between else "")


def training(material: Material) -> Section:
    """Return curves of the runs; cells that share a run share its curves."""
    study, layout, budget = material.study, material.layout, material.budget
    cells = grouped((cell for cell in study.cells if cell.run), lambda cell: cell.run)
    if not cells:
        return Section("Training", [Paragraph("No pretraining run was recorded.", "note")])
    failed = study.failed.keys() - set(study.table["cell"])  # which are of no condition that others are of
    conditions = {
        run: layout.full_name(settings_of(of[0].labels, of[0].name))
        + (f" ({FAILED_TRAINING.text})" if of[0].name in failed else "")
        for run, of in cells.items()
    }
    turns = {run: turn for same in grouped(cells, conditions.get).values() for turn, run in enumerate(same)}
    runs = sorted(cells, key=turns.__getitem__)  # the first of each condition, then those of other seeds
    logs: dict[str, Records] = {}
    told, missing = list[str](), list[str]()
    for run in runs[:READ]:
        if (folder := cells[run][0].folder) is None:
            missing.append(cells[run][0].name)
            continue
        path = folder / "metrics.jsonl"
        lines = read_metrics(path)
        text = path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""
        if unread := sum(bool(line.strip()) for line in text.split("\n")) - len(lines):
            told.append(f"{cells[run][0].name}: {plural(unread, 'line')} of metrics.jsonl could not be read.")
        logs[run] = [{key: value for key, value in line.items() if isinstance(value, int | float)} for line in lines]
    if missing:
        told.append(f"There are no curves where the run folder is missing: {first_few(missing, NAMED, '; ')}.")
    if silent := [cells[run][0].name for run, records in logs.items() if not records]:
        told.append(f"No metrics were logged: {first_few(silent, NAMED, '; ')}.")
    if len(runs) > READ:
        told.append(f"The logs of {plural(len(runs) - READ, 'more run')} were not read for this page.")
    known = {run: records for run, records in logs.items() if records}
    together = _together(conditions, known) if known and budget.take() else None
    blocks: list[Block] = [Figures([together])] if together else []
    names = {run: first_few([cell.name for cell in of], NAMED, "; ") for run, of in cells.items()}
    blocks += _single(names, conditions, known, budget)
    return Section("Training", [*blocks, *(Paragraph(text, "note") for text in told)])


def _single(
    names: Mapping[str, str], conditions: Mapping[str, str], known: Mapping[str, Records], budget: FigureBudget
) -> list[Block]:
    """Draw up to PANELS figures of each of the first runs; a run has all of its figures or none.

    A note counts the runs that have none.
    """
    blocks, drawn = list[Block](), list[str]()
    for place, (run, records) in enumerate(known.items(), 1):
        if len(drawn) == SINGLE or budget.left < PANELS:
            break
        if figures := curve_figures(names[run], records, place):
            budget.take(len(figures))
            blocks.append(Folded(f"{names[run]}: curves", [Figures(figures)]))
            drawn.append(run)
    shown = {conditions[run] for run in drawn}
    left = [conditions[run] for run in known if run not in drawn]
    rest = [condition for condition in left if condition not in shown]
    told = [f"{plural(len(left) - len(rest), 'run')} of the conditions above (other seeds)"] if left != rest else []
    if rest:
        several = list(dict.fromkeys(rest))
        of = f"{plural(len(several), 'condition')} ({first_few(several, LEFT_OUT, '; ')})"
        told.append(f"{plural(len(rest), 'run')} of {of}")
    if told:
        blocks.append(Paragraph(f"No curves are shown for {' and '.join(told)}.", "note"))
    return blocks


def _together(conditions: Mapping[str, str], known: Mapping[str, Records]) -> Figure | None:
    """Draw the alignment over the steps, a line for each condition: the mean over its runs.

    A loss is drawn where no alignment was logged. An alignment is logged for each language; the mean of these is drawn.
    """
    keys = {key.split("/")[0] for records in known.values() for record in records for key in record}
    key = next(name for name in ("alignment", "mlm", "loss") if name in keys or name == "loss")
    lines: dict[str, dict[float, list[float]]] = {}
    for run, records in known.items():
        points = lines.setdefault(conditions[run], {})
        for record in records:
            if values := [value for name, value in record.items() if name.split("/")[0] == key]:
                points.setdefault(record["step"], []).append(sum(values) / len(values))
    series = []
    for name, points in lines.items():
        most = max(map(len, points.values()), default=0)
        steps = [step for step in sorted(points) if len(points[step]) == most]  # where all runs of a line were measured
        steps = steps[:: max(1, len(steps) // POINTS)]
        if len(steps) > 1:
            series.append(interval_series(name, steps, [interval_within(points[step], key) for step in steps]))
    if not series:
        return None
    aligned = key == "alignment"
    label = "word-embedding alignment (%)" if aligned else f"{key} (nats per masked token)"
    note = "Each line is a condition, as logged. Bands are 95 % intervals over pretraining seeds."
    if len(series) > len(COLOURS):
        note += f" The first {len(COLOURS)} of {len(series)} conditions."
    title = f"{'Alignment' if aligned else 'Loss'} over pretraining"
    return over_steps("training", title, series[: len(COLOURS)], label, note).figure()
