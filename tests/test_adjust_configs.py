"""The presets of adjustments: all load, say what the papers say, and the tiny one runs; real gold standards work."""

import json
from pathlib import Path

import pytest

from pretrain.adjust.adjust_command import HELP, adjust_command
from pretrain.adjust.config import AdjustConfig
from synthlang.catalogue import names
from synthlang.config import load
from synthlang.sources import open_source
from tests.adjust_models import save_model

ROOT = Path(__file__).parents[1]
PARTS = {"cao", "impact", "kulshreshtha2020", "small"}  # what presets are based on
NAMES = [name for name in names("adjust") if name not in PARTS]
DOC = (ROOT / "docs" / "adjustment.md").read_text(encoding="utf-8")


def preset(name, *overrides):
    return load(AdjustConfig, name, list(overrides), "adjust")


@pytest.mark.parametrize(
    ("name", "of", "change"),
    [
        *[(f"impact-ru-{size}k", "impact-ru", f"data.sentences={1000 * size}") for size in (5, 10, 100, 250)],
        *[(f"impact-hi-{row}", "impact-hi", f"loss.subword={row}") for row in ("start", "end")],
        *[(f"impact-hi-{row}", "impact-hi", f"loss.pulled={row}") for row in ("words", "cls", "cls_sep")],
        ("impact-hi-subwords", "impact-hi", "pairs.hi-en.unit=subword"),
        ("impact-hi-e_mbert-100k", "impact-hi-e_mbert", "data.sentences=100000"),
    ],
)
def test_presets_of_tables_differ_in_one_setting(name, of, change):
    assert preset(name) == preset(of, change)


def test_the_tiny_preset_runs(tmp_path):
    text = [t for b in open_source("builtin:mini-english?types=500&sentences=200").batches("train") for t in b.texts()]
    model = save_model(tmp_path / "model", "bert", text, max_position_embeddings=96)
    few = ["pairs.trans+inv.source=builtin:mini-english?types=500&sentences=200", "data.dev=40", "data.sentences=100"]
    few += ["rows=4", "pairs.trans+inv.left=inv"]
    assert adjust_command(str(model), Path("tiny"), tmp_path / "out", few) == 0
    done = json.loads((tmp_path / "out" / "done.json").read_text())
    assert done["after"]["related/trans+inv"] < done["before"]["related/trans+inv"]


def test_every_preset_is_in_the_document():
    families = {name.split("-")[0] for name in NAMES}
    assert all(f"`{family}" in DOC for family in families), families
    assert "export/" in HELP
