"""A paper's table beside the results of a study: each printed number, ours with its interval, and a verdict.

Numbers from other data, model sizes and budgets cannot be compared in size. Only the **order** of the numbers within a
column of the table and their **signs** are therefore compared. Means and differences follow the rules of estimates.py.
The verdicts:

    replicates          At least one order of the number, or its sign, is decided as in the paper, and none is reversed.
    does not replicate  An order of the number within its column, or its sign, is reversed.
    inconclusive        Nothing is decided.
    not run             There is no estimate: nothing was measured at the labels of the number, or the number was
                        measured for several labels of an axis that the table does not name. A number and its baseline
                        may also have no condition in common, or no seed with finite values in all conditions.

An order is decided at 5 % after Holm's correction over all orders of its column that were measured. A sign, which Δ and
gains have, is decided if our interval excludes 0. Printed numbers at most TIE apart are tied and have no order. A
printed number at most TIE from 0 has no sign.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

from probes.claims.comparisons import Outcome, outcome_of, region
from probes.claims.estimates import DECIDED, Estimate, EstimateOrWhy, estimate_of
from probes.claims.observed import Results, Series
from probes.claims.papers import PaperNumber, PaperTable
from probes.claims.spec import OF_PROBE, Quantity
from probes.claims.verdicts import Word
from probes.results.pooling import Condition, drop_shared_runs
from probes.statistics import corrected

TIE = 0.5
"""Largest distance of tied numbers in percentage points.

A column of a probe measure with numbers in −1 … 1 uses a hundredth of this distance.
"""
TIED = "tied"
TURNED = "the sign is opposite"


@dataclass(frozen=True)
class ComparedNumber:
    """A printed number beside our estimate of it.

    Attributes:
        printed: The printed number.
        ours: Our estimate, or None if nothing was measured for the number.
        verdict: The verdict, by the rules of this module.
        text: All reasons of the verdict.
        notes: An opposite sign, and the notes of our estimate.
    """

    printed: PaperNumber
    ours: Estimate | None
    verdict: Word
    text: str
    notes: tuple[str, ...] = ()


class _Ours(NamedTuple):
    """A printed number and our measurements for it.

    Attributes:
        printed: The printed number.
        series: Our measurements, by the labels that the number is a mean over.
        found: Our estimate, or the reason why there is none.
    """

    printed: PaperNumber
    series: Series
    found: EstimateOrWhy


def compare_table(table: PaperTable, results: Results) -> tuple[ComparedNumber, ...]:
    """Return a comparison for every printed number of ``table``, in its order."""
    columns: dict[tuple[object, ...], list[_Ours]] = defaultdict(list)
    every = [_look_up(number, results) for number in table.numbers]
    for one in every:
        columns[*one.printed.column, one.printed.quantity.measure].append(one)
    compared = {id(one): number for column in columns.values() for one, number in _column(column)}
    return tuple(compared[id(one)] for one in every)


def difference_of(quantity: Quantity, other: Quantity, results: Results) -> Estimate | None:
    """Return our estimate of ``quantity`` − ``other``, in the unit of the measure.

    Quantities without common seeds are compared unpaired (``estimate_of``). The result is None if a quantity was not
    measured, or was measured for several labels of an axis that it does not name. It is also None if the quantities
    have no condition in common, or if no seed of one quantity has a finite value in all conditions.
    """
    return _look_up(PaperNumber(quantity, 0.0, other), results).found.ours


def _look_up(number: PaperNumber, results: Results) -> _Ours:
    sides: list[Series] = []
    for quantity in (number.quantity, number.against):
        if quantity is not None:
            series, why = _series_at(quantity, results)
            if not series:
                return _Ours(number, {}, EstimateOrWhy(None, why))
            sides.append(series)
    return _Ours(number, sides[0], estimate_of(sides))


def _series_at(quantity: Quantity, results: Results) -> tuple[Series, str]:
    """Return our measurements for a printed number, or no measurements and the reason.

    Measurements are keyed by the labels that the number is a mean over. An axis that the number does not name may have
    only one label. If several studies measured the quantity, the study with the fewest such axes is used, because it is
    the study of this table.
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


def _column(column: Sequence[_Ours]) -> Iterator[tuple[_Ours, ComparedNumber]]:
    """Yield the numbers of a column, each with its comparison."""
    # scores are percent, but probe measures may be shares or cosines
    numbers = [one.printed for one in column]
    shares = all(one.quantity.measure.startswith(OF_PROBE) and abs(one.value) <= 1 for one in numbers)
    tie = TIE / 100 if shares else TIE
    for one, orders in zip(column, _orders(column, tie), strict=True):
        if one.found.ours is None:
            yield one, ComparedNumber(one.printed, None, "not run", one.found.why)
        else:
            yield one, _compared(one.printed, one.found.ours, orders, tie)


def _compared(printed: PaperNumber, ours: Estimate, orders: Counter[str], tie: float) -> ComparedNumber:
    same, reversed_ = orders["holds"], orders["fails"]
    sign: Outcome = "inconclusive"
    if (printed.against is not None or printed.quantity.measure == "delta") and abs(printed.value) > tie:
        sign = outcome_of(ours, region("greater" if printed.value > 0 else "less"))
    text = (
        f"{same} of {same + reversed_} decided orders in the column are as in the paper; {orders.total()} were tested"
    )
    text += f", {orders[TIED]} of them ties in print" if orders[TIED] else ""
    text += "; the sign is as in the paper" if sign == "holds" else ""
    notes = ((TURNED,) if sign == "fails" else ()) + ours.notes
    verdict: Word = "replicates" if same or sign == "holds" else "inconclusive"
    if reversed_ or sign == "fails":
        verdict = "does not replicate"
    return ComparedNumber(printed, ours, verdict, "; ".join([text, *notes]), notes)


def _orders(column: Sequence[_Ours], tie: float) -> list[Counter[str]]:
    """Count, for each number of a column, the outcomes of its orders with the other numbers."""
    known = [place for place, one in enumerate(column) if one.found.ours is not None]
    pairs = list(combinations(known, 2))
    # printed numbers have six digits; unrounded, 0.705 − 0.7 is above 0.005
    printed = [round(column[one].printed.value - column[other].printed.value, 6) for one, other in pairs]
    ours = [  # of means, over the labels that both have
        None if abs(apart) <= tie else estimate_of([column[one].series, column[other].series]).ours
        for (one, other), apart in zip(pairs, printed, strict=True)
    ]
    stands = corrected([None if found is None else found.p for found in ours])
    counts = [Counter[str]() for _ in column]
    for pair, apart, found, p in zip(pairs, printed, ours, stands, strict=True):
        outcome = TIED if abs(apart) <= tie else "inconclusive"
        if found is not None and p is not None and p < DECIDED:
            outcome = "holds" if (found.mean > 0) == (apart > 0) else "fails"
        for place in pair:
            counts[place][outcome] += 1
    return counts
