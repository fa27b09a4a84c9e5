"""Rows of two texts, by hand and against a plain reference; classification of pairs."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import torch

from probes.transfer.batch import NO_LABEL
from probes.transfer.tasks.heads import ClassifyHead
from probes.transfer.tasks.pairs import longest_first
from synthlang.corpus import Column
from synthlang.errors import InputError
from synthlang.tasks import derive_task
from synthlang.tasks.batch import Group, Item, batches_of_groups
from tests.pair_cases import INVERT_TOKENS, cut, nli, pieces_of, plain_row, reader, shown, tokens_of
from tests.task_cases import random_batch

LABELS = ("entailment", "neutral")


def pairs(*items, labels=LABELS):
    """A batch of (premise, hypothesis, label)."""
    groups = [
        Group(tuple((i, [{"form": t.split()}]) for i, t in enumerate(texts)), (Item(str(n), (0, 1), label),))
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


def test_roberta_rows_by_hand():
    own = reader()
    batch = pairs(("q q", "z", "neutral"), ("k", "j", "entailment"))
    examples = encoded(batch, (own, own))
    q, z, k, j = (letters(own, c) for c in "qzkj")
    assert all(len(x) == 2 for x in (q, z, k, j))  # the space and the letter
    assert examples.lengths.tolist() == [10, 8]
    text = examples.batch(np.array([0, 1])).text
    assert text.input_ids.tolist() == [
        [0, *q, *q, 2, 2, *z, 2, *[1] * 6],
        [0, *k, 2, 2, *j, 2, *[1] * 8],
    ]
    assert text.valid.sum(dim=1).tolist() == [10, 8]
    assert (text.positions, text.segments, text.spans) == (None, None, ((0, 16, 0),))


def test_bert_rows_by_hand():
    own = reader(bert=True)
    text = encoded(pairs(("q q", "z", "neutral")), (own, own)).batch(np.array([0])).text
    q, z = letters(own, "q"), letters(own, "z")
    assert text.input_ids[0, :9].tolist() == [0, *q, *q, 2, *z, 2]
    assert text.segments[0].tolist() == [0, 0, 0, 0, 0, 0, 1, 1, 1, *[0] * 7]


def test_two_blocks_by_hand():
    parent, derived = reader(), reader("trans", 1)
    batch = pairs(("q", "z z z", "neutral"), ("k k", "j", "entailment"))
    mixed, _ = derive_task(batch, derived.language, (1,))
    examples = encoded(mixed, (parent, derived))
    held = examples.batch(np.array([0, 1]))
    q, k = letters(parent, "q"), letters(parent, "k")
    z, j = ([token + parent.tokenizer.size for token in letters(parent, c)] for c in "zj")
    assert held.text.input_ids.tolist() == [
        [0, *q, 2, *[1] * 4, 2, *z, *z, *z, 2],
        [0, *k, *k, 2, *[1] * 2, 2, *j, 2, *[1] * 4],
    ]
    assert held.text.spans == ((0, 8, 0), (8, 16, 1)) and held.role == "target"
    assert held.text.positions.tolist() == [
        [0, 1, 2, 3, *[0] * 4, *range(4, 12)],
        [*range(6), 0, 0, *range(6, 10), *[0] * 4],
    ]
    assert examples.lengths.tolist() == [12, 10]


@pytest.mark.parametrize("bert", [False, True], ids=["roberta", "bert"])
@pytest.mark.parametrize("names", [("parent", "parent"), ("parent", "trans"), ("trans+inv", "parent")], ids="-".join)
@pytest.mark.parametrize("length", [8, 13, 40, 128])
def test_rows_equal_a_plain_reference(bert, names, length):
    rng = np.random.default_rng(length)
    readers = tuple(reader(name, int(name != "parent"), bert) for name in names)
    batch = random_batch(rng, 30)
    for field, held in enumerate(readers):
        batch, _ = derive_task(batch, held.language, (field,))
    examples = encoded(batch, readers, length, {"label": ("yes", "no")})
    room, many = length - (3 if bert else 4), 0
    for rows in np.array_split(rng.permutation(len(examples)), 4):
        held = examples.batch(rows)
        assert all((stop - start) % 8 == 0 or stop == length for start, stop, _ in held.text.spans)
        for number, row in enumerate(rows.tolist()):
            texts = [tokens_of(batch, row, field, readers[field]) for field in (0, 1)]
            a, b = cut(texts, room)
            many += len(a) + len(b) < len(texts[0]) + len(texts[1])
            ids, segments, first = plain_row(a, b, bert)
            members = [readers[0].number] * first + [readers[1].number] * (len(ids) - first)
            assert shown(held.text, number) == (ids, list(range(len(ids))), segments, members)
            assert examples.lengths[row] == len(ids) <= length
    assert examples.counts.get(f"pairs cut to {length} tokens", 0) == many
    assert (many > 0) == (length < 100)


def test_longest_first_equals_cutting_token_by_token():
    a, b = (x.ravel() for x in np.meshgrid(np.arange(12), np.arange(12)))
    for room in range(1, 24):
        found = np.stack(longest_first(a, b, room), axis=1).tolist()
        expected = [
            [len(x) for x in cut(([0] * m, [0] * n), room)] for m, n in zip(a.tolist(), b.tolist(), strict=True)
        ]
        assert found == expected


def test_batches_have_what_the_contract_says():
    own = reader()
    batch = pairs(("q", "z", "neutral"), ("k", "j", "entailment"), ("k", "z", "neutral"))
    examples = encoded(batch, (own, own))
    held = examples.batch(np.array([2, 0]))
    assert (held.words.shape, held.mask.shape) == ((2, 0, 2), (2, 0))
    assert held.targets["label"].tolist() == [1, 1] and held.role == "source"
    assert held.rows.tolist() == [2, 0] and held.text.input_ids.dtype == torch.int64
    assert examples.ids == ("0", "1", "2") and examples.gold == ["neutral", "entailment", "neutral"]
    assert examples.predictions([1, 0, 0]) == ["neutral", "entailment", "entailment"]


def test_full_rows_have_no_padding():
    own = reader()
    text = encoded(pairs(("q q", "z z", "neutral")), (own, own), 12).batch(np.array([0])).text
    assert text.valid is None and text.input_ids.shape == (1, 12)


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
    with pytest.raises(InputError, match="every training item is 'weird'"):
        nli().labels(batch.take(np.array([0])))
    with pytest.raises(InputError, match="no labelled item"):
        nli().labels(batch.take(np.array([], np.int64)))


def test_majority_is_the_most_frequent_label_of_training():
    task = nli()
    assert task.majority(["b", "a", "b"], ["a", "a"]) == ["b", "b"]
    assert task.majority(["b", "a"], ["x"]) == ["a"]


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
    examples = encoded(derived, (tokens, tokens), labels={"label": ("yes", "no")})
    a, b = (tokens_of(derived, 3, field, tokens) for field in (0, 1))
    assert shown(examples.batch(np.array([3])).text, 0)[0] == plain_row(a, b, False)[0]
    mixed, _ = derive_task(batch, tokens.language, (0,))
    examples = encoded(mixed, (tokens, reader()), labels={"label": ("yes", "no")})
    a, b = tokens_of(mixed, 3, 0, tokens), tokens_of(mixed, 3, 1, reader())
    assert shown(examples.batch(np.array([3])).text, 0)[0] == plain_row(a, b, False)[0]
    stranger = type(tokens)(tokens.language, reader().tokenizer, 0, tokens.specials, "target")
    with pytest.raises(InputError, match="the language tokens moves or changes tokens"):
        encoded(derived, (stranger, stranger))


def test_the_head_reads_the_batch():
    own = reader()
    examples = encoded(pairs(("q", "z", "neutral"), ("k", "j", "entailment")), (own, own))
    task = nli()
    head = task.head(4, {"label": LABELS}).eval()
    assert isinstance(head, ClassifyHead) and head.linear.out_features == 2
    batch = examples.batch(np.array([0, 1]))
    with torch.no_grad():
        head.linear.weight.copy_(torch.eye(2, 4))
        head.linear.bias.zero_()
        states = torch.nn.functional.one_hot(batch.targets["label"], 4)[:, None].float()
    assert examples.predictions(head.decode(states, batch)) == examples.gold
    assert head.loss(states, batch).item() == pytest.approx(np.log1p(np.exp(-1.0)))


def test_open_with_and_without_the_scheme(tmp_path):
    path = tmp_path / "x.tsv"
    path.write_text("sentence1\tsentence2\tlabel\nA b\tC\tneutral\n", encoding="utf-8")
    for spec in (f"nli:{path}", str(path)):
        assert nli().open(spec).fields == ("premise", "hypothesis")
    assert nli().open("builtin:mini-english").kind == "classes"
    with pytest.raises(InputError, match="the task nli needs items of premise and hypothesis"):
        nli().open("ner:builtin:mini-english")
    with pytest.raises(InputError):
        nli().open(str(tmp_path / "absent.tsv"))
