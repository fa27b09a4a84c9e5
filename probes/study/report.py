"""The report of a study: report.html, report.md and the figures beside it.

It reads what the study runner left in the folder and nothing else, so it can be written at
any time, while cells are still running or after some have failed. Equal input gives equal
bytes: no date, no path, no random draw without a key.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.markup import escape
from rich.table import Table as RichTable

from probes.report.blocks import Figures, flat
from probes.report.figure import standalone_svg
from probes.report.page import html_page, markdown_page
from probes.study.report_data import ResultRow, read_results, read_study
from probes.study.report_scores import cell_scores
from probes.study.report_sections import interval_cell, sections
from probes.study.report_summary import number
from synthlang.files import atomic_file, atomic_folder

__all__ = ["ReportPaths", "ResultRow", "read_results", "terminal_table", "write_report"]


@dataclass(frozen=True)
class ReportPaths:
    """Where the report lies."""

    html: Path
    markdown: Path
    figures: Path


def write_report(folder: Path) -> ReportPaths:
    """Write the report of the study in ``folder`` (``study.json`` is needed, the rest is reported as missing).

    ``figures/`` is replaced as a whole: a figure of a former report does not stay behind.
    InputError if ``study.json`` or ``results.csv`` cannot be read.
    """
    study = read_study(folder)
    parts = sections(study)
    under = f"Study {study.name}" + (f" · fingerprint {study.fingerprint}" if study.fingerprint else "")
    paths = ReportPaths(folder / "report.html", folder / "report.md", folder / "figures")
    with atomic_folder(paths.figures, replace=True) as temporary:
        for block in flat([block for part in parts for block in part.blocks]):
            for figure in block.figures if isinstance(block, Figures) else ():
                (temporary / f"{figure.name}.svg").write_bytes(standalone_svg(figure).encode("utf-8"))
    for path, text in ((paths.markdown, markdown_page), (paths.html, html_page)):
        with atomic_file(path, "w") as handle:
            handle.write(text(study.title, under, parts))
    return paths


def terminal_table(rows: Iterable[ResultRow | Mapping[str, Any]]) -> RichTable:
    """The main table for a terminal: a line per cell × task, means over seeds and 95 % t intervals.

    ``rows`` are those of results.csv, as read by ``read_results`` or as mappings.
    """
    parsed = [row if isinstance(row, ResultRow) else ResultRow.parse(row) for row in rows]
    table = RichTable(
        caption="percent; means over fine-tuning seeds, 95 % t interval below; Δ = SUP − ZS", caption_justify="left"
    )
    table.add_column("cell", overflow="fold")
    table.add_column("task", no_wrap=True)
    for name in ("seeds", "SUP", "ZS", "Δ", "alignment"):  # narrow enough for 80 characters
        table.add_column(name, justify="right", no_wrap=True)
    for s in cell_scores(parsed):
        means = [number(v.mean if v else None) for v in (s.sup, s.zs)]
        scores = [*means, interval_cell(s.delta), number(s.alignment_all)]
        table.add_row(escape(s.cell), escape(s.task), str(len(s.deltas)), *scores)
    return table
