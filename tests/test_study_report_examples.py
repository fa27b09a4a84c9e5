"""Marks of significance over examples, as in "The Impact of Cross-Lingual Adjustment", beside intervals over models."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from probes.transfer.config import TransferConfig
from probes.transfer.result import write_predictions
from probes.transfer.run import Predictions
from synthlang.config import parse
from tests.report_study import Report, report, write_rows

RIGHT = {"Original": 0.5, "Adjusted": 0.9, "Adjust.+continual": 0.9}
"""How many items each method has right, about."""
ITEMS, SEEDS = 60, (0, 1, 2)
Said = dict[tuple[str, int, int], list[Any]]


def predicted(task: str, method: str, rng: np.random.Generator) -> tuple[list[Any], list[Any]]:
    """Gold and predictions of the items."""
    right = rng.random(ITEMS) < RIGHT[method]
    if task == "nli":
        return ["neutral"] * ITEMS, ["neutral" if one else "entailment" for one in right]
    return [["B-PER", "O"]] * ITEMS, [["B-PER" if one else "O", "O"] for one in right]


def make(folder: Path, task: str, score: dict[str, Any], paper: str, lost: str = "") -> tuple[Report, Said]:
    """Its report, and what each run (method, adjustment, seed of fine-tuning) predicted; ``lost``: a method without."""
    rng, said = np.random.default_rng(0), Said()
    cells: list[dict[str, Any]] = []
    rows: list[dict[str, Any]] = []
    settings = parse(TransferConfig, {"task": task, "score": score}).model_dump(mode="json")
    for method in RIGHT:
        for adjustment in SEEDS if method != "Original" else (0,):
            labels = {"adjust.seed": str(adjustment), "language": "hi", "method": method}
            name = ", ".join(labels.values())
            stages = {f"transfer {task} seed {s}": f"{len(cells):08x}{s:08x}" for s in SEEDS}
            cells.append({"name": name, "labels": labels, "status": "done", "stages": stages})
            for seed, key in zip(SEEDS, stages.values(), strict=True):
                gold, answers = predicted(task, method, rng)
                said[method, adjustment, seed] = answers
                place = folder / "stages" / f"transfer-{key}"
                if method != lost:
                    place.mkdir(parents=True)
                    (place / "result.json").write_text(json.dumps({"task": task, "settings": settings}))
                    ids = tuple(map(str, range(ITEMS)))
                    parts = [
                        Predictions(test, seed, 0, ids, gold, answers) for test in ("parent", "zs", "mixed random")
                    ]
                    write_predictions(place / "predictions.parquet", parts)
                row = {"cell": name, "labels": json.dumps(labels), "task": task, "task_name": task, "seed": seed}
                score_of = 100 * np.mean([a == g for a, g in zip(answers, gold, strict=True)])
                rows.append(row | {"adjust": f"{len(cells):016x}", "zs": score_of, "metric": "m"})
    study = {"format": 2, "name": "impact", "fingerprint": "ab" * 8, "config": {"paper": [paper]}, "store": "stages"}
    (folder / "study.json").write_text(json.dumps({**study, "axes": list(cells[0]["labels"]), "cells": cells}))
    write_rows(folder, rows)
    return report(folder), said


def table(found: Report, paper: str, score: str) -> dict[str, dict[str, str]]:
    """Method → its row."""
    rows = found.file(f"examples-1-{paper.replace('/', '-')}")
    return {
        row["condition"].split(", ")[-1]: row
        for row in rows
        if row["condition"].startswith("hi") and row["score"] == score
    }


def test_accuracy_has_a_t_test_over_examples_averaged_over_runs(tmp_path):
    """Runs are those whose adjustment and fine-tuning have one seed; between them the mean of an example counts."""
    found, said = make(tmp_path, "nli", {}, "impact/table2")
    rows = table(found, "impact/table2", "nli zs")
    assert list(rows) == ["Adjusted", "Adjust.+continual"]
    means = {
        method: np.mean([np.equal(said[method, a * (method != "Original"), a], "neutral") for a in SEEDS], axis=0)
        for method in RIGHT
    }
    for method, other in (("Adjusted", "Original"), ("Adjust.+continual", "Adjusted")):
        expected, row = stats.ttest_rel(means[method], means[other]), rows[method]
        assert row["against"] == other and row["Paper"] == "marked" and row["Test"] == "paired t-test, 3 runs"
        assert float(row["Difference"]) == pytest.approx(100 * np.mean(means[method] - means[other]), abs=1e-4)
        assert row["p"] == ("< .001" if expected.pvalue < 0.001 else f"{expected.pvalue:.3f}".removeprefix("0"))
        assert row["Ours"] == ("marked" if expected.pvalue < 0.05 else "not marked")
        assert row["Over models"]
    assert rows["Adjusted"]["Ours"] == "marked" and rows["Adjust.+continual"]["Ours"] == "not marked"
    assert len(table(found, "impact/table2", "nli mixed")) == 2


def test_f1_has_a_permutation_test_over_the_predictions_of_all_runs(tmp_path):
    found, said = make(tmp_path, "ner", {"metric": "token_f1"}, "impact/table3")
    rows = table(found, "impact/table3", "ner zs")

    def f1(method: str) -> float:
        recall = np.mean([a[0] == "B-PER" for s in SEEDS for a in said[method, s * (method != "Original"), s]])
        return 200 * float(recall) / (1 + float(recall))

    assert rows["Adjusted"]["Test"] == "permutation test, 3 runs" and rows["Adjusted"]["p"] == "< .001"
    assert float(rows["Adjusted"]["Difference"]) == pytest.approx(f1("Adjusted") - f1("Original"), abs=1e-3)


def test_runs_that_one_side_lacks_are_left_out(tmp_path):
    make(tmp_path, "ner", {"metric": "token_f1"}, "impact/table3")
    cells = json.loads((tmp_path / "study.json").read_text())["cells"]
    for seed in SEEDS[1:]:
        for cell in cells:
            if cell["labels"]["method"] == "Adjusted":
                key = cell["stages"][f"transfer ner seed {seed}"]
                (tmp_path / "stages" / f"transfer-{key}" / "predictions.parquet").unlink()
    assert table(report(tmp_path), "impact/table3", "ner zs")["Adjusted"]["Test"] == "permutation test, 1 run"


def test_without_predictions_the_table_says_so(tmp_path):
    found, _ = make(tmp_path, "nli", {}, "impact/table2", lost="Original")
    rows = table(found, "impact/table2", "nli zs")
    assert rows["Adjusted"]["Test"].startswith("the two sides share no run") and rows["Adjusted"]["p"] == "–"
    assert rows["Adjust.+continual"]["Ours"] == "not marked" and rows["Adjust.+continual"]["p"] != "–"
