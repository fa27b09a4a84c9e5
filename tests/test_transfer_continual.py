"""Continual learning: its loss against a plain one a word at a time, and what it does to fine-tuning."""

import copy
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import nn

from pretrain.adjust.measure import distances
from pretrain.model.text import Text
from probes.transfer.aligned_text import read_aligned
from probes.transfer.config import ContinualConfig
from probes.transfer.continual import Continual
from synthlang.config import parse
from synthlang.errors import InputError
from synthlang.language import PARENT, parse_language
from synthlang.parallel.prepare import DataConfig
from synthlang.store import Store
from tests.aligned_runs import SEPARATE, plain_states, random_run


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("store")
    return {"shared": random_run(folder), "separate": random_run(folder, **SEPARATE)}


def config(alpha: float = 0.5, rows: int = 4, **settings: Any) -> ContinualConfig:
    return parse(ContinualConfig, {"alpha": alpha, "rows": rows, **settings})


def continual_of(settings: ContinualConfig, pretrained, body, seed: int) -> tuple[Continual, Any]:
    """With its sentence pairs."""
    texts = read_aligned(settings.pairs, settings.data, pretrained, seed)
    return Continual(settings, pretrained, body, seed, texts), texts


def moved(body):
    """Other weights than before, so that R is not 0."""
    generator = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for parameter in body.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=generator) * 0.05)


def plain_loss(continual, texts, pretrained, body, before, step, layers, subword) -> torch.Tensor:
    """L + λR with the sentence tokens, each sentence and word alone."""
    total = torch.zeros(())
    for text, chosen in zip(texts, continual.batches.chosen(step), strict=True):
        for row in chosen.tolist():
            links = text.data.links.of_pair(row)
            left, right = text.text.left[row].words, text.text.right[row].words
            links = [*links, (len(left), len(right)), (len(left) + 1, len(right) + 1)]
            for layer in layers:
                f_left = plain_states(body, pretrained.target, left, layer, subword)
                f_right = plain_states(body, pretrained.source, right, layer, subword)
                held = plain_states(before, pretrained.source, right, layer, subword)
                for a, b in links:
                    total = total + (f_left[a] - f_right[b]).square().sum()
                for now, then in zip(f_right, held, strict=True):
                    total = total + (now - then.detach()).square().sum()
    return total


@pytest.mark.parametrize(
    ("kind", "loss"),
    [("shared", {}), ("separate", {}), ("separate", {"layers": [0, 1, -1], "subword": "end", "pulled": "all"})],
)
def test_the_loss_is_that_of_a_plain_one(runs, kind, loss):
    pretrained = runs[kind]
    body = copy.deepcopy(pretrained.model).eval()
    settings = config(loss=loss or config().loss.model_dump(mode="json"))
    continual, texts = continual_of(settings, pretrained, body, seed=1)
    before = copy.deepcopy(body)
    moved(body)
    layers, subword = ([0, 1, 2], "last") if loss else ([2], "mean")
    for step in (0, 7):
        plain = plain_loss(continual, texts, pretrained, body, before, step, layers, subword)
        mine = continual.loss(step)
        torch.testing.assert_close(mine, 0.5 * plain, rtol=1e-5, atol=1e-4)
        own, other = (torch.autograd.grad(x, body.layers.parameters(), allow_unused=True) for x in (mine, 0.5 * plain))
        for a, b in zip(own, other, strict=True):
            assert (a is None) == (b is None)
            torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-3) if a is not None else None
    assert pretrained.target.number == 1  # so that separate parts are those of each side
    expected = {"shared": False, "separate": True}[kind]
    wrong = replace(pretrained, target=replace(pretrained.target, number=0))
    if expected:  # read through the parent's parts, the derived ids are not even there
        with pytest.raises(IndexError):
            continual_of(config(), wrong, body, seed=1)[0].loss(0)


def test_it_is_a_function_of_the_seed_and_the_step(runs):
    pretrained = runs["shared"]
    body = copy.deepcopy(pretrained.model).train()
    (one, texts), (other, _) = (continual_of(config(), pretrained, body, seed=3) for _ in range(2))
    first = [one.loss(step).item() for step in (0, 1, 2)]
    body.seed_dropout(99)
    assert [other.loss(step).item() for step in (2, 0, 1)] == [first[2], first[0], first[1]]
    assert len(set(first)) == 3
    assert continual_of(config(), pretrained, body, seed=4)[0].loss(0).item() != first[0]
    without_dropout = Continual(config(), pretrained, copy.deepcopy(body).eval(), 3, texts)
    assert one.loss(0).item() != without_dropout.loss(0).item()
    half = Continual(config(alpha=0.25), pretrained, body, 3, texts).loss(1)
    assert half.item() == pytest.approx(first[1] / 2, rel=1e-6)


def fine_tuned(pretrained, texts, alpha: float | None, steps: int = 12, rate: float = 3e-3):
    """A few steps of a task on the parent: whether a sentence has an even number of tokens."""
    body = copy.deepcopy(pretrained.model).train()
    with torch.random.fork_rng():
        torch.manual_seed(0)
        head = nn.Linear(body.shape.hidden, 2)
    continual = None if alpha is None else Continual(config(alpha, rows=8), pretrained, body, seed=0, texts=texts)
    optimizer = torch.optim.Adam([*body.parameters(), *head.parameters()], lr=rate)
    right = texts[0].data.right
    for step in range(steps):
        ids = [
            right.ids[right.bounds[row] : right.bounds[row + 1]].tolist()[:6] for row in range(step * 4, step * 4 + 4)
        ]
        rows = torch.tensor([(row * 6)[:6] for row in ids])
        body.seed_dropout(step)
        logits = head(body.read(Text.of(rows, pretrained.source.number))[0][:, 0])
        loss = nn.functional.cross_entropy(logits, torch.tensor([len(row) % 2 for row in ids]))
        if continual is not None:
            loss = loss + continual.loss(step)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return body


def test_linked_words_come_closer(runs):
    """Held-out ones, and more than words that are not linked do."""
    pretrained = runs["shared"]
    texts = read_aligned({}, DataConfig(dev=40), pretrained)
    related, ratio = {}, {}
    for name, alpha in (("without", None), ("with", 1.0)):
        body = fine_tuned(pretrained, texts, alpha, 30, 5e-4)
        found = distances(body, [texts[0].data], pretrained.source.specials, config().loss)
        related[name] = found["related/pretraining"]
        ratio[name] = related[name] / found["unrelated/pretraining"]
    assert related["with"] < 0.8 * related["without"]
    assert ratio["with"] < ratio["without"]


def test_language_parts_that_are_frozen_stay(runs):
    pretrained = runs["separate"]
    body = copy.deepcopy(pretrained.model).train()
    own = set(body.language_specific())
    for name, parameter in body.named_parameters():
        parameter.requires_grad_(name not in own)
    continual, _ = continual_of(config(), pretrained, body, seed=0)
    continual.loss(0).backward()
    with_gradient = {name for name, p in body.named_parameters() if p.grad is not None}
    assert own and not own & with_gradient
    assert any(name.startswith("layers.1.") for name in with_gradient)
    assert all(p.grad is None and not p.requires_grad for p in continual._align.frozen.parameters())
    assert all(p.requires_grad is (name not in own) for name, p in body.named_parameters())


SAME = {"kind": "derived", "source": "builtin:mini-english?types=500&sentences=20", "left": "parent", "right": "parent"}
ALIGNER = {"kind": "text", "left": "a", "right": "b"}
ON_TOKENS = parse_language({"name": "x", "transforms": [{"kind": "invert", "unit": "token"}]})
BAD: dict[str, Any] = {
    "no text": (lambda p: replace(p, text=None), {}, "its pretraining text is not known, so name sentence pairs"),
    "natural": (lambda p: replace(p, natural=True), {}, "is not derived from the source language"),
    "identical": (lambda p: replace(p, target=replace(p.target, language=PARENT)), {}, "the source language itself"),
    "tokenizers": (lambda p: p, {"pairs": {"x": {**SAME, "tokenizers": ["a", "b"]}}}, "pairs.x.tokenizers: leave it"),
    "aligner": (lambda p: p, {"pairs": {"x": ALIGNER}}, "pairs.x.links: an aligner finds other links"),
    "layer": (lambda p: p, {"loss": {"layers": [3]}}, "loss.layers: the model has no layer 3; it has 0"),
    "length": (lambda p: p, {"data": {"dev": 0, "length": 49}}, "data.length 49 is longer than the 48 tokens"),
    "held out": (lambda p: p, {"data": {"dev": 1000}}, "pairs.pretraining: no sentence pair is left to train or fit"),
    "specials": (
        lambda p: replace(p, target=replace(p.target, specials=replace(p.target.specials, bos=9))),
        {},
        "they have other special tokens",
    ),
    "tokens": (
        lambda p: replace(p, target=replace(p.target, language=ON_TOKENS)),
        {},
        "its transforms with unit: token leave no words",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_what_cannot_be_aligned_is_said(runs, name):
    change, settings, message = BAD[name]
    pretrained = change(runs["shared"])
    with pytest.raises(InputError, match=message):
        continual_of(config(**settings), pretrained, pretrained.model, seed=0)


def test_an_aligner_needs_a_place_for_its_links(runs, tmp_path):
    """With a store the text is read, which is not there."""
    with pytest.raises(InputError, match="a: cannot read: No such file"):
        read_aligned(config(pairs={"x": ALIGNER}).pairs, DataConfig(), runs["shared"], store=Store(tmp_path))
