"""The section on pretraining: alignment over steps of all conditions, and the curves of single runs."""

from __future__ import annotations

from collections.abc import Mapping

from pretrain.folder import read_metrics
from probes.figures.drawing import COLOURS, Figure
from probes.figures.lines import curve_figures, interval_series, over_steps
from probes.report.numbers import first_few, plural
from probes.report.page import Block, Figures, Folded, Paragraph, Section
from probes.study.labels import Layout, settings_of
from probes.study.report.data import FigureBudget, Study
from probes.study.report.scores import grouped
from probes.study.results import interval_within

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


def training(study: Study, layout: Layout, budget: FigureBudget) -> Section:
    """Curves of the runs; cells that share a run share its curves."""
    cells = grouped((cell for cell in study.cells if cell.run), lambda cell: cell.run)
    if not cells:
        return Section("Training", [Paragraph("No pretraining run was recorded.", "note")])
    conditions = {run: layout.full_name(settings_of(of[0].labels, of[0].name)) for run, of in cells.items()}
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
        told.append(f"Run folders that are not here, so without curves: {first_few(missing, NAMED, '; ')}.")
    if silent := [cells[run][0].name for run, records in logs.items() if not records]:
        told.append(f"No metrics were logged: {first_few(silent, NAMED, '; ')}.")
    if len(runs) > READ:
        told.append(f"The logs of {plural(len(runs) - READ, 'further run')} were not read for this page.")
    known = {run: records for run, records in logs.items() if records}
    together = _together(conditions, known) if known and budget.take() else None
    blocks: list[Block] = [Figures([together])] if together else []
    names = {run: first_few([cell.name for cell in of], NAMED, "; ") for run, of in cells.items()}
    blocks += _single(names, conditions, known, budget)
    return Section("Training", [*blocks, *(Paragraph(text, "note") for text in told)])


def _single(
    names: Mapping[str, str], conditions: Mapping[str, str], known: Mapping[str, Records], budget: FigureBudget
) -> list[Block]:
    """Up to PANELS figures of each of the first runs; a run has all of its figures or none. Who has none is told."""
    blocks, drawn = list[Block](), list[str]()
    for number, (run, records) in enumerate(known.items(), 1):
        if len(drawn) == SINGLE or budget.left < PANELS:
            break
        if figures := curve_figures(names[run], records, number):
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
        blocks.append(Paragraph(f"Without curves of their own here: {' and '.join(told)}.", "note"))
    return blocks


def _together(conditions: Mapping[str, str], known: Mapping[str, Records]) -> Figure | None:
    """Alignment (or a loss, where none was logged) over the steps: a line a condition, mean over its runs.

    An alignment is logged with the name of its language, of several their mean is taken.
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
    note = "A line a condition, as its runs logged it. Bands: 95 % t intervals over runs, if there are several."
    if len(series) > len(COLOURS):
        note += f" The first {len(COLOURS)} of {len(series)} conditions."
    title = f"{'Alignment' if aligned else 'Loss'} over pretraining"
    return over_steps("training", title, series[: len(COLOURS)], label, note).figure()
