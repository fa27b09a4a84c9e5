"""Rows of two texts: by hand, against a plain reference, through an encoder, as Hugging Face cuts them; real ones."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import torch

from pretrain.config import ModelConfig, SharingConfig
from pretrain.model.roberta import MaskedLM
from pretrain.model.text import Text
from probes.transfer.config import TransferConfig
from probes.transfer.tasks.base import NO_LABEL, task_of
from synthlang.config import parse
from synthlang.corpus import Column
from synthlang.tasks import derive_task
from synthlang.tasks.batch import Item, ItemGroup, batches_of_groups
from tests.pair_cases import INVERT_TOKENS, cut, nli, pieces_of, plain_row, qa, reader, shown, tokens_of, vocabulary
from tests.refusals import refusal, refused
from tests.task_cases import random_batch

FRAMES = [{"slots": ["O", "B-city"], "intent": "fly"}, {"slots": ["O"], "intent": "eat"}]
KNOWN_LABELS = [  # task, labels of training, gold values, the fields without a label of these
    ("nli", {"label": ("entailment", "neutral")}, ["contradictory", "entails"], [""]),
    ("nli", {"label": ("entailment", "neutral")}, ["contradictory", "neutral"], []),
    ("ner", {"tags": ("B-PER", "I-PER", "O")}, [["O", "B-PERSON"], ["O"]], [""]),
    ("ner", {"tags": ("B-PER", "I-PER", "O")}, [["O"]], []),
    ("pos", {"tags": ("NOUN",)}, [["", "N"]], [""]),
    ("slots", {"tags": ("B-city", "I-city", "O"), "intents": ("fly",)}, FRAMES, []),
    ("slots", {"tags": ("B-place", "I-place", "O"), "intents": ("fly",)}, FRAMES, ["slots"]),
    ("slots", {"tags": ("B-city", "I-city", "O"), "intents": ("Fly",)}, FRAMES, ["intent"]),
    ("qa", {"no_answer": ("yes",)}, [["an answer"]], []),
]


@pytest.mark.parametrize(("task", "labels", "gold", "expected"), KNOWN_LABELS)
def test_gold_labels_that_training_does_not_have(task, labels, gold, expected):
    assert list(task_of(parse(TransferConfig, {"task": task})).unknown_labels(gold, labels)) == expected


LABELS = ("entailment", "neutral")
YES_NO = {"label": ("yes", "no")}


def pairs(*items, labels=LABELS):
    """A batch of (premise, hypothesis, label)."""
    groups = [
        ItemGroup(tuple((i, [{"form": t.split()}]) for i, t in enumerate(texts)), (Item(str(n), (0, 1), label),))
        for n, (*texts, label) in enumerate(items)
    ]
    [batch] = batches_of_groups(groups, labels, Counter())
    return batch


def letters(reader, text):
    """The ids of a text."""
    return [token for piece in pieces_of(reader, text.split()) for token in piece]


def encoded(items, readers, length=128, labels=None):
    task = nli(length=length)
    return task.encode(items, readers, labels or {"label": LABELS})


@pytest.mark.parametrize("bert", [False, True], ids=["roberta", "bert"])
@pytest.mark.parametrize("names", [("parent", "parent"), ("parent", "trans"), ("trans+inv", "parent")], ids="-".join)
@pytest.mark.parametrize("length", [8, 40, 128])
def test_rows_equal_a_plain_reference(bert, names, length):
    rng = np.random.default_rng(length)
    readers = tuple(reader(name, int(name != "parent"), bert) for name in names)
    batch = random_batch(rng, 30)
    for field, own in enumerate(readers):
        batch, _ = derive_task(batch, own.language, (field,))
    examples = encoded(batch, readers, length, YES_NO)
    room, many = length - (3 if bert else 4), 0
    for rows in np.array_split(rng.permutation(len(examples)), 4):
        inputs = examples.batch(rows)
        assert all((stop - start) % 8 == 0 or stop == length for start, stop, _ in inputs.text.spans)
        for number, row in enumerate(rows.tolist()):
            texts = [tokens_of(batch, row, field, readers[field]) for field in (0, 1)]
            a, b = cut(texts, room)
            many += len(a) + len(b) < len(texts[0]) + len(texts[1])
            ids, segments, first = plain_row(a, b, bert)
            members = [readers[0].number] * first + [readers[1].number] * (len(ids) - first)
            assert shown(inputs.text, number) == (ids, list(range(len(ids))), segments, members)
            assert examples.lengths[row] == len(ids) <= length
    assert examples.counts.get(f"pairs cut to {length} tokens", 0) == many
    assert (many > 0) == (length < 100)


def test_batches_have_what_the_contract_says():
    own = reader()
    batch = pairs(("q", "z", "neutral"), ("k", "j", "entailment"), ("k", "z", "neutral"))
    examples = encoded(batch, (own, own))
    inputs = examples.batch(np.array([2, 0]))
    assert (inputs.words.shape, inputs.mask.shape) == ((2, 0, 2), (2, 0))
    assert inputs.targets["label"].tolist() == [1, 1] and inputs.role == "source"
    assert inputs.rows.tolist() == [2, 0] and inputs.text.input_ids.dtype == torch.int64
    assert examples.ids == ("0", "1", "2") and examples.gold == ["neutral", "entailment", "neutral"]
    assert examples.predictions([1, 0, 0]) == ["neutral", "entailment", "entailment"]
    assert nli().majority(["b", "a", "b"], ["a", "a"]) == ["b", "b"] and nli().majority(["b", "a"], ["x"]) == ["a"]


def test_a_label_that_training_lacks_is_no_target_and_counts_as_wrong():
    own = reader()
    batch = pairs(("q", "z", "neutral"), ("k", "j", "odd"), labels=("neutral", "odd"))
    examples = encoded(batch, (own, own), labels={"label": LABELS})
    assert examples.batch(np.array([0, 1])).targets["label"].tolist() == [1, NO_LABEL]
    assert examples.gold == ["neutral", "odd"]
    assert examples.counts == {"items with a label that training does not have": 1}
    assert nli().metrics()["accuracy"](examples.gold, examples.predictions([1, 1])) == 50.0


def test_labels_are_those_of_training_in_the_usual_order():
    names = ("weird", "neutral", "contradiction", "entailment")
    batch = pairs(("q", "z", "weird"), ("k", "j", "contradiction"), ("k", "j", "entailment"), labels=names)
    assert nli().labels(batch) == {"label": ("entailment", "contradiction", "weird")}
    assert refused(nli().labels, batch.take(np.array([0]))) == ("", "range")


def test_words_that_no_token_stands_for_leave_an_empty_text():
    own = reader()
    batch = pairs(("q", "z", "neutral"), ("k", "j", "neutral"))
    blank = batch.corpus.form.names.index("z")
    names = tuple(" " if i == blank else n for i, n in enumerate(batch.corpus.form.names))
    form = Column(batch.corpus.form.codes, names)
    changed = type(batch)(
        **{**vars(batch), "corpus": type(batch.corpus)(batch.corpus.offsets, {"form": form}, batch.corpus.ids)}
    )
    examples = encoded(changed, (own, own))
    assert shown(examples.batch(np.array([0])).text, 0)[0] == [0, *letters(own, "q"), 2, 2, 2]


def test_a_language_of_tokens_is_read_as_tokens_or_refused():
    tokens = reader(INVERT_TOKENS, 1)
    batch = random_batch(np.random.default_rng(1), 8)
    derived, _ = derive_task(batch, tokens.language)
    examples = encoded(derived, (tokens, tokens), labels=YES_NO)
    a, b = (tokens_of(derived, 3, field, tokens) for field in (0, 1))
    assert shown(examples.batch(np.array([3])).text, 0)[0] == plain_row(a, b, False)[0]
    mixed, _ = derive_task(batch, tokens.language, (0,))
    examples = encoded(mixed, (tokens, reader()), labels=YES_NO)
    a, b = tokens_of(mixed, 3, 0, tokens), tokens_of(mixed, 3, 1, reader())
    assert shown(examples.batch(np.array([3])).text, 0)[0] == plain_row(a, b, False)[0]
    stranger = type(tokens)(tokens.language, reader().tokenizer, 0, tokens.specials, "target")
    refusal(encoded, derived, (stranger, stranger))


def test_open_with_and_without_the_scheme(tmp_path):
    path = tmp_path / "x.tsv"
    path.write_text("sentence1\tsentence2\tlabel\nA b\tC\tneutral\n", encoding="utf-8")
    for spec in (f"nli:{path}", str(path)):
        assert nli().open(spec).fields == ("premise", "hypothesis")
    assert nli().open("builtin:mini-english").kind == "classes"
    assert refused(nli().open, "ner:builtin:mini-english") == ("ner:builtin:mini-english", "conflict")
    refusal(nli().open, str(tmp_path / "absent.tsv"))


# --- through an encoder, and as Hugging Face's tokenizers cut them ---

SHAPE = ModelConfig(layers=3, heads=2, hidden=12, feed_forward=20, dropout=0.0, init_std=0.3)
SHARINGS = {
    "shared": SharingConfig(),
    "embeddings": SharingConfig(embeddings="separate", softmax="language"),
    "layers": SharingConfig(layers=(1, 3), softmax="shared"),
    "both": SharingConfig(embeddings="separate", layers=(1, 2, 3), softmax="language"),
}
LENGTH = 40


def model_of(sharing, readers, language_ids):
    ids = [reader("parent").tokenizer.ids, reader("trans", 1).tokenizer.ids]
    model = MaskedLM(SHAPE, sharing, ids, 2 * vocabulary().size, 3 * LENGTH, 1, language_ids, 0)
    if readers[0].bert:
        model.embeddings.segments = torch.randn(1, SHAPE.hidden, generator=torch.Generator().manual_seed(1))
    return model.eval()


def mixed(seed, names, bert=False):
    readers = tuple(reader(name, int(name != "parent"), bert) for name in names)
    batch = random_batch(np.random.default_rng(seed), 16)
    for field, own in enumerate(readers):
        batch, _ = derive_task(batch, own.language, (field,))
    return batch, readers


@pytest.mark.parametrize("names", [("parent", "trans"), ("trans", "parent"), ("trans", "trans")], ids="-".join)
@pytest.mark.parametrize("sharing", SHARINGS)
@pytest.mark.parametrize("bert", [False, True], ids=["roberta", "bert"])
@torch.no_grad()
def test_states_are_those_of_each_row_alone(sharing, names, bert):
    batch, readers = mixed(7, names, bert)
    model = model_of(SHARINGS[sharing], readers, bert)
    examples = nli(length=LENGTH).encode(batch, readers, YES_NO)
    inputs = examples.batch(np.arange(len(examples)))
    valid, states = inputs.text.valid, model.read(inputs.text, layers=(0, 2, 3))
    assert valid is not None and not valid.all()
    for row in range(len(examples)):
        a, b = cut((tokens_of(batch, row, field, readers[field]) for field in (0, 1)), LENGTH - (3 if bert else 4))
        ids, segments, first = plain_row(a, b, bert)
        spans = ((0, first, readers[0].number), (first, len(ids), readers[1].number))
        kinds = torch.tensor([segments]) if bert else None
        alone = model.read(Text(torch.tensor([ids]), None, spans, None, kinds), layers=(0, 2, 3))
        seen = valid[row]
        for mine, expected in zip(states, alone, strict=True):
            torch.testing.assert_close(mine[row][seen], expected[0], atol=1e-5, rtol=1e-5)


@torch.no_grad()
def test_spans_and_positions_matter():
    """The control of the test above: other spans or positions, other states."""
    batch, readers = mixed(7, ("parent", "trans"))
    model = model_of(SHARINGS["layers"], readers, True)
    text = nli(length=LENGTH).encode(batch, readers, YES_NO).batch(np.arange(len(batch))).text
    (zero, head, one), (_, stop, two) = text.spans
    right = model.read(text)[0][:, 0]
    for wrong in (
        replace(text, spans=((zero, head - 8, one), (head - 8, stop, two))),
        replace(text, positions=None),
        replace(text, valid=None),
    ):
        assert not torch.allclose(model.read(wrong)[0][:, 0], right, atol=1e-3)


def test_positions_stay_within_the_length():
    """Both blocks together may be wider than any row may be long."""
    batch, readers = mixed(3, ("parent", "trans"))
    for examples in (
        nli(length=24).encode(batch, readers, YES_NO),
        qa(length=24, stride=4).encode(batch, readers, {"no_answer": ()}),
    ):
        text = examples.batch(np.arange(len(examples))).text
        assert text.positions is not None and text.input_ids.shape[1] > 24
        assert int(text.positions.max()) == 23


def fast_tokenizer():
    from transformers import PreTrainedTokenizerFast

    specials = {"bos_token": "<s>", "cls_token": "<s>", "eos_token": "</s>", "sep_token": "</s>", "pad_token": "<pad>"}
    return PreTrainedTokenizerFast(tokenizer_object=vocabulary().parent, unk_token="<unk>", **specials)


@pytest.mark.parametrize("length", [9, 16, 21, 40, 128])
def test_pairs_are_cut_as_transformers_cuts_them(length):
    batch, readers = mixed(11, ("parent", "parent"))
    examples = nli(length=length).encode(batch, readers, YES_NO)
    expected = fast_tokenizer()(batch.strings(0), batch.strings(1), truncation="longest_first", max_length=length)
    text = examples.batch(np.arange(len(examples))).text
    assert [shown(text, row)[0] for row in range(len(examples))] == expected["input_ids"]


def long_contexts():
    """Questions of one to six words, contexts of up to a hundred."""
    rng = np.random.default_rng(4)
    groups = []
    for number in range(20):
        sizes = int(rng.integers(1, 7)), int(rng.integers(1, 100))
        question, context = ([f"w{n}" for n in rng.integers(0, 10**6, size)] for size in sizes)
        texts = ((1, [{"form": context}]), (0, [{"form": question}]))
        groups.append(ItemGroup(texts, (Item(str(number), (1, 0), None, ((0, 1),)),)))
    [batch] = batches_of_groups(groups, (), Counter(), 1)
    return batch


@pytest.mark.parametrize(("length", "stride"), [(96, 0), (96, 5), (128, 21), (384, 128)])
def test_windows_are_those_of_transformers(length, stride):
    batch, own = long_contexts(), reader()
    examples = qa(length=length, stride=stride).encode(batch, (own, own), {"no_answer": ()})
    expected = fast_tokenizer()(
        batch.strings(0),
        batch.strings(1),
        truncation="only_second",
        max_length=length,
        stride=stride,
        return_overflowing_tokens=True,
    )
    text = examples.batch(np.arange(len(examples))).text
    assert [shown(text, row)[0] for row in range(len(examples))] == expected["input_ids"]
    assert examples.windows.item.tolist() == expected["overflow_to_sample_mapping"]
    assert len(examples) > 2 * len(batch) or length > 96
    assert not examples.counts


# --- real data: nothing is lost that is not counted ---
