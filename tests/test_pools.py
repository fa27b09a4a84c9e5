"""The pools that studies declare, beside those that were once inferred from their settings and runs."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path

import pytest

from synthlang.catalogue import load_yaml, names
from tests.golden import FOLDER

ARCHIVE = Path(__file__).parents[1] / "docs" / "findings" / "studies"


def inferred() -> list[list[str]]:
    """The archived studies that the inference pooled, by the names of their folders. Later studies are in none."""
    groups: list[list[str]] = json.loads((FOLDER / "pools.json").read_text(encoding="utf-8"))
    return groups


def declared(folder: str) -> tuple[str, str]:
    """Scale and pool of an archived study."""
    config = json.loads((ARCHIVE / folder / "study.json").read_text(encoding="utf-8"))["config"]
    return config.get("scale", ""), config.get("pool") or config["name"]


def paper(folder: str) -> str:
    """The paper whose claims a study is judged by, or its own name."""
    first = folder.partition("-")[0]
    return first if first in ("align_mlm", "cao2020", "emerging", "impact", "kulshreshtha2020") else folder


def test_within_a_paper_the_declared_pools_are_the_inferred_ones():
    """Claims of a paper are judged on the studies of that paper alone."""
    before = {frozenset(f for f in group if paper(f) == p) for group in inferred() for p in {paper(f) for f in group}}
    after = defaultdict(set)
    for folder in {folder for group in inferred() for folder in group}:
        after[paper(folder), *declared(folder)].add(folder)
    assert {frozenset(group) for group in after.values()} == before


def test_no_declared_pool_joins_what_the_inference_kept_apart():
    group = {folder: number for number, of in enumerate(inferred()) for folder in of}
    assert group.keys() <= {path.name for path in ARCHIVE.iterdir()}
    pools = defaultdict(set)
    for folder, number in group.items():
        pools[declared(folder)].add(number)
    assert all(len(numbers) == 1 for numbers in pools.values()), pools


def test_archived_studies_have_the_pools_of_the_catalogue():
    catalogue = {}
    for name in names("studies"):
        config = load_yaml(name, "studies")
        catalogue[config["name"], config.get("scale", "")] = config.get("pool") or config["name"]
    for folder in (path.name for path in ARCHIVE.iterdir()):
        config = json.loads((ARCHIVE / folder / "study.json").read_text(encoding="utf-8"))["config"]
        scale, pool = declared(folder)
        known = catalogue.get((config["name"], scale)) or catalogue.get((config["name"], ""))
        assert pool == known, folder


@pytest.mark.parametrize("size", ["tiny", "lab", "paper"])
def test_no_pool_of_the_catalogue_has_the_name_of_a_study_outside_it(size):
    """A study that declares no pool is judged alone."""
    configs = [load_yaml(name, "studies") for name in names("studies")]
    alone = {config["name"] for config in configs if not config.get("pool")}
    pools = {config["pool"] for config in configs if config.get("pool") and config.get("scale") == size}
    assert alone.isdisjoint(pools)
