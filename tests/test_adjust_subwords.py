"""Subwords as the units of alignment: what an aligner reads, what links mean then, and a whole adjustment."""

from __future__ import annotations

import json

import numpy as np
import pytest
from transformers import AutoTokenizer

from pretrain.adjust.batches import word_pairs
from pretrain.adjust.config import AdjustConfig
from pretrain.adjust.run import adjust
from pretrain.hub import open_base
from synthlang.config import parse
from synthlang.parallel.pairs import read_pair
from synthlang.parallel.prepare import DataConfig, prepare_pair
from synthlang.store import Store
from tests.adjust_models import KINDS, save_model
from tests.aligner_programs import FAST_ALIGN, install

LEFT = ["le petit chatnoir \u200d noir .", "unbelievablest chien !", "|||  chat"]
RIGHT = ["the small blackest cat .", "thingsdog dog happened !", "cat 1984"]
FORWARD = FAST_ALIGN.replace('"-r" in args', "0")  # both directions link the tokens in order


@pytest.fixture
def seen(tmp_path, monkeypatch):
    """What a fast_align read."""
    return install(monkeypatch, tmp_path / "bin", code=FORWARD) / "seen"


def pair_of(tmp_path, **changes):
    for name, lines in (("l", LEFT), ("r", RIGHT)):
        (tmp_path / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    links = {"kind": "aligner", "program": "fast_align"}
    given = {"kind": "text", "left": str(tmp_path / "l"), "right": str(tmp_path / "r"), "links": links, **changes}
    return parse(AdjustConfig, {"model": "m", "pairs": {"p": given}}).texts["p"]


def plain_ids(folder, line):
    """The ids of a line by the tokenizer's own call, a word at a time."""
    tokenizer = AutoTokenizer.from_pretrained(folder)
    return [i for word in line.split() for i in tokenizer(" " + word, add_special_tokens=False).input_ids]


@pytest.mark.parametrize("kind", KINDS)
def test_the_aligner_reads_tokens_and_tokens_are_linked(tmp_path, seen, kind):
    folder = save_model(tmp_path / "model", kind)
    base = open_base(str(folder))
    held = base.checkpoints[""]
    text = read_pair(pair_of(tmp_path, unit="subword"), (held, held), Store(tmp_path / "data"))
    ids = [[plain_ids(folder, line) for line in side] for side in (LEFT, RIGHT)]
    assert max(map(len, ids[0])) > max(len(line.split()) for line in LEFT)  # some words are cut
    assert seen.read_text().splitlines() == [
        " ".join(map(str, a)) + " ||| " + " ".join(map(str, b)) for a, b in zip(*ids, strict=True)
    ]
    data = prepare_pair("p", text, (held.tokenizer, held.tokenizer), DataConfig(dev=0), 40, 0)
    batch = word_pairs([data], [np.arange(3)], base.specials)
    for words, rows in ((batch.left, ids[0]), (batch.right, ids[1])):
        for i, expected in enumerate(rows):
            assert words.input_ids[i][words.mask[i].bool()].tolist()[1:-1] == expected
        assert (words.stop - words.start == 1).all()
    linked = [
        [
            int(words.input_ids.flatten()[words.start[k]])
            for words, k in zip((batch.left, batch.right), link, strict=True)
        ]
        for link in batch.links
    ]
    assert linked == [[a, b] for lines in zip(*ids, strict=True) for a, b in zip(*lines, strict=False)]


def test_words_and_subwords_are_not_the_same_text(tmp_path, seen):
    """Each has an alignment of its own, and so has each tokenizer."""
    models = [open_base(str(save_model(tmp_path / kind, kind))).checkpoints[""] for kind in ("bert", "roberta")]
    store = Store(tmp_path / "data")
    units = [("word", models[0]), ("subword", models[0]), ("subword", models[1]), ("word", models[1])]
    texts = [read_pair(pair_of(tmp_path, unit=unit), (held, held), store) for unit, held in units]
    assert len({text.fingerprint for text in texts}) == 3
    assert texts[0].fingerprint == texts[3].fingerprint
    assert [text.left.form.values()[0] for text in texts][::3] == ["le", "le"]


def test_a_file_of_links_counts_tokens_and_tokens_alike_are_dropped(tmp_path):
    folder = save_model(tmp_path / "model")
    held = open_base(str(folder)).checkpoints[""]
    left, right = plain_ids(folder, LEFT[1]), plain_ids(folder, RIGHT[1])
    last = f"{len(left) - 1}-{len(right) - 1}"  # the two marks
    (tmp_path / "links").write_text(f"\n0-0 {last} {len(left)}-0\n\n", encoding="utf-8")
    pair = pair_of(tmp_path, unit="subword", links={"kind": "file", "path": str(tmp_path / "links")})
    text = read_pair(pair, (held, held), Store(tmp_path / "data"))
    assert text.counts == {"links to words that are not there": 1}
    tokenizers = (held.tokenizer, held.tokenizer)
    data = prepare_pair("p", text, tokenizers, DataConfig(dev=0, exact_matches="drop"), 40, 0)
    assert data.links.of_pair(1) == [(0, 0)] and left[0] != right[0] and left[-1] == right[-1]
    assert data.counts["links between words written alike"] == 1


def test_an_adjustment_by_subwords(tmp_path, seen):
    model = save_model(tmp_path / "model")
    pair = pair_of(tmp_path, unit="subword").model_dump(mode="json")
    data = {"model": str(model), "pairs": {"p": pair}, "data": {"dev": 1}, "epochs": 8, "loss": {"pulled": "all"}}
    adjust(parse(AdjustConfig, {**data, "optimizer": {"learning_rate": 1e-3}}), tmp_path / "out")
    done = json.loads((tmp_path / "out" / "done.json").read_text())
    assert done["counts"]["p"]["sentence pairs to train on"] == 2
    assert done["after"]["related/p"] < done["before"]["related/p"]
    card = (tmp_path / "out" / "export" / "README.md").read_text()
    assert "those\nof linked words, CLS and SEP." in card
    assert seen.is_file()
