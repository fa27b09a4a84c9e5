"""Sentence pairs read for two languages of one model, and the alignment loss on our models and on Hugging Face's."""

import copy
from dataclasses import replace

import numpy as np
import pytest
import torch

from pretrain.adjust.batches import word_pairs
from pretrain.adjust.config import LossConfig
from pretrain.adjust.loss import AlignmentLoss
from pretrain.adjust.vectors import encoder_of, layer_numbers, word_vectors
from pretrain.config import SharingConfig
from pretrain.hub import load_model, longest_input, open_base
from pretrain.model.from_hf import from_hf
from probes.transfer.aligned_text import read_aligned
from probes.transfer.model import open_pretrained
from synthlang.config import parse
from synthlang.corpus import Corpus
from synthlang.errors import InputError
from synthlang.parallel.links import Links
from synthlang.parallel.pairs import LinkedText, TextPair
from synthlang.parallel.prepare import DataConfig, prepare_pair
from synthlang.parallel.text import as_tokens
from tests.adjust_models import KINDS, save_model
from tests.aligned_runs import SEPARATE, random_run

LEFT = ["le petit chatnoir noir .", "unbelievablest chien !", "un chienchat voit"]
RIGHT = ["the small blackest cat .", "thingsdog dog happened !", "a sees black"]
LINKS: list[list[tuple[int, int]]] = [[(0, 0), (1, 1), (2, 3), (3, 2)], [(0, 0), (1, 1)], [(0, 0)]]
LEFT_TEXT, RIGHT_TEXT = (Corpus.of_words([s.split() for s in side]) for side in (LEFT, RIGHT))
TEXT = LinkedText(LEFT_TEXT, RIGHT_TEXT, Links.of(LINKS), "", {})


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    return {kind: save_model(tmp_path_factory.mktemp("models") / kind, kind) for kind in KINDS}


def ours(folder):
    held = open_base(str(folder)).checkpoints[""]
    return from_hf(str(folder), SharingConfig(), ids=[np.arange(held.rows)], size=held.rows, language_ids=False, seed=0)


def batch_of(folder, rows=(0, 1, 2), right=None):
    base = open_base(str(folder))
    tokenizer = base.checkpoints[""].tokenizer
    data = prepare_pair("x", TEXT, (tokenizer, tokenizer), DataConfig(dev=0), 40, 0, (0, 0))
    return word_pairs([data], [np.asarray(rows, np.int64)], base.specials, right)


@pytest.mark.parametrize("settings", [{}, {"pulled": "all", "layers": (0, 2, -1), "subword": "mean", "held": "both"}])
@pytest.mark.parametrize("kind", KINDS)
def test_our_model_has_the_loss_of_theirs(folders, kind, settings):
    """The same checkpoint in both: the same sums, before and after the same change."""
    config = LossConfig(**settings)
    theirs, mine = load_model(open_base(str(folders[kind]))).eval(), ours(folders[kind]).eval()
    batch = batch_of(folders[kind])
    losses = [AlignmentLoss.of(model, config).eval() for model in (theirs, mine)]
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
    with pytest.raises(InputError, match=r"features\.layers: the model has no layer 4; it has 0"):
        layer_numbers((4,), mine, "features.layers")


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


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return random_run(tmp_path_factory.mktemp("store"), **SEPARATE)


def written(folder, left, right, links) -> dict[str, object]:
    (folder / "text").write_text("".join(f"{a} ||| {b}\n" for a, b in zip(left, right, strict=True)), encoding="utf-8")
    (folder / "links").write_text("".join(" ".join(f"{a}-{b}" for a, b in of) + "\n" for of in links))
    files = {"kind": "file", "path": str(folder / "links")}
    return {"kind": "text", "joint": str(folder / "text"), "links": files}


def test_files_are_read_by_each_sides_tokenizer(run, tmp_path):
    """The sentences that are aligned by construction, written to files: the same ids, links and members."""
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


def test_subwords_are_those_of_each_sides_tokenizer(run, tmp_path):
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
    with pytest.raises(InputError, match="bert: its pretraining text is not known, so name sentence pairs"):
        read_aligned({}, DataConfig(dev=0), pretrained)
    pair = parse(TextPair, written(tmp_path, LEFT, RIGHT, LINKS))
    (read,) = read_aligned({"x": pair}, DataConfig(dev=0), pretrained)
    batch, expected = (
        word_pairs([read.data], [np.arange(3)], pretrained.source.specials),
        batch_of(folders["bert"]),
    )
    assert batch.left.input_ids.tolist() == expected.left.input_ids.tolist()
    assert batch.links.tolist() == expected.links.tolist()
    assert copy.deepcopy(batch.left).language == 0
