"""What a study file inherits from its base, and what null drops."""

from typing import Any

import pytest
import yaml

from probes.study.cells import load_study
from tests.refusals import refused
from tests.tiny import STUDY, changed

GRID: dict[str, Any] = {
    "product": {
        "language": {"trans": {"pretrain.language": "trans"}, "trans+inv": {"pretrain.language": "trans+inv"}},
        "pretrain.objective.kind": ["mlm", "align_mlm"],
    },
    "exclude": [{"language": "trans", "pretrain.objective.kind": "mlm"}],
}
BASE = changed(
    STUDY,
    grid=GRID,
    title="The base",
    pool="all",
    paper="align_mlm/table3",
    claims=["align_mlm"],
    planned=5,
    compare=[{"language": ["trans", "trans+inv"]}],
    learned={"perplexity": 15},
    tasks={"pos": {}, "ner": {}},
    probes={"p": {"probes": ["words"]}},
)
PLAIN = {"grid": {"exclude": None}}


def load(folder, *assignments: str, **own: Any):
    (folder / "base.yaml").write_text(yaml.safe_dump(BASE), encoding="utf-8")
    data = {"base": "base.yaml", "name": "own", **own}
    (folder / "own.yaml").write_text(yaml.safe_dump(data, sort_keys=False), encoding="utf-8")
    return load_study(folder / "own.yaml", list(assignments))


def test_what_is_about_the_base_is_not_inherited_unless_it_is_listed(tmp_path):
    config, cells = load(tmp_path)
    assert (config.title, config.pool, config.papers, config.claims, config.compare) == ("", "", (), (), [])
    assert config.planned is None
    assert config.learned is not None and config.learned.perplexity == 15 and len(cells) == 3
    config, _ = load(tmp_path, claims=["align_mlm"], paper="align_mlm/table8", pool="mine")
    assert (config.pool, config.papers, config.claims) == ("mine", ("align_mlm/table8",), ("align_mlm",))
    config, _ = load_study(tmp_path / "base.yaml", [])
    assert (config.title, config.papers, config.claims) == ("The base", ("align_mlm/table3",), ("align_mlm",))


@pytest.mark.parametrize(
    ("own", "cells"),
    [
        (PLAIN, 4),
        ({"grid": {"exclude": None, "product": {"language": {"trans+inv": None}}}}, 2),
        ({"grid": {"exclude": None, "product": {"pretrain.objective.kind": None}}}, 2),
        ({"grid": None, "pretrain": {"language": "trans"}}, 1),
    ],
)
def test_null_drops_a_label_an_axis_or_the_grid(tmp_path, own, cells):
    assert len(load(tmp_path, **own)[1]) == cells


def test_an_assignment_drops_the_grid(tmp_path):
    load(tmp_path)
    for file in ("base.yaml", "own.yaml"):
        assert len(load_study(tmp_path / file, ["grid=null", "compare=null", "pretrain.language=trans"])[1]) == 1


def test_null_drops_keys_tasks_and_probes(tmp_path):
    config, cells = load(tmp_path, learned=None, seeds=None, tasks={"ner": None}, probes={"p": None}, **PLAIN)
    assert config.learned is None and config.seeds == [0]
    assert all(list(cell.tasks) == ["pos"] and not cell.probes for cell in cells)
    for folder in ("base.yaml", "own.yaml"):
        config, _ = load_study(tmp_path / folder, ["claims=null", "paper=null", "compare=null", "grid.exclude=null"])
        assert (config.papers, config.claims, config.compare) == ((), (), [])


@pytest.mark.parametrize(
    ("own", "place"),
    [
        ({"grid": {"product": {"language": {"tran": None}}}}, "grid.product.language.tran"),
        ({"grid": {"product": {"objective": None}}}, "grid.product.objective"),
        ({"grid": {"zip": {"language": None}}}, "grid.zip.language"),
        ({"grid": {"product": {"pretrain.seed": {"x": None}}}}, "grid.product.pretrain.seed.x"),
        ({"tasks": {"nli": None}}, "tasks.nli"),
        ({"probes": {"q": None}}, "probes.q"),
        ({"clams": None}, "clams"),
    ],
)
def test_what_the_base_does_not_have_cannot_be_dropped(tmp_path, own, place):
    where, code = refused(load, tmp_path, **own)
    assert where.endswith(place) and code == "unknown"


def test_a_label_without_settings_is_refused_where_nothing_is_inherited(tmp_path):
    data = changed(STUDY, grid={"product": {"size": {"small": None, "large": {"pretrain.steps": 9}}}})
    (tmp_path / "s.yaml").write_text(yaml.safe_dump(data), encoding="utf-8")
    assert refused(load_study, tmp_path / "s.yaml", [])[1] == "type"
