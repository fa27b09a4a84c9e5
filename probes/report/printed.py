"""What papers print of the scores of a study, and which score of a task stands beside it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from probes.claims.papers import read_tables
from probes.results.scores import ALIGNMENT, FORWARD
from synthlang.errors import InputError

Printed = Mapping[tuple[str, frozenset[tuple[str, str]]], float]
"""Measure, and the labels that a paper gives it with → the number in print."""
SHOWN = {"delta": "Δ", "zs": "ZS"}
"""The scores by which conditions are compared, and their titles; without SUP there is ZS alone."""


def printed_numbers(papers: Sequence[str]) -> Printed:
    """The scores of single conditions that tables of papers print, not their means; of one that stands in two tables
    the first. Files that cannot be read have none: the report says so."""
    found: dict[tuple[str, frozenset[tuple[str, str]]], float] = {}
    for name in papers:
        try:
            tables = read_tables(name)
        except InputError:
            continue
        for cell in (cell for table in tables for cell in table.cells):
            if cell.against is None and not cell.quantity.average:
                found.setdefault((cell.quantity.measure, frozenset(cell.quantity.where.items())), cell.value)
    return found


def printed_among(printed: Printed, labels: Mapping[str, str], task: str, measure: str) -> float | None:
    """What a paper prints of a measure under these labels, by the most of them; None where it prints nothing."""
    known = {*labels.items(), ("task", task)}
    found = [(len(where), value) for (what, where), value in printed.items() if what == measure and where <= known]
    return max(found)[1] if found else None


def measures_shown(conditions: Iterable[tuple[str, Mapping[str, str], bool]], printed: Printed) -> dict[str, str]:
    """Task → one measure for all of its ``conditions`` (task, labels, whether it has Δ), so that they can be compared:
    Δ, or ZS where one of them has no Δ or papers print ZS and no Δ of them."""
    without, in_print = dict[str, bool](), defaultdict[str, set[str]](set)
    for task, labels, has_delta in conditions:
        without[task] = without.get(task, False) or not has_delta
        in_print[task] |= {name for name in SHOWN if printed_among(printed, labels, task, name) is not None}
    return {task: "zs" if lacks or in_print[task] == {"zs"} else "delta" for task, lacks in without.items()}


def alignment_shown(conditions: Iterable[tuple[str, Mapping[str, str]]], printed: Printed) -> str:
    """One alignment for all of the ``conditions`` (task, labels): of one direction where a paper prints that of any."""
    in_print = (printed_among(printed, labels, task, FORWARD) for task, labels in conditions)
    return FORWARD if any(value is not None for value in in_print) else ALIGNMENT
