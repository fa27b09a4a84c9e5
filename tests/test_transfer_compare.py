"""Comparison of result files: what the tests find."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console
from scipy import stats

from probes.statistics import permutation_test
from probes.transfer.compare import compare, metrics_of
from probes.transfer.predictions import Predictions, write_predictions
from synthlang.files import read_json, write_json
from tests.compare_cases import METRICS, NER, TESTS, pair, predicted, result


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
