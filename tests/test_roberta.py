"""The encoder against itself written out position by position, for every kind of sharing; without padding; dropout."""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy import stats
from torch.nn import functional as F

from pretrain.config import ModelConfig
from pretrain.data.batch import IGNORE, RowGroup
from pretrain.model.dropout import Noise, add_dropout, dropout
from pretrain.model.roberta import MaskedLM
from pretrain.model.text import WORTH, Packed, Text
from tests.model_cases import IDS, KINDS, MIXED, PAD, SHAPE, SIZE, WIDTH, batch_of, model_of, plain_losses


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("padded", "alone"), [(False, False), (True, False), (True, True)])
def test_losses_equal_the_plain_ones(kind, padded, alone):
    model, batch = model_of(KINDS[kind], language_ids=padded), batch_of(MIXED, padded, alone=alone)
    losses, plain = model(batch), plain_losses(model, batch)
    torch.testing.assert_close(losses, plain, rtol=0, atol=1e-5)
    assert losses.dtype == torch.float32 and bool((losses[batch.labels == IGNORE] == 0).all())
    assert plain.max().item() > 1  # the case is not trivial


@pytest.mark.parametrize(
    ("kind", "alone"), [*((kind, False) for kind in KINDS), ("shared", True), ("sep emb + L1-2", True)]
)
def test_gradients_equal_the_plain_ones(kind, alone):
    model, batch = model_of(KINDS[kind], language_ids=True), batch_of(alone=alone)
    weights = torch.linspace(0.5, 2, batch.labels.numel()).view_as(batch.labels)  # each slot its own weight
    mine = torch.autograd.grad((model(batch) * weights).sum(), list(model.parameters()))
    plain = torch.autograd.grad((plain_losses(model, batch) * weights).sum(), list(model.parameters()))
    for (name, _), a, b in zip(model.named_parameters(), mine, plain, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5, msg=name)


def test_sentences_that_stand_alone_are_as_rows_of_their_own():
    model = model_of()
    sentences = [np.asarray([0, *range(5, 5 + n), 2]) for n in (3, 1, 4)]
    width = [*map(len, sentences)]
    packed = torch.from_numpy(np.concatenate(sentences))[None]
    numbers = torch.arange(3).repeat_interleave(torch.tensor(width))[None]
    positions = torch.cat([torch.arange(n) for n in width])[None]
    k = torch.arange(sum(width))[None]
    batch = replace(batch_of(), groups=(RowGroup(0, 1, ((0, sum(width), 0),)),))
    batch = replace(batch, input_ids=packed, languages=torch.zeros_like(packed), masked=k, labels=packed, valid=None)
    together = model(replace(batch, terms=k, positions=positions, sentences=numbers)).squeeze(0).split(width)
    for sentence, losses in zip(sentences, together, strict=True):
        row = torch.from_numpy(sentence)[None]
        one = replace(batch, input_ids=row, languages=torch.zeros_like(row), labels=row, positions=None, sentences=None)
        alone = model(replace(one, masked=torch.arange(len(sentence))[None], terms=row)).squeeze(0)
        torch.testing.assert_close(losses, alone, rtol=0, atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_reach_exactly_what_belongs_to_the_language(kind):
    """A batch of language 0 alone moves nothing of language 1, and everything shared."""
    model = model_of(KINDS[kind])
    names = {name for name, _ in model.named_parameters()}
    model(batch_of((RowGroup(0, 3, ((0, WIDTH, 0),)),))).sum().backward()
    own = set(model.language_specific())
    for name, parameter in model.named_parameters():
        moved = parameter.grad is not None and bool(parameter.grad.any())
        layer = name.split(".")
        is_other_copy = name in own and layer[0] == "layers" and layer[2] == "1"
        assert moved != is_other_copy, name
    if model.embeddings.separate:
        words, positions = model.embeddings.words.grad, model.embeddings.positions.grad
        assert words is not None and positions is not None
        assert not words[len(IDS[0]) :].any() and words[: len(IDS[0])].any(1).all()  # each of its ids is in the softmax
        assert not positions[model.embeddings.length :].any() and positions[: WIDTH - 1].any(1).all()
    elif KINDS[kind].softmax == "language":
        words = model.embeddings.words.grad
        assert words is not None
        assert torch.equal(words.any(1), torch.isin(torch.arange(SIZE), torch.from_numpy(IDS[0])))
    assert own <= names and bool(own) == (KINDS[kind].separates)


def test_word_rows_are_those_of_the_language():
    shared, separate = model_of(), model_of(KINDS["sep emb"])
    ids = torch.tensor([4, 10, 11])
    assert torch.equal(shared.word_rows(ids, 1), shared.embeddings.words[ids])
    places = [len(IDS[0]) + list(IDS[1]).index(i) for i in ids.tolist()]
    assert torch.equal(separate.word_rows(ids, 1), separate.embeddings.words[places])
    separate.word_rows(ids, 0).sum().backward()
    assert separate.embeddings.words.grad is not None and separate.embeddings.words.grad.any(1).sum() == 3
    for member, absent in ((0, 20), (1, 5)):  # an id that a language lacks is an error and not another word
        with pytest.raises(IndexError):
            separate.word_rows(torch.tensor([absent]), member)


@pytest.mark.parametrize("kind", ["shared", "sep emb + L1-2"])
def test_hidden_is_what_the_losses_start_from(kind):
    model, batch = model_of(KINDS[kind], language_ids=True), batch_of((RowGroup(0, 3, ((0, WIDTH, 1),)),))
    states = model.read(Text.of(batch.input_ids, 1, batch.valid), layers=range(model.shape.layers + 1))
    assert len(states) == SHAPE.layers + 1
    last = model.read(Text.of(batch.input_ids, 1, batch.valid))[0]
    assert torch.equal(states[-1], last)
    at = model.head(last.gather(1, batch.masked.unsqueeze(-1).expand(-1, -1, SHAPE.hidden)))
    weight, bias = model.embeddings.outputs([1], restrict=model.sharing.softmax == "language")[1]
    labels = batch.labels
    if model.sharing.softmax == "language":
        labels = torch.where(labels == IGNORE, IGNORE, model.embeddings.places[1, labels.clamp(min=0)])
    expected = F.cross_entropy((at @ weight.T + bias).flatten(0, 1), labels.flatten(), reduction="none")
    torch.testing.assert_close(model(batch).flatten(), expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("kind", ["shared", "sep emb + L1-2"])
def test_bfloat16_is_near_float32(kind):
    model, batch = model_of(KINDS[kind], language_ids=True).train(), batch_of()
    plain = model(batch)
    with torch.autocast("cpu", torch.bfloat16):
        losses = model(batch)
    assert losses.dtype == torch.float32 and not torch.equal(losses, plain)
    torch.testing.assert_close(losses, plain, rtol=0.02, atol=0.1)
    losses.sum().backward()
    coarse = [p.grad.clone() for p in model.parameters() if p.grad is not None]
    fine = torch.autograd.grad(plain.sum(), list(model.parameters()))
    for a, b in zip(coarse, fine, strict=True):
        assert float((a - b).norm()) < 0.05 * float(b.norm())


def test_weights_are_a_function_of_shape_and_seed():
    one, same, other = (model_of(seed=seed).state_dict() for seed in (3, 3, 4))
    assert all(torch.equal(one[name], same[name]) for name in one)
    assert not any(torch.equal(one[n], other[n]) for n in one if one[n].ndim == 2)
    wide = MaskedLM(
        ModelConfig(hidden=64, heads=4, layers=2, feed_forward=128), KINDS["shared"], IDS, SIZE, 9, PAD, True, 0
    )
    stds = {name: float(p.std()) for name, p in wide.named_parameters() if p.ndim == 2}
    assert all(0.015 < std < 0.025 for std in stds.values())
    assert all(float(p.min()) == float(p.max()) for p in wide.parameters() if p.ndim == 1)


LENGTHS = (2, 9, 5, 3)
SEEN = torch.arange(10) < torch.tensor(LENGTHS)[:, None]
AT = {"none": None, "first": torch.zeros(4, 1, dtype=torch.int64), "many": torch.arange(9).clamp(max=1).repeat(4, 1)}


def text_of(model, member: int, **more) -> Text:
    own = model.embeddings.ids(member)
    ids = own[torch.randint(5, len(own), SEEN.shape, generator=torch.Generator().manual_seed(1))]
    return Text.of(ids.masked_fill(~SEEN, PAD), member, SEEN) if not more else replace(text_of(model, member), **more)


def test_tokens_and_rows():
    packed = Packed.of(SEEN)
    assert packed is not None and packed.places.tolist() == [0, 1, *range(10, 19), *range(20, 25), *range(30, 33)]
    x = torch.randn(4, 10, 3)
    picked = packed.pick(x)
    assert torch.equal(picked, x[SEEN]) and torch.equal(packed.pad(picked), x * SEEN[..., None])


@pytest.mark.parametrize("count", [0, 1, 2])
def test_only_where_it_is_worth_it(count):
    valid = torch.ones(2, 10, dtype=torch.bool)
    valid[0, 10 - count :] = False
    assert (Packed.of(valid) is None) == (int(valid.sum()) > WORTH * 20) == (count < 2)
    assert Packed.of(None) is None
    text = Text(torch.zeros(2, 10, dtype=torch.int64), valid, ((0, 5, 0), (5, 10, 1)))
    assert text.without_padding().packed is None  # rows of two languages


@pytest.mark.parametrize("slots", AT)
@pytest.mark.parametrize("kind", KINDS)
def test_equals_the_padded_rows_and_so_do_gradients(kind, slots):
    model, at = model_of(KINDS[kind], language_ids=True).double(), AT[slots]
    text = text_of(model, 1)
    layers, results = range(SHAPE.layers + 1), []
    seen = SEEN if at is None else torch.ones(at.shape, dtype=torch.bool)
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
    torch.testing.assert_close(b[SEEN], a[SEEN], rtol=1e-9, atol=1e-10)
    for other in (text_of(model, 0), replace(text, segments=None)):
        assert not torch.allclose(model.read(other.without_padding())[0][SEEN], a[SEEN])


def test_dropout_is_a_function_of_the_key_and_acts_as_on_padded_rows():
    model = model_of(shape=SHAPE.model_copy(update={"dropout": 0.25})).train()
    text = text_of(model, 0)

    def draws(given: Text, keys: range) -> torch.Tensor:
        states = []
        for key in keys:
            model.seed_dropout(key)
            states.append(model.read(given)[0][SEEN].detach())
        return torch.stack(states)

    one = draws(text.without_padding(), range(200))
    assert torch.equal(one[:2], draws(text.without_padding(), range(2))) and not torch.equal(one[0], one[1])
    other = draws(text, range(200, 400))
    error = ((one.var(0) + other.var(0)) / 200).sqrt()
    assert 0.7 < float(((one.mean(0) - other.mean(0)) / error).square().mean().sqrt()) < 1.3
    assert 0.8 < float((one.std(0) / other.std(0)).mean()) < 1.25


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
