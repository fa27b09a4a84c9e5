"""Continual learning: sentence pairs read for two languages of one model, the loss against plain ones, what it does."""

import copy
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from pretrain.adjust.batches import SinglePairBatches, word_pairs
from pretrain.adjust.config import LossConfig, Pulled
from pretrain.adjust.loss import AlignmentLoss
from pretrain.adjust.vectors import distances, encoder_of, layer_numbers, word_vectors
from pretrain.config import SharingConfig
from pretrain.hub import load_model, longest_input, open_base
from pretrain.model.from_hf import from_hf
from pretrain.model.text import Text
from probes.models.aligned import read_aligned
from probes.models.opening import open_pretrained
from probes.transfer.config import ContinualConfig
from probes.transfer.continual import Continual
from synthlang.config import parse
from synthlang.corpus import Corpus
from synthlang.language import PARENT, parse_language
from synthlang.parallel.links import Links
from synthlang.parallel.pairs import LinkedText, TextPair
from synthlang.parallel.prepare import DataConfig, prepare_pair
from synthlang.parallel.text import as_tokens
from tests.adjust_models import KINDS, save_model
from tests.aligned_runs import plain_states
from tests.refusals import refusal, refused

LEFT = ["le petit chatnoir noir .", "unbelievablest chien !", "un chienchat voit"]
RIGHT = ["the small blackest cat .", "thingsdog dog happened !", "a sees black"]
LINKS: list[list[tuple[int, int]]] = [[(0, 0), (1, 1), (2, 3), (3, 2)], [(0, 0), (1, 1)], [(0, 0)]]
LEFT_TEXT, RIGHT_TEXT = (Corpus.of_words([s.split() for s in side]) for side in (LEFT, RIGHT))
TEXT = LinkedText(LEFT_TEXT, RIGHT_TEXT, Links.of(LINKS), "", {})


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    return {kind: save_model(tmp_path_factory.mktemp("models") / kind, kind) for kind in KINDS}


def ours(folder):
    rows = open_base(str(folder)).checkpoints[""].rows
    return from_hf(str(folder), SharingConfig(), ids=[np.arange(rows)], size=rows, language_ids=False, seed=0)


def batch_of(folder, rows=(0, 1, 2), right=None):
    base = open_base(str(folder))
    tokenizer = base.checkpoints[""].tokenizer
    data = prepare_pair("x", TEXT, (tokenizer, tokenizer), DataConfig(dev=0), 40, 0, (0, 0))
    return word_pairs([data], [np.asarray(rows, np.int64)], base.specials, right)


@pytest.mark.parametrize("settings", [{}, {"pulled": "all", "layers": (0, 2, -1), "subword": "mean", "held": "both"}])
@pytest.mark.parametrize("kind", KINDS)
def test_our_model_has_the_loss_of_theirs(folders, kind, settings):
    """The same checkpoint in both models gives the same sums, before and after the same change."""
    config = LossConfig(**settings)
    theirs, mine = load_model(open_base(str(folders[kind]))).eval(), ours(folders[kind]).eval()
    batch = batch_of(folders[kind])
    losses = [AlignmentLoss(model, None, config).eval() for model in (theirs, mine)]
    for model, table in ((theirs, theirs.get_input_embeddings().weight), (mine, mine.embeddings.words)):
        with torch.no_grad():
            table.mul_(1.3)
        assert encoder_of(model) is (mine if model is mine else model.base_model)
    expected, found = (loss(batch) for loss in losses)
    assert losses[0].counts(batch) == losses[1].counts(batch)
    assert expected["hold"].item() > 0.1 < expected["pull"].item()
    for name, value in expected.items():
        torch.testing.assert_close(found[name], value, rtol=1e-4, atol=1e-4)
    total = losses[1].total(batch)
    total.backward()
    assert total.item() == pytest.approx((expected["pull"] + expected["hold"]).item(), rel=1e-4)
    assert mine.embeddings.words.grad is not None
    assert all(p.grad is None for p in losses[1].frozen.parameters())
    assert layer_numbers((-1, 0), mine) == (3, 0)
    refusal(layer_numbers, (4,), mine, "features.layers")


@pytest.mark.parametrize("make", ["ours", "theirs"])
def test_sentences_as_long_as_the_model_reads(tmp_path, make):
    """Widths are rounded up to a multiple of 8, which may be more than a model of 13 tokens has positions for."""
    folder = save_model(tmp_path / "odd", "bert", max_position_embeddings=13)
    base = open_base(str(folder))
    model = (ours(folder) if make == "ours" else load_model(base)).eval()
    limit = model.embeddings.length if make == "ours" else longest_input(model)
    assert limit == 13
    words = Corpus.of_words([["a"] * 11, ["the", "a"]])
    tokenizer = base.checkpoints[""].tokenizer
    assert len(tokenizer.encode("a", add_special_tokens=False).ids) == 1
    text = LinkedText(words, words, Links.of([[(i, i) for i in range(11)], [(0, 0)]]), "", {})
    data = prepare_pair("x", text, (tokenizer, tokenizer), DataConfig(dev=0), limit, 0)
    assert data.train.tolist() == [0, 1]
    batch = word_pairs([data], [data.train], base.specials)
    assert batch.left.input_ids.shape == (2, 16)
    vectors = word_vectors(encoder_of(model), batch.left, (0, 3), "mean", 2)
    alone = word_pairs([data], [data.train[1:]], base.specials).left  # 8 columns wide
    torch.testing.assert_close(vectors[:, 11:13], word_vectors(encoder_of(model), alone, (0, 3), "mean"))
    assert vectors.shape == (2, 13 + 2 * 2, 16)
    assert bool((vectors != 0).any(-1).all())


def test_each_side_has_its_own_sentence_tokens(folders):
    special = open_base(str(folders["bert"])).specials
    batch = batch_of(folders["bert"], right=replace(special, bos=7, eos=8, pad=9))
    same = batch_of(folders["bert"])
    assert batch.left.input_ids.tolist() == same.left.input_ids.tolist()
    assert set(batch.right.input_ids[:, 0].tolist()) == {7}
    assert (batch.right.input_ids == 9).sum() == (same.right.input_ids == special.pad).sum() > 0
    assert batch.to(torch.device("cpu")).right.language == 0


def written(folder, left, right, links) -> dict[str, object]:
    (folder / "text").write_text("".join(f"{a} ||| {b}\n" for a, b in zip(left, right, strict=True)), encoding="utf-8")
    (folder / "links").write_text("".join(" ".join(f"{a}-{b}" for a, b in of) + "\n" for of in links))
    files = {"kind": "file", "path": str(folder / "links")}
    return {"kind": "text", "joint": str(folder / "text"), "links": files}


def test_files_are_read_by_each_sides_tokenizer(runs, tmp_path):
    """The sentences that are aligned by construction, written to files: the same ids, links and members."""
    run = runs["separate"]
    (own,) = read_aligned({}, DataConfig(dev=0), run)
    sides = [[" ".join(side[i].words) for i in range(9)] for side in (own.text.left, own.text.right)]
    pair = parse(TextPair, written(tmp_path, sides[0], sides[1], [own.text.links.of_pair(i) for i in range(9)]))
    (read,) = read_aligned({"x": pair, "y": None}, DataConfig(dev=0), run)
    assert read.data.name == "x"
    assert read.data.train.tolist() == [row for row in own.data.train.tolist() if row < 9] != []
    assert (read.data.left.language, read.data.right.language) == (1, 0)
    for side in ("left", "right"):
        mine, expected = getattr(read.data, side), getattr(own.data, side)
        assert mine.ids.tolist() == expected.ids[: expected.bounds[9]].tolist()
    assert read.data.links.left.tolist() == own.data.links.left[: own.data.links.offsets[9]].tolist()
    assert int(own.data.left.ids.min()) > int(own.data.right.ids.max())  # so each side has its own tokenizer


def test_subwords_are_those_of_each_sides_tokenizer(runs, tmp_path):
    run = runs["separate"]
    (own,) = read_aligned({}, DataConfig(dev=0), run)
    rows = own.data.train[:4].tolist()
    sides = [[" ".join(side[i].words) for i in rows] for side in (own.text.left, own.text.right)]
    pair = parse(TextPair, written(tmp_path, sides[0], sides[1], [[(0, 0), (1, 2)]] * 4) | {"unit": "subword"})
    (read,) = read_aligned({"x": pair}, DataConfig(dev=0), run)
    for reader, corpus, sentences in (
        (run.target, own.text.left, read.data.left),
        (run.source, own.text.right, read.data.right),
    ):
        tokens = as_tokens(reader.tokenizer.tokenizer, corpus)
        assert sentences.ids.tolist() == [int(word) for i in rows for word in tokens[i].words]
        assert np.diff(sentences.word_offsets).tolist() == [1] * len(sentences.ids)


def test_models_of_hugging_face_need_pairs(folders, tmp_path):
    pretrained = open_pretrained(str(folders["bert"]), "trans")
    assert refused(read_aligned, {}, DataConfig(dev=0), pretrained) == ("pairs", "missing")
    pair = parse(TextPair, written(tmp_path, LEFT, RIGHT, LINKS))
    (read,) = read_aligned({"x": pair}, DataConfig(dev=0), pretrained)
    batch, expected = (
        word_pairs([read.data], [np.arange(3)], pretrained.source.specials),
        batch_of(folders["bert"]),
    )
    assert batch.left.input_ids.tolist() == expected.left.input_ids.tolist()
    assert batch.links.tolist() == expected.links.tolist()
    assert copy.deepcopy(batch.left).language == 0


# --- the loss, and what it does to fine-tuning ---


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
                unmoved = plain_states(before, pretrained.source, right, layer, subword)
                for a, b in links:
                    total = total + (f_left[a] - f_right[b]).square().sum()
                for now, then in zip(f_right, unmoved, strict=True):
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
    if kind == "separate":  # read through the parent's parts, the derived ids are not even there
        wrong = replace(pretrained, target=replace(pretrained.target, number=0))
        with pytest.raises(IndexError):
            continual_of(config(), wrong, body, seed=1)[0].loss(0)


def plain_loss_of_words(continual, texts, pretrained, body, before, step, held_words) -> torch.Tensor:
    """L + R of single pairs (the mean of subwords, the last layer), each read alone in its sentences."""
    total, held = torch.zeros(()), {}
    for text, chosen in zip(texts, continual.batches.chosen(step), strict=True):
        for row, item in chosen.tolist():
            left, right = text.text.left[row].words, text.text.right[row].words
            around = [(len(left), len(right)), (len(left) + 1, len(right) + 1)]
            a, b = [*text.data.links.of_pair(row), *around][item]
            f_left = plain_states(body, pretrained.target, left, 2, "mean")
            f_right = plain_states(body, pretrained.source, right, 2, "mean")
            total = total + (f_left[a] - f_right[b]).square().sum()
            unmoved = plain_states(before, pretrained.source, right, 2, "mean")
            for word in [b, *(range(len(right)) if held_words == "all" else ())]:
                held[text.data.name, row, word] = (f_right[word] - unmoved[word].detach()).square().sum()
    return sum(held.values(), total)


@pytest.mark.parametrize("held_words", ["aligned", "all"])
@pytest.mark.parametrize("kind", ["shared", "separate"])
def test_the_loss_of_single_word_pairs_is_that_of_a_plain_one(runs, kind, held_words):
    """Equation 2 as printed: a step draws 16 pairs of aligned words, of all that are pulled in the parallel text."""
    pretrained = runs[kind]
    body = copy.deepcopy(pretrained.model).eval()
    loss = {"subword": "mean", "pulled": "all", "held_words": held_words}
    continual, texts = continual_of(config(rows=16, sample="words", loss=loss), pretrained, body, seed=1)
    before = copy.deepcopy(body)
    moved(body)
    for step in (0, 7):
        assert [drawn.shape for drawn in continual.batches.chosen(step)] == [(16, 2)]
        mine = continual.loss(step)
        plain = 0.5 * plain_loss_of_words(continual, texts, pretrained, body, before, step, held_words)
        torch.testing.assert_close(mine, plain, rtol=1e-5, atol=1e-4)
        own, other = (torch.autograd.grad(x, body.layers.parameters(), allow_unused=True) for x in (mine, plain))
        for a, b in zip(own, other, strict=True):
            assert (a is None) == (b is None)
            torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-3) if a is not None else None


def test_an_epoch_of_single_pairs_draws_each_one_once(folders):
    """Word alignments and sentence tokens alike, also with a number of pairs a step that does not divide theirs."""
    base = open_base(str(folders["bert"]))
    tokenizer = base.checkpoints[""].tokenizer
    data = prepare_pair("x", TEXT, (tokenizer, tokenizer), DataConfig(dev=0), 40, 0)
    cases: list[tuple[Pulled, list[int]]] = [("all", [6, 4, 3]), ("words", [4, 2, 1]), ("cls", [1, 1, 1])]
    for pulled, items in cases:
        batches = SinglePairBatches([data], base.specials, LossConfig(pulled=pulled), 2, seed=3)
        drawn = np.concatenate([batches.chosen(step)[0] for step in range(sum(items))])
        expected = [(row, item) for row, count in enumerate(items) for item in range(count)]
        first, second = (list(map(tuple, half.tolist())) for half in np.split(drawn, 2))
        assert sorted(first) == sorted(second) == expected
        assert first != second


def test_the_regularizer_is_from_f0_of_another_model(runs):
    """For an adjusted model, f⁰ is the original model (equation 1). R is the plain sum, and not 0 at the first step."""
    pretrained = runs["shared"]
    original, body = (copy.deepcopy(pretrained.model).eval() for _ in range(2))
    moved(body)  # the adjustment
    settings = config(loss={"pulled": "all", "subword": "mean"})
    texts = read_aligned(settings.pairs, settings.data, pretrained, seed=1)
    found = {}
    for name, before in (("original", original), ("itself", None)):
        continual = Continual(settings, pretrained, body, 1, texts, before)
        plain = plain_loss(continual, texts, pretrained, body, before or body, 0, [2], "mean")
        found[name] = continual.loss(0)
        torch.testing.assert_close(found[name], 0.5 * plain, rtol=1e-5, atol=1e-4)
        assert all(p.grad is None and not p.requires_grad for p in continual._align.frozen.parameters())
    assert found["original"] > found["itself"] + 1.0


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
    "no text": (lambda p: replace(p, text=None), {}, "pairs", "missing"),
    "natural": (lambda p: replace(p, natural=True), {}, "pairs", "missing"),
    "identical": (lambda p: replace(p, target=replace(p.target, language=PARENT)), {}, "pairs", "conflict"),
    "tokenizers": (
        lambda p: p,
        *({"pairs": {"x": {**SAME, "tokenizers": ["a", "b"]}}}, "pairs.x.tokenizers", "no_effect"),
    ),
    "aligner": (lambda p: p, {"pairs": {"x": ALIGNER}}, "pairs.x.links", "unsupported"),
    "layer": (lambda p: p, {"loss": {"layers": [3]}}, "loss.layers", "range"),
    "length": (lambda p: p, {"data": {"dev": 0, "length": 49}}, "data.length", "range"),
    "held out": (lambda p: p, {"data": {"dev": 1000}}, "pairs", "empty"),
    "tokens": (lambda p: replace(p, target=replace(p.target, language=ON_TOKENS)), {}, "language", "conflict"),
}


@pytest.mark.parametrize("name", BAD)
def test_text_that_cannot_be_aligned(runs, name):
    change, settings, place, code = BAD[name]
    pretrained = change(runs["shared"])
    assert refused(lambda: continual_of(config(**settings), pretrained, pretrained.model, seed=0)) == (place, code)
