"""Tiny configs that together have each objective, vocabulary, kind of sharing and unit: two steps, then the export."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pretrain.config import PretrainConfig
from pretrain.run import pretrain
from synthlang.config import load_yaml, override
from synthlang.store import Store

TINY = Path(__file__).parents[1] / "configs" / "runs" / "tiny"
TRAINED = ["mlm-trans", "xlm-trans+inv-overlap25", "dict_mlm-trans+syn", "align_mlm-trans+inv", "mlm-trans+inv-tokens"]
TRAINED += ["emerging-default-fr", "emerging-no_anchors-ru", "emerging-extra_anchors-zh", "emerging-wiki_cc-fr"]
TRAINED += ["emerging-sep_emb+l1-3-fr", "emerging-sep_l1-6-ru", "emerging-sep_emb-en2"]
LESS = ["steps=2", "optimizer.warmup_steps=1", "validation={every: 2, rows: 64}", "checkpoints.every=2"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("runs")


def train(name: str, folder: Path, *assignments: str) -> Path:
    """Two steps of a tiny config on little text; returns the run folder."""
    data = load_yaml(TINY / f"{name}.yaml")
    data = json.loads(json.dumps(data).replace("types=1000&sentences=10000", "types=500&sentences=300&dev=60&test=0"))
    smaller = ["vocabulary.size=500"] if "vocabulary" in data else []
    config = PretrainConfig.model_validate(override(data, [*LESS, *smaller, *assignments]))
    run = folder / name
    pretrain(config, run, Store(folder / "store"))
    row = json.loads((run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()[-1])
    names = {member.name for member in config.all_languages}
    assert row["step"] == 2
    assert row["loss"] < 20
    assert set(config.objective.terms) <= row.keys()
    assert {key.removeprefix("validation/") for key in row if key.startswith("validation/")} == names
    assert {path.name for path in (run / "export").iterdir()} == names
    return run


@pytest.mark.parametrize("name", TRAINED)
def test_it_trains(name, folder):
    train(name, folder)


def test_e_mbert_goes_on_from_a_model_of_its_size(folder):
    start = train("emerging-mono-en", folder) / "export" / "en"
    train("e_mbert-hi", folder, f"start.model={start}", "start.extend.size=40")
