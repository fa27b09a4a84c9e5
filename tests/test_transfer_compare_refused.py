"""Result files that cannot be compared: one line that says why."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from probes.transfer.compare import compare
from probes.transfer.predictions import Predictions, write_predictions
from synthlang.errors import InputError
from tests.compare_cases import TESTS, pair, predicted, result


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
