"""A paper's table beside the results of a study: each printed number, ours with its interval, and a verdict.

Numbers from other data, model sizes and budgets cannot be compared in size. What is compared is their **order** within
a column of the table, and their **sign**. Our means and differences follow the rules of estimates.py. The verdicts:

    replicates          No order of this number within its column is reversed, nor is its sign, and at least one order,
                        or the sign, is decided as in the paper.
    does not replicate  An order of this number and another of its column is reversed, or its sign is.
    inconclusive        Nothing is decided.
    not run             Nothing was measured at the labels of the number, or under several labels of an axis that the
                        table does not name.

An order is decided at 5 % after Holm's correction over all orders of its column that were measured. A sign, which Δ and
gains have, is decided if our interval excludes 0. Printed numbers at most TIE apart are a tie without an order, and one
that near 0 has no sign.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

from probes.claims.estimates import (
    DECIDED,
    Estimate,
    Outcome,
    common_conditions,
    estimate_over,
    outcome_of,
    region,
)
from probes.claims.observed import Results, Series
from probes.claims.papers import Cell, Table
from probes.claims.spec import OF_PROBE, Quantity
from probes.claims.verdicts import Word
from probes.results.pooling import Condition, drop_shared_runs
from probes.statistics import corrected

TIE = 0.5
"""In percent points; a hundredth of it in a column of a probe measure whose numbers are all within −1 … 1."""
TIED = "tied"
TURNED = "the sign is opposite"


@dataclass(frozen=True)
class TableComparison:
    """A printed number with ours. ``text`` gives the reasons of the verdict, ``notes`` those that are not orders."""

    cell: Cell
    ours: Estimate | None
    verdict: Word
    text: str
    notes: tuple[str, ...] = ()


class _CellEstimate(NamedTuple):
    """Our estimate of a printed number, or None and the reason.

    Attributes:
        tie: The largest difference that is a tie in its column.
        series: The measurements, by the labels that the number is a mean over.
    """

    cell: Cell
    tie: float
    series: Series
    estimate: Estimate | None
    why: str


def compare_table(table: Table, results: Results) -> tuple[TableComparison, ...]:
    """Compare every number of ``table``, in its order."""
    columns: dict[tuple[object, ...], list[int]] = defaultdict(list)
    for number, cell in enumerate(table.cells):
        columns[*cell.column, cell.quantity.measure].append(number)
    cells: dict[int, _CellEstimate] = {}
    orders: dict[int, Counter[str]] = {}
    for column in columns.values():
        tie = _tie([table.cells[number] for number in column])
        cells |= {number: _look_up(table.cells[number], tie, results) for number in column}
        orders |= _orders(cells, [number for number in column if cells[number].estimate is not None])
    return tuple(_row(cells[number], orders.get(number, Counter())) for number in range(len(table.cells)))


def _tie(column: Sequence[Cell]) -> float:
    """Return the largest tie of a column. Scores are percent, but probe measures may be shares or cosines."""
    shares = all(cell.quantity.measure.startswith(OF_PROBE) and abs(cell.value) <= 1 for cell in column)
    return TIE / 100 if shares else TIE


def difference_of(quantity: Quantity, other: Quantity, results: Results) -> Estimate | None:
    """Return our difference of two quantities. None if it is not known of both."""
    return _look_up(Cell(quantity, 0.0, other, (0, 0)), TIE, results).estimate


def _look_up(cell: Cell, tie: float, results: Results) -> _CellEstimate:
    sides: list[Series] = []
    for quantity in (cell.quantity, cell.against):
        if quantity is not None:
            series, why = _series_at(quantity, results)
            if not series:
                return _CellEstimate(cell, tie, {}, None, why)
            sides.append(series)
    found = estimate_over(*drop_shared_runs(sides, common_conditions(sides)))
    return _CellEstimate(cell, tie, sides[0], found.ours, found.why)


def _series_at(quantity: Quantity, results: Results) -> tuple[Series, str]:
    """Return the measurements at the labels of a printed number, by the labels it is a mean over, or none and why.

    Axes that it does not name may have one label only. Of several studies the one with the fewest such axes counts,
    since it is the study of this table.
    """
    found: dict[Condition, Series] = defaultdict(dict)
    for condition, parts in results.series(quantity).items():
        rest = tuple(item for item in condition if item[0] not in quantity.average)
        found[rest][tuple(item for item in condition if item[0] in quantity.average)] = parts
    if not found:
        return {}, "nothing was measured at these labels"
    fewest = min(map(len, found))
    nearest = [condition for condition in found if len(condition) == fewest]
    joined = {c: {(*of, *part): one for of, parts in found[c].items() for part, one in parts.items()} for c in nearest}
    nearest = drop_shared_runs([joined], nearest)[1]
    if len(nearest) > 1:
        labels: dict[str, dict[str, None]] = defaultdict(dict)
        for axis, label in (item for condition in nearest for item in condition):
            labels[axis][label] = None
        varying = [f"{axis}: {', '.join(of)}" for axis, of in labels.items() if len(of) > 1]
        return {}, f"the table does not say which {'; '.join(varying)}"
    return found[nearest[0]], ""


def _row(ours: _CellEstimate, orders: Counter[str]) -> TableComparison:
    value = ours.cell.value
    if ours.estimate is None:
        return TableComparison(ours.cell, None, "not run", ours.why)
    same, reversed_ = orders["holds"], orders["fails"]
    signed = ours.cell.against is not None or ours.cell.quantity.measure == "delta"
    sign: Outcome = "inconclusive"
    if signed and abs(value) > ours.tie:
        sign = outcome_of(ours.estimate, region("greater" if value > 0 else "less"))
    text = (
        f"{same} of {same + reversed_} decided orders in the column are as in the paper; {orders.total()} were tested"
    )
    text += f", {orders[TIED]} of them ties in print" if orders[TIED] else ""
    text += "; the sign is as in the paper" if sign == "holds" else ""
    notes = ((TURNED,) if sign == "fails" else ()) + ours.estimate.notes
    verdict: Word = "replicates" if same or sign == "holds" else "inconclusive"
    if reversed_ or sign == "fails":
        verdict = "does not replicate"
    return TableComparison(ours.cell, ours.estimate, verdict, "; ".join([text, *notes]), notes)


def _orders(cells: Mapping[int, _CellEstimate], column: Sequence[int]) -> dict[int, Counter[str]]:
    """Return for each number of a column how many of its orders hold, fail, are inconclusive, and are ties in print."""
    pairs = list(combinations(column, 2))
    ours: list[Estimate | None] = []
    for one, other in pairs:  # of means, over the labels that both have
        sides = [cells[one].series, cells[other].series]
        tied = _tied(cells[one], cells[other])
        ours.append(None if tied else estimate_over(*drop_shared_runs(sides, common_conditions(sides))).ours)
    stands = corrected([None if found is None else found.p for found in ours])
    counts: dict[int, Counter[str]] = {number: Counter() for number in column}
    for (one, other), found, p in zip(pairs, ours, stands, strict=True):
        outcome = TIED if _tied(cells[one], cells[other]) else "inconclusive"
        if found is not None and p is not None and p < DECIDED:
            printed = cells[one].cell.value - cells[other].cell.value
            outcome = "holds" if (found.interval.mean > 0) == (printed > 0) else "fails"
        counts[one][outcome] += 1
        counts[other][outcome] += 1
    return counts


def _tied(one: _CellEstimate, other: _CellEstimate) -> bool:
    """Return whether two printed numbers are a tie. They have six digits; unrounded, 0.705 − 0.7 is above 0.005."""
    return round(abs(one.cell.value - other.cell.value), 6) <= one.tie
