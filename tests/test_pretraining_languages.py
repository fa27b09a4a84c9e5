"""Runs on the languages of the engine: bound to counts and vocabulary, with dropped sentences, through to transfer."""

import json

import pytest

from pretrain.build import trained_model
from pretrain.config import PretrainConfig
from pretrain.run import open_run, pretrain
from probes.transfer.config import TransferConfig
from probes.transfer.model import of_run
from probes.transfer.result import seed_record
from probes.transfer.run import Transfer
from probes.transfer.splits import load_data
from synthlang.config import parse
from tests.tiny import PRETRAIN, TRANSFER, changed

LANGUAGES = {
    "tokens": {
        "name": "tokens",
        "transforms": [
            {"kind": "transliterate", "strength": 0.5, "order": "frequent", "unit": "token"},
            {"kind": "invert", "unit": "token"},
        ],
    },
    "order model": "trans+reorder@ga",
    "dropped sentences": {
        "name": "dropped",
        "transforms": [{"kind": "transliterate"}, {"kind": "reorder", "max_items": 4, "policy": "drop-sentence"}],
    },
    "inserted words": {
        "name": "marked",
        "transforms": [{"kind": "mark", "after_verb": {"word": "zu", "distance": 2}}, {"kind": "transliterate"}],
    },
}


@pytest.mark.parametrize("name", LANGUAGES)
def test_a_run_on_every_kind_of_language(name, tmp_path):
    config = parse(PretrainConfig, changed(PRETRAIN, language=LANGUAGES[name], validation__every=0))
    pretrain(config, tmp_path / "run")
    opened, artifacts = open_run(tmp_path / "run")
    parent, derived = (member.train for member in artifacts.languages)
    assert len(parent) == 200
    assert (len(derived) < 200) == (name == "dropped sentences")
    size = artifacts.id_space.size // 2
    moved = derived.counts[size:].sum() / derived.counts.sum()
    assert (0.05 < moved < 0.95) if name == "tokens" else moved == 1.0
    model = trained_model(tmp_path / "run", opened, artifacts)
    settings = parse(TransferConfig, {"task": "pos", **TRANSFER})
    pretrained = of_run(opened, artifacts, model, "a run")
    transfer = Transfer(pretrained, load_data(settings, pretrained), settings)
    record = seed_record(transfer.run(0), "accuracy")
    assert 0 <= record["zs"] <= 100 and json.dumps(record)
