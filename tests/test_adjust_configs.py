"""The presets of adjustments: all load, say what the papers say, and the tiny one runs; real gold standards work."""

import json
from pathlib import Path

import pytest

from pretrain.adjust.adjust_command import HELP, adjust_command
from pretrain.adjust.config import AdamConfig, AdjustConfig
from pretrain.adjust.run import adjust
from synthlang.catalogue import names
from synthlang.config import load, parse
from synthlang.sources import open_source
from tests.adjust_models import save_model
from tests.real_data import DATA

ROOT = Path(__file__).parents[1]
PARTS = {"cao", "impact", "kulshreshtha2020", "small"}  # what presets are based on
NAMES = [name for name in names("adjust") if name not in PARTS]
DOC = (ROOT / "docs" / "adjustment.md").read_text(encoding="utf-8")


def preset(name, *overrides):
    return load(AdjustConfig, name, list(overrides), "adjust")


def test_presets_say_what_the_papers_say():
    cao = preset("cao2020")
    assert list(cao.texts) == ["bg-en", "de-en", "el-en", "es-en", "fr-en"]
    assert cao.optimizer == AdamConfig(learning_rate=5e-5, beta1=0.9, beta2=0.98, epsilon=1e-9, warmup_share=0.1)
    assert (cao.data.test, cao.data.dev, cao.data.sentences, cao.loss.subword) == (1024, 1024, 250_000, "end")
    assert (cao.loss.target, preset("cao2020-as-code").loss.target) == ("current", "frozen")
    towards, away = preset("kulshreshtha2020-de"), preset("kulshreshtha2020-de-src2tgt")
    assert (towards.loss.layers, towards.data.sentences) == ((-4, -3, -2, -1), 30_000)
    assert (towards.loss.moves, away.loss.moves) == ("left", "right")
    impact = preset("impact-hi")  # section 5.1 and appendix A.1: words, CLS and SEP, averaged
    assert (impact.loss.subword, impact.loss.pulled, impact.loss.held_words) == ("mean", "all", "all")


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


@pytest.mark.skipif(not DATA.exists(), reason="the real data is not here")
@pytest.mark.parametrize("name", ["enfr", "zhen"])
def test_gold_standards_of_natural_languages(tmp_path, name):
    folder = DATA / "word_alignment" / "awesome_align"
    text = (folder / f"{name}.src-tgt").read_text(encoding="utf-8").splitlines()
    model = save_model(tmp_path / "model", "roberta" if name == "zhen" else "bert", text, max_position_embeddings=258)
    links = {"kind": "file", "path": str(folder / f"{name}.gold"), "first": 1}
    pair = {"kind": "text", "joint": str(folder / f"{name}.src-tgt"), "links": links}
    data = {"model": str(model), "pairs": {name: pair}, "data": {"dev": 100, "test": 50}, "rows": 16, "epochs": 2}
    adjust(parse(AdjustConfig, {**data, "optimizer": {"learning_rate": 1e-3}}), tmp_path / "out")
    done = json.loads((tmp_path / "out" / "done.json").read_text())
    related, unrelated = (
        done["after"][f"{k}/{name}"] / done["before"][f"{k}/{name}"] for k in ("related", "unrelated")
    )
    assert related < 0.9
    assert done["counts"][name]["sentence pairs to train on"] > 100
    assert unrelated > 0
