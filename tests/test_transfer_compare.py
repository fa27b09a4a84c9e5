"""Comparison of result files: what the tests find, and which files are refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rich.console import Console
from scipy import stats

from probes.statistics import permutation_test
from probes.transfer.compare import compare
from probes.transfer.result import predictions_path, read_predictions, write_predictions
from probes.transfer.run import Predictions
from synthlang.files import read_json, write_json
from tests.refusals import refused
from tests.test_transfer_metrics import NER, NLI

NAMES = {"nli": ("yes", "no", "so"), "ner": ("O", "B-X", "I-X")}
METRICS = {"nli": NLI, "ner": NER}
TESTS = ("parent", "zs")
Edit = Callable[[Any], object]


def gold_of(task: str, items: int) -> list[Any]:
    drawn = np.random.default_rng(0).choice(NAMES[task], (items, 6)).tolist()
    return [row[0] for row in drawn] if task == "nli" else drawn


def guessed(gold: list[Any], names: tuple[str, ...], right: float, seed: int) -> list[Any]:
    """Each label or word is right with that probability, else a guess."""
    rng = np.random.default_rng(seed)

    def guess(label: str) -> str:
        return label if rng.random() < right else str(rng.choice(names))

    return [guess(item) if isinstance(item, str) else [guess(tag) for tag in item] for item in gold]


def result(
    path: Path,
    task: str,
    right: dict[str, float],
    *,
    items: int = 150,
    seeds: tuple[int, ...] = (0, 1),
    settings: int = 1,
    salt: int = 0,
) -> Path:
    """A result file: on each test so large a share of the labels is right."""
    gold, ids = gold_of(task, items), tuple(f"i{i}" for i in range(items))
    parts = [
        Predictions(test, seed, n, ids, gold, guessed(gold, NAMES[task], share, 1000 * salt + 100 * k + 10 * seed + n))
        for k, (test, share) in enumerate(right.items())
        for seed in seeds
        for n in range(settings)
    ]
    scores = {
        seed: {
            test: {
                name: float(np.mean([metric(gold, p.predicted) for p in parts if (p.test, p.seed) == (test, seed)]))
                for name, metric in METRICS[task].items()
            }
            for test in right
        }
        for seed in seeds
    }
    write_predictions(predictions_path(path), parts)
    names = {"format": 1, "fingerprint": f"{path.stem}-{salt}", "task": task, "metric": next(iter(METRICS[task]))}
    records = [{"seed": seed, "scores": scores[seed]} for seed in seeds]
    held = {"settings": {"task": task}, "seeds": records, "predictions": predictions_path(path).name}
    write_json(path, names | held)
    return path


def pair(folder: Path, task: str, other: dict[str, float], **options: Any) -> list[Path]:
    """A system with half of the labels right on both tests, and another one."""
    first = result(folder / "a.json", task, dict.fromkeys(TESTS, 0.5), salt=1)
    return [first, result(folder / "b.json", task, other, salt=2, **options)]


def predicted(path: Path, test: str) -> list[Predictions]:
    return [part for part in read_predictions(predictions_path(path)) if part.test == test]


def test_means_over_items_get_the_papers_t_test(tmp_path: Path) -> None:
    files = pair(tmp_path, "nli", {"parent": 0.5, "zs": 0.8})
    found = compare(files)
    assert [(row["test"], row["by"]) for row in found.rows] == [(test, "paired t-test") for test in TESTS]
    for row in found.rows:
        values = [
            100 * np.mean([[g == p for g, p in zip(part.gold, part.predicted, strict=True)] for part in parts], axis=0)
            for parts in (predicted(path, row["test"]) for path in files)
        ]
        expected = stats.ttest_rel(values[1], values[0])
        assert (row["statistic"], row["p"]) == pytest.approx((expected.statistic, expected.pvalue))
        assert (row["against_mean"], row["mean"]) == pytest.approx((values[0].mean(), values[1].mean()), abs=1e-3)
        assert row["difference"] == pytest.approx(values[1].mean() - values[0].mean(), abs=1e-3)
        assert row["low"] < row["difference"] < row["high"]
        assert row["n"] == 150
    same, better = found.rows
    assert same["p"] > 0.01 and same["low"] < 0 < same["high"]
    assert better["p"] < 1e-4 and better["low"] > 0
    assert [row["p_corrected"] for row in found.rows] == pytest.approx([same["p"], 2 * better["p"]])


def test_sums_over_items_get_the_permutation_test(tmp_path: Path) -> None:
    files = pair(tmp_path, "ner", {"parent": 0.5, "zs": 0.8})
    found = compare(files)
    same, better = found.rows
    assert {row["by"] for row in found.rows} == {"permutation test"}
    assert (same["n"], better["n"]) == (300, 300)  # the predictions of both seeds
    assert same["p"] > 0.01
    assert better["p"] == 1 / 1001
    f1 = NER["span_f1"]
    gold = [tags for part in predicted(files[0], "zs") for tags in part.gold]
    before, after = ([tags for part in predicted(path, "zs") for tags in part.predicted] for path in files)
    assert better["statistic"] == pytest.approx(f1(gold, after) - f1(gold, before), abs=1e-3)
    rough = permutation_test(f1.stats(gold, before), f1.stats(gold, after), f1.score, key=3)
    assert rough.p == better["p"]


def test_items_may_be_swapped_with_all_their_predictions(tmp_path: Path) -> None:
    """Equal predictions under every seed are one finding. By items, they have the weight of one seed."""
    files = pair(tmp_path, "ner", dict.fromkeys(TESTS, 0.55))
    for path in files:
        parts = [part for test in TESTS for part in predicted(path, test)]
        repeated = [Predictions(p.test, seed, 0, p.ids, p.gold, p.predicted) for p in parts[::2] for seed in (0, 1)]
        write_predictions(predictions_path(path), repeated)
        write_json(path, read_json(path) | {"seeds": [{"seed": s, "scores": {}} for s in (0, 1)]})
    of = {swap: compare(files, swap=swap, rounds=3000).rows for swap in ("prediction", "item")}
    assert [row["n"] for row in of["item"]] == [150, 150]
    assert all(one["p"] < other["p"] for one, other in zip(of["prediction"], of["item"], strict=True))


def test_a_file_against_itself(tmp_path: Path) -> None:
    for task, metrics in METRICS.items():
        path = result(tmp_path / f"{task}.json", task, {"parent": 0.6})
        for row in compare([path, path], metrics=list(metrics)).rows:
            assert (row["difference"], row["low"], row["high"], row["p"], row["p_corrected"]) == (0, 0, 0, 1, 1)


def test_three_files_several_metrics_and_kept_settings(tmp_path: Path) -> None:
    files = [
        result(tmp_path / f"{n}.json", "nli", {"zs": share, "mixed premise": share}, settings=2, salt=n)
        for n, share in enumerate((0.3, 0.5, 0.7))
    ]
    found = compare(files, metrics=["accuracy", "macro_f1"], correction="bh", rounds=200)
    assert len(found.rows) == 2 * 2 * 2
    assert {row["system"] for row in found.rows} == {str(path) for path in files[1:]}
    assert {row["by"] for row in found.rows} == {"paired t-test", "permutation test"}
    assert {row["n"] for row in found.rows if row["metric"] == "macro_f1"} == {150 * 4}
    assert all(row["p_corrected"] >= row["p"] for row in found.rows)
    assert compare(files, tests=["zs"], correction="none").rows[0]["test"] == "zs"


def test_test_sets_that_one_file_lacks_are_named(tmp_path: Path) -> None:
    files = pair(tmp_path, "nli", {"zs": 0.5, "sup": 0.6})
    found = compare(files)
    assert {row["test"] for row in found.rows} == {"zs"}
    assert set(found.left_out) == {"parent", "sup"}


def test_it_repeats_and_is_json_and_a_table(tmp_path: Path) -> None:
    files = pair(tmp_path, "ner", {"parent": 0.5, "zs": 0.8})
    found = compare(files)
    assert found == compare(files)
    text = json.loads(json.dumps(found.to_json(), allow_nan=False))
    assert text["rows"] == list(found.rows) and text["correction"] == "holm" and text["format"] == 1
    console = Console(width=80, record=True, file=StringIO())
    console.print(found.table())
    rows = [line.strip("│ ").split() for line in console.export_text().splitlines() if line.startswith("│")]
    assert [row[:3:2] for row in rows] == [["parent", "b"], ["zs", "b"]], "whole words"


# --- what cannot be compared ---


REFUSED = [
    ({"seeds": (0, 2)}, {}, "b.json", "conflict"),
    ({"items": 149}, {}, "b.json", "conflict"),
    ({"settings": 2}, {}, "b.json", "conflict"),
    ({}, {"metrics": ["f1"]}, "--metric", "unknown"),
    ({}, {"tests": ["sup"]}, "--test", "unknown"),
    ({}, {"correction": "bonferroni"}, "--correction", "unknown"),
]


@pytest.mark.parametrize(("made", "asked", "place", "code"), REFUSED)
def test_other_runs_and_options_that_there_are_not(
    tmp_path: Path, made: dict[str, Any], asked: dict[str, Any], place: str, code: str
) -> None:
    assert refused(compare, pair(tmp_path, "nli", {"zs": 0.6}, **made), **asked) == (place, code)


def changed(*where: Any, to: Any) -> Edit:
    """Set what stands at a place."""

    def change(held: Any) -> None:
        for key in where[:-1]:
            held = held[key]
        held[where[-1]] = to

    return change


SCORES = ("seeds", 0, "scores")
CHANGED_RESULTS: list[tuple[Edit, str, str]] = [
    (changed("task", to="pos"), "", "conflict"),
    (changed("settings", "score", to={"repair": "final-type"}), "", "conflict"),
    (changed(*SCORES, "zs", "accuracy", to=1.0), "", "damaged"),
    (changed(*SCORES, "zs", "accuracy", to=float("nan")), "", "damaged"),
    (changed("format", to=2), "", "unsupported"),
    (lambda held: held["seeds"].pop(), "", "damaged"),
    (changed(*SCORES, "zs", "accuracy", to="many"), "", "format"),
]


@pytest.mark.parametrize(("change", "keys", "code"), CHANGED_RESULTS)
def test_changed_results(tmp_path: Path, change: Edit, keys: str, code: str) -> None:
    files = pair(tmp_path, "nli", {"zs": 0.6})
    held = json.loads(files[1].read_text())
    change(held)
    files[1].write_text(json.dumps(held))
    assert refused(compare, files) == (f"b.json{keys}", code)


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda p: {"gold": ["new", *p.gold[1:]]}, "conflict"),
        (lambda p: {"ids": ("x", *p.ids[1:])}, "conflict"),
        (lambda p: {"predicted": [["a"]] * len(p.gold)}, "damaged"),
    ],
    ids=["gold", "id", "prediction"],
)
def test_changed_predictions(tmp_path: Path, change: Any, code: str) -> None:
    files = pair(tmp_path, "nli", dict.fromkeys(TESTS, 0.6))
    parts = [replace(part, **change(part)) for test in TESTS for part in predicted(files[1], test)]
    write_predictions(predictions_path(files[1]), parts)
    assert refused(compare, files) == ("b.json", code)


def test_rows_of_more_than_512_tokens(tmp_path: Path) -> None:
    files = pair(tmp_path, "nli", {"zs": 0.6})
    for path in files:
        write_json(path, read_json(path) | {"settings": {"task": "nli", "length": 1024}})
    assert compare(files).task == "nli"


def test_files_that_hold_no_predictions(tmp_path: Path) -> None:
    files = pair(tmp_path, "nli", {"zs": 0.6})
    beside = predictions_path(files[1])
    table = pq.read_table(beside)
    gap = pa.array([None, *table["seed"].to_pylist()[1:]], pa.int64())
    broken = pa.array(["{", *table["gold"].to_pylist()[1:]])
    for column, values in (("seed", gap), ("gold", broken)):
        pq.write_table(table.set_column(table.schema.get_field_index(column), column, values), beside)
        assert refused(compare, files) == (beside.name, "format")
    beside.write_text("?")
    assert refused(compare, files) == (beside.name, "format")
    beside.unlink()
    assert refused(compare, files) == (beside.name, "missing")


def test_files_without_a_common_test(tmp_path: Path) -> None:
    files = pair(tmp_path, "nli", {"zs": 0.6})
    assert refused(compare, files[:1]) == ("", "missing")
    other = result(tmp_path / "c.json", "nli", {"sup": 0.5})
    assert refused(compare, [files[1], other]) == ("", "conflict")
