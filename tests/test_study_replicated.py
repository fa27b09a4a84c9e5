"""Studies with numbers under the same labels but for seeds: replicates if the settings are the same, else apart."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from probes.study.report.data import Study, read_study
from probes.study.report.folder import write_joined_report, write_report
from probes.study.report.pools import names_of_parts, pools
from probes.study.resolved import DIFFERS
from tests.report_study import Page, make_grid, read_rows, write_rows

OBJECTIVES = ["MLM", "XLM", "DICT-MLM", "ALIGN-MLM"]
SETTINGS: dict[str, Any] = {
    "pretrain": {"steps": 1000, "seed": 0, "log_every": 10, "objective": {"kind": DIFFERS}},
    "tasks": {"pos": {"fine_tune": {"epochs": 2}, "train_items": 50}},
    "probes": {"cka": {"layers": [1, 2], "seed": 0}},
}
"""That cells have in common."""


def part(folder: Path, name: str, seeds: str, **more: Any) -> Path:
    """A study of some pretraining seeds; Δ depends on objective and seed, whatever the study."""
    axes = {"objective": OBJECTIVES, "pretrain.seed": list(seeds)}
    make_grid(folder / name, axes, name=name, fingerprint=name * 3, **more)
    rows = []
    for row in read_rows(folder / name):
        objective, seed = row["cell"].split(", ")
        number = OBJECTIVES.index(objective)
        delta = 10.0 + 3 * number + 0.5 * int(seed) * (-1) ** number
        run = f"{number:08x}{int(seed):08x}"
        rows.append(
            row | {"pretrain": run, "transfer": run, "delta": delta, "zs": 90 - delta, "alignment_all": 50 - number}
        )
    write_rows(folder / name, rows)
    return folder / name


def study(tmp_path: Path, name: str, seeds: str, config: dict[str, Any], settings: dict[str, Any]) -> Study:
    held = read_study(part(tmp_path, name, seeds))
    return replace(held, config=config, settings=settings, scale="tiny")


@pytest.mark.parametrize(
    ("change", "together"),
    [
        ({}, True),
        ({"pretrain": {**SETTINGS["pretrain"], "seed": 9, "log_every": 50}}, True),
        ({"pretrain": {**SETTINGS["pretrain"], "steps": 9000}}, False),
        ({"pretrain": {**SETTINGS["pretrain"], "objective": {"kind": "mlm"}}}, True),
        ({"pretrain": {**SETTINGS["pretrain"], "dictionary": {"coverage": 0.5}}}, True),
        ({"adjust": {"loss": "l2"}}, False),
        ({"second": {"steps": 5}}, False),
        ({"model": "some/model"}, False),
        ({"tasks": {"pos": {"fine_tune": {"epochs": 3}, "train_items": 50}}}, False),
        ({"tasks": {"ner": {"fine_tune": {"epochs": 3}}}}, True),
        ({"probes": {"cka": {"layers": [1], "seed": 0}}}, True),
    ],
    ids=str,
)
@pytest.mark.parametrize("full", [True, False], ids=["in full", "as written"])
def test_other_settings_are_apart(change: dict[str, Any], together: bool, full: bool, tmp_path: Path) -> None:
    """A part that only one has numbers of keeps none apart; neither does what does not change the numbers."""
    config = {"source": "text:en", "tasks": {"pos": {}}}
    both = SETTINGS, {**SETTINGS, **change}
    studies = [
        study(tmp_path, name, seeds, config if full else {**config, **held}, held if full else {})
        for name, seeds, held in zip("ab", ("012", "345"), both, strict=True)
    ]
    assert len(pools(studies)) == (1 if together else 2)
    assert names_of_parts(studies) == (["a + b"] * 2 if together else ["a", "b"])
    apart = [studies[0], _elsewhere(studies[1])]
    assert names_of_parts(apart) == ["a", "b"]
    assert "model" in change or len(pools(apart)) == 1, "labels of its own"


def _elsewhere(held: Study) -> Study:
    """With other labels."""
    return replace(
        held,
        table=held.table.assign(labels=held.table["labels"].map(lambda text: text[:-1] + ', "size": "big"}')),
        cells=tuple(replace(cell, labels={**cell.labels, "size": "big"}) for cell in held.cells),
    )


@pytest.mark.parametrize(("layers", "together"), [([1, 2], True), ([1], False)])
def test_settings_of_a_probe_count_where_both_have_it(layers: list[int], together: bool, tmp_path: Path) -> None:
    studies = []
    for name, seeds, held in (("a", "012", [1, 2]), ("b", "345", layers)):
        folder = part(tmp_path, name, seeds, layers=2)
        studies.append(replace(read_study(folder), settings={"probes": {"cka": {"layers": held}}}, scale="tiny"))
        assert set(studies[-1].table["probe"].unique()) == {"", "cka"}
    assert len(pools(studies)) == (1 if together else 2)


def test_changes_of_cells_count(tmp_path: Path) -> None:
    """The same label for another size of the model."""
    one, two = (
        replace(held, cells=tuple(replace(cell, overrides={"pretrain.model.hidden": hidden}) for cell in held.cells))
        for held, hidden in ((study(tmp_path, "a", "01", {}, {}), 64), (study(tmp_path, "b", "23", {}, {}), 128))
    )
    assert len(pools([one, two])) == 2
    alike = replace(
        two, cells=tuple(replace(c, overrides={"pretrain.model.hidden": 64, "pretrain.seed": 3}) for c in two.cells)
    )
    assert len(pools([one, alike])) == 1


def test_a_study_run_in_two_parts_is_read_like_the_whole(tmp_path: Path) -> None:
    whole = write_report(part(tmp_path, "w", "0123"))
    parts = [part(tmp_path, "a", "02"), part(tmp_path, "b", "123")]  # one seed is in both
    paths = [write_joined_report(held, tmp_path / out) for held, out in ((parts, "out"), (parts[::-1], "turned"))]
    both, other = (Page(path.html.read_text()) for path in paths)
    columns = "objective", "Seeds", "Δ"
    assert both.table(*columns) == other.table(*columns) == Page(whole.html.read_text()).table(*columns)
    assert {line["Seeds"] for line in both.table(*columns)} == {"4 models × 2 seeds"}
    for path in paths:
        assert "over n = 4 conditions of 16 models" in path.html.with_suffix(".md").read_text()
