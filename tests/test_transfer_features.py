"""The input of a head: layers, subwords, new layers, rotations, two bodies."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import torch
from torch import Tensor

from pretrain.model.text import Text
from probes.transfer.config import FeaturesConfig
from probes.transfer.features import Features, frozen_states
from probes.transfer.tasks.base import Batch
from tests.refusals import refusal, refused
from tests.transfer_fits import OWN, PAD, SHAPE, body_of, model_of, moved, tokens, weights

BODY = body_of(OWN).eval()
WORDS = torch.tensor([[[1, 1], [2, 4], [5, 6]], [[1, 2], [3, 3], [0, 0]]])
THERE = torch.tensor([[True, True, True], [True, True, False]])
LAYERS = [(-1,), (2,), (1,), (0,), (0, 2), (-2, -1), (-3,)]


def batch_of(words: Tensor | None = WORDS, member: int = 0) -> Batch:
    ids = torch.tensor([[0, 7, 8, 9, 10, 11, 12, 2], [0, 20, 21, 22, 2, PAD, PAD, PAD]]) + 0
    ids = torch.where((ids > 4) & (member == 1), 20 + ids % 20, ids)
    mask = THERE if words is not None else ids > 4
    return Batch(Text.of(ids, member, ids != PAD), words, mask, {}, "target" if member else "source", np.arange(2))


def features_of(rotations=None, body=BODY, **settings) -> Features:
    return Features({"source": body, "target": body}, FeaturesConfig(**settings), rotations).eval()


def plain(layers, combine, subword, batch: Batch, turn=lambda states, index: states) -> Tensor:
    """Compute the features from all columns of all layers, word by word."""
    every = BODY.read(batch.text, layers=range(SHAPE.layers + 1))
    chosen = [turn(every[layer], index) for index, layer in enumerate(layers)]
    states = torch.cat(chosen, -1) if combine == "concat" else sum(chosen) / len(chosen)
    assert isinstance(states, Tensor)
    if batch.words is None:
        return states
    rows = []
    for row, words in zip(states, batch.words.tolist(), strict=True):
        found = [row[0]]
        for first, last in words:
            found.append({"first": row[first], "last": row[last], "mean": row[first : last + 1].mean(0)}[subword])
        rows.append(torch.stack(found))
    return torch.stack(rows)


@pytest.mark.parametrize("combine", ["mean", "concat"])
@pytest.mark.parametrize("layers", LAYERS, ids=str)
def test_states_of_words(layers, combine):
    for subword, member in product(("first", "last", "mean"), (0, 1)):
        read = features_of(layers=layers, combine=combine, subword=subword)
        for batch in (batch_of(member=member), batch_of(None, member), batch_of(WORDS[:, :0], member)):
            expected = plain(layers, combine, subword, batch)
            states = read(batch)
            assert states.shape == expected.shape and states.shape[-1] == read.width
            there = torch.cat([torch.ones(2, 1, dtype=torch.bool), THERE], 1)[:, : states.shape[1]]
            seen = batch.text.valid if batch.words is None else there
            torch.testing.assert_close(states[seen], expected[seen], rtol=1e-4, atol=1e-5)


def test_layers_that_are_not_there():
    for layer in (3, -4, 99):
        refusal(features_of, layers=(1, layer))


@pytest.mark.parametrize("tune", ["all", "none"])
def test_new_layers_come_before_words_are_picked(tune):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        read = features_of(layers=(1, 2), combine="concat", top_layers=2, tune=tune, subword="last")
    assert len(read.top) == 2 and read.width == 32
    batch = batch_of()
    states = plain((1, 2), "concat", "last", replace(batch, words=None))
    for layer in read.top:
        states = layer(states, batch.text.seen(), None)
    expected = states[torch.arange(2)[:, None], torch.cat([torch.zeros(2, 1).long(), WORDS[..., 1]], 1)]
    torch.testing.assert_close(read(batch), expected, rtol=1e-4, atol=1e-5)
    torch.autograd.backward(read.train()(batch).square().mean())
    assert all(p.grad is not None for p in read.top.parameters())
    in_body = [p.grad is not None for p in read.bodies.parameters()]
    assert any(in_body) == (tune == "all")
    deviation = torch.cat([p.flatten() for p in read.top.parameters() if p.ndim == 2]).std()
    assert abs(deviation - SHAPE.init_std) < 0.01


class Turn:
    """Another orthogonal map for each layer."""

    def __init__(self, width: int = SHAPE.hidden) -> None:
        draw = np.random.default_rng(0)
        self.maps = [torch.from_numpy(np.linalg.qr(draw.normal(size=(width, width)))[0]).float() for _ in range(2)]

    def apply(self, states: Tensor, index: int, role: str | None = None) -> Tensor:
        return states @ self.maps[index]


@pytest.mark.parametrize("moves", ["source", "target"])
@pytest.mark.parametrize("subword", ["first", "mean"])
def test_a_rotation_is_of_one_language_and_each_layer(moves, subword):
    turn = Turn()
    read = features_of({moves: turn}, layers=(0, 2), tune="none", subword=subword)
    for member, role in enumerate(("source", "target")):
        batch = batch_of(member=member)
        expected = plain((0, 2), "mean", subword, batch, turn.apply if role == moves else lambda states, _: states)
        torch.testing.assert_close(read(batch), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("moves", ["source", "target"])
def test_a_body_is_fine_tuned_below_a_rotation_of_one_language(moves):
    """The weights get the gradient of the turned states where the rows are of the language that moves, else plain."""
    turn = Turn()
    read = features_of({moves: turn}, layers=(2,))
    weight = torch.randn(2, 4, 16, generator=torch.Generator().manual_seed(0))
    for member, role in enumerate(("source", "target")):
        batch = batch_of(member=member)
        other = features_of(layers=(2,))
        states = other(batch)
        goal = turn.apply(states, 0) if role == moves else states
        torch.testing.assert_close(read(batch), goal, rtol=1e-4, atol=1e-5)
        torch.autograd.backward([(read(batch) * weight).sum(), (goal * weight).sum()])
        mine, theirs = (dict(one.body("source").named_parameters()) for one in (read, other))
        grads = [name for name, parameter in mine.items() if parameter.grad is not None]
        assert any(name.startswith("layers.1.") for name in grads)
        for name in grads:
            torch.testing.assert_close(mine[name].grad, theirs[name].grad, rtol=1e-4, atol=1e-5)
        read.zero_grad()


def test_two_bodies():
    other = body_of(OWN, seed=3).eval()
    read = Features({"source": BODY, "target": other}, FeaturesConfig(tune="none")).eval()
    source, target = batch_of(), batch_of(member=1)
    torch.testing.assert_close(read(source), features_of()(source))
    torch.testing.assert_close(read(target), features_of(body=other)(target))
    assert not torch.allclose(read(target), features_of()(target))
    wide = body_of(OWN, SHAPE.model_copy(update={"hidden": 32}))
    bodies = {"source": BODY, "target": wide}
    assert refused(Features, bodies, FeaturesConfig(tune="none")) == ("target_model", "conflict")


def test_bodies_are_copied_and_what_is_not_read_does_not_move():
    before = weights(BODY)
    read = features_of(layers=(1,), freeze_language_parts=False)
    assert len(read.bodies) == 1 and not moved(before, weights(read.body("target")))
    still = {name for name, p in read.body("source").named_parameters() if not p.requires_grad}
    unread = {n for n in before if n.startswith(("head.", "layers.1."))}
    assert still == unread | {"embeddings.bias"} and all(p.requires_grad for p in BODY.parameters())
    embeddings = features_of(layers=(1,), freeze_language_parts=False, freeze_embeddings=True).body("source")
    frozen = {name for name, p in embeddings.named_parameters() if not p.requires_grad}
    assert frozen == still | {"embeddings.words"}
    deeper = Features({"source": BODY}, FeaturesConfig(layers=(1,), freeze_language_parts=False), also_read=(-1,))
    assert all(p.requires_grad for n, p in deeper.body("source").named_parameters() if n.startswith("layers.1."))


def test_dropout_is_a_function_of_the_key_and_off_in_frozen_bodies():
    batch = batch_of()
    read = features_of(top_layers=1).train()

    def states(key):
        read.seed_dropout(key)
        return read(batch)

    assert torch.equal(states(1), states(1)) and not torch.equal(states(1), states(2))
    frozen = features_of(tune="none").train()
    assert torch.equal(frozen(batch), features_of()(batch)) and not frozen(batch).requires_grad


@pytest.mark.parametrize("settings", [{}, {"top_layers": 1}, {"subword": "mean"}, {"layers": (0, 1)}], ids=str)
def test_frozen_states_are_what_the_body_gives(settings):
    examples = tokens(40)
    model = model_of(tune="none", **settings).eval()
    frozen = frozen_states(model, examples)
    assert frozen is not None
    batch = examples.batch(np.array([7, 3, 21]))
    given, fresh = model.states(batch, frozen.of(batch)), model.states(batch)
    seen = torch.cat([torch.ones(3, 1, dtype=torch.bool), batch.mask], 1)
    torch.testing.assert_close(given[seen], fresh[seen], rtol=1e-4, atol=1e-5)
    assert frozen_states(model, examples, most=100) is None
    assert frozen_states(model_of(**settings), examples) is None
