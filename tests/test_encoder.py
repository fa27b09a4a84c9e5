"""The encoder against itself written out position by position, for every kind of sharing."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

from pretrain.config import ModelConfig
from pretrain.data.batch import IGNORE, Group
from pretrain.model.encoder import MaskedLM
from pretrain.model.losses import slot_loss
from pretrain.model.text import Text
from tests.encoder_cases import (
    IDS,
    KINDS,
    MIXED,
    PAD,
    SHAPE,
    SIZE,
    WIDTH,
    batch_of,
    model_of,
    plain_losses,
)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("padded", [False, True])
def test_losses_equal_the_plain_ones(kind, padded):
    model, batch = model_of(KINDS[kind], language_ids=padded), batch_of(MIXED, padded)
    losses, plain = model(batch), plain_losses(model, batch)
    torch.testing.assert_close(losses, plain, rtol=0, atol=1e-5)
    assert losses.dtype == torch.float32 and bool((losses[batch.labels == IGNORE] == 0).all())
    assert plain.max().item() > 1  # the case is not trivial


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_equal_the_plain_ones(kind):
    model, batch = model_of(KINDS[kind], language_ids=True), batch_of()
    weights = torch.linspace(0.5, 2, batch.labels.numel()).view_as(batch.labels)  # each slot its own weight
    mine = torch.autograd.grad((model(batch) * weights).sum(), list(model.parameters()))
    plain = torch.autograd.grad((plain_losses(model, batch) * weights).sum(), list(model.parameters()))
    for (name, _), a, b in zip(model.named_parameters(), mine, plain, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5, msg=name)


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_reach_exactly_what_belongs_to_the_language(kind):
    """A batch of language 0 alone moves nothing of language 1, and everything shared."""
    model = model_of(KINDS[kind])
    names = {name for name, _ in model.named_parameters()}
    model(batch_of((Group(0, 3, ((0, WIDTH, 0),)),))).sum().backward()
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
    model, batch = model_of(KINDS[kind], language_ids=True), batch_of((Group(0, 3, ((0, WIDTH, 1),)),))
    states = model.read(Text.of(batch.input_ids, 1, batch.valid), layers=range(model.shape.layers + 1))
    assert len(states) == SHAPE.layers + 1
    last = model.hidden(batch.input_ids, 1, batch.valid)
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


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_slot_loss_equals_pytorchs_cross_entropy(dtype):
    draw = torch.Generator().manual_seed(0)
    hidden, weight, bias = (torch.randn(s, generator=draw, requires_grad=True) for s in ((9, 6), (30, 6), (30,)))
    labels = torch.randint(0, 30, (9,), generator=draw)
    labels[[2, 5]] = IGNORE
    scale = torch.rand(9, generator=draw)
    with torch.autocast("cpu", torch.bfloat16, enabled=dtype == torch.bfloat16):
        mine = slot_loss(hidden, weight, bias, labels)
        theirs = F.cross_entropy((hidden @ weight.T + bias).float(), labels, reduction="none")
    rtol, atol = (0, 1e-5) if dtype == torch.float32 else (0.02, 0.05)
    torch.testing.assert_close(mine, theirs, rtol=rtol, atol=atol)
    gradients = [torch.autograd.grad((loss * scale).sum(), [hidden, weight, bias]) for loss in (mine, theirs)]
    for a, b in zip(*gradients, strict=True):
        torch.testing.assert_close(a, b, rtol=rtol, atol=atol)
