"""Scores of a study for the terminal: a line for each finished cell, and a table of conditions and printed numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from probes.report.numbers import bounds, number
from probes.results.scores import ALIGNMENT, PERPLEXITY
from probes.statistics import mean_of
from synthlang.wording import plural

if TYPE_CHECKING:
    from rich.table import Table as ConsoleTable

    from probes.report.printed import Printed
    from probes.report.scores import Condition, Material

LINES = 60
"""Largest number of lines of the table."""
SCORES = (("SUP", "sup"), ("ZS", "zs"), ("Δ", "delta"))
NOTES = {"Δ": "Δ = SUP − ZS", "95 %": "95 %: t interval", "paper": "paper: printed numbers"}
"""Header of a column → its explanation in the caption."""

Row = Mapping[str, Any]


def cell_line(rows: Sequence[Row]) -> str:
    """Return a line with the scores of one cell: means over fine-tuning seeds, in percent.

    ``rows`` are the rows of results.csv of the cell, at least one.
    """
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


def score_table(material: Material, printed: Printed) -> ConsoleTable:
    """Return the table of scores, with a line for each of the first LINES conditions.

    A condition belongs to one task. A line has the means of scores and alignment in percent, the 95 % t interval of Δ
    or ZS, the mean perplexity, and the numbers that a paper prints. Columns without any number are left out.

    Args:
        material: The study and its scores.
        printed: The numbers of papers.
    """
    from probes.report.console import console_table  # with matplotlib
    from probes.report.page import Table

    conditions = material.conditions
    measures, alignment = printed.measures(conditions), printed.alignment(conditions)

    def paper(c: Condition, measure: str) -> str:
        found = printed.of(c, measure)
        return "" if found is None else number(found)

    columns: list[tuple[str, list[str]]] = [
        ("condition", [", ".join(c.labels.values()) for c in conditions]),
        ("task", [c.task if len(measures) > 1 else "" for c in conditions]),
        ("SUP", [number(c.mean("sup")) for c in conditions]),
        ("Δ", [_mean(c, "delta", measures) for c in conditions]),
        ("ZS", [_mean(c, "zs", measures) for c in conditions]),
        ("95 %", [_bounds(c, measures[c.task]) for c in conditions]),
        ("paper", [paper(c, measures[c.task]) for c in conditions]),
        ("aligned", [number(c.mean(alignment)) for c in conditions]),
        ("paper", [paper(c, alignment) for c in conditions]),
        ("perpl.", [number(c.mean(PERPLEXITY)) for c in conditions]),
    ]
    filled = [(title, texts) for title, texts in columns if any(text not in ("", "–") for text in texts)]
    header = [title for title, _ in filled]
    more = f"; {plural(len(conditions) - LINES, 'further line')} in results.csv" if len(conditions) > LINES else ""
    caption = "; ".join(["percent, means over models", *(NOTES[title] for title in NOTES if title in header)]) + more
    rows = list(zip(*(texts[:LINES] for _, texts in filled), strict=True))
    return console_table(Table(caption, header, rows, 2 if "task" in header else 1))


def _mean(c: Condition, measure: str, measures: Mapping[str, str]) -> str:
    return number(mean_of(c.values(measure))) if measures[c.task] == measure else ""


def _bounds(c: Condition, measure: str) -> str:
    interval = c.interval(measure)
    return "" if interval is None else bounds(interval.shown.low, interval.shown.high)
