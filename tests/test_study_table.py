"""The table of measurements: what is a row, what names a run, and what of several studies counts once."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from probes.results.pooling import pooled
from probes.results.read import COLUMNS, columns_of, concat, distinct, measurements, read_table
from probes.results.views import MEASURES, RESULTS
from tests.claims import measured, result
from tests.report_study import make_grid

KEYS = {"pretrain": "p", "adjust": "a", "transfer": "t", "probe": "q"}
STAGES = {"c": {"pretrain": "P", "probe p": "Q", "alignment": "A"}}


def table(rows: list[dict[str, Any]] | None = None, found: list[dict[str, Any]] | None = None) -> pd.DataFrame:
    scores = pa.Table.from_pylist(rows or [], pa.schema(list(RESULTS.items())))
    numbers = pa.Table.from_pylist(found or [], pa.schema(list(MEASURES.items())))
    return measurements(scores, numbers, STAGES)


def test_a_row_a_value() -> None:
    """A missing value has no row, but NaN has one. Scores of two languages have one row each, and also ``mixed``."""
    row = result({"a": "x"}, 3, 7, zs=1.5, delta=math.nan, alignment_all=9.0, mixed='{"q": 2.0, "r": null}')
    found = table([row | KEYS], [measured({"a": "x"}, 3, "m.n", 4.0, layer=2)])
    assert list(found.columns) == list(COLUMNS)
    columns = columns_of(found, ("measure", "value", "row", "seed", "layer", "run"))
    lines = {measure: line for measure, *line in zip(*columns, strict=True)}
    assert math.isnan(lines.pop("delta")[0])
    scored, tuned = (0, 7, None), "p a t 7"
    assert lines == {
        "zs": [1.5, *scored, tuned],
        "mixed q": [2.0, *scored, tuned],
        "mixed": [2.0, *scored, tuned],
        "alignment_all": [9.0, *scored, "p a q"],
        "m.n": [4.0, -1, None, 2, "probe Q"],
    }
    assert distinct(found, "task", "pretrain") == [("pos", "p"), ("", "P")]


@pytest.mark.parametrize("missing", ["transfer", "probe"])
def test_a_run_whose_stage_is_not_known_has_no_name(missing: str) -> None:
    found = table([result({}, 0, 1, zs=1.0, alignment_all=2.0) | KEYS | {missing: None}])
    names = dict(distinct(found, "measure", "run"))
    assert (names["zs"], names["alignment_all"]) == (("", "p a q") if missing == "transfer" else ("p a t 1", ""))


def test_rows_of_several_tables_have_numbers_of_their_own() -> None:
    one = table([result({}, 0, seed, zs=1.0) for seed in range(2)], [measured({}, 0, "m", 1.0)])
    assert concat([one, one])["row"].tolist() == [0, 1, -1, 2, 3, -1]
    assert len(concat([one.iloc[:0], one])) == 3


def _of(named: tuple[str, Mapping[str, str]], value: float) -> pd.DataFrame:
    run, labels = named
    return table([result(labels, 0, zs=value) | KEYS | {"transfer": run}])


@pytest.mark.parametrize(
    ("first", "second", "values"),
    [
        (("t", {"a": "x"}), ("t", {"a": "x"}), [1.0]),
        (("t", {"a": "x", "seed": "0"}), ("t", {"a": "x", "seed": "1"}), [1.0]),
        (("t", {"a": "x"}), ("t", {"a": "x", "b": "y"}), [1.0, 2.0]),
        (("t", {"a": "x"}), ("u", {"a": "x"}), [1.0, 2.0]),
        (("", {"a": "x"}), ("", {"a": "x"}), [1.0, 2.0]),
    ],
    ids=["the same", "the same but for seeds", "a label more", "another run", "not known"],
)
def test_a_run_that_an_earlier_study_has_under_the_same_labels_counts_once(
    first: Any, second: Any, values: list[float]
) -> None:
    found = pooled([_of(first, 1.0), _of(second, 2.0)])
    assert found["value"].tolist() == values


def test_a_folder_with_one_file_or_none(tmp_path: Path) -> None:
    folder = make_grid(tmp_path / "a", {"a": ["x"]}, layers=2)
    assert set(read_table(folder, {})["row"] >= 0) == {True, False}
    (folder / "results.parquet").unlink()
    assert set(read_table(folder, {})["row"]) == {-1}
    (folder / "measures.parquet").unlink()
    assert read_table(folder, {}).empty and list(read_table(folder, {}).columns) == list(COLUMNS)
