"""The columns of axes: their names, which hide nothing, and numbers that stay numbers."""

import csv
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from probes.study.results import FIXED, AxisColumns, write_results

TEXT, WHOLE, NUMBER = pa.string(), pa.int64(), pa.float64()


def columns(*labels):
    cells: Any = [SimpleNamespace(name=str(i), labels=held) for i, held in enumerate(labels)]
    return AxisColumns(cells)


@pytest.mark.parametrize(
    ("axis", "column"),
    [
        ("pretrain.objective.alpha", "alpha"),
        ("transform", "transform"),
        ("transfer.fine_tune.epochs", "epochs"),
        ("pretrain.dictionary.path", "path"),
        ("second.seed", "second.seed"),  # seed is a column
        ("pretrain.objective.kind", "pretrain.objective.kind"),  # objective is a column
        ("objective", "axis_objective"),
        ("language", "axis_language"),
        ("layer", "axis_layer"),  # of measures.csv
    ],
)
def test_the_name_of_a_column(axis, column):
    assert list(columns({axis: "x"}).types) == [column]
    assert column not in FIXED


def test_axes_of_one_name_have_all_of_their_keys():
    found = columns({"pretrain.steps": "1", "adjust.steps": "2", "pretrain.seed": "3"})
    assert list(found.types) == ["pretrain.steps", "adjust.steps"]  # there is a column pretrain_seed


def test_a_name_that_is_taken_gets_a_number():
    found = columns({"axis_objective": "a", "axis_objective_2": "b", "objective": "c"})
    assert list(found.types) == ["axis_objective", "axis_objective_2", "axis_objective_3"]
    assert next(iter(found.of([{"cell": "0"}])))["axis_objective_3"] == "c"


@pytest.mark.parametrize(
    ("labels", "kind", "values"),
    [
        (["1.0", "10.0"], NUMBER, [1.0, 10.0]),
        (["1", "0.25"], NUMBER, [1.0, 0.25]),
        (["3", "-4"], WHOLE, [3, -4]),
        (["25%", "100%"], NUMBER, [25.0, 100.0]),
        (["MLM", "1"], TEXT, ["MLM", "1"]),
        (["true", "false"], TEXT, ["true", "false"]),
        (["9223372036854775808", "1"], NUMBER, [2.0**63, 1.0]),
    ],
)
def test_numbers_stay_numbers(labels, kind, values):
    found = columns(*({"a": label} for label in labels), {"b": "x"})
    assert found.types["a"] == kind
    rows = list(found.of({"cell": str(i)} for i in range(len(labels) + 1)))
    assert [row["a"] for row in rows] == [*values, None]
    assert [row["b"] for row in rows] == [None] * len(labels) + ["x"]


def test_both_files_have_them(tmp_path):
    found = columns({"pretrain.objective.alpha": "1.0"}, {"pretrain.objective.alpha": "50.0"})
    write_results(tmp_path, found.of([{"cell": "1", "sup": 2.0}, {"cell": "0", "sup": 3.0}]), found.types)
    assert pq.read_table(tmp_path / "results.parquet")["alpha"].to_pylist() == [50.0, 1.0]
    with (tmp_path / "results.csv").open(newline="") as handle:
        assert [(row["sup"], row["alpha"]) for row in csv.DictReader(handle)] == [("2.0", "50.0"), ("3.0", "1.0")]
