"""Our weights as Hugging Face's and theirs as ours: the same logits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor
from transformers import (
    AutoModelForMaskedLM,
    BertConfig,
    BertForMaskedLM,
    RobertaConfig,
    RobertaForMaskedLM,
    XLMRobertaForMaskedLM,
    XLMWithLMHeadModel,
)

from pretrain.config import ModelConfig, SharingConfig
from pretrain.model.from_hf import from_hf
from pretrain.model.kinds import to_hf
from pretrain.model.language_model import LanguageModel
from pretrain.model.text import Text
from synthlang.vocabularies import Extension
from tests.model_cases import (
    IDS,
    KINDS,
    SHAPE,
    SIZE,
    WIDTH,
    assert_every_weight_is_exported,
    batch_of,
    model_of,
    opened_export,
)
from tests.refusals import refused

ALL = np.arange(SIZE)
SETTINGS: dict[str, Any] = {
    "vocab_size": SIZE,
    "hidden_size": 12,
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
    "intermediate_size": 20,
    "initializer_range": 0.3,
    "pad_token_id": 1,
    "layer_norm_eps": 3e-4,
}


def foreign(kind: str, **settings: Any) -> Any:
    torch.manual_seed(5)
    if kind == "bert":
        model = BertForMaskedLM(BertConfig(**SETTINGS | {"max_position_embeddings": WIDTH} | settings))
    else:
        config = RobertaConfig(**SETTINGS | {"max_position_embeddings": WIDTH + 2, "type_vocab_size": 1} | settings)
        model = RobertaForMaskedLM(config) if kind == "roberta" else XLMRobertaForMaskedLM(config)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim < 2:
                parameter.add_(torch.randn_like(parameter) / 4)
    return model.eval()


def logits(model: LanguageModel, ids: Tensor, member: int, valid: Tensor | None = None) -> Tensor:
    weight, bias = model.embeddings.outputs([member], restrict=False)[member]
    states: Tensor = model.head(model.read(Text.of(ids, member, valid))[0])
    return states @ weight.T + bias


def start(folder: Path, sharing: SharingConfig = KINDS["shared"], **options: Any) -> LanguageModel:
    settings: dict[str, Any] = {"ids": (ALL, ALL), "size": SIZE, "language_ids": False, "seed": 0} | options
    return from_hf(str(folder), sharing, **settings).eval()


@pytest.mark.parametrize("kind", ["roberta", "xlm", "bert"])
@pytest.mark.parametrize("sharing", ["shared", "sep L1", "sep emb"])
def test_a_checkpoint_computes_the_same_with_us_and_exported_again(kind, sharing, tmp_path):
    theirs = foreign(kind)
    theirs.save_pretrained(tmp_path)
    ours = start(tmp_path, KINDS[sharing], language_ids=True)
    ids = torch.randint(5, SIZE, (3, WIDTH), generator=torch.Generator().manual_seed(1))
    valid = torch.ones_like(ids, dtype=torch.bool)
    ids[1, 5:], valid[1, 5:] = 1, False
    expected = theirs(input_ids=ids, attention_mask=valid.long()).logits
    for member in (0, 1):
        torch.testing.assert_close(logits(ours, ids, member, valid)[valid], expected[valid], rtol=0, atol=1e-5)
    config, state = to_hf(ours, 1)
    assert type(config).__name__ == type(theirs.config).__name__ and config.layer_norm_eps == 3e-4
    again = type(theirs)(config).eval()
    missing = again.load_state_dict(state, strict=False)
    assert not missing.unexpected_keys and all("decoder" in name for name in missing.missing_keys)
    torch.testing.assert_close(again(input_ids=ids, attention_mask=valid.long()).logits[valid], expected[valid])
    if kind == "bert":  # the second sentence of a pair
        types = torch.arange(WIDTH).expand_as(ids) // 4
        pair = [m(input_ids=ids[:1], token_type_ids=types[:1]).logits for m in (again, theirs)]
        torch.testing.assert_close(*pair)
        assert not torch.allclose(pair[0], expected[:1])


def test_an_export_is_loaded_by_transformers_and_computes_the_same(tmp_path):
    model, batch = model_of(KINDS["sep emb + L1-2"], language_ids=True), batch_of()
    assert batch.valid is not None
    ids, valid = batch.input_ids[2:4], batch.valid[2:4]
    theirs = opened_export(model, 1, tmp_path, AutoModelForMaskedLM)
    assert isinstance(theirs, RobertaForMaskedLM)
    values = theirs(input_ids=ids, attention_mask=valid.long()).logits[..., IDS[1]]
    torch.testing.assert_close(values[valid], logits(model, ids, 1, valid)[valid], rtol=0, atol=1e-5)
    words = to_hf(model, 0)[1]["roberta.embeddings.word_embeddings.weight"]  # an id that only the other language has
    assert torch.equal(words[20], model.embeddings.words[len(IDS[0]) + list(IDS[1]).index(20)])


def test_a_linear_output_is_that_of_xlm(tmp_path):
    """The states of the last layer by the word embeddings, as XLM has it, and as an XLM it can be opened again."""
    linear = ModelConfig(**SHAPE.model_dump() | {"feed_forward": 4 * SHAPE.hidden, "output": "linear"})
    model, batch = model_of(language_ids=True, shape=linear), batch_of()
    assert batch.valid is not None
    ids, valid = batch.input_ids[2:4], batch.valid[2:4]
    theirs = opened_export(model, 1, tmp_path, AutoModelForMaskedLM)
    assert isinstance(theirs, XLMWithLMHeadModel)
    values = theirs(input_ids=ids, attention_mask=valid.long()).logits
    states = model.read(Text.of(ids, 1, valid))[0]
    expected = states @ model.embeddings.words.T + model.embeddings.bias
    torch.testing.assert_close(logits(model, ids, 1, valid)[valid], expected[valid])
    torch.testing.assert_close(values[valid], expected[valid], rtol=0, atol=1e-5)
    again = start(tmp_path)
    torch.testing.assert_close(logits(again, ids, 0, valid)[valid], expected[valid], rtol=0, atol=1e-5)


@pytest.mark.parametrize("shape", [SHAPE, ModelConfig(layers=2, heads=2, hidden=8, feed_forward=32, output="linear")])
def test_every_weight_of_ours_is_in_the_export(shape):
    model = model_of(KINDS["sep emb + L1-2"], language_ids=True, shape=shape)
    assert_every_weight_is_exported(model)


def test_new_subwords_start_from_what_they_were_cut_into(tmp_path):
    theirs = foreign("roberta")
    theirs.save_pretrained(tmp_path)
    names = ("Ġab", "c", "d")
    extension = Extension(np.arange(SIZE, SIZE + 3), names, np.array([5, 6, 9]), np.array([0, 2, 3, 3]))
    options: dict[str, Any] = {"ids": (np.arange(SIZE + 3),) * 2, "size": SIZE + 3, "extension": extension}
    old = theirs.roberta.embeddings.word_embeddings.weight
    started = {way: start(tmp_path, initialise=way, **options).embeddings for way in ("pieces", "mean", "random")}
    mean = old.mean(0)
    torch.testing.assert_close(started["pieces"].words[SIZE:], torch.stack([(old[5] + old[6]) / 2, old[9], mean]))
    torch.testing.assert_close(started["pieces"].bias[SIZE], theirs.lm_head.bias[[5, 6]].mean())
    torch.testing.assert_close(started["mean"].words[SIZE:], mean.expand(3, -1))
    random = started["random"].words[SIZE:]
    assert 0.1 < random.std() < 0.6 and not torch.equal(random[0], random[1])
    assert all(torch.equal(tables.words[:SIZE], old) for tables in started.values())
    separate = start(tmp_path, KINDS["sep emb"], **options).embeddings
    torch.testing.assert_close(separate.words, started["pieces"].words.repeat(2, 1))


@pytest.mark.parametrize(
    ("settings", "options", "place", "code"),
    [
        ({}, {"length": 9}, "batch.length", "range"),
        ({}, {"size": 30}, "start", "conflict"),
        ({"hidden_act": "relu"}, {}, "start", "unsupported"),
    ],
)
def test_what_cannot_be_started_from(settings, options, place, code, tmp_path):
    foreign("roberta", **settings).save_pretrained(tmp_path / "start")
    assert refused(start, tmp_path / "start", **options) == (place, code)


def test_missing_weights_and_other_architectures(tmp_path):
    foreign("roberta").save_pretrained(tmp_path)
    weights = load_file(tmp_path / "model.safetensors")
    weights.pop("roberta.encoder.layer.1.output.dense.bias")
    save_file(weights, tmp_path / "model.safetensors", metadata={"format": "pt"})
    assert refused(start, tmp_path) == (tmp_path.name, "missing")
    (tmp_path / "config.json").write_text('{"model_type": "distilbert", "vocab_size": 21, "dim": 12, "n_heads": 2}')
    assert refused(start, tmp_path) == (tmp_path.name, "unsupported")
