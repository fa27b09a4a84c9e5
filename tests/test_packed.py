"""Reading rows without their padding against reading them with it."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from pretrain.model.text import WORTH, Packed, Text
from tests.encoder_cases import KINDS, PAD, SHAPE, model_of

LENGTHS = (2, 9, 5, 3)
VALID = torch.arange(10) < torch.tensor(LENGTHS)[:, None]
SLOTS = {"none": None, "first": torch.zeros(4, 1, dtype=torch.int64), "many": torch.arange(9).clamp(max=1).repeat(4, 1)}


def text_of(model, member: int, **more) -> Text:
    own = model.embeddings.ids(member)
    ids = own[torch.randint(5, len(own), VALID.shape, generator=torch.Generator().manual_seed(1))]
    return Text.of(ids.masked_fill(~VALID, PAD), member, VALID) if not more else replace(text_of(model, member), **more)


def test_tokens_and_rows():
    packed = Packed.of(VALID)
    assert packed is not None and packed.places.tolist() == [0, 1, *range(10, 19), *range(20, 25), *range(30, 33)]
    x = torch.randn(4, 10, 3)
    picked = packed.pick(x)
    assert torch.equal(picked, x[VALID]) and torch.equal(packed.pad(picked), x * VALID[..., None])


@pytest.mark.parametrize("count", [0, 1, 2])
def test_only_where_it_is_worth_it(count):
    valid = torch.ones(2, 10, dtype=torch.bool)
    valid[0, 10 - count :] = False
    assert (Packed.of(valid) is None) == (int(valid.sum()) > WORTH * 20) == (count < 2)
    assert Packed.of(None) is None
    text = Text(torch.zeros(2, 10, dtype=torch.int64), valid, ((0, 5, 0), (5, 10, 1)))
    assert text.without_padding().packed is None  # rows of two languages


@pytest.mark.parametrize("slots", SLOTS)
@pytest.mark.parametrize("kind", KINDS)
def test_equals_the_padded_rows_and_so_do_gradients(kind, slots):
    model, at = model_of(KINDS[kind], language_ids=True).double(), SLOTS[slots]
    text = text_of(model, 1)
    layers, results = range(SHAPE.layers + 1), []
    seen = VALID if at is None else torch.ones(at.shape, dtype=torch.bool)
    for given in (text, text.without_padding()):
        states = model.read(given, at, layers)
        total = torch.stack([((number + 1) * state[seen].square()).sum() for number, state in enumerate(states)]).sum()
        used = [p for name, p in model.named_parameters() if not name.startswith(("head.", "embeddings.bias"))]
        results.append((states, torch.autograd.grad(total, used, allow_unused=True)))
    (plain, of_plain), (packed, of_packed) = results
    for a, b in zip(plain, packed, strict=True):
        torch.testing.assert_close(b[seen], a[seen], rtol=1e-9, atol=1e-10)
        assert float(a[seen].detach().abs().max()) > 0.5  # the case is not trivial
    for a, b in zip(of_plain, of_packed, strict=True):
        assert (a is None) == (b is None)
        if a is not None:
            torch.testing.assert_close(b, a, rtol=1e-8, atol=1e-9)


def test_positions_and_segments_are_those_of_the_tokens():
    model = model_of().double()
    model.embeddings.segments = torch.randn(1, SHAPE.hidden, dtype=torch.float64)
    kind = torch.arange(10).ge(2).long().expand(4, -1)
    text = text_of(model, 0, segments=kind, positions=torch.arange(10).flip(0).expand(4, -1))
    a, b = model.read(text)[0], model.read(text.without_padding())[0]
    torch.testing.assert_close(b[VALID], a[VALID], rtol=1e-9, atol=1e-10)
    for other in (text_of(model, 0), replace(text, segments=None)):
        assert not torch.allclose(model.read(other.without_padding())[0][VALID], a[VALID])


def test_dropout_is_a_function_of_the_key_and_acts_as_on_padded_rows():
    model = model_of(shape=SHAPE.model_copy(update={"dropout": 0.25})).train()
    text = text_of(model, 0)

    def draws(given: Text, keys: range) -> torch.Tensor:
        states = []
        for key in keys:
            model.seed_dropout(key)
            states.append(model.read(given)[0][VALID].detach())
        return torch.stack(states)

    one = draws(text.without_padding(), range(200))
    assert torch.equal(one[:2], draws(text.without_padding(), range(2))) and not torch.equal(one[0], one[1])
    other = draws(text, range(200, 400))
    error = ((one.var(0) + other.var(0)) / 200).sqrt()
    assert 0.7 < float(((one.mean(0) - other.mean(0)) / error).square().mean().sqrt()) < 1.3
    assert 0.8 < float((one.std(0) / other.std(0)).mean()) < 1.25
