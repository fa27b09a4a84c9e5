"""Rows in the form of results.parquet and measures.parquet, for tests of claims and tables of papers."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from probes.claims.estimates import Estimate
from probes.claims.observed import Results
from probes.claims.papers import read_paper
from probes.claims.spec import Claim, Quantity
from probes.claims.tables import ComparedNumber
from probes.claims.verdicts import Verdict
from probes.results.read import measurements
from probes.results.views import MEASURES as MEASURE_COLUMNS
from probes.results.views import RESULTS as RESULT_COLUMNS
from probes.statistics import Interval

ACROSS_LAYERS = {
    "layer": "each",
    "x": {"measure": "probe:x"},
    "y": {"measure": "probe:y"},
    "over": ["layer"],
    "by": ["pair"],
}
"""A correlation of two measures over the layers of each pair, but for what is expected."""


def result(
    labels: Mapping[str, str], model: int | None, seed: int = 0, task: str = "pos", **scores: Any
) -> dict[str, Any]:
    """A row of results."""
    row = dict.fromkeys(RESULT_COLUMNS) | {"cell": "c", "task": task, "task_name": task, "seed": seed}
    return row | {"pretrain_seed": model, "labels": json.dumps(labels)} | scores


def observed(
    rows: Iterable[Mapping[str, Any]] = (), measures: Iterable[Mapping[str, Any]] = (), later: Collection[str] = ()
) -> Results:
    """Return the results of rows."""
    both = ((rows, RESULT_COLUMNS), (measures, MEASURE_COLUMNS))
    tables = (pa.Table.from_pylist(list(rows), pa.schema(list(columns.items()))) for rows, columns in both)
    return Results(measurements(*tables), later)


def claim(**comparison: Any) -> Claim:
    """A claim of one comparison."""
    return Claim.model_validate({"id": "c", "claim": "C.", "source": "S", **comparison})


def less(**more: Any) -> Claim:
    """Return the claim that Δ of objective B is less than that of A. ``more`` changes the claim."""
    sides = {"left": {"where": {"objective": "B"}}, "right": {"where": {"objective": "A"}}}
    return claim(compare=[{"measure": "delta", "relation": "less", **sides, **more}])


def delta_rows(a: Iterable[float], b: Iterable[float]) -> list[dict[str, Any]]:
    """Return rows with Δ of the objectives A and B, one value for each model."""
    values = [("A", model, value) for model, value in enumerate(a)] + [
        ("B", model, value) for model, value in enumerate(b)
    ]
    return [result({"objective": name}, model, delta=value) for name, model, value in values]


def measured(labels: Mapping[str, str], model: int | None, measure: str, value: float, **at: int) -> dict[str, Any]:
    """Return a row of measures. ``at`` is (layer, step)."""
    row = dict.fromkeys(MEASURE_COLUMNS) | {"cell": "c", "labels": json.dumps(labels), "pretrain_seed": model}
    return row | {"probe": "p", "measure": measure, "value": value} | at


def echo(name: str, models: int = 4, spread: float = 0.02) -> Results:
    """Results that say what the paper says: its numbers, with a little noise for each of some models.

    Gains are added to what they are gains over; means over an axis are left out.
    """
    random = np.random.default_rng(0)
    cells = [cell for table in read_paper(name).tables.values() for cell in table.numbers]
    plain = {_key(cell.quantity): cell.value for cell in cells if cell.against is None}
    rows, measures = [], []
    for cell in cells:
        where, measure = dict(cell.quantity.where), cell.quantity.measure
        if any(len(labels) > 1 for labels in cell.quantity.average.values()):
            continue
        value = cell.value + (0 if cell.against is None else plain[_key(cell.against)])
        task = where.pop("task", "none")
        for model in range(models):
            noisy = value + spread * random.standard_normal()
            if measure.startswith("probe:"):
                measures.append(measured(where, model, measure.removeprefix("probe:"), noisy))
            elif measure.startswith("mixed"):
                rows.append(result(where, model, task=task, mixed=json.dumps({measure.partition(" ")[2]: noisy})))
            else:
                rows.append(result(where, model, task=task) | {measure: noisy})
    return observed(rows, measures)


def interval(found: Verdict | ComparedNumber) -> Interval:
    """Return our interval, which must exist."""
    ours = found.ours.interval if isinstance(found.ours, Estimate) else found.ours
    assert ours is not None
    return ours


def _key(quantity: Quantity) -> tuple[object, ...]:
    return frozenset(quantity.where.items()), quantity.measure
