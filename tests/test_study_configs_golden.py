"""The settings of every config that is shipped, pinned as hashes: whatever way they are written down, they are these.

A study has a hash of all and one of each part, so that a failure says which part differs; to see how, print
``pinned(*study(…))`` before and after. Where files lie is not pinned: a setting that names a language of the
catalogue counts as what that says. How configs are found by name is `run_config`, `shipped.study` and `other_config`.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pydantic
import pytest

from pretrain.adjust.config import AdjustConfig
from pretrain.config import PretrainConfig
from probes.measures.probe_command import read_probe_config
from probes.study.cell import Cell
from probes.study.config import StudyConfig
from probes.study.plan import plan
from probes.transfer.transfer_command import read_transfer_config
from synthlang.catalogue import find, names
from synthlang.config import load, parse
from synthlang.language import Language
from synthlang.references import Named, resolved
from synthlang.store import Store
from tests.golden import FOLDER, check_golden, digest
from tests.shipped import catalogued, place, stages, study

__all__ = ["place"]
CONFIGS = Path(__file__).parents[1] / "configs"
TASKS = ("ner", "nli", "parsing", "pos", "qa", "slots")
NAMED = ("fr-like", "ru-like", "zh-like")  # languages that settings name


pytestmark = pytest.mark.usefixtures("place")
KEPT = json.loads((FOLDER / "configs.json").read_text(encoding="utf-8"))
"""What is pinned, by names that were paths: SIZE/NAME of runs and studies, KIND/NAME of the others."""


def run_name(pinned: str) -> str:
    """ROW/LANGUAGES/SIZE of a run from the SIZE/ROW-LANGUAGES[-ROW] that it is pinned by."""
    size, name = pinned.split("/")
    row, _, languages = name.partition("-")
    if row in ("impossible", "imbalance"):
        kind, _, languages = languages.partition("-")
        row = f"{row}-{kind}"
    elif row == "emerging":
        row, languages = name.rsplit("-", 1)
        languages = languages if row == "emerging-mono" else f"en-{languages}"
    elif change := re.search(r"-((alpha|dict|parallel)\d+|as-code)$", languages):
        row, languages = row + change[0], languages.removesuffix(change[0])
    return f"{row}/{languages}/{size}"


def run_config(pinned: str) -> PretrainConfig:
    """A run config; a dictionary that the user has to name is data/muse/en-fr.txt."""
    name, dictionary = run_name(pinned), "data/muse/en-fr.txt"
    asked = "extra_anchors" in name and not name.endswith("/tiny")
    given = [f"languages.{i}.language.transforms.0.dictionary={dictionary}" for i in (0, 1)] if asked else []
    return load(PretrainConfig, name, given, "runs")


def other_config(pinned: str) -> pydantic.BaseModel:
    """An adjustment, a language, a probe or a transfer."""
    kind, name = pinned.replace("align-mlm", "align_mlm").split("/")
    match kind:
        case "adjust":
            return load(AdjustConfig, name, kind=kind)
        case "languages":
            return parse(Language, find("derived", name).data)
        case "probes":
            return read_probe_config(Path(name), {}, [])
    return read_transfer_config(Path(f"{name}/tiny" if name in TASKS else name), {}, {}, [])


def settings(config: pydantic.BaseModel | None) -> Any:
    """Every setting as JSON values, the same wherever configs lie; later keys count where they are set."""

    def said(named: Named) -> Any:
        return resolved(named.name, said) if isinstance(named.name, pydantic.BaseModel) else named.name

    return None if config is None else neutral(resolved(config, said))


FIRST_NAMES = {"split_entities": "torn_entities"}
"""Renamed settings, pinned by their first names."""


def neutral(value: Any) -> Any:
    """With what a language of the catalogue says instead of its name, and no path of the checkout in any other text."""
    if isinstance(value, dict):
        return {FIRST_NAMES.get(key, key): neutral(item) for key, item in value.items()}
    if isinstance(value, list):
        return [neutral(item) for item in value]
    if not isinstance(value, str):
        return value
    if value in NAMED:
        return {"file of settings": neutral(find("derived", value).data)}
    return value.replace(f"{CONFIGS.parent}/", "")


def pinned(study: StudyConfig, cells: list[Cell]) -> dict[str, Any]:
    """Part → what is pinned of it; each config is looked at once, however many cells share it."""
    known: dict[int, Any] = {}

    def settings_once(config: pydantic.BaseModel | None) -> Any:
        if id(config) not in known:
            known[id(config)] = settings(config)
        return known[id(config)]

    papers = [study.paper] if isinstance(study.paper, str) else list(study.paper or ())
    return {
        "labels": [[cell.name, list(cell.labels.items())] for cell in cells],
        "models": [
            [
                cell.model,
                *(settings_once(one) for one in (cell.init_from, cell.pretrain, cell.target_model, cell.adjust)),
            ]
            for cell in cells
        ],
        "tasks": [
            [
                [[name, settings_once(task)] for name, task in cell.tasks.items()],
                settings_once(cell.finetuned),
                cell.finetuned_seed,
            ]
            for cell in cells
        ],
        "probes": [[[name, settings_once(probe)] for name, probe in cell.probes.items()] for cell in cells],
        "study": [study.name, study.title, study.scale, study.keep, list(study.seeds), papers, list(study.claims)],
    }


def hashes(study: StudyConfig, cells: list[Cell]) -> dict[str, Any]:
    """Return hashes of all cells and of each part, and the number of cells."""
    parts = {part: digest(value)[:16] for part, value in pinned(study, cells).items()}
    return {"all": digest(parts), "cells": len(cells), **parts}


def test_every_shipped_config_has_the_settings_that_it_had():
    assert {run_name(name) for name in KEPT["runs"]} == set(names("runs")) and len(names("runs")) == 342
    assert {catalogued(name) for name in KEPT["studies"]} == set(names("studies")) and len(names("studies")) == 203
    found = {
        "runs": {name: digest(settings(run_config(name))) for name in KEPT["runs"]},
        "studies": {name: hashes(*study(name)) for name in KEPT["studies"]},
        "others": {name: digest(settings(other_config(name))) for name in KEPT["others"]},
    }
    check_golden("configs", found)


READ_FILES = {"align_mlm-grid-text", "align_mlm-grid-treebank", "emerging-table1-treebank"}
"""Studies of tiny size whose text has to be fetched first."""


def test_the_studies_of_tiny_size_keep_their_cells_and_stages(tmp_path):
    plans = {}
    for name in KEPT["studies"]:
        size, _, of_size = name.partition("/")
        if size == "tiny" and of_size not in READ_FILES:
            found = plan(study(name)[0], stages(name), Store(tmp_path), ())
            counts = {kind.kind: [kind.stages, kind.shared] for kind in found.kinds}
            counts["all"] = [sum(numbers) for numbers in zip(*counts.values(), strict=True)]
            plans[of_size] = {"cells": len(found.cells), "stages": counts}
    check_golden("tiny-plans", plans)


@pytest.mark.parametrize("name", ["tiny/emerging-table1", "lab/impact-table9", "paper/cao2020-table3"])
def test_no_path_of_the_checkout_is_pinned(name, place):
    pins = pinned(*study(name))
    assert not any(str(path) in json.dumps(pins) for path in (CONFIGS, CONFIGS.parent, place))
    assert ("file of settings" in json.dumps(pins)) == (name == "tiny/emerging-table1")
