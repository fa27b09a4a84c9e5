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
from probes.transfer.config import TransferConfig
from probes.transfer.predictions import Predictions, read_predictions
from probes.transfer.result import FORMAT as RESULT_FORMAT
from probes.transfer.tasks.base import task_of
from probes.transfer.tasks.metrics import Floats, Metric
from synthlang.config import parse
from synthlang.errors import InputError
from synthlang.files import read_json
from synthlang.rng import key_of

FORMAT = 1
CORRECTIONS = ("holm", "bh", "none")
SWAPS = ("prediction", "item")
DIGITS = 4
KEYS = ("fingerprint", "task", "metric", "settings", "seeds", "predictions")
ROUNDING = 1e-3  # recorded scores are rounded
Swap = Literal["prediction", "item"]
Run = tuple[int, int]  # seed, setting


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
        found = _items(before, after) if metric.of_items else _sums(before, after, metric, rounds, swap, key)
        interval = bootstrap_difference(after, before, metric.score, key, paired=True)
        means = {"mean": _mean(after, metric), "against_mean": _mean(before, metric), "difference": interval.mean}
        bounds = {"low": interval.low, "high": interval.high}
        rounded = {name: None if v is None else round(v, DIGITS) for name, v in {**means, **bounds}.items()}
        rows.append(
            {
                **{"test": test, "metric": metric.name, "system": str(other.path), "against": str(first.path)},
                **rounded,
                "by": "paired t-test" if metric.of_items else "permutation test",
                "statistic": found.t if metric.of_items else round(found.difference, DIGITS),
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


@dataclass(frozen=True)
class Outcome:
    """A result file and its predictions: test → (seed, setting) → predictions."""

    path: Path
    held: Mapping[str, Any]
    tests: Mapping[str, Mapping[Run, Predictions]]

    def stats(self, test: str, metric: Metric) -> Floats:
        """[runs, items, k] of a test; InputError for predictions of another form, or other ones than were scored."""
        by_run = {run: self._stats(part, metric) for run, part in sorted(self.tests[test].items())}
        for record in self.held["seeds"]:
            said = record["scores"].get(test, {}).get(metric.name)
            found = [float(metric.score(s.sum(axis=0))) for run, s in by_run.items() if run[0] == record["seed"]]
            if said is not None and not abs(float(np.mean(found)) - said) <= ROUNDING:
                raise InputError(
                    f"says {said} for {metric.name} of {test}, seed {record['seed']}, but its predictions give "
                    f"{np.mean(found):.4f}: one of the two files was changed; run the transfer again",
                    self.path,
                )
        return np.stack(list(by_run.values()))

    def _stats(self, part: Predictions, metric: Metric) -> Floats:
        try:
            return metric.stats(part.gold, part.predicted)
        except (AssertionError, AttributeError, LookupError, TypeError, ValueError) as error:
            why = f"the predictions of {part.test}, seed {part.seed}, are none of the task {self.held['task']}"
            raise InputError(f"{why}: the file was changed; run the transfer again", self.path) from error


def read_outcome(path: Path) -> Outcome:
    """A result of ``synthlang transfer`` with its predictions; InputError for anything else."""
    held = read_json(path)
    sound = isinstance(held, dict) and all(key in held for key in KEYS) and _scored(held["seeds"])
    if not sound or not isinstance(held["settings"], dict) or not isinstance(held["settings"].get("score", {}), dict):
        raise InputError("is no result of synthlang transfer", path)
    if held.get("format") != RESULT_FORMAT:
        raise InputError(
            f"has format {held.get('format')}, this version reads {RESULT_FORMAT}; run the transfer again", path
        )
    name = held["predictions"]
    if not isinstance(name, str) or Path(name).name != name:
        raise InputError(f"names no file beside it as its predictions: {name!r}", path)
    beside = path.with_name(name)
    if not beside.is_file():
        raise InputError(f"its predictions {name} are not beside it; move both files together", path)
    tests: dict[str, dict[Run, Predictions]] = {}
    for part in read_predictions(beside):
        tests.setdefault(part.test, {})[part.seed, part.setting] = part
    seeds = {record["seed"] for record in held["seeds"]}
    for test, runs in tests.items():
        if {seed for seed, _ in runs} != seeds:
            found = ", ".join(str(seed) for seed in sorted({seed for seed, _ in runs}))
            raise InputError(f"its predictions {name} hold the seeds {found} for {test}: one file was changed", path)
    return Outcome(path, held, tests)


def _scored(records: Any) -> bool:
    """Whether these are scores of at least one seed."""
    return isinstance(records, list) and bool(records) and all(map(_is_record, records))


def _is_record(record: Any) -> bool:
    """Whether this is {"seed": number, "scores": {test: {metric: number or null}}} and maybe more."""
    if not isinstance(record, dict) or type(record.get("seed")) is not int:
        return False
    scores = record.get("scores")
    if not isinstance(scores, dict) or not all(isinstance(held, dict) for held in scores.values()):
        return False
    return all(value is None or type(value) in (int, float) for held in scores.values() for value in held.values())


def metrics_of(task: str, settings: Mapping[str, Any], path: Path | None = None) -> dict[str, Metric]:
    """The metrics of a task under the settings of a result."""
    return task_of(parse(TransferConfig, {**settings, "task": task}, path)).metrics()


def check_alike(outcomes: Sequence[Outcome]) -> None:
    """Raise InputError unless all have the task, the rules of scores and the seeds of the first."""
    first = outcomes[0]
    for other in outcomes[1:]:
        facts = (
            ("the task", first.held["task"], other.held["task"]),
            ("rules of scores", _rules(first), _rules(other)),
            ("the seeds", _seeds(first), _seeds(other)),
        )
        for what, mine, theirs in facts:
            if mine != theirs:
                raise InputError(f"cannot be compared with {first.path}: {what} {theirs}, there {mine}", other.path)


def check_items(outcomes: Sequence[Outcome], test: str) -> None:
    """Raise InputError unless every run of every file has the same items with the same gold values, in one order."""
    first = outcomes[0]
    runs = first.tests[test]
    reference = next(iter(runs.values()))
    for outcome in outcomes:
        if outcome.tests[test].keys() != runs.keys():
            raise InputError(f"keeps other settings of {test} than {first.path}: compare equal searches", outcome.path)
        for part in outcome.tests[test].values():
            if (part.ids, part.gold) == (reference.ids, reference.gold):
                continue
            what = f"{len(part.ids)} items, there {len(reference.ids)}"
            if len(part.ids) == len(reference.ids):
                at = next(i for i, name in enumerate(part.ids) if _item(part, i) != _item(reference, i))
                what = f"item {part.ids[at]} is another one or has other gold values"
            raise InputError(f"was tested on other items of {test} than {first.path}: {what}", outcome.path)


def _item(part: Predictions, at: int) -> tuple[str, Any]:
    return part.ids[at], part.gold[at]


def _rules(outcome: Outcome) -> dict[str, Any]:
    score = outcome.held["settings"].get("score", {})
    return {key: value for key, value in score.items() if key != "metric"}


def _seeds(outcome: Outcome) -> str:
    return ", ".join(str(seed) for seed in sorted(record["seed"] for record in outcome.held["seeds"]))
