"""A table of a paper beside the results of a study: each printed number, ours with its interval, and a verdict.

Numbers of another data set, model size and budget are not compared with each other; what is compared is their **order**
in a column of the table and their **sign**. Ours are means and differences by the rules of estimates.py. The verdict:

    not run             nothing was measured at the labels of the cell, or under several labels of an axis that the
                        table does not name
    differs             an order of it and another cell of its column is the other way round with us; or, where no
                        order is decided, its sign is
    agrees in order     none is the other way round, and at least one is the same
    agrees in sign      no order is decided, and the sign is the same
    too small to tell   nothing is decided

An order is decided where the interval of our difference does not have 0 inside; a sign, which Δ and gains have, where
that of ours does not. Printed numbers that are no more than TIE apart (or from 0) have no order (or sign).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from probes.study.judged.claims import Relation
from probes.study.judged.estimates import Estimate, Outcome, difference, estimate, outcome_of
from probes.study.judged.observed import Condition, Replicates, Results
from probes.study.judged.papers import Cell, Table
from probes.study.judged.quantities import Quantity
from probes.study.judged.verdicts import Word

TIE = 0.5
"""In the unit of the numbers, percent points."""


@dataclass(frozen=True)
class Beside:
    """A cell of a table with ours; ``text`` says what decided."""

    cell: Cell
    ours: Estimate | None
    verdict: Word
    text: str

    @property
    def where(self) -> Mapping[str, str]:
        """Axis → label."""
        return self.cell.quantity.where

    @property
    def measure(self) -> str:
        """What is measured."""
        return self.cell.quantity.measure

    @property
    def paper(self) -> float:
        """The printed number."""
        return self.cell.value


@dataclass(frozen=True)
class _Ours:
    cell: Cell
    replicates: Replicates
    estimate: Estimate | None
    why: str


def beside(table: Table, results: Results) -> tuple[Beside, ...]:
    """Every cell of ``table``, in its order."""
    held = [_look_up(cell, results) for cell in table.cells]
    columns: dict[tuple[object, ...], list[_Ours]] = defaultdict(list)
    for one in held:
        columns[_column(one.cell)].append(one)
    return tuple(_row(one, columns[_column(one.cell)]) for one in held)


def _column(cell: Cell) -> tuple[object, ...]:
    return (*cell.column, cell.quantity.measure)


def _look_up(cell: Cell, results: Results) -> _Ours:
    replicates, why = _one(cell.quantity, results)
    if cell.against is None or not replicates:
        return _Ours(cell, replicates, estimate(replicates), why)
    base, why = _one(cell.against, results)
    return _Ours(cell, replicates, difference(replicates, base), why)


def _one(quantity: Quantity, results: Results) -> tuple[Replicates, str]:
    """The replicates at the labels of a cell, or nothing and why; axes that it does not name may have one label only.

    Of several studies the one with the fewest of such axes is taken: it is the one that is of this table.
    """
    found = results.series(quantity)
    if not found:
        return {}, "nothing was measured at these labels"
    fewest = min(map(len, found))
    nearest = [condition for condition in found if len(condition) == fewest]
    if len(nearest) > 1:
        return {}, f"the table does not say which {_varying(nearest)}"
    return found[nearest[0]], ""


def _varying(conditions: Sequence[Condition]) -> str:
    labels: dict[str, dict[str, None]] = defaultdict(dict)
    for condition in conditions:
        for axis, label in condition:
            labels[axis][label] = None
    return "; ".join(f"{axis}: {', '.join(held)}" for axis, held in labels.items() if len(held) > 1)


def _row(one: _Ours, column: Sequence[_Ours]) -> Beside:
    if one.estimate is None:
        return Beside(one.cell, None, "not run", one.why)
    outcomes = [_order(one, other) for other in column if other is not one and other.estimate is not None]
    same, reversed_ = outcomes.count("holds"), outcomes.count("fails")
    signed = one.cell.against is not None or one.cell.quantity.measure == "delta"
    sign = outcome_of(one.estimate.interval, _above(one.cell.value)) if signed and abs(one.cell.value) > TIE else "open"
    text = f"{same} of {same + reversed_} decided orders of the column are the paper's, of {len(outcomes)} others run"
    if reversed_ or same:
        return Beside(one.cell, one.estimate, "differs" if reversed_ else "agrees in order", text)
    word: dict[Outcome, Word] = {"holds": "agrees in sign", "fails": "differs"}
    return Beside(one.cell, one.estimate, word.get(sign, "too small to tell"), text)


def _above(value: float) -> Relation:
    return "greater" if value > 0 else "less"


def _order(one: _Ours, other: _Ours) -> Outcome:
    """Whether our order is the paper's (holds), the other one (fails), or not decided."""
    printed = one.cell.value - other.cell.value
    ours = difference(one.replicates, other.replicates) if abs(printed) > TIE else None
    return "open" if ours is None else outcome_of(ours.interval, _above(printed))
