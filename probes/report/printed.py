"""Scores that papers print for the conditions of a study, and the score of each task that is shown beside them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from probes.claims.papers import read_tables
from probes.results.scores import ALIGNMENT, FORWARD
from synthlang.errors import InputError

Printed = Mapping[tuple[str, frozenset[tuple[str, str]]], float]
"""(measure, labels that the paper gives) → the printed number."""
SHOWN = {"delta": "Δ", "zs": "ZS"}
"""Scores by which conditions are compared, and their titles. A study without SUP has only ZS."""


def printed_numbers(papers: Sequence[str]) -> Printed:
    """Return the scores of single conditions that tables of papers print; printed means are left out.

    Of a number that stands in two tables the first is taken. A file that cannot be read contributes none, and the
    report notes it.
    """
    found: dict[tuple[str, frozenset[tuple[str, str]]], float] = {}
    for name in papers:
        try:
            tables = read_tables(name)
        except InputError:
            continue
        for cell in (cell for table in tables for cell in table.numbers):
            if cell.against is None and not cell.quantity.average:
                found.setdefault((cell.quantity.measure, frozenset(cell.quantity.where.items())), cell.value)
    return found


def printed_among(printed: Printed, labels: Mapping[str, str], task: str, measure: str) -> float | None:
    """Return the number that a paper prints of a measure for a condition, None if there is none.

    Of several, the number that is printed with most of the labels is taken.
    """
    known = {*labels.items(), ("task", task)}
    found = [(len(where), value) for (what, where), value in printed.items() if what == measure and where <= known]
    return max(found)[1] if found else None


def measures_shown(conditions: Iterable[tuple[str, Mapping[str, str], bool]], printed: Printed) -> dict[str, str]:
    """Choose one measure for all conditions of a task, so that they can be compared.

    It is Δ, but ZS where a condition has no Δ or where papers print ZS and no Δ.

    Args:
        conditions: Task, labels, and whether the condition has Δ.
        printed: The numbers of the papers.

    Returns:
        Task → measure.
    """
    without, in_print = dict[str, bool](), defaultdict[str, set[str]](set)
    for task, labels, has_delta in conditions:
        without[task] = without.get(task, False) or not has_delta
        in_print[task] |= {name for name in SHOWN if printed_among(printed, labels, task, name) is not None}
    return {task: "zs" if lacks or in_print[task] == {"zs"} else "delta" for task, lacks in without.items()}


def alignment_shown(conditions: Iterable[tuple[str, Mapping[str, str]]], printed: Printed) -> str:
    """Choose one measure of alignment for all conditions (task, labels).

    It is the alignment in one direction where a paper prints that for any condition, else the mean of both.
    """
    in_print = (printed_among(printed, labels, task, FORWARD) for task, labels in conditions)
    return FORWARD if any(value is not None for value in in_print) else ALIGNMENT
