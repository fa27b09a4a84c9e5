"""Dropout: its rate and places, and that it is a function of the key."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from scipy import stats
from torch.nn import functional as F

from pretrain.config import ModelConfig
from pretrain.model.dropout import Noise, add_dropout, dropout
from pretrain.model.encoder import MaskedLM
from tests.encoder_cases import IDS, KINDS, PAD, SHAPE, SIZE, WIDTH, batch_of, model_of

RATE = SHAPE.model_copy(update={"dropout": 0.25})
CPU = torch.device("cpu")


def seeded(key: int) -> Noise:
    noise = Noise()
    noise.seed(key, CPU)
    return noise


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.03, 0.9])
def test_the_rate_is_exact_and_the_expectation_kept(rate):
    n = 400_000
    x = torch.ones(n)
    y = dropout(x, rate, seeded(1).keep(rate, n), training=True)
    dropped = int((y == 0).sum())
    assert stats.binomtest(dropped, n, rate).pvalue > 1e-3
    kept = y[y != 0].unique()
    assert len(kept) == 1 and kept.item() == pytest.approx(1 / (1 - rate), rel=1e-3)


def test_decisions_are_independent_of_each_other_and_of_the_key():
    n = 100_000
    decisions = [dropout(torch.ones(n), 0.3, seeded(key).keep(0.3, n), True) == 0 for key in (1, 2)]
    for a, b in (
        (decisions[0], decisions[1]),
        *((decisions[0][:-lag], decisions[0][lag:]) for lag in (1, 2, 3, 4, 64)),
    ):
        both = int((a & b).sum())
        assert stats.binomtest(both, len(a), 0.09).pvalue > 1e-4


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_gradient_is_that_of_the_kept_values(dtype):
    x = torch.randn(50, dtype=dtype, requires_grad=True)
    keep = seeded(0).keep(0.4, 50)
    y = dropout(x, 0.4, keep, True)
    (gradient,) = torch.autograd.grad(y.sum(), x)
    torch.testing.assert_close(gradient, torch.where(y == 0, 0.0, y / x).detach(), rtol=0.01, atol=0)
    torch.testing.assert_close(add_dropout(x, x, 0.4, keep, True), x + y, rtol=0.01, atol=0.01)
    assert 10 < int((y == 0).sum()) < 30


def test_without_a_key_it_is_pytorchs_and_without_training_it_is_nothing():
    x = torch.randn(100)
    torch.manual_seed(3)
    mine = dropout(x, 0.5, Noise().keep(0.5, 100), True)
    torch.manual_seed(3)
    assert torch.equal(mine, F.dropout(x, 0.5))
    assert dropout(x, 0.5, seeded(0).keep(0.5, 100), training=False) is x


@pytest.mark.parametrize("kind", ["shared", "sep emb + L1-2", "sep L3"])
def test_a_step_is_a_function_of_the_key(kind):
    model = model_of(KINDS[kind], shape=RATE).train()
    batch, state = batch_of(), torch.random.get_rng_state()
    losses = []
    for key in (7, 7, 8):
        model.seed_dropout(key)
        losses.append(model(batch))
    assert torch.equal(losses[0], losses[1]) and not torch.equal(losses[0], losses[2])
    gradients = [torch.autograd.grad(loss.sum(), list(model.parameters()), allow_unused=True) for loss in losses[:2]]
    assert all(torch.equal(a, b) for a, b in zip(*gradients, strict=True) if a is not None)  # to the bit
    assert torch.equal(state, torch.random.get_rng_state())  # nothing else is random
    twin = copy.deepcopy(model)
    for each in (model, twin):
        each.seed_dropout(9)
    assert torch.equal(model(batch), twin(batch))
    assert torch.equal(model.eval()(batch), model_of(KINDS[kind])(batch))


@pytest.mark.parametrize("own", [True, False])
def test_dropout_acts_where_roberta_has_it(own):
    """The embeddings, the attention weights, and both outputs of a layer: 1 + 3 · layers places."""
    seen: list[tuple[int, ...]] = []
    shape = RATE.model_copy(update={"layers": 2})
    model = MaskedLM(shape, KINDS["shared"], IDS, SIZE, WIDTH, PAD, False, 0).train()
    draw = model.noise.keep
    model.noise.keep = lambda r, *s: seen.append(s) or (draw(r, *s) if own else None)  # type: ignore[method-assign, func-returns-value]
    model.seed_dropout(0)
    batch = batch_of(padded=False)
    model(batch)
    rows, slots = batch.masked.shape
    full = [(rows, RATE.heads, WIDTH, WIDTH), (rows, WIDTH, RATE.hidden), (rows, WIDTH, RATE.hidden)]
    last = [(rows, RATE.heads, slots, WIDTH), (rows, slots, RATE.hidden), (rows, slots, RATE.hidden)]
    assert seen == [(rows, WIDTH, RATE.hidden), *full, *last]


def test_the_expected_loss_is_that_of_roberta_in_training():
    """Over many keys the mean of a linear read-out equals that with PyTorch's own dropout."""
    shape = ModelConfig(layers=1, heads=2, hidden=12, feed_forward=20, dropout=0.3, init_std=0.3)
    model, ids = model_of(shape=shape).train(), batch_of().input_ids[:1]
    means = []
    for own in (True, False):
        draws = []
        for key in range(250):
            model.noise = seeded(key) if own else Noise()
            torch.manual_seed(key)
            draws.append(model.hidden(ids, 0)[0, 0].detach())
        means.append(torch.stack(draws))
    assert np.min(stats.ttest_ind(means[0].numpy(), means[1].numpy()).pvalue) > 1e-3
    spread = stats.levene(means[0][:, 0].numpy(), means[1][:, 0].numpy()).pvalue
    assert spread > 1e-3
    with_other_rate = model_of(shape=RATE.model_copy(update={"layers": 1, "dropout": 0.0})).hidden(ids, 0)[0, 0]
    assert np.min(stats.ttest_1samp(means[0].numpy(), with_other_rate.detach().numpy()).pvalue) < 1e-3


def test_a_traced_step_is_the_same_function():
    shape = RATE.model_copy(update={"layers": 2})
    model = model_of(shape=shape).train()
    batch, results = batch_of(padded=False), []
    for _ in ("plain", "traced"):
        model.zero_grad()
        model.seed_dropout(4)
        losses = model(batch)
        losses.sum().backward()
        results.append((losses.detach(), [p.grad.clone() for p in model.parameters() if p.grad is not None]))
        model.compile_steps("aot_eager")
    torch.testing.assert_close(results[0], results[1], rtol=1e-4, atol=1e-5)
