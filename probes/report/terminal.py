"""Scores of a study in a terminal: a line for each cell as it ends, then a table of conditions beside the paper."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.markup import escape
from rich.table import Table

from probes.report.numbers import bounds, number, plural
from probes.report.printed import SHOWN, Printed, alignment_shown, measures_shown, printed_among
from probes.results.intervals import interval_within
from probes.results.labels import settings_of
from probes.results.scores import ALIGNMENT
from probes.statistics import mean_of

LINES = 60
"""Largest number of lines of the table."""
SCORES = (("SUP", "sup"), ("ZS", "zs"), ("Δ", "delta"))
NARROW = 12
"""Smallest width of the column of conditions, in characters. A table beside a paper then fits into 80."""

Row = Mapping[str, Any]
Cells = list[tuple[str, str]]
"""Heading and text of each column; the text is empty or a dash where there is nothing."""


def cell_line(rows: Sequence[Row]) -> str:
    """Return the scores of a cell in a line, from its rows of results: means over fine-tuning seeds, in percent."""
    tasks: dict[str, list[Row]] = {}
    for row in rows:
        tasks.setdefault(row["task_name"] or row["task"], []).append(row)
    aligned = rows[0][ALIGNMENT]
    told = [] if aligned is None else [f"alignment {number(aligned)}"]
    told += [
        f"{task}: " + ", ".join(f"{shown} {number(mean_of(row[name] for row in of))}" for shown, name in SCORES)
        for task, of in tasks.items()
    ]
    return f"{rows[0]['cell']}: {'; '.join(told)}"


def score_table(rows: Iterable[Row], printed: Printed) -> Table:
    """Return the table of scores, a line for each condition and task.

    It has the mean of Δ or ZS over models (or fine-tuning seeds) with its 95 % t interval, and the number that the
    paper prints.

    Args:
        rows: Rows with the columns of results.parquet.
        printed: The numbers of the papers.
    """
    conditions: dict[tuple[tuple[tuple[str, str], ...], str], list[Row]] = {}
    for row in rows:
        labels = settings_of(json.loads(row["labels"]), row["cell"])
        conditions.setdefault((tuple(labels.items()), row["task_name"] or row["task"]), []).append(row)
    with_delta = (any(row["delta"] is not None for row in of) for of in conditions.values())
    known = ((task, dict(labels), has) for (labels, task), has in zip(conditions, with_delta, strict=True))
    measures = measures_shown(known, printed)
    alignment = alignment_shown(((task, dict(labels)) for labels, task in conditions), printed)
    lines = [
        _line(dict(labels), of, (measures[task], alignment), printed, task, len(measures) > 1)
        for (labels, task), of in conditions.items()
    ]
    more = f"; {plural(len(lines) - LINES, 'further line')} in results.csv" if len(lines) > LINES else ""
    filled = [place for place in range(len(lines[0])) if any(line[place][1] not in ("", "–") for line in lines)]
    headings = {lines[0][place][0] for place in filled}
    notes = {"Δ": "Δ = SUP − ZS", "95 %": "95 %: t interval", "paper": "paper: as it prints them"}
    table = Table(
        caption="; ".join(["percent, means over models", *(notes[name] for name in notes if name in headings)]) + more,
        caption_justify="left",
        box=SIMPLE_HEAD,
        collapse_padding=True,
        pad_edge=False,
    )
    table.add_column("condition", overflow="fold", min_width=NARROW)
    for place in filled:
        name, _ = lines[0][place]
        table.add_column(name, justify="left" if name == "task" else "right", no_wrap=True)
    for (condition, _), line in list(zip(conditions, lines, strict=True))[:LINES]:
        table.add_row(escape(", ".join(label for _, label in condition)), *(line[place][1] for place in filled))
    return table


def _line(
    labels: Mapping[str, str], rows: Sequence[Row], shown: tuple[str, str], printed: Printed, task: str, several: bool
) -> Cells:
    """Return the columns of a line; ``shown`` are the measure of the task and the measure of alignment."""
    from probes.claims.estimates import over_models  # with pandas

    def values(name: str) -> list[float]:
        return over_models((row["pretrain"] or row["cell"], row["cell"], row[name]) for row in rows)[0]

    def paper(measure: str) -> str:
        found = printed_among(printed, labels, task, measure)
        return "" if found is None else number(found)

    measure, alignment = shown
    of_measure = values(measure)
    interval = interval_within(of_measure, measure).shown if of_measure else None
    return [
        ("task", escape(task) if several else ""),
        ("SUP", number(mean_of(values("sup")))),
        *((title, number(mean_of(of_measure)) if name == measure else "") for name, title in SHOWN.items()),
        ("95 %", bounds(interval.low, interval.high) if interval else ""),
        ("paper", paper(measure)),
        ("aligned", number(mean_of(row.get(alignment) for row in rows))),
        ("paper", paper(alignment)),
        ("perpl.", number(mean_of(row["perplexity"] for row in rows))),
    ]
