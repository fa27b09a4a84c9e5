"""The decoder against GPT2LMHeadModel: logits, states, losses and gradients, for every kind of sharing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor
from torch.nn import functional as F
from transformers import AutoModelForCausalLM, GPT2Config, GPT2LMHeadModel

from pretrain.config import ModelConfig, SharingConfig
from pretrain.data.batch import IGNORE, RowGroup
from pretrain.model import losses
from pretrain.model.from_hf import from_hf
from pretrain.model.gpt2 import CausalLM
from pretrain.model.kinds import to_hf
from pretrain.model.tensors import TensorBatch
from pretrain.model.text import Text
from pretrain.objectives.objective import Objective
from pretrain.objectives.table import NAMES
from tests.model_cases import (
    HALVES,
    IDS,
    KINDS,
    MIXED,
    PAD,
    SIZE,
    WIDTH,
    assert_every_weight_is_exported,
    batch_of,
    opened_export,
)
from tests.refusals import refused

SHAPE = ModelConfig(kind="gpt2", layers=3, heads=2, hidden=12, feed_forward=20, dropout=0.0, init_std=0.3)
ALL = np.arange(SIZE)


def model_of(sharing: SharingConfig = KINDS["shared"], language_ids: bool = False, **shape: Any) -> CausalLM:
    settings = SHAPE.model_copy(update=shape)
    model = CausalLM(settings, sharing, IDS, SIZE, WIDTH + 2, PAD, language_ids, 0)
    with torch.no_grad():
        for parameter in model.parameters():  # biases and norms too, so that each is seen to matter
            if parameter.ndim < 2:
                parameter.add_(torch.randn(parameter.shape, generator=torch.Generator().manual_seed(1)) / 4)
    return model.eval()


def config_of(**settings: Any) -> GPT2Config:
    return GPT2Config(vocab_size=SIZE, n_positions=WIDTH, **settings)


def theirs_of(model: CausalLM, language: int) -> GPT2LMHeadModel:
    config, state = to_hf(model, language)
    theirs = GPT2LMHeadModel(config).eval()
    missing = theirs.load_state_dict(state, strict=False)
    assert missing.missing_keys == ["lm_head.weight"] and not missing.unexpected_keys
    theirs.tie_weights()
    return theirs


def causal_batch(padded: bool = True, alone: bool = False) -> TensorBatch:
    """Return rows of both languages and of pairs, with a label at every position that has a next token."""
    batch = batch_of(MIXED, padded, alone=alone)
    assert batch.positions is not None
    inside = batch.positions > 0 if batch.valid is None else batch.valid & (batch.positions > 0)
    labels = torch.full_like(batch.input_ids, IGNORE)
    labels[:, :-1] = torch.where(inside[:, 1:], batch.input_ids[:, 1:], IGNORE)
    groups = tuple(replace(group, causal=True) for group in batch.groups)
    columns = torch.arange(WIDTH).expand_as(labels)
    return replace(batch, masked=columns, labels=labels, terms=torch.zeros_like(labels), groups=groups)


def plain_losses(model: CausalLM, batch: TensorBatch) -> Tensor:
    """Return −log p of each label by transformers: one row at a time, with a mask written out token by token."""
    found = torch.zeros(batch.labels.shape)
    for group in batch.groups:
        assert len({language for _, _, language in group.spans}) == 1
        language = group.spans[0][2]
        theirs = theirs_of(model, language)
        for row in range(group.start, group.stop):
            logits = theirs(
                input_ids=batch.input_ids[row : row + 1],
                position_ids=None if batch.positions is None else batch.positions[row : row + 1],
                attention_mask=_seen(batch, row, group.causal)[None, None],
            ).logits[0]
            if model.sharing.softmax == "language":
                other = ~torch.isin(torch.arange(SIZE), torch.from_numpy(IDS[language]))
                logits = logits.masked_fill(other, float("-inf"))
            found[row] = F.cross_entropy(logits, batch.labels[row], reduction="none", ignore_index=IGNORE)
    return found


def _seen(batch: TensorBatch, row: int, causal: bool) -> Tensor:
    """Return the additive attention mask of a row. Padding sees itself, so that nothing is undefined."""
    seen = torch.full((WIDTH, WIDTH), float("-inf"))
    for query in range(WIDTH):
        for key in range(query + 1 if causal else WIDTH):
            valid = batch.valid is None or bool(batch.valid[row, key])
            same = batch.sentences is None or batch.sentences[row, key] == batch.sentences[row, query]
            if (valid and same) or key == query:
                seen[query, key] = 0.0
    return seen


def without_pairs(batch: TensorBatch) -> TensorBatch:
    rows = slice(0, 4)
    fields = ("input_ids", "languages", "masked", "labels", "terms", "positions", "valid", "sentences", "samples")
    cut: dict[str, Any] = {
        name: None if getattr(batch, name) is None else getattr(batch, name)[rows] for name in fields
    }
    return replace(batch, groups=batch.groups[:2], **cut)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("padded", "alone"), [(False, False), (True, False), (True, True)])
def test_losses_are_those_of_transformers(kind, padded, alone):
    model, batch = model_of(KINDS[kind], language_ids=padded), without_pairs(causal_batch(padded, alone))
    found, plain = model(batch), plain_losses(model, batch)
    torch.testing.assert_close(found, plain, rtol=0, atol=1e-5)
    assert found.dtype == torch.float32 and plain.max().item() > 1
    assert bool((found[batch.labels == IGNORE] == 0).all())


def test_gradients_are_those_of_transformers():
    """Of rows that stand alone, weight by weight under the names of transformers."""
    model, batch = model_of(), without_pairs(causal_batch(alone=True))
    weights = torch.linspace(0.5, 2, batch.labels.numel()).view_as(batch.labels)
    (model(batch) * weights).sum().backward()
    theirs = theirs_of(model, 0)
    for row in range(len(batch.input_ids)):
        causal = batch.groups[0].causal
        mask, positions = _seen(batch, row, causal)[None, None], batch.positions
        assert positions is not None
        ids = batch.input_ids[row : row + 1]
        out = theirs(input_ids=ids, position_ids=positions[row : row + 1], attention_mask=mask).logits[0]
        (F.cross_entropy(out, batch.labels[row], reduction="none") * weights[row]).sum().backward()
    with torch.no_grad():
        for parameter in model.parameters():
            assert parameter.grad is not None
            parameter.copy_(parameter.grad)
    _, gradients = to_hf(model, 0)
    for name, parameter in theirs.named_parameters():
        torch.testing.assert_close(gradients[name], parameter.grad, rtol=1e-4, atol=1e-5, msg=name)


@pytest.mark.parametrize("kind", ["shared", "sep emb + L1-2"])
def test_masked_and_causal_rows_share_a_batch(kind):
    """The first language is read from left to right, and the second in both directions."""
    model, batch = model_of(KINDS[kind]), without_pairs(causal_batch())
    for causal in ((True, False), (False, True)):
        groups = tuple(replace(group, causal=c) for group, c in zip(batch.groups, causal, strict=True))
        mixed = replace(batch, groups=groups)
        torch.testing.assert_close(model(mixed), plain_losses(model, mixed), rtol=0, atol=1e-5)
        assert not torch.allclose(model(mixed), model(batch), atol=1e-3)


@pytest.mark.parametrize("kind", ["shared", "sep emb + L1-2", "sep L1-3"])
def test_the_second_half_of_a_pair_sees_the_first_and_not_the_other_way(kind):
    model, batch = model_of(KINDS[kind], language_ids=True), causal_batch()
    rows, half = slice(4, 6), WIDTH // 2
    before = model(batch)[rows]
    for changed, moves in ((slice(0, 1), (True, True)), (slice(half + 1, half + 2), (False, True))):
        ids = batch.input_ids.clone()
        words = IDS[0 if changed.start < half else 1]
        ids[rows, changed] = torch.from_numpy(words[words >= 5])[-1] if changed.start < half else int(words[-2])
        assert not torch.equal(ids, batch.input_ids)
        after = model(replace(batch, input_ids=ids))[rows]
        for part, moved in zip((slice(0, half), slice(half, WIDTH)), moves, strict=True):
            assert torch.equal(before[:, part], after[:, part]) != moved, (changed, part)


def test_no_token_sees_a_later_one():
    model = model_of()
    ids = torch.randint(5, SIZE, (2, WIDTH), generator=torch.Generator().manual_seed(1))
    before = model.logits(Text.of(ids, 0))
    for column in range(WIDTH):
        other = ids.clone()
        other[:, column] = (ids[:, column] - 4) % (SIZE - 5) + 5
        moved = (model.logits(Text.of(other, 0)) != before).any(-1).all(0)
        assert moved.tolist() == [place >= column for place in range(WIDTH)]


@pytest.mark.parametrize("kind", ["shared", "sep L1", "sep emb"])
def test_a_checkpoint_computes_the_same_with_us_and_exported_again(kind, tmp_path):
    torch.manual_seed(5)
    settings: dict[str, Any] = {"n_embd": 12, "n_layer": 2, "n_head": 3, "n_inner": None, "layer_norm_epsilon": 3e-4}
    theirs = GPT2LMHeadModel(config_of(initializer_range=0.3, bos_token_id=0, eos_token_id=2, **settings))
    with torch.no_grad():
        for parameter in theirs.parameters():
            if parameter.ndim < 2:
                parameter.add_(torch.randn_like(parameter) / 4)
    theirs.eval().save_pretrained(tmp_path)
    ours = from_hf(str(tmp_path), KINDS[kind], ids=(ALL, ALL), size=SIZE, language_ids=True, seed=0).eval()
    assert isinstance(ours, CausalLM) and ours.shape.feed_forward == 48
    ids = torch.randint(5, SIZE, (3, WIDTH), generator=torch.Generator().manual_seed(1))
    valid = torch.ones_like(ids, dtype=torch.bool)
    ids[1, 4:], valid[1, 4:], ids[2, 2:], valid[2, 2:] = 1, False, 1, False
    expected = theirs(input_ids=ids, attention_mask=valid.long(), output_hidden_states=True)
    columns = torch.tensor([[0, 3], [1, 3], [0, 1]])
    for member in (0, 1):
        text = Text.of(ids, member, valid)
        packed = text.without_padding()
        assert packed.packed is not None
        for way in (text, packed):
            torch.testing.assert_close(ours.logits(way)[valid], expected.logits[valid], rtol=0, atol=1e-5)
            at = expected.logits.gather(1, columns.unsqueeze(-1).expand(-1, -1, SIZE))
            torch.testing.assert_close(ours.logits(way, columns), at, rtol=0, atol=1e-5)
            for mine, state in zip(ours.read(way, layers=range(3)), expected.hidden_states, strict=True):
                torch.testing.assert_close(mine[valid], state[valid], rtol=0, atol=1e-5)
    config, state = to_hf(ours, 1)
    again = theirs_of(ours, 1)
    assert type(config) is GPT2Config and config.layer_norm_epsilon == 3e-4 and config.bos_token_id == 0
    assert all(torch.equal(state[name], tensor) for name, tensor in theirs.state_dict().items() if name in state)
    torch.testing.assert_close(again(input_ids=ids).logits, theirs(input_ids=ids).logits)


def test_an_export_is_loaded_by_transformers_and_computes_the_same(tmp_path):
    model = model_of(KINDS["sep emb + L1-2"], language_ids=True)
    theirs = opened_export(model, 1, tmp_path, AutoModelForCausalLM)
    assert isinstance(theirs, GPT2LMHeadModel)
    words = torch.from_numpy(IDS[1][-6:])[None]
    own = torch.from_numpy(IDS[1])
    logits = model.logits(Text.of(words, 1))
    torch.testing.assert_close(theirs(words).logits[..., own], logits[..., own], rtol=0, atol=1e-5)
    assert bool(logits[..., IDS[0][6]].isneginf().all())  # another language's word has no share in the softmax


def test_every_weight_of_ours_is_in_the_export():
    model = model_of(KINDS["sep emb + L1-2"], language_ids=True)
    assert_every_weight_is_exported(model)


def test_initial_weights_are_those_of_gpt2():
    """Radford et al. 2019, section 2.3: output layers of the residual stream are smaller by √(2 · layers)."""
    wide = SHAPE.model_copy(update={"hidden": 64, "feed_forward": 256, "init_std": 0.02})
    model = CausalLM(wide, SharingConfig(), (ALL,), SIZE, 8, PAD, False, 3)
    theirs = GPT2LMHeadModel(config_of(n_embd=64, n_layer=3, n_head=2))
    _, state = to_hf(model, 0)
    for name, parameter in theirs.named_parameters():
        if name.startswith("transformer.h.0"):
            assert float(state[name].std()) == pytest.approx(float(parameter.detach().std()), rel=0.1, abs=1e-6), name


def test_dropout_is_a_function_of_the_key():
    model, batch = model_of(dropout=0.5).train(), without_pairs(causal_batch(alone=True))
    found = []
    for key in (1, 1, 2):
        model.seed_dropout(key)
        found.append(model(batch))
    assert torch.equal(found[0], found[1]) and not torch.equal(found[0], found[2])


def test_dropout_of_rows_without_a_mask_hides_later_tokens_too():
    model = model_of(dropout=0.3).train()
    batch = without_pairs(causal_batch(padded=False))
    batch = replace(batch, positions=None)
    other = replace(batch, input_ids=batch.input_ids.clone())
    other.input_ids[:, -1] = batch.input_ids[:, 1]
    found = []
    for one in (batch, other):
        model.seed_dropout(7)
        found.append(model(one))
    assert torch.equal(found[0][:, :-2], found[1][:, :-2]) and not torch.equal(batch.input_ids, other.input_ids)


@pytest.mark.parametrize("setting", [{"activation_function": "relu"}, {"scale_attn_by_inverse_layer_idx": True}])
def test_a_checkpoint_with_another_function_is_refused(setting, tmp_path):
    shape: dict[str, Any] = {"n_embd": 12, "n_layer": 1, "n_head": 2}
    GPT2LMHeadModel(config_of(**shape | setting)).save_pretrained(tmp_path / "start")
    options: dict[str, Any] = {"ids": (ALL,), "size": SIZE, "language_ids": False, "seed": 0}
    assert refused(from_hf, str(tmp_path / "start"), SharingConfig(), **options) == ("start", "unsupported")
    weights = load_file(tmp_path / "start" / "model.safetensors")
    assert "transformer.wte.weight" in weights


def test_language_pairs_are_rows_of_two_spans():
    assert causal_batch().groups[2] == RowGroup(4, 6, HALVES, causal=True)


@pytest.mark.parametrize("block", [1 << 23, 100])
@pytest.mark.parametrize("half", [False, True])
def test_gradients_in_blocks_are_those_of_cross_entropy(block, half, monkeypatch):
    """For given weights, with a factor that is known in the backward pass only."""
    monkeypatch.setitem(losses.BLOCK, "cpu", block)
    draw = torch.Generator().manual_seed(2)
    hidden, table = torch.randn(37, 6, generator=draw), torch.randn(50, 6, generator=draw)
    bias, labels = torch.randn(50, generator=draw), torch.randint(0, 50, (37,), generator=draw)
    labels[::5] = IGNORE
    weights = torch.rand(37, generator=draw) * 1e-4
    inputs = [x.requires_grad_() for x in (hidden, table, bias)]
    plain = F.cross_entropy(hidden @ table.T + bias, labels, reduction="none", ignore_index=IGNORE)
    expected = torch.autograd.grad((plain * weights).sum() * 8, inputs)
    with torch.autocast("cpu", torch.bfloat16, enabled=half):
        found = losses.masked_loss(hidden, table, bias, labels, weights=weights)
    gradients = torch.autograd.grad((found * weights).sum() * 8, inputs)
    torch.testing.assert_close(found, plain, rtol=0.02 if half else 1e-5, atol=0.05 if half else 1e-5)
    for a, b in zip(gradients, expected, strict=True):
        assert a.dtype == torch.float32
        assert float((a - b).norm()) < (0.02 if half else 1e-5) * float(b.norm())
    with torch.no_grad():
        torch.testing.assert_close(losses.masked_loss(hidden, table, bias, labels, weights=weights), plain)


@pytest.mark.parametrize("kind", ["shared", "sep emb + L1-2"])
@pytest.mark.parametrize("corpora", [None, {"en": frozenset({0}), "de": frozenset({1}), "en+de": frozenset({0, 1})}])
def test_a_step_in_blocks_has_the_gradients_of_one_without(kind, corpora, monkeypatch):
    """With several terms and corpora, each with its own factor."""
    monkeypatch.setitem(losses.BLOCK, "cpu", 100)
    batch = causal_batch(alone=True)
    batch.terms[4:] = NAMES.index("tlm")
    batch.terms[:4] = NAMES.index("clm")
    found = []
    for is_causal in (False, True):
        model = model_of(KINDS[kind])
        objective = Objective({"clm": 1.0, "tlm": 0.3}, {}, corpora, is_causal)
        scales = {name: torch.tensor(0.1 + place) for place, name in enumerate(objective.names)}
        sums = objective.sums(model, batch, scales)
        torch.stack([scales[name] * total for name, total in sums.items()]).sum().backward()
        found.append((sums, {name: p.grad for name, p in model.named_parameters()}))
    (plain, expected), (sums, gradients) = found
    assert sums.keys() == plain.keys()
    for name, total in plain.items():
        torch.testing.assert_close(sums[name], total)
    for name, gradient in expected.items():
        torch.testing.assert_close(gradients[name], gradient, rtol=1e-4, atol=1e-5, msg=name)


def test_a_traced_step_is_the_same_function():
    model, results = model_of(layers=2, dropout=0.3).train(), []
    batches = [without_pairs(causal_batch(alone=True)), replace(without_pairs(causal_batch(False)), positions=None)]
    for _ in ("plain", "traced"):
        for batch in batches:  # with a mask, and without
            model.zero_grad()
            model.seed_dropout(4)
            found = model(batch)
            found.sum().backward()
            results.append((found.detach(), [p.grad.clone() for p in model.parameters() if p.grad is not None]))
        model.compile_steps("aot_eager")
    for plain, traced in zip(results[:2], results[2:], strict=True):
        torch.testing.assert_close(plain, traced, rtol=1e-4, atol=1e-5)
