"""The section on pretraining: alignment over steps of all conditions, and the curves of single runs."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from probes.figures.drawing import COLOURS, Figure
from probes.figures.lines import curve_figures, interval_series, over_steps
from probes.report.numbers import first_few, plural
from probes.report.page import Block, Figures, Folded, Paragraph, Section
from probes.study.labels import Layout, settings_of
from probes.study.report.data import Budget, Cell, Study, read_metrics
from probes.study.report.scores import grouped, interval_within

READ = 60
"""Most runs whose logs are read: a log is long, and a figure has no room for more lines."""
POINTS = 100
"""Most points of a line, about."""
PANELS = 4
"""Most figures of one run."""
SINGLE = 8
"""Most runs that have figures of their own: one of each condition first, then other seeds."""
NAMED = 3
"""Most runs that are named."""
LEFT_OUT = 12
"""Most conditions without curves that are named."""

Records = list[dict[str, float]]


def training(study: Study, held: Layout, budget: Budget) -> Section:
    """Curves of the runs; cells that share a run share its curves."""
    runs = _in_turn(grouped((cell for cell in study.cells if cell.run), lambda cell: str(cell.run)), held)
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
    blocks += _single(runs, known, held, budget)
    left = len(runs) - min(len(runs), READ)
    if left:
        notes.append(Paragraph(f"The logs of {plural(left, 'further run')} were not read for this page.", "note"))
    return Section("Training", [*blocks, *notes])


def _in_turn(runs: Mapping[str, list[Cell]], held: Layout) -> dict[str, list[Cell]]:
    """The first run of each condition, then the second ones (other seeds) …"""
    of_condition = grouped(runs, lambda run: _condition(runs[run], held))
    place = {run: number for several in of_condition.values() for number, run in enumerate(several)}
    return {run: runs[run] for run in sorted(runs, key=place.__getitem__)}


def _condition(cells: Sequence[Cell], held: Layout) -> str:
    return held.whole(settings_of(cells[0].labels, cells[0].name))


def _single(
    runs: Mapping[str, Sequence[Cell]], known: Mapping[str, Records], held: Layout, budget: Budget
) -> list[Block]:
    """Up to PANELS figures of each of the first runs; a run has all of its figures or none."""
    blocks: list[Block] = []
    drawn = dict[str, str]()
    for number, (run, records) in enumerate(known.items(), 1):
        if len(drawn) == SINGLE or budget.left < PANELS:
            break
        name = first_few([cell.name for cell in runs[run]], NAMED, "; ")
        figures = curve_figures(name, records, number)
        if figures:
            budget.take(len(figures))
            blocks.append(Folded(f"{name}: curves", [Figures(figures)]))
            drawn[run] = _condition(runs[run], held)
    left = [_condition(runs[run], held) for run in known if run not in drawn]
    return [*blocks, *_left_out(left, set(drawn.values()))]


def _left_out(conditions: Sequence[str], drawn: Collection[str]) -> list[Block]:
    """Which runs have no curves of their own, by their conditions."""
    rest = grouped((condition for condition in conditions if condition not in drawn), str)
    seeds = sum(condition in drawn for condition in conditions)
    told = [f"{plural(seeds, 'run')} of the conditions above (other seeds)"] if seeds else []
    if rest:
        names = first_few(list(rest), LEFT_OUT, "; ")
        told.append(f"{plural(sum(map(len, rest.values())), 'run')} of {plural(len(rest), 'condition')} ({names})")
    return [Paragraph(f"Without curves of their own here: {' and '.join(told)}.", "note")] if told else []


def _together(runs: Mapping[str, Sequence[Cell]], known: Mapping[str, Records], held: Layout) -> Figure | None:
    """Alignment (or a loss, where none was logged) over the steps: a line a condition, mean over its runs.

    An alignment is logged with the name of its language, of several their mean is taken.
    """
    keys = dict.fromkeys(key for records in known.values() for record in records for key in record)
    aligned = any(key.split("/")[0] == "alignment" for key in keys)
    key = "alignment" if aligned else "mlm" if "mlm" in keys else "loss"
    lines: dict[str, dict[float, list[float]]] = {}
    for run, records in known.items():
        points = lines.setdefault(_condition(runs[run], held), {})
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
    label = "word-embedding alignment (%)" if aligned else f"{key} (nats per masked token)"
    what = "Alignment" if aligned else "Loss"
    note = "A line a condition, as its runs logged it. Bands: 95 % t intervals over runs, if there are several."
    if len(series) > len(COLOURS):
        note += f" The first {len(COLOURS)} of {len(series)} conditions."
    return over_steps("training", f"{what} over pretraining", series[: len(COLOURS)], label, note).figure()
