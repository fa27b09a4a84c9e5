"""Whether transfers differ by more than chance, from the predictions that their result files keep.

Scores that are means over items (accuracy, answers, frames) get a paired t-test over items averaged over seeds; scores
of sums over all items (F1 of spans, macro F1, attachment) a permutation test over the predictions of all seeds one
after the other ("The Impact of Cross-Lingual Adjustment", 2022, section 4). All p values are corrected together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from rich.table import Table

from probes.statistics import (
    TEST_ROUNDS,
    Correction,
    PairedTest,
    bootstrap_difference,
    corrected,
    paired_t_test,
    permutation_test,
)
from probes.transfer.compare_files import Outcome, check_alike, check_items, metrics_of, read_outcome
from probes.transfer.metrics.items import ItemMetric
from probes.transfer.metrics.metric import Floats, Metric
from synthlang.errors import InputError
from synthlang.rng import key_of

FORMAT = 1
CORRECTIONS = ("holm", "bh", "none")
SWAPS = ("prediction", "item")
DIGITS = 4
Swap = Literal["prediction", "item"]


@dataclass(frozen=True)
class Comparison:
    """Every file against the first one.

    rows      test, metric, system, against: which; mean, against_mean, difference, low, high: in percent, means over
              seeds and the 95 % bootstrap interval of the difference over seeds and items; by, statistic, n, p,
              p_corrected: the test (statistic: t, or the difference over all predictions); reason: why there is no p
    left_out  test sets that some file does not have
    """

    task: str
    files: tuple[str, ...]
    seeds: int
    correction: Correction
    rounds: int
    swap: Swap
    rows: tuple[dict[str, Any], ...]
    left_out: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """As a JSON file has it."""
        return {"format": FORMAT, **vars(self), **{k: list(getattr(self, k)) for k in ("files", "rows", "left_out")}}

    def table(self) -> Table:
        """For a terminal."""
        title = f"{self.task}: differences to {self.files[0]} (%; mean over {self.seeds} seeds; p: {self.correction})"
        table = Table(title=title)
        for name in ("test", "metric", "system", "mean", "against", "difference", "95 %", "by", "n", "p", "corrected"):
            table.add_column(name, justify="left" if name in ("test", "metric", "system", "by") else "right")
        for row in self.rows:
            scores = (f"{row[key]:.2f}" for key in ("mean", "against_mean"))
            bounds = "–" if row["low"] is None else f"{row['low']:.2f} … {row['high']:.2f}"
            p_values = (_shown(row[key]) for key in ("p", "p_corrected"))
            names = (row[key] for key in ("test", "metric", "system"))
            table.add_row(*names, *scores, f"{row['difference']:+.2f}", bounds, row["by"], str(row["n"]), *p_values)
        return table


def compare(
    files: Sequence[Path],
    *,
    metrics: Sequence[str] | None = None,
    tests: Sequence[str] | None = None,
    correction: Correction = "holm",
    rounds: int = TEST_ROUNDS,
    swap: Swap = "prediction",
    known: Mapping[str, Metric] | None = None,
) -> Comparison:
    """Compare the first result file with each other one, on every test set that all of them have.

    metrics   names (none: the main one of the first file)
    tests     test sets: parent, zs, sup, mixed … (none: all)
    swap      what a round of a permutation test swaps: one prediction, as in the paper, or an item with its predictions
              of all seeds, which does not take them as independent
    known     metrics by name (none: those of the task)

    Raises InputError for files that cannot be compared: other tasks, rules, seeds or test items; changed files.
    """
    _check_options(len(files), correction, rounds, swap)
    outcomes = [read_outcome(path) for path in files]
    check_alike(outcomes)
    first = outcomes[0]
    task = str(first.held["task"])
    held = known or metrics_of(task, first.held["settings"], first.path)
    chosen = [_named(held, name, f"metric of the task {task}") for name in metrics or [first.held["metric"]]]
    shared = {test: test for test in first.tests if all(test in outcome.tests for outcome in outcomes)}
    every = dict.fromkeys(test for outcome in outcomes for test in outcome.tests)
    if not shared:
        raise InputError(f"the files have no test set in common; there are {', '.join(every)}")
    rows = []
    for test in [_named(shared, name, "test set that all files have") for name in tests or shared]:
        check_items(outcomes, test)
        for metric in chosen:
            rows += _rows(outcomes, test, metric, rounds, swap)
    for row, p in zip(rows, corrected([row["p"] for row in rows], correction), strict=True):
        row["p_corrected"] = p
    names, left = tuple(str(path) for path in files), tuple(test for test in every if test not in shared)
    return Comparison(task, names, len(first.held["seeds"]), correction, rounds, swap, tuple(rows), left)


def _check_options(files: int, correction: str, rounds: int, swap: str) -> None:
    if files < 2:
        raise InputError("a comparison needs at least two result files")
    for what, value, allowed in (("correction", correction, CORRECTIONS), ("swap", swap, SWAPS)):
        if value not in allowed:
            raise InputError(f"{what} must be one of {', '.join(allowed)}, not {value!r}")
    if rounds < 1:
        raise InputError(f"a permutation test needs at least one round, not {rounds}")


def _named(held: Mapping[str, Any], name: str, what: str) -> Any:
    if name not in held:
        raise InputError(f"{name!r} is no {what}; there are {', '.join(held)}")
    return held[name]


def _rows(outcomes: Sequence[Outcome], test: str, metric: Metric, rounds: int, swap: Swap) -> list[dict[str, Any]]:
    """A row for each file but the first."""
    first, before = outcomes[0], outcomes[0].stats(test, metric)
    rows = []
    for other in outcomes[1:]:
        after = other.stats(test, metric)
        key = key_of("compare", first.held["fingerprint"], other.held["fingerprint"], test, metric.name)
        found = (
            _items(before, after) if isinstance(metric, ItemMetric) else _sums(before, after, metric, rounds, swap, key)
        )
        interval = bootstrap_difference(after, before, metric.score, key, paired=True)
        means = {"mean": _mean(after, metric), "against_mean": _mean(before, metric), "difference": interval.mean}
        bounds = {"low": interval.low, "high": interval.high}
        rounded = {name: None if v is None else round(v, DIGITS) for name, v in {**means, **bounds}.items()}
        rows.append(
            {
                **{"test": test, "metric": metric.name, "system": str(other.path), "against": str(first.path)},
                **rounded,
                "by": "paired t-test" if isinstance(metric, ItemMetric) else "permutation test",
                "statistic": found.t if isinstance(metric, ItemMetric) else round(found.difference, DIGITS),
                **{"n": found.n, "p": found.p, "reason": found.reason},
            }
        )
    return rows


def _mean(stats: Floats, metric: Metric) -> float:
    return float(np.mean(metric.score(stats.sum(axis=1))))


def _items(before: Floats, after: Floats) -> PairedTest:
    """Over the items that count, in percent."""
    counted = before[0, :, 1] > 0
    if not counted.any():
        return PairedTest(0.0, 0, reason="no item counts for this metric")
    return paired_t_test(100 * before[:, counted, 0], 100 * after[:, counted, 0])


def _sums(before: Floats, after: Floats, metric: Metric, rounds: int, swap: Swap, key: int) -> PairedTest:
    if swap == "item":
        return permutation_test(before.sum(axis=0), after.sum(axis=0), metric.score, key, rounds)
    k = before.shape[-1]
    return permutation_test(before.reshape(-1, k), after.reshape(-1, k), metric.score, key, rounds)


def _shown(p: float | None) -> str:
    return "–" if p is None else "< .001" if p < 0.001 else f"{p:.3f}"
