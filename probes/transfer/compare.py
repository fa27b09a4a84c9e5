"""Tests for differences between transfers, computed from the saved predictions.

The tests follow "The Impact of Cross-Lingual Adjustment" (2022), section 5.1. Scores that are means over items get a
paired t-test over items averaged over seeds. Examples are the accuracy of nli, answers, intents and frames. Scores of
sums over items get a permutation test over the predictions of all seeds. Examples are the accuracy of words, F1 of
spans, macro F1 and attachment. All p values are corrected together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
from pydantic import BaseModel, Field, StrictFloat, StrictInt, ValidationError
from rich.markup import escape
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
from probes.transfer.result import FORMAT as RESULT_FORMAT
from probes.transfer.result import read_predictions
from probes.transfer.run import Predictions
from probes.transfer.tasks.base import task_of
from probes.transfer.tasks.metrics import Floats, Metric, defined
from synthlang.config import parse
from synthlang.config_errors import show_value
from synthlang.errors import InputError
from synthlang.files import read_json
from synthlang.rng import key_of
from synthlang.wording import plural

FORMAT = 1
CORRECTIONS = {"holm": "Holm", "bh": "Benjamini and Hochberg", "none": ""}
SWAPS = ("prediction", "item")
DIGITS = 4
ROUNDING = 1e-3  # recorded scores are rounded
AGAIN = "delete both files and run the transfer again"
Run = tuple[int, int]  # seed, setting


@dataclass(frozen=True)
class Comparison:
    """Comparison of each result file with the first result file, the baseline.

    Attributes:
        task: The task of all files.
        files: The result files, the baseline first.
        seeds: Number of seeds in each file.
        correction: The correction for multiple comparisons: holm, bh or none.
        rounds: Number of permutations.
        swap: The unit that permutations swap: prediction or item.
        rows: The comparisons. ``mean``, ``against_mean`` and ``difference`` are means over seeds in percent. The 95 %
            bootstrap interval of the difference over seeds and items is from ``low`` to ``high``. ``statistic`` is t,
            or the difference over all predictions. A missing p has a ``reason``.
        left_out: Test sets that are missing in some file.
        about: An explanation of the metrics, or None if their names suffice.
    """

    task: str
    files: tuple[str, ...]
    seeds: int
    correction: str
    rounds: int
    swap: str
    rows: tuple[dict[str, Any], ...]
    left_out: tuple[str, ...]
    about: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return all attributes except ``about`` by name, and the ``format`` of the result, for JSON."""
        return {"format": FORMAT, **{name: value for name, value in vars(self).items() if name != "about"}}

    def table(self) -> Table:
        """Return the comparisons as a table for the terminal. The caption names the tests and the correction."""
        names = short_names(self.files)
        caption = (
            f"Percent, means over {self.seeds} seed{'s' * (self.seeds > 1)}. Differences are from "
            f"{names[self.files[0]]} ({self.files[0]}), with 95 % bootstrap intervals. p is by "
        )
        caption += ", ".join(f"{by}, n = {n}" for by, n in dict.fromkeys((row["by"], row["n"]) for row in self.rows))
        corrected = self.correction != "none" and len(self.rows) > 1
        caption += (
            f", corrected by {CORRECTIONS[self.correction]} for {len(self.rows)} comparisons" if corrected else ""
        )
        table = Table(
            title=f"{self.task} against {names[self.files[0]]}",
            caption=caption + (f". {self.about}" if self.about else ""),
            caption_justify="left",
        )
        several = len({row["metric"] for row in self.rows}) > 1
        for name in ("test", *(["metric"] if several else []), "system"):
            table.add_column(name, overflow="fold")
        for name in ("score", "difference", "95 % interval", "p", *(["corrected"] if corrected else [])):
            table.add_column(name, justify="right", no_wrap=True)
        for row in self.rows:
            bounds = "–" if row["low"] is None else f"{row['low']:.1f} to {row['high']:.1f}"
            p_values = [_shown(row[key]) for key in ("p", *(["p_corrected"] if corrected else []))]
            told = (row["test"], *([row["metric"]] if several else []), names[row["system"]])
            table.add_row(*map(escape, told), f"{row['mean']:.1f}", f"{row['difference']:+.1f}", bounds, *p_values)
        return table


def short_names(files: Sequence[str]) -> dict[str, str]:
    """Return a short name for each file, from the parts of its path that not all paths have, without the suffix.

    The name of a single file is its whole path without the suffix.

    >>> list(short_names(["runs/mlm/transfer/pos-trans.json", "runs/xlm/transfer/pos-trans.json"]).values())
    ['mlm', 'xlm']
    """
    parts = [Path(name).with_suffix("").parts for name in files]
    shared = set.intersection(*map(set, parts)) if len(set(files)) > 1 else set[str]()
    return {
        name: "/".join(part for part in of if part not in shared) or name for name, of in zip(files, parts, strict=True)
    }


def compare(
    files: Sequence[Path],
    *,
    metrics: Sequence[str] | None = None,
    tests: Sequence[str] | None = None,
    correction: str = "holm",
    rounds: int = TEST_ROUNDS,
    swap: str = "prediction",
) -> Comparison:
    """Compare the baseline, which is the first result file, with each of the other result files.

    Args:
        files: The result files, the baseline first.
        metrics: The metrics to compare (default: the main metric of the first file).
        tests: The test sets to compare: parent, zs, sup, mixed, … (default: every set that all files have).
        correction: The correction for multiple comparisons: ``holm``, ``bh`` (Benjamini and Hochberg) or ``none``.
        rounds: Number of permutations.
        swap: The unit to permute: ``prediction``, as in the paper, or ``item`` with its predictions of all seeds. With
            ``item``, predictions of different seeds are not treated as independent.

    Raises:
        InputError: There are fewer than two files, an argument has an unknown value, or no test set is in all files.
            The error is also raised if a file cannot be read or was changed, or if files differ in task, rules of
            scoring, seeds or test items.
    """
    if len(files) < 2:
        hint = "give the baseline and at least one other result"
        raise InputError("a comparison needs at least two result files", hint=hint, code="missing")
    for what, value, allowed in (("correction", correction, CORRECTIONS), ("swap", swap, SWAPS)):
        if value not in allowed:
            hint = f"choose from {', '.join(allowed)}"
            raise InputError(f"unknown {what} {value!r}", f"--{what}", hint=hint, code="unknown")
    if rounds < 1:
        raise InputError(f"must be at least 1, not {rounds}", "--rounds", code="range")
    outcomes = [read_outcome(path) for path in files]
    check_alike(outcomes)
    first = outcomes[0]
    task, known = first.result.task, task_of(first.config).metrics()
    place = "--metric" if metrics else first.path
    chosen = [_named(known, name, f"metric of the task {task}", place) for name in metrics or [first.result.metric]]
    shared = {test: test for test in first.tests if all(test in outcome.tests for outcome in outcomes)}
    every = dict.fromkeys(test for outcome in outcomes for test in outcome.tests)
    if not shared:
        reason = f"no test set is in all files, which have {', '.join(every) or 'no test set at all'}"
        raise InputError(reason, hint="give files with a common test set", code="conflict")
    rows = []
    for test in [_named(shared, name, "test set that all files have", "--test") for name in tests or shared]:
        check_items(outcomes, test)
        for metric in chosen:
            before = first.stats(test, metric)
            rows += [_row(first, other, before, test, metric, rounds, swap) for other in outcomes[1:]]
    for row, p in zip(rows, corrected([row["p"] for row in rows], cast(Correction, correction)), strict=True):
        row["p_corrected"] = p
    names, left = tuple(str(path) for path in files), tuple(test for test in every if test not in shared)
    seeds, about = len(first.result.seeds), defined(chosen)
    return Comparison(task, names, seeds, correction, rounds, swap, tuple(rows), left, about)


def _named(known: Mapping[str, Any], name: str, what: str, place: str | Path) -> Any:
    if name not in known:
        raise InputError(f"{name!r} is not a {what}", place, hint=f"choose from {', '.join(known)}", code="unknown")
    return known[name]


def _row(
    first: Outcome, other: Outcome, before: Floats, test: str, metric: Metric, rounds: int, swap: str
) -> dict[str, Any]:
    after = other.stats(test, metric)
    key = key_of("compare", first.result.fingerprint, other.result.fingerprint, test, metric.name)
    found = item_test(before, after, metric, key, rounds, swap)
    interval = bootstrap_difference(after, before, metric.score, key, paired=True)
    means = {"mean": _mean(after, metric), "against_mean": _mean(before, metric)}
    numbers = {**means, "difference": interval.mean, "low": interval.low, "high": interval.high}
    return {
        **{"test": test, "metric": metric.name, "system": str(other.path), "against": str(first.path)},
        **{name: None if value is None else round(value, DIGITS) for name, value in numbers.items()},
        "by": "paired t-test" if metric.of_items else "permutation test",
        "statistic": found.t if metric.of_items else round(found.difference, DIGITS),
        **{"n": found.n, "p": found.p, "reason": found.reason},
    }


def _mean(stats: Floats, metric: Metric) -> float:
    return float(np.mean(metric.score(stats.sum(axis=1))))


def item_test(
    before: Floats, after: Floats, metric: Metric, key: int, rounds: int = TEST_ROUNDS, swap: str = "prediction"
) -> PairedTest:
    """Test the difference of two systems on the same items (see `paired_t_test` and `permutation_test`).

    A metric that is a mean over items gets a paired t-test over the items that count, after averaging over runs. Other
    metrics get a permutation test, for which both systems must have the same number of runs.

    Args:
        before: [runs, items, k] the contributions of the items to the sums of the metric, for the first system.
        after: [runs, items, k] the contributions for the second system.
        metric: The metric.
        key: The random key of the permutations.
        rounds: Number of permutations.
        swap: The unit to permute, as in `compare`.

    Raises:
        InputError: A system has no contributions, or one of them is NaN or infinite.
    """
    if not metric.of_items:
        left, right = (s.sum(axis=0) if swap == "item" else s.reshape(-1, s.shape[-1]) for s in (before, after))
        return permutation_test(left, right, metric.score, key, rounds)
    counted = before[0, :, 1] > 0
    if not counted.any():
        return PairedTest(0.0, 0, reason="no item counts for this metric")
    return paired_t_test(100 * before[:, counted, 0], 100 * after[:, counted, 0])


def _shown(p: float | None) -> str:
    return "–" if p is None else "< .001" if p < 0.001 else f"{p:.3f}"


class _Seed(BaseModel):
    """The scores of one seed in percent, by test set and metric."""

    seed: StrictInt
    scores: dict[str, dict[str, StrictInt | StrictFloat | None]]


class _Result(BaseModel):
    """The parts of a result file that a comparison reads."""

    format: Any = None
    fingerprint: str
    task: str
    metric: str
    settings: dict[str, Any]
    seeds: list[_Seed] = Field(min_length=1)
    predictions: str


@dataclass(frozen=True)
class Outcome:
    """A result file with its settings and its predictions.

    Attributes:
        path: The result file.
        result: The parts of the file that a comparison reads.
        config: The settings of the transfer.
        tests: The predictions by test set, then by (seed, setting).
    """

    path: Path
    result: _Result
    config: TransferConfig
    tests: Mapping[str, Mapping[Run, Predictions]]

    def stats(self, test: str, metric: Metric) -> Floats:
        """Return the contributions [runs, items, k] of the items of a test set to the sums of a metric.

        Raises:
            InputError: A recorded score differs from the score of the predictions.
        """
        by_run = {run: metric.stats(part.gold, part.predicted) for run, part in sorted(self.tests[test].items())}
        for record in self.result.seeds:
            said = record.scores.get(test, {}).get(metric.name)
            found = [float(metric.score(s.sum(axis=0))) for run, s in by_run.items() if run[0] == record.seed]
            if said is not None and not abs(float(np.mean(found)) - said) <= ROUNDING:
                reason = (
                    f"has the score {metric.name} = {said} for {test}, seed {record.seed}, but its predictions have "
                    f"the score {np.mean(found):.4f}, so one of the two files was changed"
                )
                raise InputError(reason, self.path, hint=AGAIN, code="damaged")
        return np.stack(list(by_run.values()))


def read_outcome(path: Path) -> Outcome:
    """Read a result of ``synthlang transfer`` with its predictions.

    Raises:
        InputError: The file cannot be read, is not such a result, or has another format or settings that are not
            allowed. The error is also raised if its file of predictions is missing or damaged, or if the two files have
            different seeds.
    """
    try:
        result = _Result.model_validate(read_json(path))
    except ValidationError as error:
        hint = "give a JSON file that synthlang transfer wrote"
        raise InputError("is not a result of synthlang transfer", path, hint=hint, code="format") from error
    if result.format != RESULT_FORMAT:
        reason = f"has the format {show_value(result.format)}, but this version reads only the format {RESULT_FORMAT}"
        raise InputError(reason, path, hint="run the transfer again with another output file", code="unsupported")
    config = parse(TransferConfig, {**result.settings, "task": result.task}, path)
    beside = path.parent / result.predictions
    tests: dict[str, dict[Run, Predictions]] = {}
    for part in read_predictions(beside):
        tests.setdefault(part.test, {})[part.seed, part.setting] = part
    known = {record.seed for record in result.seeds}
    for test, runs in tests.items():
        if (seeds := {seed for seed, _ in runs}) != known:
            mine, found = (f"the seed{'s' * (len(s) > 1)} {', '.join(map(str, sorted(s)))}" for s in (known, seeds))
            reason = f"has {mine}, but {beside.name} has {found} for {test}, so one of the two files was changed"
            raise InputError(reason, path, hint=AGAIN, code="damaged")
    return Outcome(path, result, config, tests)


def check_alike(outcomes: Sequence[Outcome]) -> None:
    """Raise InputError unless all results have the same task, rules of scoring and seeds."""

    def facts(outcome: Outcome) -> dict[str, Any]:
        seeds = sorted(record.seed for record in outcome.result.seeds)
        rules = outcome.config.score.model_dump(exclude={"metric"}, exclude_defaults=True)
        shown = ", ".join(f"score.{key}: {show_value(value)}" for key, value in rules.items()) or "the defaults"
        return {"task": outcome.result.task, "rules of scoring": shown, "seeds": ", ".join(map(str, seeds))}

    first = outcomes[0]
    for other in outcomes[1:]:
        for (what, mine), theirs in zip(facts(first).items(), facts(other).values(), strict=True):
            if mine != theirs:
                another = "another" if what == "task" else "other"
                reason = f"has {another} {what} than {first.path}: {theirs} instead of {mine}"
                hint = f"compare results with the same {what}"
                raise InputError(reason, other.path, hint=hint, code="conflict")


def check_items(outcomes: Sequence[Outcome], test: str) -> None:
    """Check that all results have the same predictions to compare for a test set.

    Args:
        outcomes: The results, each of which has the test set.
        test: The name of the test set.

    Raises:
        InputError: A result has other combinations of seeds and settings than the first result, or a run has other
            items, other gold values or another order than the first run.
    """
    first = outcomes[0]
    runs = first.tests[test]
    reference = next(iter(runs.values()))
    for outcome in outcomes:
        if outcome.tests[test].keys() != runs.keys():
            mine, theirs = (plural(len(each.tests[test]), "model") for each in (outcome, first))
            reason = f"has predictions of {mine} for {test}, but {first.path} has those of {theirs}"
            hint = "compare transfers with the same value of best"
            raise InputError(reason, outcome.path, hint=hint, code="conflict")
        for part in outcome.tests[test].values():
            if (part.ids, part.gold) == (reference.ids, reference.gold):
                continue
            what = f"{plural(len(part.ids), 'item')} instead of {len(reference.ids):,}"
            if len(part.ids) == len(reference.ids):
                pairs = zip(part.ids, part.gold, reference.ids, reference.gold, strict=True)
                name = next(name for name, gold, right, truth in pairs if (name, gold) != (right, truth))
                what = f"the name or the gold value of the item {name!r} differs"
            reason = (
                f"has other items for {test}, seed {part.seed}, than {first.path} for seed {reference.seed}: {what}"
            )
            hint = AGAIN if outcome is first else "compare transfers with the same test set"
            raise InputError(reason, outcome.path, hint=hint, code="conflict")
