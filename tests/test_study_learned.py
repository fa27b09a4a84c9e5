"""Perplexity of the source language in tables and on the page, and models that failed training."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from pretrain.folder import read_metrics
from probes.correlation import CorrelateOptions, correlate_command
from probes.report.data import read_study
from probes.report.folder import write_report
from probes.report.numbers import number
from probes.statistics import mean_interval
from probes.study.gc import collect
from tests.report_study import (
    Report,
    cells_of,
    change,
    change_rows,
    joined,
    make_grid,
    read_rows,
    report,
    write_measures,
    write_rows,
)
from tests.study_cases import TINY, opened, rows_of, run_here, tables
from tests.tiny import changed

AXES = {"objective": ["MLM", "ALIGN-MLM"], "pretrain.seed": ["0", "1", "2"]}
LIMITS: dict[str, Any] = {"perplexity": 15, "sup": 80}
CLAIMS = "claims:\n" + "\n".join(
    f"- {{id: {measure[-5:]}, claim: C., source: x, compare: [{{measure: '{measure}', relation: less, "
    "left: {where: {objective: MLM}}, right: {where: {objective: ALIGN-MLM}}}]}"
    for measure in ("delta", "probe:pretrain.perplexity.other")
)


def perplexity_of(cell: str) -> float:
    """Return the perplexity of a cell: 10, 11 and 32 for MLM, and 12, 13 and 14 for ALIGN-MLM."""
    known = {"MLM, 0": 10.0, "MLM, 1": 11.0, "MLM, 2": 32.0}
    return known.get(cell, 12.0 + int(cell[-1]))


def grid(folder: Path, learned: Any = None, tasks: tuple[str, ...] = ("pos",), **more: Any) -> Path:
    """Two objectives × three pretrainings, whose perplexities are known."""
    folder.mkdir()
    (folder / "claims.yaml").write_text(CLAIMS)
    config = {"claims": [str(folder / "claims.yaml")]} | ({} if learned is None else {"learned": learned})
    make_grid(folder, AXES, tasks, **{"config": config, **more})
    change_rows(folder, lambda row, _: {"perplexity": perplexity_of(row["cell"])})
    measured = [
        [cell["name"], json.dumps(cell["labels"]), cell["labels"]["pretrain.seed"], "pretrain", name, "", "", value]
        for cell in cells_of(folder)
        for name, value in (
            ("pretrain.perplexity.parent", perplexity_of(cell["name"])),
            ("pretrain.perplexity.other", 2 * perplexity_of(cell["name"])),
            ("alignment.scores.all.cosine.mean", 50.0),
        )
    ]
    write_measures(folder, measured)
    return folder


def lines(made: Report, *header: str) -> dict[tuple[str, ...], dict[str, str]]:
    """The lines of a table by objective, and Training where it says so."""
    found = made.table("objective", *header)
    return {tuple(line[name] for name in ("objective", "Training") if name in line): line for line in found}


def test_a_correlation_leaves_out_what_the_study_excludes(tmp_path: Path) -> None:
    """Where no limit is set, and where one model of six fails."""
    for name, learned, rows in (("a", None, 6), ("b", {"perplexity": 15}, 5)):
        folder, out = grid(tmp_path / name, learned, seeds=1), tmp_path / f"{name}.json"
        options = CorrelateOptions.of("perplexity", "delta", None, None, None, "spearman", 0.95)
        correlate_command([folder / "results.parquet"], options, out, None)
        found = json.loads(out.read_text())
        assert found["rows"] == rows
        assert sum(found["left_out"].values()) == 6 - rows


def test_tokens_per_word_stand_beside_the_scores(tmp_path: Path) -> None:
    folder, values = make_grid(tmp_path, {"marking": ["none", "case"]}, seeds=1), {"none": 1.012, "case": 2.241}
    name = "pretrain.tokens_per_word.other"
    cells = [(cell["name"], json.dumps(cell["labels"])) for cell in cells_of(folder)]
    write_measures(folder, [[cell, labels, "", "pretrain", name, "", "", values[cell]] for cell, labels in cells])
    found = report(folder).table("marking", "Δ", "Tokens|per word")
    assert {line["marking"]: line["Tokens|per word"] for line in found} == {"none": "1.01", "case": "2.24"}


# --- where nothing is judged ---


def test_perplexity_stands_beside_the_scores_and_in_a_table_of_its_own(tmp_path: Path) -> None:
    made = report(grid(tmp_path / "a"))
    scores, pretrained = lines(made, "Δ", "Perplexity"), lines(made, "Perplexity|source")
    assert "failed training" not in made.text and "not learned" not in made.text
    for line, column in ((scores, "Perplexity"), (pretrained, "Perplexity|source")):
        for objective, values in (("MLM", [10.0, 11.0, 32.0]), ("ALIGN-MLM", [12.0, 13.0, 14.0])):
            mean, *_ = line[objective,][column].split("|")
            assert mean == number(mean_interval(values).mean)
    assert list(pretrained) == [("ALIGN-MLM",), ("MLM",)], "the best first"
    assert pretrained["MLM",]["Seeds"] == "3 models"
    assert pretrained["MLM",]["Perplexity|other language"].startswith("35.3|1.0 to")
    written = {row["Cell"]: row["Perplexity"] for row in made.file("seeds")}
    assert {cell: float(value) for cell, value in written.items()} == {cell: perplexity_of(cell) for cell in written}


def test_a_pretraining_that_cells_share_counts_once(tmp_path: Path) -> None:
    """Cells that adjust one model are no models, and their perplexity has no spread."""
    folder = grid(tmp_path / "a")
    cells = [c | {"stages": c["stages"] | {"pretrain": c["name"][:3]}} for c in cells_of(folder)]
    change(folder, cells=cells)
    change_rows(folder, lambda row, _: {"pretrain": row["cell"][:3], "perplexity": len(row["cell"])})
    made = report(folder)
    assert {line["Seeds"] for line in made.table("Perplexity|source")} == {"1 model"}
    assert {line["Perplexity"] for line in made.table("Δ", "Perplexity")} == {"6.0", "12.0"}


def test_a_search_is_read_from_one_table(tmp_path: Path) -> None:
    """A study without tasks."""
    folder = grid(tmp_path / "a")
    (folder / "results.parquet").unlink()
    write_rows(folder, [])
    made = report(folder)
    assert [line["objective"] for line in made.table("Perplexity|source")] == ["ALIGN-MLM", "MLM"]
    bounds = {
        name: mean_interval([perplexity_of(f"{name}, {seed}") for seed in range(3)]) for name in AXES["objective"]
    }
    for name, place in (("ALIGN-MLM", "is lowest for"), ("MLM", "next is")):
        low, high = max(1.0, bounds[name].low or 0.0), bounds[name].high
        assert f"{place} {name} ({bounds[name].mean:.1f}, 95 % interval {low:.1f} to {high:.1f})" in made.lead


def test_tables_of_versions_without_perplexity_are_read(tmp_path: Path) -> None:
    made = report(make_grid(tmp_path / "a", AXES))
    assert "Perplexity" not in made.text and "Pretraining\n" not in made.text


# --- limits ---


def without(folder: Path, cells: set[str]) -> Path:
    """Return the study without the measurements of these cells."""
    write_rows(folder, [row for row in read_rows(folder) if row["cell"] not in cells])
    kept = [row for row in rows_of(folder, "measures.csv") if row["cell"] not in cells]
    write_measures(folder, [list(row.values()) for row in kept])
    return folder


def test_a_model_over_the_limit_counts_nowhere_and_is_told(tmp_path: Path) -> None:
    said: list[str] = []
    folder = grid(tmp_path / "a", LIMITS)
    made = Report(write_report(folder, said.append))
    bare = without(grid(tmp_path / "b", LIMITS), {"MLM, 2"})
    known = report(bare)
    told = (
        "1 of 6 cells did not learn and are excluded from means, comparisons and claims: "
        "MLM, 2 (perplexity 32, over 15)."
    )
    assert told in made.lead and said == [told] and "did not learn" not in known.lead
    write_report(folder, said.append, says_excluded=False)
    assert said == [told], "the command has it below its table"
    scores, expected = lines(made, "Δ", "Perplexity"), lines(known, "Δ", "Perplexity")
    for objective in AXES["objective"]:
        for column in ("Seeds", "Δ", "SUP", "Perplexity"):
            if column in expected[objective,]:
                assert scores[objective, "–"][column] == expected[objective,][column]
    assert scores["MLM", "not learned"]["Perplexity"] == "32.0"
    assert [line["Training"] for line in made.table("Perplexity|source", "Training")] == ["–", "–", "not learned"]
    why = {row["Cell"]: row["Not learned"] for row in made.file("seeds")}
    assert why == {cell: "perplexity 32, over 15" if cell == "MLM, 2" else "–" for cell in why}
    for name in ("claims", "correlations"):
        assert made.file(name) == known.file(name)
    assert [row["Ours"] for row in made.file("claims")] != [
        row["Ours"] for row in report(grid(tmp_path / "c")).file("claims")
    ]
    one, two = (read_study(of).table.drop(columns="row").astype(str).to_dict("list") for of in (folder, bare))
    assert one == two


@pytest.mark.parametrize(
    ("learned", "failed"),
    [
        ({"perplexity": 14.0}, {"MLM, 2"}),  # 14 itself has learned
        ({"perplexity": 13.9}, {"MLM, 2", "ALIGN-MLM, 2"}),
        ({"perplexity": 100}, set()),
        ({"sup": 90}, set()),
        ({"sup": 90.1}, {f"{objective}, {seed}" for objective in AXES["objective"] for seed in range(3)}),
        ({}, set()),
        (None, set()),
    ],
)
def test_limits(learned: Any, failed: set[str], tmp_path: Path) -> None:
    study = read_study(grid(tmp_path / "a", learned))
    assert set(study.failed) == failed
    assert set(study.table["cell"]) == {cell.name for cell in study.cells} - failed


@pytest.mark.parametrize(("sup", "failed"), [(70.0, False), (40.01, False), (39.9, True), (33.3, True)])
def test_a_model_at_the_majority_baseline_is_not_ranked(sup: float, failed: bool, tmp_path: Path) -> None:
    """Its Δ of 0 would win. Without limits, a model must be a tenth of the way from the baseline (33.3) to 100."""
    folder = grid(tmp_path / "a")
    low = {"sup": sup, "zs": sup, "delta": 0.0, "majority": 33.3}
    change_rows(
        folder, lambda row, _: low if row["objective"] and row["cell"].startswith("ALIGN") else {"majority": 33.3}
    )
    made = report(folder)
    assert ("ALIGN-MLM against MLM" in made.lead) is not failed
    assert ("SUP 39.9, majority baseline 33.3" in made.lead) is (sup == 39.9)
    line = {line["condition"]: line for line in made.table("condition", "Δ")}["ALIGN-MLM"]
    assert line["Δ"] == ("not learned" if failed else "0.0") and line["SUP|majority 33.3"] == number(sup)


def test_baselines_that_differ_stand_under_each_sup_in_small_print(tmp_path: Path) -> None:
    folder = grid(tmp_path / "a")
    change_rows(folder, lambda row, _: {"majority": 12.5 if row["cell"].startswith("ALIGN") else 33.3})
    page = report(folder)
    lines = {line["condition"]: line["SUP|majority"] for line in page.table("condition", "Δ")}
    assert {name: text.partition("|")[2] for name, text in lines.items()} == {"MLM": "33.3", "ALIGN-MLM": "12.5"}
    assert "the majority baseline in small print" in page.text and "paper's Δ in small print" not in page.text


@pytest.mark.parametrize(
    ("change_of", "failed"),
    [
        ({"sup": 60.0}, True),
        ({"parent": 60.0}, True),
        ({"sup": "nan"}, True),
        ({"zs": 10.0}, False),
        ({"sup": ""}, False),  # not known
        ({"sup": "", "parent": ""}, False),
    ],
)
def test_a_task_that_was_not_learned_is_left_out_and_no_other(
    change_of: dict[str, Any], failed: bool, tmp_path: Path
) -> None:
    folder = grid(tmp_path / "a", {"sup": {"ner": 80}}, ("pos", "ner"))
    change_rows(folder, lambda row, _: change_of if (row["cell"], row["task"]) == ("MLM, 0", "ner") else {})
    study = read_study(folder)
    assert list(study.failed) == (["MLM, 0"] if failed else [])
    of_cell = study.table[study.table["cell"] == "MLM, 0"]
    assert set(of_cell["task"]) == ({"pos", ""} if failed else {"pos", "ner", ""})
    assert set(of_cell["measure"]) >= {"pretrain.perplexity.parent", "alignment.scores.all.cosine.mean"}


def test_a_model_that_failed_on_all_tasks_is_left_out_with_its_probes(tmp_path: Path) -> None:
    folder = grid(tmp_path / "a", {"sup": {"ner": 80, "pos": 70}}, ("pos", "ner"))
    change_rows(folder, lambda row, _: {"sup": 60.0} if row["cell"] == "MLM, 0" else {})
    study = read_study(folder)
    assert study.failed == {"MLM, 0": "pos: SUP 60, under 70; ner: SUP 60, under 80"}
    assert "MLM, 0" not in set(study.table["cell"]) and "MLM, 0" in set(study.perplexities["cell"])


@pytest.mark.parametrize(("of_seed", "failed"), [({"0": 75.0, "1": 90.0}, False), ({"0": "nan", "1": 90.0}, True)])
def test_the_mean_over_seeds_of_fine_tuning_is_judged(of_seed: dict[str, Any], failed: bool, tmp_path: Path) -> None:
    """A model has two; leaving out the seed that fell low would be a choice by the outcome."""
    folder = grid(tmp_path / "a", {"sup": 80})
    change_rows(folder, lambda row, _: {"sup": of_seed[row["seed"]]} if row["cell"] == "MLM, 0" else {})
    assert list(read_study(folder).failed) == (["MLM, 0"] if failed else [])


def test_what_is_not_known_is_counted(tmp_path: Path) -> None:
    folder = grid(tmp_path / "a", {"perplexity": 5})
    write_measures(folder, [])
    change_rows(folder, lambda row, _: {"perplexity": ""} if row["cell"].startswith("MLM") else {})
    made = report(folder)
    assert "The limit of perplexity is not applied to 3 cells, because the source perplexity is not known." in made.lead
    assert {line["Training"] for line in made.table("Δ", "Training")} == {"–", "not learned"}


def test_a_report_where_every_model_failed(tmp_path: Path) -> None:
    made = report(grid(tmp_path / "a", {"perplexity": 2}))
    assert "6 of 6 cells did not learn" in made.lead and "Nothing can be compared yet." in made.lead
    assert {line["Training"] for line in made.table("Δ", "Training")} == {"not learned"}
    assert {row["Verdict"] for row in made.file("claims-not-run")} == {"not run"}
    assert {line["Training"] for line in made.table("Perplexity|source")} == {"not learned"}


def test_each_study_of_a_joined_report_has_its_own_limits(tmp_path: Path) -> None:
    folders = [
        grid(tmp_path / name, name=name, config={"learned": limits})
        for name, limits in (("tiny", LIMITS), ("lab", None))
    ]
    made = joined(folders, tmp_path / "out")
    assert "1 of 12 cells did not learn" in made.lead and "tiny: MLM, 2 (perplexity 32, over 15)" in made.lead
    table = {(row["study"], row["objective"], row["Training"]): row["Seeds"] for row in made.table("Δ", "Training")}
    assert table["tiny", "MLM", "–"] == "2 models × 2 seeds" and table["lab", "MLM", "–"] == "3 models × 2 seeds"


# --- runs ---

SEARCH = changed(
    TINY,
    name="search",
    tasks={},
    pretrain__steps=6,
    pretrain__checkpoints={"every": 2, "select": "best"},
    pretrain__validation={"every": 1, "rows": 8},
    grid={"product": {"pretrain.optimizer.learning_rate": [0.01, 1.0], "pretrain.language": ["trans"]}},
)
"""Two small runs; at the larger rate the last step is not the best one."""


def logged(folder: Path, cell: dict[str, Any]) -> list[dict[str, Any]]:
    return read_metrics(folder / cell["run"] / "metrics.jsonl")


def test_a_search_that_was_run(tmp_path: Path) -> None:
    folder = tmp_path / "search"
    run_here(folder, SEARCH)
    found = {(row["cell"], row["measure"]): float(row["value"]) for row in rows_of(folder, "measures.csv")}
    best = []
    for cell in cells_of(folder):
        log = {line["step"]: line for line in logged(folder, cell)}
        state = json.loads((folder / cell["run"] / "checkpoints/step-6/state.json").read_text())
        best.append(state["best"])
        for name, language in (("parent", "parent"), ("other", "trans")):
            expected = log[state["best"]][f"validation/{language}"]
            assert found[cell["name"], f"pretrain.perplexity.{name}"] == pytest.approx(expected, abs=1e-4)
        assert math.isclose(log[state["best"]]["validation/parent"], state["best_perplexity"])
    assert min(best) < 6, "or it would not tell best from last"
    table = report(folder).table("Perplexity|source", "learning rate")
    assert [line["learning rate"] for line in table] == ["0.01", "1.0"]
    before = tables(folder)
    collect([folder], "results")
    assert not list(folder.glob("stages/*/checkpoints"))
    opened(folder, SEARCH).save()
    assert tables(folder) == before, "the log alone tells"
