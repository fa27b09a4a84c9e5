"""Transfers of decoders: states against transformers row by row, models of other folders, and refused settings."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoModel, AutoTokenizer, GPT2Model

from pretrain.config import PretrainConfig
from pretrain.model.text import Text
from pretrain.run import pretrain
from probes.measures.cka import CkaConfig
from probes.models.opening import open_pretrained
from probes.models.pretrained import Pretrained
from probes.transfer.config import TransferConfig, check_decoder
from probes.transfer.features import frozen_states, whole_rows
from probes.transfer.run import Transfer
from probes.transfer.splits import load_data
from probes.transfer.tasks.table import TASKS
from synthlang.config import parse
from synthlang.store import Store
from tests.refusals import refused
from tests.test_causal import gpt2_folder
from tests.tiny import PRETRAIN, changed

MINI = "builtin:mini-english?types=500&sentences=150&dev=30&test=40"
SETTINGS: dict[str, Any] = {
    "train": MINI,
    "train_items": 40,
    "dev_items": 20,
    "test_items": 20,
    "stride": 4,
    "features": {"subword": "last"},
    "head": {"arc": 16, "relation": 8},
    "fine_tune": {"epochs": 1, "learning_rate": 3e-3},
}
SHAPE: dict[str, Any] = {"layers": 2, "heads": 2, "hidden": 16, "feed_forward": 32, "dropout": 0.0, "init_std": 0.3}


def transfer_of(pretrained: Pretrained, **settings: Any) -> Transfer:
    chosen = parse(TransferConfig, {**SETTINGS, **settings})
    return Transfer(pretrained, load_data(chosen, pretrained), chosen)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """The folder of a run of two steps on a language and its transliteration in other word order."""
    place: Path = tmp_path_factory.mktemp("decoder")
    settings = changed(
        PRETRAIN, steps=2, model={**SHAPE, "kind": "gpt2"}, objective={"kind": "align_clm"}, batch__length=64
    )
    pretrain(parse(PretrainConfig, settings), place / "run", Store(place / "store"))
    return place / "run"


@pytest.fixture(scope="module")
def opened(folder) -> Pretrained:
    return open_pretrained(str(folder), None)


def theirs(folder: Path, role: str) -> GPT2Model:
    name = "parent" if role == "source" else "trans+inv"
    model: GPT2Model = AutoModel.from_pretrained(folder / "export" / name).eval()
    return model


@pytest.mark.parametrize("length", [64, 22])
@pytest.mark.parametrize(
    ("task", "mixed"), [("nli", False), ("nli", True), ("qa", False), ("qa", True), ("slots", False)]
)
def test_states_are_those_of_transformers_for_each_row_alone(task, mixed, length, opened, folder):
    """Also of rows that are cut, and of rows with each text in a block of its own: the last real token sees all."""
    transfer = transfer_of(opened, task=task, mixed=mixed, length=length)
    name = "mixed " if mixed else "source test"
    name = next(one for one in transfer.data.sets if one.startswith(name))
    examples, model = transfer.examples(name), transfer.build(transfer.config, "source", 0).eval()
    batch = examples.batch(np.arange(min(len(examples), 12)))
    text = batch.text
    with torch.no_grad():
        found = model.states(replace(batch, words=None))
        reference = theirs(folder, batch.role)
        lengths = set()
        for row in range(len(text.input_ids)):
            valid = torch.ones_like(text.input_ids[row], dtype=torch.bool) if text.valid is None else text.valid[row]
            ids = text.input_ids[row][valid]
            states = reference(ids[None]).last_hidden_state[0]
            lengths.add(len(ids))
            assert ids[0] == opened.source.specials.bos and ids[-1] == opened.source.specials.eos and len(ids) <= length
            torch.testing.assert_close(found[row, 0], states[-1], rtol=1e-4, atol=1e-4)
            torch.testing.assert_close(found[row][valid][1:], states[1:], rtol=1e-4, atol=1e-4)
    assert max(lengths) == length if length == 22 else len(lengths) > 1


@pytest.mark.parametrize("side", ["left", "right"])
def test_the_last_token_is_the_last_real_one_with_padding_on_either_side(side, opened):
    body, ids = opened.model.eval(), torch.tensor([[0, 7, 8, 9, 2], [0, 20, 2, 1, 1]])
    if side == "left":
        ids[1] = torch.tensor([1, 1, 0, 20, 2])
    valid = ids != 1
    positions = (valid.cumsum(1) - 1).clamp(min=0)
    text = Text(ids, valid, ((0, 5, 0),), positions)
    assert whole_rows(text, True).tolist() == [[4], [4 if side == "left" else 2]]
    alone = body.read(Text.of(torch.tensor([[0, 20, 2]]), 0))[0]
    torch.testing.assert_close(body.read(text)[0][1][valid[1]], alone[0], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("features", [{"top_layers": 1}, {"layers": [1, 2], "combine": "concat"}])
def test_states_of_frozen_decoders_are_computed_once(task, features, opened):
    """The cache gives what the model gives."""
    transfer = transfer_of(opened, task=task, length=40, features={"tune": "none", "subword": "last", **features})
    model, examples = transfer.build(transfer.config, "source", 0).eval(), transfer.examples("source dev")
    cached = frozen_states(model, examples)
    assert cached is not None
    batch = examples.batch(np.arange(min(len(examples), 7)))
    with torch.no_grad():
        plain, kept = model.states(batch), model.states(batch, cached.of(batch))
    columns = torch.ones(plain.shape[:2], dtype=torch.bool)
    there = batch.mask if batch.words is None else torch.nn.functional.pad(batch.mask, (1, 0), value=True)
    torch.testing.assert_close(kept[columns & there], plain[columns & there], rtol=1e-5, atol=1e-5)


OPTIONS: dict[str, dict[str, Any]] = {
    "qa": {"task": "qa", "mixed": True},
    "nli": {"task": "nli", "mixed": "random", "head": {"pooler": "roberta"}},
    "frozen embeddings": {"task": "ner", "features": {"subword": "mean", "freeze_embeddings": True}},
    "frozen": {"task": "parsing", "features": {"subword": "last", "tune": "none", "top_layers": 1}},
    "search": {"task": "pos", "search": {"features.subword": ["last", "mean"]}, "best": 2},
    "continual": {"task": "nli", "continual": {"rows": 4, "data": {"dev": 0, "sentences": 40}}},
    "rotation": {"task": "nli", "features": {"tune": "none", "subword": "last"}, "rotation": {"moves": "target"}},
}


@pytest.mark.parametrize("name", OPTIONS)
def test_options_of_a_transfer_work_with_a_decoder(name, opened):
    transfer = transfer_of(opened, length=40, **OPTIONS[name])
    transfer.check()
    result = transfer.run(0)
    assert {"parent", "zs", "sup"} <= result.scores.keys()
    moved = result.fits["source"][0]["moved"]
    assert any(moved.values()) != (transfer.config.features.tune == "none"), moved


def test_continual_learning_has_an_effect_on_a_decoder(opened):
    bodies = []
    for alpha in (0.0, 10.0):
        settings = {"alpha": alpha, "rows": 4, "data": {"dev": 0, "sentences": 40}}
        bodies.append(transfer_of(opened, task="nli", length=40, continual=settings).tune(0)[0])
    assert not torch.equal(*(body.get_parameter("layers.0.qkv.weight") for body in bodies))


@pytest.mark.parametrize(
    ("settings", "place"),
    [
        ({"task": "pos", "features": {"subword": "first"}}, "features.subword"),
        ({"task": "pos", "search": {"features.subword": ["last", "first"]}}, "search.features.subword"),
        ({"task": "nli", "features": {"tune": "none"}, "rotation": {}}, "features.subword"),
        ({"task": "nli", "continual": {"loss": {"subword": "start"}}}, "continual.loss.subword"),
        ({"task": "nli", "continual": {"loss": {"pulled": "cls"}}}, "continual.loss.pulled"),
    ],
)
def test_settings_that_a_decoder_cannot_have_are_refused(settings, place):
    config = parse(TransferConfig, settings)
    assert refused(check_decoder, config, True) == (place, "conflict")
    check_decoder(config, False)


def test_settings_that_the_task_does_not_read_are_no_error():
    check_decoder(
        parse(TransferConfig, {"task": "nli", "continual": {"alpha": 0.0, "loss": {"subword": "start"}}}), True
    )
    check_decoder(parse(TransferConfig, {"task": "qa"}), True)


def test_cka_does_not_read_a_decoder_at_its_first_token():
    assert refused(CkaConfig(pooling="first").check_pooling, True) == ("cka.pooling", "conflict")
    CkaConfig(pooling="first").check_pooling(False)
    CkaConfig().check_pooling(True)


def test_an_export_is_opened_again_from_another_folder(opened, folder, tmp_path):
    """A fine-tuned decoder is saved, moved and opened, and one export is opened alone."""
    transfer = transfer_of(opened, task="nli", length=40)
    transfer.run(0, keep=tmp_path / "kept")
    shutil.move(tmp_path / "kept" / "seed-0", tmp_path / "moved")
    shutil.copytree(folder / "export" / "parent", tmp_path / "alone")
    ids = torch.tensor([[0, 7, 8, 9, 2]])
    for place, export in ((tmp_path / "moved", tmp_path / "moved/export/trans+inv"), (tmp_path / "alone",) * 2):
        again = open_pretrained(str(place), "inv" if place == export else "trans+inv")
        reference = AutoModel.from_pretrained(export).eval()
        states = again.model.eval().read(Text.of(ids, 0))[0]
        torch.testing.assert_close(states, reference(ids).last_hidden_state, rtol=1e-4, atol=1e-4)
        assert transfer_of(again, task="qa", length=40).run(0).scores["zs"]


@pytest.mark.parametrize("side", ["right", "left"])
def test_a_gpt2_of_hugging_face_is_fine_tuned(side, tmp_path):
    """Its tokenizer has one special token for all roles. The side on which it pads has no effect."""
    place = gpt2_folder(tmp_path) / "gpt2"
    AutoTokenizer.from_pretrained(place, padding_side=side).save_pretrained(place)
    opened = open_pretrained(str(place), "inv")
    reference = GPT2Model.from_pretrained(place).eval()
    for task in ("nli", "qa", "pos"):
        transfer = transfer_of(opened, task=task, stride=2)
        transfer.check()
        examples = transfer.examples("source test")
        batch = examples.batch(np.arange(8))
        model = transfer.build(transfer.config, "source", 0).eval()
        with torch.no_grad():
            found = model.states(replace(batch, words=None))
            for row, ids in enumerate(batch.text.input_ids):
                own = ids if batch.text.valid is None else ids[batch.text.valid[row]]
                assert len(own) <= 24 and own[-1] == 0
                states = reference(own[None]).last_hidden_state[0]
                torch.testing.assert_close(found[row, 0], states[-1], rtol=1e-4, atol=1e-4)
        scores = transfer.run(0).scores
        assert scores["parent"] and scores["zs"] and scores["sup"]
