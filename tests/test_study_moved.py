"""Movement of models in fine-tuning: columns of tables, old tables without them, and a section of the report."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from probes.report.archive import archive_studies
from probes.results.labels import is_of_tuning
from probes.results.read import read_table
from probes.results.scores import MOVED
from tests.report_study import Report, change_rows, make_grid, report

TITLE = "How far fine-tuning moved the model"
FREEZE = "transfer.features.freeze_embeddings"
RATE = "transfer.fine_tune.learning_rate"
EMBEDDINGS = {"frozen": {FREEZE: True}, "tuned": {FREEZE: False}}
AXES = {"objective": ["MLM", "ALIGN-MLM"], "embeddings": ["frozen", "tuned"], RATE: ["0.001", "0.01"]}
Labels = Mapping[str, str]


def moved(labels: Labels) -> dict[str, Any]:
    """By the labels of AXES; where an axis is missing, as if it had its last one."""
    rate = float(labels.get(RATE, 0.01))
    rows = 0.0 if labels.get("embeddings") == "frozen" else 10 * rate
    return {"moved_embeddings": rows, "moved_layers": 20 * rate}


def study(
    folder: Path,
    axes: dict[str, list[str]] | None = None,
    of: Callable[[Labels], dict[str, Any]] = moved,
    named: dict[str, Any] | None = None,
    tasks: tuple[str, ...] = ("pos",),
) -> Path:
    """A finished study whose fits moved the models as ``of`` says of the labels; ``named``: what named axes set."""
    axes = AXES if axes is None else axes
    values = {axis: labels for axis, labels in axes.items() if "." in axis}
    product = {**values, **({"embeddings": EMBEDDINGS} if named is None else named)}
    make_grid(folder, axes, tasks, config={"grid": {"product": product}})
    change_rows(folder, lambda _, labels: of(labels))
    return folder


def section(made: Report) -> str:
    assert f"## {TITLE}" in made.text
    return made.text.split(f"## {TITLE}")[1].split("\n## ")[0]


# --- the section ---


def test_a_figure_of_word_embeddings_and_one_of_layers_for_each_task(tmp_path: Path) -> None:
    made = report(study(tmp_path / "a", tasks=("pos", "ner")))
    of_movement = {name for name in made.figures if name.startswith("moved")}
    names = ("moved-embeddings-1-pos", "moved-embeddings-2-ner", "moved-layers-1-pos", "moved-layers-2-ner")
    assert of_movement == {*names}
    text = section(made)
    alts = re.findall(r"!\[(.*?)\]", text)
    assert len(alts) == 4 and all(len(alt.split()) <= 30 for alt in alts)
    assert any("movement of word embeddings" in alt and "pos" in alt for alt in alts)
    assert any("movement of the layers" in alt and "ner" in alt for alt in alts)


def test_where_all_are_frozen_there_is_the_figure_of_layers_alone(tmp_path: Path) -> None:
    made = report(study(tmp_path / "a", of=lambda labels: {**moved(labels), "moved_embeddings": 0.0}))
    assert {name for name in made.figures if name.startswith("moved")} == {"moved-layers-1-pos"}


@pytest.mark.parametrize(
    ("axes", "named"),
    [
        ({"objective": ["MLM", "XLM"], "tasks.pos.head.dropout": ["0.1", "0.2"]}, {}),
        ({"objective": ["MLM", "XLM"], "tuning": ["a", "b"]}, {"tuning": {"a": {RATE: 1.0}, "b": {RATE: 2.0}}}),
    ],
    ids=["a key", "an axis of names"],
)
def test_axes_that_say_how_models_are_fine_tuned(tmp_path: Path, axes: dict[str, list[str]], named: Any) -> None:
    *_, axis = axes
    place = {label: number for number, label in enumerate(axes[axis], 1)}
    assert section(report(study(tmp_path / "a", axes, lambda labels: {"moved_layers": place[labels[axis]]}, named)))


@pytest.mark.parametrize(
    ("axes", "named", "of"),
    [
        ({"objective": ["MLM", "XLM"]}, {}, lambda labels: {"moved_layers": len(labels["objective"])}),
        ({"objective": ["MLM", "XLM"]}, {}, lambda labels: {}),
        (AXES, None, lambda labels: {}),
        (AXES, None, lambda labels: {"moved_embeddings": 0.0, "moved_layers": 0.25}),
        ({"objective": ["M", "ALIGN"], RATE: ["1", "2"]}, {}, lambda ls: {"moved_layers": len(ls["objective"])}),
        ({"transfer.language": ["en", "german"]}, {}, lambda ls: {"moved_layers": len(ls["transfer.language"])}),
        (
            {"method": ["Original", "Aligned"]},
            {"method": {"Original": {"adjust": None, FREEZE: True}, "Aligned": {FREEZE: True}}},
            lambda labels: {"moved_layers": len(labels["method"])},
        ),
    ],
    ids=["objectives", "nothing known", "of an earlier version", "all alike", "alike but for objectives", "languages",
         "methods of more than fine-tuning"],
)  # fmt: skip
def test_other_reports_have_no_such_section(tmp_path: Path, axes: Any, named: Any, of: Any) -> None:
    made = report(study(tmp_path / "a", axes, of, named))
    assert TITLE not in made.text and not {name for name in made.figures if name.startswith("moved")}


@pytest.mark.parametrize(
    ("key", "found"),
    [
        (RATE, True),
        ("tasks.pos.features.tune", True),
        ("tasks.nli.base.0", True),
        ("tuned.continual", True),
        ("transfer.train_items", True),
        ("transfer.language", False),
        ("tasks.pos.train", False),
        ("tasks.features", False),
        ("tasks.pos", False),
        ("transfer", False),
        ("pretrain.features.tune", False),
        ("objective", False),
    ],
)
def test_keys_that_say_how_a_model_is_fine_tuned(key: str, found: bool) -> None:
    assert is_of_tuning(key) == found


# --- tables ---


def test_results_of_earlier_versions_are_read_and_kept(tmp_path: Path) -> None:
    folder = study(tmp_path / "a")
    path = folder / "results.parquet"
    whole = pq.read_table(path)
    before = report(folder).table("Δ", "SUP")
    [new] = archive_studies([folder], tmp_path / "kept")
    found = pq.read_table(new.folder / "results.parquet")
    assert all(found[column].equals(whole[column]) for column in MOVED)
    pq.write_table(whole.drop_columns(list(MOVED)), path)
    assert not set(MOVED) & set(read_table(folder, {})["measure"])
    made = report(folder)
    assert TITLE not in made.text and made.table("Δ", "SUP") == before
    [old] = archive_studies([folder], tmp_path / "kept")
    assert pq.read_table(old.folder / "results.parquet")["moved_layers"].null_count == len(whole)
    pq.write_table(whole.drop_columns(list(MOVED)), old.folder / "results.parquet")  # as an earlier version kept it
    assert report(old.folder).table("Δ", "SUP") == before
