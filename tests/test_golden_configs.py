"""The settings of every config that is shipped, pinned as hashes: whatever way they are written down, they are these.

A study has a hash of all and one of each part, so that a failure says which part differs; to see how, print
``pinned(*load_study(…))`` before and after. Where files lie is not pinned: a setting that names a file of configs/
counts as what the file says. How configs are found by name is `run_config`, `study_config` and `other_config`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pydantic
import pytest

from pretrain.adjust.config import AdjustConfig
from pretrain.config import PretrainConfig
from probes.measures.command import read_probe_config
from probes.study.cell import Cell
from probes.study.cells import load_study
from probes.study.config import StudyConfig
from probes.transfer.command import read_transfer_config
from synthlang.config import load, load_yaml
from synthlang.language import parse_language
from tests.golden import check_golden, digest

CONFIGS = Path(__file__).parents[1] / "configs"
SIZES = ("tiny", "lab", "paper")


@pytest.fixture(scope="module", autouse=True)
def place(tmp_path_factory):
    """Where commands run: the project's folder, with the dictionaries that a user links under data/."""
    folder = tmp_path_factory.mktemp("place")
    (folder / "configs").symlink_to(CONFIGS)
    muse = folder / "data" / "muse"
    muse.mkdir(parents=True)
    for language in ("fr", "ru", "zh"):
        (muse / f"en-{language}.txt").write_text("house maison\n", encoding="utf-8")
        (muse / f"{language}-en.txt").write_text("maison house\n", encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        yield folder


def run_names() -> list[str]:
    """SIZE/NAME of every run config."""
    return [f"{size}/{path.stem}" for size in SIZES for path in sorted((CONFIGS / "runs" / size).glob("*.yaml"))]


def run_config(name: str) -> PretrainConfig:
    """A run config by SIZE/NAME; a dictionary that the user has to name is data/muse/en-fr.txt."""
    path, dictionary = CONFIGS / "runs" / f"{name}.yaml", "data/muse/en-fr.txt"
    asked = "extra_anchors" in name and not name.startswith("tiny/")
    given = [f"languages.{i}.language.transforms.0.dictionary={dictionary}" for i in (0, 1)] if asked else []
    return load(PretrainConfig, path, given)


def study_names() -> list[str]:
    """SIZE/NAME of every study, and the names of those without a size."""
    sized = [f"{size}/{path.stem}" for size in SIZES for path in sorted((CONFIGS / "studies" / size).glob("*.yaml"))]
    return [*sized, "quickstart", "treebank"]


def study_config(name: str) -> tuple[StudyConfig, list[Cell]]:
    """A study by its name, and its cells."""
    return load_study(CONFIGS / "studies" / f"{name}.yaml", [])


def others() -> dict[str, pydantic.BaseModel]:
    """KIND/NAME → every other config that loads on its own: adjustments, languages, probes and transfers."""
    found: dict[str, pydantic.BaseModel] = {}
    for path in sorted((CONFIGS / "adjust").glob("*.yaml")):
        found[f"adjust/{path.stem}"] = load(AdjustConfig, path)
    for path in sorted((CONFIGS / "languages").glob("*.yaml")):
        found[f"languages/{path.stem}"] = parse_language(str(path))
    for path in sorted((CONFIGS / "probes").glob("*.yaml")):
        found[f"probes/{path.stem}"] = read_probe_config(path, {}, [])
    for path in sorted((CONFIGS / "transfer").rglob("*.yaml")):
        if path.parent.name != "parts":
            found[f"transfer/{path.stem}"] = read_transfer_config(path, {}, {}, [])
    return found


def settings(config: pydantic.BaseModel | None) -> Any:
    """Every setting as JSON values, the same wherever configs lie."""
    return None if config is None else neutral(config.model_dump(mode="json", round_trip=True))


def neutral(value: Any) -> Any:
    """With what a file of configs/ says instead of its path, and no path of the checkout in any other text."""
    if isinstance(value, dict):
        return {key: neutral(held) for key, held in value.items()}
    if isinstance(value, list):
        return [neutral(held) for held in value]
    if not isinstance(value, str):
        return value
    if value.endswith(".yaml") and Path(value).resolve().is_relative_to(CONFIGS):
        return {"file of settings": neutral(load_yaml(value))}
    return value.replace(f"{CONFIGS.parent}/", "")


def pinned(study: StudyConfig, cells: list[Cell]) -> dict[str, Any]:
    """Part → what is pinned of it."""
    papers = [study.paper] if isinstance(study.paper, str) else list(study.paper or ())
    return {
        "labels": [[cell.name, list(cell.labels.items())] for cell in cells],
        "models": [
            [cell.model, *(settings(one) for one in (cell.start, cell.pretrain, cell.second, cell.adjust))]
            for cell in cells
        ],
        "tasks": [
            [[[name, settings(task)] for name, task in cell.tasks.items()], settings(cell.tuned), cell.tuned_seed]
            for cell in cells
        ],
        "probes": [[[name, settings(probe)] for name, probe in cell.probes.items()] for cell in cells],
        "study": [study.name, study.title, study.scale, study.keep, list(study.seeds), papers, list(study.claims)],
    }


def hashes(study: StudyConfig, cells: list[Cell]) -> dict[str, Any]:
    """Of all, of each part, and how many cells there are."""
    parts = {part: digest(held)[:16] for part, held in pinned(study, cells).items()}
    return {"all": digest(parts), "cells": len(cells), **parts}


def test_every_shipped_config_has_the_settings_that_it_had():
    runs, studies = run_names(), study_names()
    assert (len(runs), len(studies)) == (189, 156)
    found = {
        "runs": {name: digest(settings(run_config(name))) for name in runs},
        "studies": {name: hashes(*study_config(name)) for name in studies},
        "others": {name: digest(settings(config)) for name, config in others().items()},
    }
    check_golden("configs", found)


@pytest.mark.parametrize("name", ["tiny/emerging-table1", "lab/impact-table9", "paper/cao2020-table3"])
def test_no_path_of_the_checkout_is_pinned(name, place):
    held = pinned(*study_config(name))
    assert not any(str(path) in json.dumps(held) for path in (CONFIGS, CONFIGS.parent, place))
    assert ("file of settings" in json.dumps(held)) == (name == "tiny/emerging-table1")


def test_where_the_checkout_lies_is_not_pinned():
    assert neutral({"a": [f"{CONFIGS.parent}/data/x", 1]}) == {"a": ["data/x", 1]}
    assert neutral("configs/languages/trans.yaml") == {"file of settings": load_yaml(CONFIGS / "languages/trans.yaml")}
    assert neutral("data/muse/en-fr.txt") == "data/muse/en-fr.txt"


def test_a_hash_sees_each_part():
    study, cells = study_config("quickstart")
    kept = hashes(study, cells)
    fewer = hashes(study, cells[1:])
    assert fewer["all"] != kept["all"] and fewer["labels"] != kept["labels"] and fewer["study"] == kept["study"]
    kinds = hashes(study.model_copy(update={"keep": "results"}), cells)
    assert {part for part in kept if kinds[part] != kept[part]} == {"all", "study"}
