"""The report of a study: report.html, report.md, and the tables and figures beside it.

It reads what the study runner left in the folder and nothing else, so it can be written at
any time, while cells are still running or after some have failed. Equal input gives equal
bytes: no date, no path, no random draw without a key.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from rich.markup import escape
from rich.table import Table as RichTable

from probes.report.numbers import entry_text, number, plural
from probes.study.judged.estimates import mean_of, numbers_among
from probes.study.report.data import read_study
from probes.study.report.files import ReportPaths, write_files
from probes.study.report.judged import compared
from probes.study.report.scores import grouped, interval_within
from probes.study.report.sections import sections
from synthlang.progress import Say, unheard

__all__ = ["ReportPaths", "terminal_table", "write_report"]

LINES = 60
"""Most lines of the table in a terminal."""


def write_report(folder: Path, say: Say = unheard) -> ReportPaths:
    """Write the report of the study in ``folder`` (``study.json`` is needed, the rest is reported as missing); files of
    claims and papers that cannot be read are said, too.

    InputError if ``study.json``, ``results.parquet`` or ``measures.parquet`` cannot be read.
    """
    study = read_study(folder)
    under = f"Study {study.name}" + (f" · fingerprint {study.fingerprint}" if study.fingerprint else "")
    beside = compared([study])
    for note in beside.notes:
        say(note)
    return write_files(folder, study.title, under, sections(study, beside))


def terminal_table(rows: Iterable[Mapping[str, Any]]) -> RichTable:
    """The main table for a terminal: a line per cell × task, means over seeds and 95 % t intervals.

    ``rows`` have the columns of results.parquet.
    """
    scores = grouped(rows, lambda row: (row["cell"], row["task_name"] or row["task"]))
    more = f"; {plural(len(scores) - LINES, 'further line')} in results.csv" if len(scores) > LINES else ""
    table = RichTable(
        caption="percent; means over fine-tuning seeds, 95 % t interval below; Δ = SUP − ZS" + more,
        caption_justify="left",
    )
    table.add_column("cell", overflow="fold")
    table.add_column("task", no_wrap=True)
    for name in ("seeds", "SUP", "ZS", "Δ", "alignment"):  # narrow enough for 80 characters
        table.add_column(name, justify="right", no_wrap=True)
    for (cell, task), held in list(scores.items())[:LINES]:
        sup, zs, aligned = (number(mean_of(row[name] for row in held)) for name in ("sup", "zs", "alignment_all"))
        delta = numbers_among(row["delta"] for row in held)
        shown = entry_text(interval_within(delta, "delta") if delta else None)
        table.add_row(escape(cell), escape(task), str(len(held)), sup, zs, shown, aligned)
    return table
