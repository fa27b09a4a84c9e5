"""The files of a report: report.html, report.md, tables/*.csv and *.tex, figures/*.svg."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from probes.report.blocks import Figures, Section, Table, flat
from probes.report.figure import standalone_svg
from probes.report.page import html_page, markdown_page
from probes.study.report.latex import csv_table, latex_table
from synthlang.files import atomic_file, atomic_folder


@dataclass(frozen=True)
class ReportPaths:
    """Where the report lies."""

    html: Path
    markdown: Path
    figures: Path
    tables: Path


def write_files(folder: Path, title: str, under: str, parts: Sequence[Section]) -> ReportPaths:
    """Write the report of these sections.

    ``figures/`` and ``tables/`` are replaced as a whole: what a former report had does not stay behind.
    """
    paths = ReportPaths(folder / "report.html", folder / "report.md", folder / "figures", folder / "tables")
    blocks = [block for part in parts for block in flat(part.blocks)]
    with atomic_folder(paths.figures, replace=True) as temporary:
        for block in blocks:
            for figure in block.figures if isinstance(block, Figures) else ():
                (temporary / f"{figure.name}.svg").write_bytes(standalone_svg(figure).encode("utf-8"))
    with atomic_folder(paths.tables, replace=True) as temporary:
        for block in blocks:
            if isinstance(block, Table) and block.name:
                (temporary / f"{block.name}.csv").write_bytes(csv_table(block).encode("utf-8"))
                (temporary / f"{block.name}.tex").write_bytes(latex_table(block).encode("utf-8"))
    for path, text in ((paths.markdown, markdown_page), (paths.html, html_page)):
        with atomic_file(path, "w") as handle:
            handle.write(text(title, under, parts))
    return paths
