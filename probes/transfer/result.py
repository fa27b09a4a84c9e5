"""The result of a transfer: a JSON file for all seeds with intervals, and a file of predictions beside it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from probes.models.pretrained import Role
from probes.statistics import Interval, bootstrap_difference, bootstrap_metric, mean_interval
from probes.transfer.run import DIGITS, Predictions, SeedResult, Transfer
from probes.transfer.tasks.metrics import Floats, Metric
from synthlang.errors import InputError
from synthlang.files import atomic_file, read_json, write_json
from synthlang.rng import key_of

FORMAT = 1
AGAIN = "delete this file and the JSON file beside it, and run the transfer again"
KEYS = ("parent", "sup", "zs")
COLUMNS = {"test": pa.string(), "seed": pa.int64(), "setting": pa.int64()}
SCHEMA = pa.schema({**COLUMNS, **dict.fromkeys(("id", "gold", "prediction"), pa.string())})


def seed_record(result: SeedResult, metric: str) -> dict[str, Any]:
    """Return the result of one seed for JSON: scores of the main metric, Δ, all scores, and records of the fits.

    Scores are in percent. The keys ``parent``, ``sup`` and ``zs`` have the score of the main metric ``metric``, or None
    for a test that was not run. ``delta`` is None without ``sup``.
    """
    main = {key: result.scores[key][metric] if key in result.scores else None for key in KEYS}
    delta = None if main["sup"] is None else round(main["sup"] - main["zs"], DIGITS)  # type: ignore[operator]
    return {"seed": result.seed, **main, "delta": delta, "scores": dict(result.scores), "fits": dict(result.fits)}


def predictions_path(path: Path) -> Path:
    """Return the file of the predictions, ``NAME.predictions.parquet`` beside ``NAME.json``."""
    return path.with_name(f"{path.stem}.predictions.parquet")


class ResultFile:
    """A result on disk, to which seeds can be added.

    Args:
        path: The JSON file, which need not exist.
        name: The fingerprint of the transfer.

    Raises:
        InputError: The file exists and cannot be read or is not a result of this transfer, or its file of predictions
            cannot be read.
    """

    def __init__(self, path: Path, name: str) -> None:
        self.path, self.name = path, name
        self.seeds: dict[int, dict[str, Any]] = {}
        self.predictions: dict[int, list[Predictions]] = {}
        if not path.exists():
            return
        result = read_json(path)
        if not isinstance(result, dict) or result.get("fingerprint") != name:
            reason = "is not a result of this transfer, with the same model, data and settings"
            raise InputError(reason, path, hint="give another file with --out", code="exists")
        self.seeds = {record["seed"]: record for record in result["seeds"]}
        for part in read_predictions(predictions_path(path)):
            if part.seed in self.seeds:
                self.predictions.setdefault(part.seed, []).append(part)

    def add(self, transfer: Transfer, result: SeedResult) -> None:
        """Add a seed and write both files, predictions first, so that every seed in the JSON file has predictions.

        Args:
            transfer: The transfer, whose settings, data and baseline are written.
            result: The result of the seed.

        Raises:
            InputError: The task cannot encode a set (see ``Task.encode``).
            DiskError: A file cannot be written.
        """
        self.seeds[result.seed] = seed_record(result, transfer.main.name)
        self.predictions[result.seed] = list(result.predictions)
        order = {test: i for i, test in enumerate(transfer.tests)}
        parts = [part for seed in sorted(self.predictions) for part in self.predictions[seed]]
        parts.sort(key=lambda part: (order[part.test], part.seed, part.setting))
        self.path.parent.mkdir(parents=True, exist_ok=True)
        write_predictions(predictions_path(self.path), parts)
        whole = {
            "format": FORMAT,
            "fingerprint": self.name,
            **facts(transfer),
            "seeds": [self.seeds[seed] for seed in sorted(self.seeds)],
            "all": summary(transfer.main, parts, self.name),
            **of_sets(transfer),
            "predictions": predictions_path(self.path).name,
        }
        write_json(self.path, whole)


def facts(transfer: Transfer) -> dict[str, Any]:
    """Return the task, model, language, metrics, labels, settings and parents of a transfer, for JSON.

    The result also has the facts about aligned text and rotations, if the transfer read any (``Transfer.aligned``).
    """
    pretrained, config = transfer.pretrained, transfer.config
    return {
        "task": config.task,
        "model": pretrained.name,
        "language": pretrained.language_name("target"),
        "metric": transfer.main.name,
        "metrics": list(transfer.metrics),
        "labels": {kind: list(names) for kind, names in transfer.labels["source"].items()},
        "settings": config.model_dump(mode="json"),
        "parents": {"model": pretrained.fingerprint, "data": dict(transfer.data.fingerprints)},
        **transfer.aligned,
    }


def of_sets(transfer: Transfer) -> dict[str, Any]:
    """Return the scores of the majority baseline, and the numbers of items, words and omissions by set, for JSON.

    Raises:
        InputError: The task cannot encode a set (see ``Task.encode``).
    """
    sets = {name: items.batch for name, items in transfer.data.sets.items()}
    counts = {name: {"items": len(batch), "words": int(batch.corpus.offsets[-1])} for name, batch in sets.items()}
    return {"majority": transfer.majority, "counts": counts, "drops": drops(transfer)}


def drops(transfer: Transfer) -> dict[str, dict[str, int]]:
    """Return, for each set, the number of items, words or answers left out or changed, by reason.

    Raises:
        InputError: The task cannot encode a set (see ``Task.encode``).
    """
    found = {}
    for name, items in transfer.data.sets.items():
        trained: Role = "target" if name in ("target train", "target dev") else "source"
        counts = {**items.drops, **transfer.examples(name, trained).counts}
        found[name] = {reason: n for reason, n in counts.items() if n}
    return found


def summary(metric: Metric, parts: Sequence[Predictions], name: str) -> dict[str, Any]:
    """Return the mean over seeds in percent for each test and for Δ, with two 95 % intervals.

    ``low`` and ``high`` come from a crossed bootstrap over seeds and items, and account for both as random.
    ``seeds_low`` and ``seeds_high`` are Student's t interval over seeds only, or None for one seed. If a search keeps
    several settings, each setting counts as a seed. ``runs`` is the number of such seeds. Δ is missing without the test
    ``sup``.

    Args:
        metric: The main metric.
        parts: The predictions for each test, seed and setting.
        name: The fingerprint of the transfer, which seeds the bootstrap.
    """
    stats: dict[str, list[Floats]] = {}
    ids: dict[str, tuple[str, ...]] = {}
    for part in parts:
        stats.setdefault(part.test, []).append(metric.stats(part.gold, part.predicted))
        ids[part.test] = part.ids
    stacked = {test: np.stack(values) for test, values in stats.items()}
    means = {test: metric.score(values.sum(axis=1)) for test, values in stacked.items()}
    key = key_of("transfer-bootstrap", name)
    found = {t: _with_seeds(bootstrap_metric(v, metric.score, key), means[t]) for t, v in stacked.items()}
    if "sup" in stacked:
        same = ids["sup"] == ids["zs"]
        difference = bootstrap_difference(stacked["sup"], stacked["zs"], metric.score, key, paired=same)
        found["delta"] = _with_seeds(difference, means["sup"] - means["zs"])
    return found


def _with_seeds(interval: Interval, seeds: Floats) -> dict[str, float | int | None]:
    over = mean_interval(seeds)
    values = {"mean": over.mean, "low": interval.low, "high": interval.high}
    values |= {"seeds_low": over.low, "seeds_high": over.high}
    rounded = {key: None if value is None else round(value, DIGITS) for key, value in values.items()}
    return {**rounded, "runs": len(seeds)}


def rows_of(result: Mapping[str, Any]) -> list[tuple[str, str, dict[str, Any], list[float | None]]]:
    """Return (test, label, summary, score of each seed) for every line of a table of results.

    ``result`` is the content of a result file, and ``summary`` is the entry of the test in its key ``all``.
    """
    labels = {"parent": "parent", "sup": "SUP", "zs": "ZS", "delta": "Δ = SUP − ZS"}
    labels |= {f"{test} dev": f"{labels[test]} on dev" for test in KEYS}
    labels |= {test: test for test in result["all"] if test.startswith("mixed ")}
    rows = []
    for test, label in labels.items():
        if test in result["all"]:
            seeds = [r[test] if test in r else r["scores"][test][result["metric"]] for r in result["seeds"]]
            rows.append((test, label, result["all"][test], seeds))
    return rows


def write_predictions(path: Path, parts: Iterable[Predictions]) -> None:
    """Write predictions to a Parquet file with a row for each item. Values are JSON texts.

    Raises:
        DiskError: The file cannot be written.
    """
    with atomic_file(path) as handle, pq.ParquetWriter(handle, SCHEMA, compression="zstd") as writer:
        for part in parts:
            n = len(part.ids)
            columns = [[part.test] * n, [part.seed] * n, [part.setting] * n, list(part.ids)]
            columns += [[json.dumps(v, ensure_ascii=False) for v in values] for values in (part.gold, part.predicted)]
            writer.write_table(pa.table(columns, schema=SCHEMA))


def read_predictions(path: Path) -> list[Predictions]:
    """Read the predictions that `write_predictions` wrote.

    Raises:
        InputError: The file cannot be read, does not have the columns of predictions, or has a value that is not JSON.
    """
    try:
        table = pq.read_table(path)
        if table.schema != SCHEMA or any(table[column].null_count for column in SCHEMA.names):
            reason = "is not a file of predictions: the columns have wrong names or types, or values are missing"
            raise InputError(reason, path, hint=AGAIN, code="format")
        parts: dict[tuple[str, int, int], tuple[list[str], list[Any], list[Any]]] = {}
        for test, seed, setting, name, gold, predicted in zip(*table.to_pydict().values(), strict=True):
            values = parts.setdefault((test, seed, setting), ([], [], []))
            for column, value in zip(values, (name, json.loads(gold), json.loads(predicted)), strict=True):
                column.append(value)
    except FileNotFoundError as error:
        hint = "copy it to the folder of its JSON file, or delete the JSON file and run the transfer again"
        raise InputError("the file of predictions is missing", path, hint=hint, code="missing") from error
    except (pa.ArrowException, OSError, json.JSONDecodeError) as error:
        reason = f"is not a file of predictions: {str(error).splitlines()[0].rstrip('.')}"
        raise InputError(reason, path, hint=AGAIN, code="format") from error
    return [Predictions(*key, tuple(ids), right, said) for key, (ids, right, said) in parts.items()]
