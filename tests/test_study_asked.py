"""What is asked of a study on the command line and cannot be: one line, and nothing is left behind."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from probes.commands import run_study
from probes.study.cells import load_study
from probes.study.runner import RunOptions, StudyRun
from synthlang.errors import InputError
from tests.tiny import STUDY, changed

PRODUCT: dict[str, Any] = {
    "pretrain.language": ["trans"],
    "pretrain.seed": [0, 1],
    "size": {"small": {"pretrain.model": {"hidden": 16, "heads": 2, "layers": 1}}, "base": {}},
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A study on file."""
    (tmp_path / "study.yaml").write_text(yaml.safe_dump(changed(STUDY, seeds=[0], grid={"product": PRODUCT})))
    return tmp_path / "study.yaml"


def test_a_key_that_an_axis_sets_everywhere_is_no_key_to_set(path: Path) -> None:
    said = "--set pretrain.seed changes nothing: the axis 'pretrain.seed' sets it in every cell; set the values"
    with pytest.raises(InputError, match=said):
        load_study(path, ["pretrain.seed=9"])
    _, cells = load_study(path, ["grid.product.pretrain.seed=[9]", "pretrain.model.hidden=8"])
    assert {cell.pretrain.seed for cell in cells if cell.pretrain} == {9}
    sizes = {cell.labels["size"]: cell.pretrain.model.hidden for cell in cells if cell.pretrain}
    assert sizes == {"small": 16, "base": 8}, "one label of the axis leaves it"
    with pytest.raises(InputError, match=r"pretrain.model.hidden changes nothing: the axis 'size' sets it"):
        load_study(path, ["pretrain.model.hidden=8", "grid.product.size.base.pretrain.model={hidden: 32, heads: 2}"])
    load_study(path, ["pretrain.model={layers: 1}"])


@pytest.mark.parametrize(
    ("product", "message"),
    [
        ({"": {"a": {"pretrain.seed": 1}}}, "axis '' has no name"),
        ({" ": {"a": {"pretrain.seed": 1}}}, "axis ' ' has no name"),
        ({"size": {"": {"pretrain.seed": 1}, "b": {}}}, "axis 'size' has an empty label"),
    ],
    ids=str,
)
def test_names_that_results_cannot_show(product: dict[str, Any], message: str, path: Path) -> None:
    path.write_text(yaml.safe_dump(changed(STUDY, grid={"product": product})))
    with pytest.raises(InputError, match=message):
        load_study(path, [])


def test_a_place_that_cannot_be_written_is_told_before_anything(
    path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    store, out = path.parent / "store", path.parent / "out"
    store.mkdir()
    real = os.access
    monkeypatch.setattr(os, "access", lambda place, mode: Path(place) != store and real(place, mode))
    with pytest.raises(InputError, match=r"store: the store cannot be written .*name another one with --store"):
        run_study(path, out, RunOptions(store=store), [])
    assert capsys.readouterr() == ("", "") and not out.exists()
    (path.parent / "file").touch()
    with pytest.raises(InputError, match=r"the study cannot be here: .*file is a file; name another folder with --out"):
        run_study(path, path.parent / "file" / "x", RunOptions(), [])
    assert not StudyRun(*load_study(path, []), out, RunOptions(store=store)).done, "it can be looked at"
