"""Comparison of result files: what the tests find, and which files are refused."""

from __future__ import annotations

import json
from collections.abc import Callable
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
from probes.transfer.compare import compare, metrics_of
from probes.transfer.result import read_predictions, write_predictions
from probes.transfer.run import Predictions
from synthlang.errors import InputError
from synthlang.files import read_json, write_json

TAGS = ("O", "B-X", "I-X")
NLI, NER = (metrics_of(task, {}) for task in ("nli", "ner"))
METRICS = {"nli": NLI, "ner": NER}
TESTS = ("parent", "zs")


def gold_of(task: str, items: int) -> list[Any]:
    rng = np.random.default_rng(0)
    if task == "nli":
        return [str(label) for label in rng.choice(["yes", "no", "so"], items)]
    return [[TAGS[t] for t in rng.integers(0, 3, 6)] for _ in range(items)]


def guessed(gold: list[Any], right: float, seed: int) -> list[Any]:
    """Each label or word is right with that probability, else a guess."""
    rng = np.random.default_rng(seed)

    def guess(label: str, names: tuple[str, ...]) -> str:
        return label if rng.random() < right else str(rng.choice(names))

    if isinstance(gold[0], str):
        return [guess(label, ("yes", "no", "so")) for label in gold]
    return [[guess(tag, TAGS) for tag in tags] for tags in gold]


def result(
    path: Path,
    task: str,
    right: dict[str, float],
    *,
    items: int = 150,
    seeds: tuple[int, ...] = (0, 1),
    settings: int = 1,
    salt: int = 0,
    change: Callable[[dict[str, Any]], None] | None = None,
) -> Path:
    """A result file: on each test so large a share of the labels is right."""
    parts = [
        Predictions(test, seed, setting, tuple(f"i{i}" for i in range(items)), gold, guessed(gold, share, key))
        for n, (test, share) in enumerate(right.items())
        for seed in seeds
        for setting in range(settings)
        for gold, key in [(gold_of(task, items), 1000 * salt + 100 * n + 10 * seed + setting)]
    ]
    scores: dict[int, dict[str, dict[str, float]]] = {seed: {} for seed in seeds}
    for seed in seeds:
        for test in right:
            mine = [part for part in parts if (part.test, part.seed) == (test, seed)]
            scores[seed][test] = {
                name: round(float(np.mean([metric(p.gold, p.predicted) for p in mine])), 4)
                for name, metric in METRICS[task].items()
            }
    held = {
        "format": 1,
        "fingerprint": f"{path.stem}-{salt}",
        "task": task,
        "metric": next(iter(METRICS[task])),
        "settings": {"task": task},
        "seeds": [{"seed": seed, "scores": scores[seed]} for seed in seeds],
        "predictions": f"{path.stem}.predictions.parquet",
    }
    if change:
        change(held)
    write_predictions(path.with_name(f"{path.stem}.predictions.parquet"), parts)
    write_json(path, held)
    return path


def pair(folder: Path, task: str, other: dict[str, float], **options: Any) -> list[Path]:
    """A system with half of the labels right on both tests, and another one."""
    first = result(folder / "a.json", task, dict.fromkeys(TESTS, 0.5), salt=1)
    return [first, result(folder / "b.json", task, other, salt=2, **options)]


def predicted(path: Path, test: str) -> list[Predictions]:
    return [part for part in read_predictions(path.with_name(f"{path.stem}.predictions.parquet")) if part.test == test]


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
    """The same predictions under every seed are one finding, not many: as items they weigh as one seed does."""
    files = pair(tmp_path, "ner", dict.fromkeys(TESTS, 0.55))
    for path in files:
        parts = [part for test in TESTS for part in predicted(path, test)]
        repeated = [Predictions(p.test, seed, 0, p.ids, p.gold, p.predicted) for p in parts[::2] for seed in (0, 1)]
        write_predictions(path.with_name(f"{path.stem}.predictions.parquet"), repeated)
        held = read_json(path)
        write_json(path, held | {"seeds": [{"seed": s, "scores": {}} for s in (0, 1)]})
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
    console = Console(width=250, record=True, file=StringIO())
    console.print(found.table())
    shown = console.export_text()
    assert "permutation test" in shown and "< .001" in shown and "0.002" in shown and "b.json" in shown


def test_the_metrics_of_a_task_follow_the_settings_of_the_result() -> None:
    assert next(iter(metrics_of("pos", {}))) == "accuracy"
    assert next(iter(metrics_of("parsing", {"score": {"punctuation": False}}))) == "las_without_punct"


def other_task(held: dict[str, Any]) -> None:
    held["task"] = "pos"


def other_rules(held: dict[str, Any]) -> None:
    held["settings"]["score"] = {"repair": "final-type"}


def other_score(held: dict[str, Any]) -> None:
    held["seeds"][0]["scores"]["zs"]["accuracy"] += 1


def other_format(held: dict[str, Any]) -> None:
    held["format"] = 2


def no_seeds(held: dict[str, Any]) -> None:
    held["seeds"] = []


def fewer_seeds(held: dict[str, Any]) -> None:
    held["seeds"].pop()


def elsewhere(held: dict[str, Any]) -> None:
    held["predictions"] = "../b.predictions.parquet"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"change": other_task}, "the task pos, there nli"),
        ({"change": other_rules}, "rules of scores .*final-type"),
        ({"seeds": (0, 2)}, "the seeds 0, 2, there 0, 1"),
        ({"items": 149}, "other items of .*: 149 items, there 150"),
        ({"settings": 2}, "other settings of zs"),
        ({"change": other_score}, "says .* for accuracy of zs, seed 0, but its predictions give .* changed"),
        ({"change": other_format}, "format 2, this version reads 1"),
        ({"change": no_seeds}, "is no result of synthlang transfer"),
        ({"change": fewer_seeds}, "hold the seeds 0, 1 for zs: one file was changed"),
        ({"change": elsewhere}, "names no file beside it"),
    ],
    ids=lambda value: value.get("change", value) if isinstance(value, dict) else None,
)
def test_files_that_cannot_be_compared(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    files = pair(tmp_path, "nli", {"zs": 0.6}, **options)
    with pytest.raises(InputError, match=message) as error:
        compare(files)
    assert "b.json" in str(error.value) and "\n" not in str(error.value)


RECORD = ("seeds", 0)
CHANGES: list[tuple[tuple[str | int, ...], Any]] = [
    ((*RECORD, "scores"), []),
    ((*RECORD, "scores"), None),
    ((*RECORD, "scores", "zs"), 3),
    ((*RECORD, "scores", "zs", "accuracy"), "many"),
    ((*RECORD, "seed"), [0]),
    ((*RECORD, "seed"), True),
    (("settings",), None),
    (("settings", "score"), None),
]


@pytest.mark.parametrize(("where", "value"), CHANGES, ids=str)
def test_values_of_another_type(tmp_path: Path, where: tuple[str | int, ...], value: Any) -> None:
    def change(held: Any) -> None:
        for key in where[:-1]:
            held = held[key]
        held[where[-1]] = value

    with pytest.raises(InputError, match="is no result of synthlang transfer"):
        compare(pair(tmp_path, "nli", {"zs": 0.6}, change=change))


def test_a_score_that_is_no_number_is_not_the_predictions_score(tmp_path: Path) -> None:
    def change(held: Any) -> None:
        held["seeds"][0]["scores"]["zs"]["accuracy"] = float("nan")

    files = pair(tmp_path, "nli", {"zs": 0.6})
    held = json.loads(files[1].read_text())
    change(held)
    files[1].write_text(json.dumps(held))
    with pytest.raises(InputError, match="but its predictions give"):
        compare(files)


def test_predictions_with_gaps(tmp_path: Path) -> None:
    files = pair(tmp_path, "nli", {"zs": 0.6})
    beside = files[1].with_name("b.predictions.parquet")
    table = pq.read_table(beside)
    seeds = pa.array([None, *table["seed"].to_pylist()[1:]], pa.int64())
    pq.write_table(table.set_column(table.schema.get_field_index("seed"), "seed", seeds), beside)
    with pytest.raises(InputError, match="a column has gaps or values of another type"):
        compare(files)


def damage(path: Path, change: Callable[[Predictions], Predictions]) -> None:
    beside = path.with_name(f"{path.stem}.predictions.parquet")
    write_predictions(beside, [change(part) for test in TESTS for part in predicted(path, test)])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda p: Predictions(p.test, p.seed, 0, p.ids, ["new", *p.gold[1:]], p.predicted), "item i0 is another one"),
        (lambda p: Predictions(p.test, p.seed, 0, ("x", *p.ids[1:]), p.gold, p.predicted), "item x is another one"),
        (lambda p: Predictions(p.test, p.seed, 0, p.ids, p.gold, [["a"]] * len(p.gold)), "but its predictions give"),
    ],
    ids=["gold", "id", "prediction"],
)
def test_changed_predictions(tmp_path: Path, change: Callable[[Predictions], Predictions], message: str) -> None:
    files = pair(tmp_path, "nli", dict.fromkeys(TESTS, 0.6))
    damage(files[1], change)
    with pytest.raises(InputError, match=message):
        compare(files)


def test_predictions_of_another_form(tmp_path: Path) -> None:
    files = pair(tmp_path, "ner", dict.fromkeys(TESTS, 0.6))
    damage(files[1], lambda p: Predictions(p.test, p.seed, 0, p.ids, p.gold, [None] * len(p.gold)))
    with pytest.raises(InputError, match="are none of the task ner: the file was changed"):
        compare(files)


def test_missing_files_and_options(tmp_path: Path) -> None:
    files = pair(tmp_path, "nli", {"zs": 0.6})
    options: list[tuple[dict[str, Any], str]] = [
        ({"metrics": ["f1"]}, "'f1' is no metric of the task nli; there are accuracy, macro_f1"),
        ({"tests": ["sup"]}, "'sup' is no test set that all files have; there are zs"),
        ({"correction": "bonferroni"}, "correction must be one of holm, bh, none"),
        ({"swap": "seed"}, "swap must be one of prediction, item"),
        ({"rounds": 0}, "at least one round"),
    ]
    for option, message in options:
        with pytest.raises(InputError, match=message):
            compare(files, **option)
    with pytest.raises(InputError, match="at least two"):
        compare(files[:1])
    third = result(tmp_path / "c.json", "nli", {"sup": 0.5})
    with pytest.raises(InputError, match="no test set in common; there are zs, sup"):
        compare([files[1], third])
    (tmp_path / "b.predictions.parquet").unlink()
    with pytest.raises(InputError, match=r"predictions b.predictions.parquet are not beside it"):
        compare(files)
    for text in ("[]", "{}", '{"format": 1}'):
        files[1].write_text(text)
        with pytest.raises(InputError, match="is no result of synthlang transfer"):
            compare(files)
