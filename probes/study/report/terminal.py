"""The scores of a study in a terminal: a line for each cell as it ends, then a table of conditions beside the paper."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.markup import escape
from rich.table import Table

from probes.report.numbers import entry_text, number, plural
from probes.statistics import mean_of
from probes.study.judged.papers import read_tables
from probes.study.labels import settings_of
from probes.study.results import interval_within
from synthlang.errors import InputError

LINES = 60
"""Most lines of the table."""
EACH = 5
"""Most models of a condition whose Δ is told one by one."""
ALIGNMENT = "alignment_all"
EACH_DELTA, OF_PAPER = "each Δ", " "
NARROW = 12
"""Characters of the name of a condition, at least: a table of a paper fits into 80."""

Row = Mapping[str, Any]
Printed = Mapping[tuple[str, frozenset[tuple[str, str]]], float]
"""Measure, and the labels that a paper gives it with → the number in print."""


def cell_line(rows: Sequence[Row]) -> str:
    """What came out of a cell, of its rows in the results: means over seeds of fine-tuning, percent."""
    tasks: dict[str, list[Row]] = {}
    for row in rows:
        tasks.setdefault(row["task_name"] or row["task"], []).append(row)
    told = [f"{name.split('_')[0]} {number(rows[0][name])}" for name in (ALIGNMENT,) if rows[0][name] is not None]
    told += [
        f"{task}: " + ", ".join(f"{shown} {number(mean_of(row[name] for row in of))}" for shown, name in SCORES)
        for task, of in tasks.items()
    ]
    return f"{rows[0]['cell']}: {'; '.join(told)}"


SCORES = (("SUP", "sup"), ("ZS", "zs"), ("Δ", "delta"))


def printed_numbers(papers: Sequence[str]) -> Printed:
    """The scores that tables of papers print; of one that stands in two tables the first. Files that cannot be read
    have none: the report says so."""
    found: dict[tuple[str, frozenset[tuple[str, str]]], float] = {}
    for name in papers:
        try:
            tables = read_tables(name)
        except InputError:
            continue
        for cell in (cell for table in tables for cell in table.cells if cell.against is None):
            found.setdefault((cell.quantity.measure, frozenset(cell.quantity.where.items())), cell.value)
    return found


def score_table(rows: Iterable[Row], printed: Printed) -> Table:
    """A line for each condition and task: means over models (or seeds of fine-tuning) with the 95 % t interval of Δ,
    and what the paper prints. ``rows`` have the columns of results.parquet."""
    conditions: dict[tuple[tuple[tuple[str, str], ...], str], list[Row]] = {}
    for row in rows:
        labels = settings_of(json.loads(row["labels"]), row["cell"])
        conditions.setdefault((tuple(labels.items()), row["task_name"] or row["task"]), []).append(row)
    several = len({task for _, task in conditions}) > 1
    lines = [_line(dict(labels), task, of, printed, several) for (labels, task), of in conditions.items()]
    more = f"; {plural(len(lines) - LINES, 'further line')} in results.csv" if len(lines) > LINES else ""
    table = Table(
        caption="percent; Δ = SUP − ZS: mean over models with its 95 % t interval, and of each; print: the paper's"
        + more,
        caption_justify="left",
        box=SIMPLE_HEAD,
        collapse_padding=True,
        pad_edge=False,
    )
    table.add_column("condition", overflow="fold", min_width=NARROW)
    names = [name for name in lines[0] if any(line[name] not in ("", "–") for line in lines)]
    for name in names:
        text = name == "task"
        table.add_column(name.removesuffix(OF_PAPER), justify="left" if text else "right", no_wrap=name != EACH_DELTA)
    for (condition, _), line in list(zip(conditions, lines, strict=True))[:LINES]:
        table.add_row(escape(", ".join(label for _, label in condition)), *(line[name] for name in names))
    return table


def _line(labels: Mapping[str, str], task: str, rows: Sequence[Row], printed: Printed, several: bool) -> dict[str, str]:
    """Column → what stands there."""
    from probes.study.judged.estimates import over_models  # with pandas

    def values(name: str) -> list[float]:
        return over_models((row["pretrain"] or row["cell"], row["cell"], row[name]) for row in rows)[0]

    def paper(measure: str) -> str:
        known = {*labels.items(), ("task", task)}
        found = [(len(where), value) for (what, where), value in printed.items() if what == measure and where <= known]
        return number(max(found)[1]) if found else ""

    delta = values("delta")
    return {
        **({"task": escape(task)} if several else {}),
        "SUP": number(mean_of(values("sup"))),
        "Δ": entry_text(interval_within(delta, "delta") if delta else None),
        EACH_DELTA: " ".join(number(value) for value in delta) if 1 < len(delta) <= EACH else "",
        f"print{OF_PAPER}": paper("delta"),
        "aligned": number(mean_of(row[ALIGNMENT] for row in rows)),
        "print": paper(ALIGNMENT),
        "perpl.": number(mean_of(row["perplexity"] for row in rows)),
    }
