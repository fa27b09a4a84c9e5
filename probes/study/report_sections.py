"""The sections of a study report, in reading order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import yaml

from probes.statistics import Interval
from probes.study.figures import Figure, colours
from probes.study.figures_curves import curve_figures
from probes.study.figures_scores import alignment_scatter, delta_bars
from probes.study.report_blocks import Block, Code, Figures, Folded, Paragraph, Section, Table
from probes.study.report_data import ALIGNMENTS, Cell, ResultRow, Study, read_metrics, run_folder
from probes.study.report_scores import CellScore, cell_scores, conditions, correlate, grouped, in_study_order
from probes.study.report_summary import bounds, number, plural, summary
from synthlang.errors import InputError
from synthlang.files import read_json

NAMES = {"alignment_all": "all types", "alignment_dictionary": "in dictionary", "alignment_held_out": "held out"}
PROBE_LINES = 80


def sections(study: Study) -> list[Section]:
    """Everything the report says."""
    rows = in_study_order(study)
    scores = cell_scores(rows)
    notes = [Paragraph(note, "note") for note in study.notes]
    lead = Section("Summary", [Paragraph(" ".join(summary(study, scores)), "lead"), *notes])
    failed = [cell for cell in study.cells if cell.status == "failed"]
    parts = [lead]
    if failed:
        parts.append(Section("Failed cells", [_failed(failed)]))
    parts += [_scores(study, scores), _transfer(scores), _alignment(scores), _training(study), _seeds(rows)]
    return [
        *parts,
        _provenance(study),
        Section("Settings", [Code(_yaml(study.config) or "No settings were recorded.")]),
    ]


def interval_cell(interval: Interval | None) -> str:
    """The mean, and its bounds on a second line."""
    if interval is None:
        return "–"
    second = bounds(interval.low, interval.high)
    return number(interval.mean) + (f"\n{second}" if second else "")


def _failed(cells: Sequence[Cell]) -> Table:
    return Table(
        "Cells that failed. The others went on.",
        ["Cell", "Error"],
        [[c.name, c.error or "no message"] for c in cells],
        2,
    )


def _scores(study: Study, scores: Sequence[CellScore]) -> Section:
    if not scores:
        return Section("Scores", [Paragraph("No cell has been scored.", "note")])
    caption = (
        "Scores per cell in percent: mean over fine-tuning seeds, 95 % t interval below. Parent: tuned and tested on the "
        "parent. SUP: tuned and tested on the derived language. ZS: tuned on the parent, tested on the derived language. "
        "Δ = SUP − ZS. Alignment: word-embedding alignment, mean of both directions."
    )
    header = ["Cell", "Language", "Objective", "Task", "Seeds", "Parent", "SUP", "ZS", "Δ"]
    header += [f"Alignment, {name}" for name in NAMES.values()]
    body = [
        [s.cell, s.language, s.objective, s.task, str(len(s.deltas))]
        + [interval_cell(value) for value in (s.parent, s.sup, s.zs, s.delta)]
        + [number(getattr(s, column)) for column in ALIGNMENTS]
        for s in scores
    ]
    blocks: list[Block] = [Table(caption, header, body, 4)]
    repeated = [c for c in conditions(study, scores) if c.runs > 1]
    if repeated:
        caption = "Conditions with several pretraining seeds. Means and 95 % t intervals over pretraining runs."
        header = ["Condition", "Source", "Language", "Task", "Runs", "Δ", "Alignment, all types"]
        table = [
            [c.label, c.source, c.language, c.task, str(c.runs), interval_cell(c.delta), interval_cell(c.alignment)]
            for c in repeated
        ]
        blocks.append(Table(caption, header, table, 4))
    return Section("Scores", blocks)


def _transfer(scores: Sequence[CellScore]) -> Section:
    palette = colours([score.objective for score in scores])
    tasks = grouped((s for s in scores if s.delta is not None), lambda s: s.task)
    bars = [delta_bars(task, members, palette, i) for i, (task, members) in enumerate(tasks.items(), 1)]
    if not bars:
        return Section("Zero-shot transfer", [Paragraph("No Δ to draw.", "note")])
    return Section("Zero-shot transfer", [Figures([figure]) for figure in bars])


def _alignment(scores: Sequence[CellScore]) -> Section:
    palette = colours([score.objective for score in scores])
    tasks = grouped(scores, lambda score: score.task)
    drawn = [alignment_scatter(task, members, palette, i) for i, (task, members) in enumerate(tasks.items(), 1)]
    blocks: list[Block] = [Figures([figure]) for figure in drawn if figure is not None]
    if not blocks:
        return Section("Alignment and transfer", [Paragraph("No cell has both an alignment and a Δ.", "note")])
    body = []
    for task, members in tasks.items():
        for column, name in NAMES.items():
            r = correlate(members, column)
            p = "–" if r.p is None else f"{r.p:.4f}" + (" exact" if r.exact else "")
            why = r.reason or ("fewer than 5 cells: no interval" if r.low is None else "")
            body.append([task, name, why, str(r.n), number(r.rho, 2), bounds(r.low, r.high, 2) or "–", p])
    caption = (
        "Spearman correlation of alignment with Δ over cell means. ρ < 0: better aligned, smaller loss in transfer. "
        "p: two-sided permutation test; interval: 95 % percentile bootstrap of cells."
    )
    blocks.append(Table(caption, ["Task", "Alignment", "Note", "n", "ρ", "95 % interval", "p"], body, 3))
    warning = (
        "Read with care: the cells are few, they share languages, objectives and seeds and so are not independent, "
        "which makes p and interval look better than they are. A correlation over cells does not show that alignment "
        "causes transfer; all types and in dictionary include pairs an objective was trained on."
    )
    return Section("Alignment and transfer", [*blocks, Paragraph(warning, "note")])


def _training(study: Study) -> Section:
    runs = grouped((cell for cell in study.cells if cell.run), lambda cell: cell.run)
    blocks: list[Block] = []
    for i, (run, cells) in enumerate(runs.items(), 1):
        name = ", ".join(cell.name for cell in cells)
        blocks += _run(study, name, run, i)
    without = [cell.name for cell in study.cells if not cell.run]
    if without:
        blocks.append(Paragraph(f"No pretraining run: {', '.join(without)}.", "note"))
    return Section("Training", blocks or [Paragraph("No pretraining run was recorded.", "note")])


def _run(study: Study, name: str, run: str, number_: int) -> list[Block]:
    folder = run_folder(study, run)
    if folder is None:
        return [Paragraph(f"{name}: the run folder {run} is missing.", "note")]
    blocks: list[Block] = []
    metrics = folder / "metrics.jsonl"
    records, broken = read_metrics(metrics) if metrics.is_file() else ([], 0)
    figures: list[Figure] = curve_figures(name, records, number_)
    if figures:
        blocks.append(Figures(figures))
    else:
        blocks.append(Paragraph(f"{name}: no metrics were logged.", "note"))
    if broken:
        blocks.append(Paragraph(f"{name}: {plural(broken, 'line')} of metrics.jsonl could not be read.", "note"))
    return blocks + _probes(name, folder)


def _probes(name: str, folder: Any) -> list[Block]:
    path = folder / "probes.json"
    if not path.is_file():
        return []
    try:
        lines = list(flatten(read_json(path)).items())
    except InputError:
        return [Paragraph(f"{name}: probes.json could not be read.", "note")]
    rows = [[key, number(v, 3) if isinstance(v, float) else str(v)] for key, v in lines[:PROBE_LINES]]
    caption = "Probe results" + (
        f", the first {PROBE_LINES} of {len(lines)} values." if len(lines) > PROBE_LINES else "."
    )
    return [Folded(f"{name}: probes", [Table(caption, ["Value", "Result"], rows)])]


def flatten(value: Any, prefix: str = "") -> dict[str, Any]:
    """Leaves of nested objects by dotted key; a list is a leaf.

    >>> flatten({"all": {"n": 9, "csls": {"mean": 1.5}}})
    {'all.n': 9, 'all.csls.mean': 1.5}
    """
    if not isinstance(value, Mapping):
        return {prefix or "value": value}
    leaves: dict[str, Any] = {}
    for key, child in value.items():
        leaves |= flatten(child, f"{prefix}.{key}" if prefix else str(key))
    return leaves


def _seeds(rows: Sequence[ResultRow]) -> Section:
    if not rows:
        return Section("Every seed", [Paragraph("No results.", "note")])
    header = ["Cell", "Language", "Objective", "Task", "Metric", "Seed", "Parent", "SUP", "ZS", "Δ"]
    body = [
        [r.cell, r.language, r.objective, r.task, r.metric.replace("_", " "), r.seed]
        + [number(v, 2) for v in (r.parent, r.sup, r.zs, r.delta)]
        for r in rows
    ]
    return Section("Every seed", [Table("One row per fine-tuning seed, percent.", header, body, 5)])


def _provenance(study: Study) -> Section:
    stages = list(dict.fromkeys(stage for cell in study.cells for stage in cell.stages))
    body = [
        [c.name, c.status, *(c.stages.get(stage, "–") for stage in stages), _overrides(c.overrides)]
        for c in study.cells
    ]
    blocks: list[Block] = [Paragraph(f"Study {study.name}, fingerprint {study.fingerprint or 'unknown'}.")]
    if body:
        header = ["Cell", "Status", *(f"{stage} fingerprint" for stage in stages), "Settings of the cell"]
        blocks.append(Table("Cells and the fingerprints of their stages.", header, body, len(header)))
    if study.environment:
        environment = [[str(k), _value(v)] for k, v in study.environment.items()]
        blocks.append(Table("Environment.", ["What", "Version or value"], environment, 2))
    if study.seconds:
        times = [[stage, duration(seconds)] for stage, seconds in sorted(study.seconds.items())]
        times.append(["Total of all stages", duration(sum(study.seconds.values()))])
        blocks.append(Table("Time per stage. h:mm:ss.", ["Stage", "Time"], times))
    else:
        blocks.append(Paragraph("No times were recorded.", "note"))
    return Section("Where it comes from", blocks)


def duration(seconds: float) -> str:
    """
    >>> duration(3725.4), duration(0.42)
    ('1:02:05', '0:00:00.4')
    """
    if seconds < 10:
        return f"0:00:{seconds:04.1f}"
    whole = round(seconds)
    return f"{whole // 3600}:{whole // 60 % 60:02d}:{whole % 60:02d}"


def _overrides(overrides: Mapping[str, Any]) -> str:
    return ", ".join(f"{key}={_value(value)}" for key, value in overrides.items()) or "–"


def _value(value: Any) -> str:
    return value if isinstance(value, str) else _yaml(value).removesuffix("...\n").strip()


def _yaml(value: Any) -> str:
    if not value and isinstance(value, Mapping):
        return ""
    flow = not isinstance(value, Mapping)
    return yaml.safe_dump(value, sort_keys=False, allow_unicode=True, width=100, default_flow_style=flow)
