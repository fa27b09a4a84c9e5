"""Result files of several transfers that can be compared: the same task, test items and seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from probes.transfer.config import TransferConfig
from probes.transfer.metrics.metric import Floats, Metric
from probes.transfer.predictions import Predictions, read_predictions
from synthlang.config import parse
from synthlang.errors import InputError
from synthlang.files import read_json

FORMAT = 1
KEYS = ("fingerprint", "task", "metric", "settings", "seeds", "predictions")
ROUNDING = 1e-3  # recorded scores are rounded

Run = tuple[int, int]  # seed, setting


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
    if held.get("format") != FORMAT:
        raise InputError(f"has format {held.get('format')}, this version reads {FORMAT}; run the transfer again", path)
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
    from probes.transfer.tasks import task_of

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
