"""The section on pretraining: alignment over steps of all conditions, and the curves of single runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from probes.figures.lines import interval_series, over_steps
from probes.report.blocks import Block, Figures, Folded, Paragraph, Section
from probes.report.figure import COLOURS, Figure
from probes.report.numbers import first_few, plural
from probes.statistics import mean_interval
from probes.study.labels import Layout, settings_of
from probes.study.report.budget import Budget
from probes.study.report.data import Cell, Study
from probes.study.report.figures_curves import curve_figures
from probes.study.report.measures import read_metrics
from probes.study.report.scores import grouped

READ = 60
"""Most runs whose logs are read: a log is long, and a figure has no room for more lines."""
POINTS = 100
"""Most points of a line, about."""
PANELS = 4
"""Most figures of one run."""
SINGLE = 8
"""Most runs that have figures of their own."""
NAMED = 3
"""Most runs that are named."""

Records = list[dict[str, float]]


def training(study: Study, held: Layout, budget: Budget) -> Section:
    """Curves of the runs; cells that share a run share its curves."""
    runs = grouped((cell for cell in study.cells if cell.run), lambda cell: str(cell.run))
    if not runs:
        return Section("Training", [Paragraph("No pretraining run was recorded.", "note")])
    notes: list[Block] = []
    logs: dict[str, Records] = {}
    missing = []
    for run, cells in list(runs.items())[:READ]:
        if cells[0].folder is None:
            missing.append(cells[0].name)
            continue
        metrics = cells[0].folder / "metrics.jsonl"
        logs[run], broken = read_metrics(metrics) if metrics.is_file() else ([], 0)
        if broken:
            lines = plural(broken, "line")
            notes.append(Paragraph(f"{cells[0].name}: {lines} of metrics.jsonl could not be read.", "note"))
    known = {run: records for run, records in logs.items() if records}
    if missing:
        notes.append(
            Paragraph(f"Run folders that are not here, so without curves: {first_few(missing, NAMED, '; ')}.", "note")
        )
    if silent := [runs[run][0].name for run in logs if run not in known]:
        notes.append(Paragraph(f"No metrics were logged: {first_few(silent, NAMED, '; ')}.", "note"))
    together = _together(runs, known, held) if known and budget.take() else None
    blocks: list[Block] = [Figures([together])] if together else []
    blocks += _single(runs, known, budget)
    left = len(runs) - min(len(runs), READ)
    if left:
        notes.append(Paragraph(f"The logs of {plural(left, 'further run')} were not read for this page.", "note"))
    return Section("Training", [*blocks, *notes])


def _single(runs: Mapping[str, Sequence[Cell]], known: Mapping[str, Records], budget: Budget) -> list[Block]:
    """Up to PANELS figures of each of the first runs; a run has all of its figures or none."""
    blocks: list[Block] = []
    drawn = 0
    for number, (run, records) in enumerate(known.items(), 1):
        if drawn == SINGLE or budget.left < PANELS:
            break
        name = first_few([cell.name for cell in runs[run]], NAMED, "; ")
        figures = curve_figures(name, records, number)
        if figures:
            budget.take(len(figures))
            blocks.append(Folded(f"{name}: curves", [Figures(figures)]))
            drawn += 1
    if drawn < len(known):
        blocks.append(Paragraph(f"{plural(len(known) - drawn, 'run')} without curves of their own here.", "note"))
    return blocks


def _together(runs: Mapping[str, Sequence[Cell]], known: Mapping[str, Records], held: Layout) -> Figure | None:
    """Alignment (or a loss, where none was logged) over the steps: a line a condition, mean over its runs."""
    keys = dict.fromkeys(key for records in known.values() for record in records for key in record)
    key = next((k for k in keys if k.split("/")[0] == "alignment"), "mlm" if "mlm" in keys else "loss")
    lines: dict[str, dict[float, list[float]]] = {}
    for run, records in known.items():
        first = runs[run][0]
        points = lines.setdefault(held.whole(settings_of(first.labels, first.name)), {})
        for record in records:
            if key in record:
                points.setdefault(record["step"], []).append(record[key])
    series = []
    for name, points in lines.items():
        most = max(map(len, points.values()), default=0)
        steps = [step for step in sorted(points) if len(points[step]) == most]  # where all runs of a line were measured
        steps = steps[:: max(1, len(steps) // POINTS)]
        if len(steps) > 1:
            series.append(interval_series(name, steps, [mean_interval(points[step]) for step in steps]))
    if not series:
        return None
    label = "word-embedding alignment (%)" if key.startswith("alignment") else f"{key} (nats per masked token)"
    what = "Alignment" if key.startswith("alignment") else "Loss"
    note = "A line a condition, as its runs logged it. Bands: 95 % t intervals over runs, if there are several."
    if len(series) > len(COLOURS):
        note += f" The first {len(COLOURS)} of {len(series)} conditions."
    return over_steps("training", f"{what} over pretraining", series[: len(COLOURS)], label, note).figure()
