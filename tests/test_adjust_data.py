"""Selection of word-aligned text, batches of an adjustment, and distances of held-out words, against plain versions."""

import copy

import numpy as np
import pytest
import torch
from transformers import AutoTokenizer

from pretrain.adjust.batches import PairBatches, dev_batches, word_pairs
from pretrain.adjust.config import AdjustConfig, LossConfig
from pretrain.adjust.vectors import distances, encoder_of
from pretrain.hub import load_model, open_base
from synthlang.config import parse
from synthlang.corpus import Corpus
from synthlang.parallel.links import Links
from synthlang.parallel.pairs import DerivedPair, LinkedText, read_pair
from synthlang.parallel.prepare import DataConfig, PairData, prepare_pair
from synthlang.store import Store
from tests.adjust_models import KINDS, save_model
from tests.aligner_programs import FAST_ALIGN, install
from tests.refusals import refusal, refused

TEXT = "the small dog sees a black cat le petit chien voit un chat noir thingsdog chatnoir"
WORDS = TEXT.split()


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    return open_base(str(save_model(tmp_path_factory.mktemp("bert"))))


def linked(count: int, seed: int = 0) -> LinkedText:
    """Random sentences of 1 to 5 words, the left ones in reverse order on the right."""
    generator = np.random.default_rng(seed)
    left = [[WORDS[i] for i in generator.integers(0, len(WORDS), generator.integers(1, 6))] for _ in range(count)]
    right = [words[::-1] for words in left]
    links = Links.of([{(i, len(words) - 1 - i) for i in range(len(words))} for words in left])
    return LinkedText(Corpus.of_words(left), Corpus.of_words(right), links, "", {})


def prepared(base, text: LinkedText, name: str = "x", seed: int = 0, length: int = 40, **settings: object) -> PairData:
    tokenizer = base.checkpoints[""].tokenizer
    config = DataConfig.model_validate({"dev": 0, **settings})
    return prepare_pair(name, text, (tokenizer, tokenizer), config, length, seed)


def small_text(links, left=None, right=None) -> LinkedText:
    left = left or [["le", "chat", "noir"], ["chien"], ["a", "dog"]]
    right = right or [["the", "black", "cat"], ["dog"], ["un", "dog"]]
    return LinkedText(Corpus.of_words(left), Corpus.of_words(right), Links.of(links), "", {"before": 7})


def test_links_are_left_out_and_counted(base):
    text = small_text([{(0, 0), (1, 2), (1, 1), (2, 1)}, {(0, 0)}, {(0, 0), (1, 1)}])
    data = prepared(base, text)
    assert [data.links.of_pair(i) for i in range(3)] == [[(0, 0)], [(0, 0)], [(0, 0), (1, 1)]]
    assert data.counts == {
        "before": 7, "links not one to one": 3, "sentence pairs to train on": 3, "sentence pairs to measure on": 0,
    }  # fmt: skip
    data = prepared(base, text, one_to_one=False, exact_matches="drop")
    assert [data.links.of_pair(i) for i in range(3)] == [[(0, 0), (1, 1), (1, 2), (2, 1)], [(0, 0)], [(0, 0)]]
    assert data.counts["links between words written alike"] == 1


def test_sentence_pairs_are_left_out_and_counted(base):
    text = small_text([{(0, 0)}, set(), {(0, 0)}])
    tokens = len(base.checkpoints[""].tokenizer.encode("le chat noir", add_special_tokens=False).ids)
    data = prepared(base, text, length=tokens + 2)
    assert data.train.tolist() == [0, 2]
    assert data.counts["sentence pairs without a usable link"] == 1
    data = prepared(base, text, length=tokens + 1)
    assert data.train.tolist() == [2]
    assert data.counts[f"sentence pairs over {tokens + 1} tokens"] == 1


def test_the_last_pairs_are_held_out(base):
    """By their places in the text, so that what is left out before does not move the border."""
    text = linked(20)
    text = LinkedText(text.left, text.right, text.links.select(text.links.sentence != 19), "", {})
    data = prepared(base, text, test=5, dev=4)
    assert data.dev.tolist() == [11, 12, 13, 14]
    assert data.train.tolist() == list(range(11))
    assert prepared(base, text, test=5, dev=4, sentences=3).train.tolist() == [8, 9, 10]
    apart = prepared(base, text, dev=5, gap=4, sentences=3)
    assert (apart.dev.tolist(), apart.train.tolist()) == ([15, 16, 17, 18], [8, 9, 10])
    draws = [prepared(base, text, dev=4, sentences=6, draw="random", seed=seed).train.tolist() for seed in (0, 0, 1)]
    assert draws[0] == draws[1] != draws[2]
    assert all(len(set(d)) == 6 and d == sorted(d) and max(d) < 16 for d in draws)


@pytest.mark.parametrize("settings", [{"dev": 20}, {"dev": 1024}, {"test": 21}, {"dev": 9, "gap": 11}])
def test_nothing_to_train_on_is_said(base, settings):
    assert "no sentence pair is left" in refusal(prepared, base, linked(20), **settings).reason


def plain_sentence(base, words):
    """Ids with sentence tokens, and for each word the columns of its subwords."""
    tokenizer, special = base.checkpoints[""].tokenizer, base.specials
    ids, columns = [special.bos], []
    for word in words:
        piece = tokenizer.encode(word, add_special_tokens=False).ids
        columns.append((len(ids), len(ids) + len(piece)))
        ids += piece
    return [*ids, special.eos], columns


@pytest.mark.parametrize(("part", "parts"), [(0, 1), (1, 2)])
def test_a_batch_is_what_a_plain_reading_gives(base, part, parts):
    texts = [linked(7, seed=1), linked(11, seed=2)]
    data = [prepared(base, text, name) for text, name in zip(texts, "ab", strict=True)]
    batches = PairBatches(data, base.specials, 4, 1, seed=3)
    batch = batches.batch(1, part, parts)
    rows = [(text, row) for text, chosen in zip(texts, batches.chosen(1), strict=True) for row in chosen[part::parts]]
    assert len(batch.left.input_ids) == len(batch.right.input_ids) == len(rows) == 8 // parts
    links, starts = [], {"left": 0, "right": 0}
    for r, (text, row) in enumerate(rows):
        for side in ("left", "right"):
            words, padded = getattr(text, side)[row].words, getattr(batch, side)
            ids, columns = plain_sentence(base, words)
            width = padded.input_ids.shape[1]
            assert width % 8 == 0
            assert padded.input_ids[r].tolist() == ids + [base.specials.pad] * (width - len(ids))
            assert padded.mask[r].tolist() == [1] * len(ids) + [0] * (width - len(ids))
            mine = slice(starts[side], starts[side] + len(words))
            assert padded.start[mine].tolist() == [r * width + a for a, _ in columns]
            assert padded.stop[mine].tolist() == [r * width + b for _, b in columns]
        links += [[starts["left"] + a, starts["right"] + b] for a, b in text.links.of_pair(int(row))]
        for side in starts:
            starts[side] += len(getattr(text, side)[row].words)
    assert batch.links.tolist() == links
    assert len(batch.left.start) == starts["left"]
    assert batch.left.aligned.all()


def test_epochs_go_through_every_pair_once(base):
    data = [prepared(base, linked(n, seed=n), f"p{n}") for n in (5, 12)]
    batches = PairBatches(data, base.specials, 3, epochs=2, seed=0)
    assert batches.steps == 8
    seen = [np.concatenate([batches.chosen(step)[which] for step in range(8)]) for which in (0, 1)]
    for epoch in (seen[1][:12], seen[1][12:]):
        assert sorted(epoch.tolist()) == list(range(12))
    assert seen[1][:12].tolist() != seen[1][12:].tolist()
    for start in range(0, 20, 5):
        assert sorted(seen[0][start : start + 5].tolist()) == list(range(5))
    again = PairBatches(data, base.specials, 3, epochs=2, seed=0)
    assert [again.chosen(step)[0].tolist() for step in (5, 0)] == [seen[0][15:18].tolist(), seen[0][:3].tolist()]
    other = PairBatches(data, base.specials, 3, epochs=2, seed=1)
    assert any(other.chosen(s)[1].tolist() != again.chosen(s)[1].tolist() for s in range(8))


def test_distances_are_those_of_single_sentences(base):
    text = linked(40, seed=4)
    data = prepared(base, text, dev=12)
    model = load_model(base)
    encoder = encoder_of(model)
    encoder.train()
    found = distances(model, [data], base.specials, LossConfig(subword="end", layers=(2,)))
    assert encoder.training
    encoder.eval()

    def vectors(words):
        ids, columns = plain_sentence(base, words)
        with torch.no_grad():
            states = encoder(input_ids=torch.tensor([ids]), output_hidden_states=True).hidden_states[2][0]
        return [states[b - 1] for _, b in columns]

    related, sides = [], []
    for row in data.dev:
        left, right = vectors(text.left[row].words), vectors(text.right[row].words)
        related += [float((left[a] - right[b]).norm()) for a, b in text.links.of_pair(int(row))]
        sides += [(row, left[a], right[b]) for a, b in text.links.of_pair(int(row))]
    every = [float((a - b).norm()) for i, a, _ in sides for j, _, b in sides if i != j]
    assert found["related/x"] == pytest.approx(np.mean(related), rel=1e-5)
    assert found["unrelated/x"] == pytest.approx(np.mean(every), rel=0.15)  # a sample of all of them
    assert sum(len(b.left.input_ids) for b in dev_batches(data, base.specials, 5)) == 12
    assert distances(model, [prepared(base, text)], base.specials, LossConfig()) == {}


PAIR = {"kind": "derived", "source": "builtin:mini-english", "left": "inv"}
BASE = {"model": "m", "pairs": {"p": PAIR}}
FILE = {"kind": "file", "path": "l"}


@pytest.mark.parametrize(
    ("change", "place", "code"),
    [
        ({"pairs": {}}, "pairs", "empty"),
        ({"pairs": {"a/b": PAIR}}, "pairs", "format"),
        (
            {"pairs": {"p": {"kind": "text", "joint": "c", "links": {"kind": "file", "path": "l", "first": 2}}}},
            "pairs.p.links.first",
            "unknown",
        ),
        ({"pairs": {"p": {"kind": "text", "left": "l", "joint": "c", "links": FILE}}}, "pairs.p", "conflict"),
        ({"pairs": {"p": {"kind": "text", "links": FILE}}}, "pairs.p", "missing"),
        (
            {"pairs": {"p": {"kind": "text", "joint": "c", "words": "rules", "links": FILE}}},
            "pairs.p.words",
            "conflict",
        ),
        ({"loss": {"hold": -1}}, "loss.hold", "range"),
        ({"pairs": {"p": {**PAIR, "unit": "letter"}}}, "pairs.p.unit", "unknown"),
        ({"checkpoints": {"every": 5, "select": "best"}}, "checkpoints.select", "unsupported"),
        ({"checkpoints": {"at": [5]}}, "checkpoints.at", "unsupported"),
    ],
)
def test_bad_settings(change, place, code):
    found = refused(parse, AdjustConfig, {**copy.deepcopy(BASE), **change})
    assert found[0].startswith(place) and code in ("", found[1])  # no code: the error is that of another module


def test_the_fingerprint_covers_what_matters():
    one = parse(AdjustConfig, BASE)
    same = parse(AdjustConfig, {**BASE, "log_every": 7, "checkpoints": {"every": 3}, "measure": 5, "model": "other"})
    assert one.fingerprint({}) == same.fingerprint({})
    changes = ({"seed": 1}, {"loss": {"target": "frozen"}}, {"data": {"dev": 1}}, {"rows": 4}, {"epochs": 2},
               {"optimizer": {"beta2": 0.9}}, {"dropout": False}, {"precision": "bfloat16"})  # fmt: skip
    prints = {parse(AdjustConfig, {**BASE, **change}).fingerprint({}) for change in changes}
    assert len(prints | {one.fingerprint({}), one.fingerprint({"model": "x"})}) == len(changes) + 2


LEFT = ["le petit chatnoir \u200d noir .", "unbelievablest chien !", "|||  chat"]
RIGHT = ["the small blackest cat .", "thingsdog dog happened !", "cat 1984"]
FORWARD = FAST_ALIGN.replace('"-r" in args', "0")  # both directions link the tokens in order


@pytest.fixture
def seen(tmp_path, monkeypatch):
    """Return the file with the text that fast_align read."""
    return install(monkeypatch, tmp_path / "bin", code=FORWARD) / "seen"


def pair_of(tmp_path, **changes):
    for name, lines in (("l", LEFT), ("r", RIGHT)):
        (tmp_path / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    links = {"kind": "aligner", "program": "fast_align"}
    given = {"kind": "text", "left": str(tmp_path / "l"), "right": str(tmp_path / "r"), "links": links, **changes}
    return parse(AdjustConfig, {"model": "m", "pairs": {"p": given}}).texts["p"]


def ids_of(folder, line):
    """The ids of a line by the tokenizer's own call, a word at a time."""
    tokenizer = AutoTokenizer.from_pretrained(folder)
    return [i for word in line.split() for i in tokenizer(" " + word, add_special_tokens=False).input_ids]


@pytest.mark.parametrize("kind", KINDS)
def test_the_aligner_reads_tokens_and_tokens_are_linked(tmp_path, seen, kind):
    folder = save_model(tmp_path / "model", kind)
    base = open_base(str(folder))
    checkpoint = base.checkpoints[""]
    text = read_pair(pair_of(tmp_path, unit="subword"), (checkpoint, checkpoint), Store(tmp_path / "data"))
    ids = [[ids_of(folder, line) for line in side] for side in (LEFT, RIGHT)]
    assert max(map(len, ids[0])) > max(len(line.split()) for line in LEFT)  # some words are cut
    assert seen.read_text().splitlines() == [
        " ".join(map(str, a)) + " ||| " + " ".join(map(str, b)) for a, b in zip(*ids, strict=True)
    ]
    data = prepare_pair("p", text, (checkpoint.tokenizer, checkpoint.tokenizer), DataConfig(dev=0), 40, 0)
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
    texts = [read_pair(pair_of(tmp_path, unit=unit), (checkpoint, checkpoint), store) for unit, checkpoint in units]
    assert len({text.fingerprint for text in texts}) == 3
    assert texts[0].fingerprint == texts[3].fingerprint
    assert [text.left.form.values()[0] for text in texts][::3] == ["le", "le"]


def test_a_file_of_links_counts_tokens_and_tokens_alike_are_dropped(tmp_path):
    folder = save_model(tmp_path / "model")
    checkpoint = open_base(str(folder)).checkpoints[""]
    left, right = ids_of(folder, LEFT[1]), ids_of(folder, RIGHT[1])
    last = f"{len(left) - 1}-{len(right) - 1}"  # the two marks
    (tmp_path / "links").write_text(f"\n0-0 {last} {len(left)}-0\n\n", encoding="utf-8")
    pair = pair_of(tmp_path, unit="subword", links={"kind": "file", "path": str(tmp_path / "links")})
    text = read_pair(pair, (checkpoint, checkpoint), Store(tmp_path / "data"))
    assert text.counts == {"links to words that are not there": 1}
    tokenizers = (checkpoint.tokenizer, checkpoint.tokenizer)
    data = prepare_pair("p", text, tokenizers, DataConfig(dev=0, exact_matches="drop"), 40, 0)
    assert data.links.of_pair(1) == [(0, 0)] and left[0] != right[0] and left[-1] == right[-1]
    assert data.counts["links between words written alike"] == 1


def test_subwords_of_derived_languages_are_aligned_in_order(tmp_path):
    """Token i of a word with token i of its counterpart, for every pair of aligned words."""
    checkpoint = open_base(str(save_model(tmp_path / "model", "roberta"))).checkpoints[""]  # cuts words into bytes
    source = "builtin:mini-english?types=500&sentences=40"
    given = {"kind": "derived", "source": source, "left": "trans+inv"}
    words, tokens = (
        read_pair(parse(DerivedPair, {**given, "unit": unit}), (checkpoint, checkpoint), Store(tmp_path / "data"))
        for unit in ("word", "subword")
    )
    assert tokens.unit == "subword" and tokens.fingerprint != words.fingerprint
    longest = 0
    for row in range(20):
        cut: list[list[list[tuple[int, str]]]] = []  # side → word → its tokens with their places in the sentence
        for side in (words.left, words.right):
            own = [
                [str(i) for i in checkpoint.tokenizer.encode(word, add_special_tokens=False).ids]
                for word in side[row].words
            ]
            first = np.cumsum([0, *map(len, own)])
            cut.append([[(int(first[w]) + i, token) for i, token in enumerate(of)] for w, of in enumerate(own)])
        for side, of in zip((tokens.left, tokens.right), cut, strict=True):
            assert list(side[row].words) == [token for word in of for _, token in word]
        expected = [
            (a[0], b[0])
            for left, right in words.links.of_pair(row)
            for a, b in zip(cut[0][left], cut[1][right], strict=False)
        ]
        assert tokens.links.of_pair(row) == sorted(expected)
        longest = max(longest, len(expected) - len(words.links.of_pair(row)))
    assert longest > 0  # some words are cut
