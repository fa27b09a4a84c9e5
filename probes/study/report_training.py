"""The section on pretraining: curves and probe results of each run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from probes.report.blocks import Block, Figures, Folded, Paragraph, Section, Table
from probes.study.figures_curves import curve_figures
from probes.study.report_data import Study, read_metrics, run_folder
from probes.study.report_scores import grouped
from probes.study.report_summary import number, plural
from synthlang.errors import InputError
from synthlang.files import read_json

PROBE_LINES = 80


def training(study: Study) -> Section:
    """Curves of every run; cells that share a run share its curves."""
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
    figures = curve_figures(name, records, number_)
    if figures:
        blocks.append(Figures(figures))
    else:
        blocks.append(Paragraph(f"{name}: no metrics were logged.", "note"))
    if broken:
        blocks.append(Paragraph(f"{name}: {plural(broken, 'line')} of metrics.jsonl could not be read.", "note"))
    return blocks + _probes(name, folder)


def _probes(name: str, folder: Path) -> list[Block]:
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
    """Leaves of nested objects by dotted key; objects in a list have numbers from 1, any other list is a leaf.

    >>> flatten({"all": {"n": 9, "csls": {"mean": 1.5}}, "bands": [{"n": 4}], "steps": [1, 2]})
    {'all.n': 9, 'all.csls.mean': 1.5, 'bands.1.n': 4, 'steps': [1, 2]}
    """
    if isinstance(value, list) and value and all(isinstance(child, Mapping) for child in value):
        value = dict(enumerate(value, 1))
    if not isinstance(value, Mapping):
        return {prefix or "value": value}
    leaves: dict[str, Any] = {}
    for key, child in value.items():
        leaves |= flatten(child, f"{prefix}.{key}" if prefix else str(key))
    return leaves
