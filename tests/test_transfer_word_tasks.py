"""Tasks whose labels stand on words: rows, labels, heads, baselines and sources by hand."""

import math
from typing import Any, cast

import numpy as np
import pytest
import torch

from probes.transfer.config import HeadConfig, TransferConfig
from probes.transfer.tasks.base import NO_LABEL
from probes.transfer.tasks.ner import Ner
from probes.transfer.tasks.parsing import Parsing
from probes.transfer.tasks.pos import Pos
from probes.transfer.tasks.slots import Slots
from synthlang.corpus import Corpus
from synthlang.language import bind_language, parse_language
from synthlang.vocabularies import OURS
from synthlang.vocabulary import BOS, EOS, PAD, train_vocabulary
from tests.refusals import refusal, refused
from tests.test_transfer_word_tasks_reference import NOTHING, SPELLED, derived_batch, reader_of, words_batch

NO = NO_LABEL
KINDS = (Pos, Ner, Slots, Parsing)


def task(kind, length=128, **values):
    """The task; lengths may be below what a config allows, so that cases stay small."""
    return kind(TransferConfig(task=kind.name, **values).model_copy(update={"length": length}))


def numbers(*values):
    return np.asarray(values, np.int64)


def letters(text):
    return [ord(letter) for letter in text]


TWO = words_batch(
    {"form": f"ab c {NOTHING} def g", "upos": "DET NOUN X VERB _"},
    {"form": "h", "upos": "NOUN"},
)
TAGS = {"tags": ("DET", "NOUN", "X")}


def test_a_batch_by_hand():
    examples = task(Pos).encode(TWO, [SPELLED], TAGS)
    assert examples.gold == [["DET", "NOUN", "X", "VERB"], ["NOUN"]]
    assert examples.ids == ("item0", "item1") and examples.lengths.tolist() == [9, 3]
    batch = examples.batch(numbers(1, 0))
    rows = [[BOS, *letters("h"), EOS, *[PAD] * 13], [BOS, *letters("abcdefg"), EOS, *[PAD] * 7]]
    assert batch.text.input_ids.tolist() == rows
    assert batch.text.valid is not None
    assert batch.text.valid.tolist() == [[True] * n + [False] * (16 - n) for n in (3, 9)]
    assert batch.text.spans == ((0, 16, 0),) and batch.role == "source" and batch.rows.tolist() == [1, 0]
    # the word without a token is not read, the word without a tag is no word, VERB is not in training
    assert batch.mask.tolist() == [[True, False, False], [True, True, True]]
    assert batch.packed is not None and batch.packed.places.tolist() == [0, 3, 4, 5]
    assert batch.words is not None
    assert batch.words.tolist() == [[[1, 1], [0, 0], [0, 0]], [[1, 2], [3, 3], [4, 6]]]
    assert batch.targets["tags"].tolist() == [[1, NO, NO], [0, 1, NO]]
    assert dict(examples.counts) == {
        "words without a token": 1,
        "words without a gold label": 1,
        "words with a label that training does not have": 1,
    }
    assert examples.predictions([[2, 0, 1], [1]]) == [["X", "DET", "", "NOUN"], ["NOUN"]]


TREE = {
    "form": "the cats saw bob .",
    "upos": "DET NOUN VERB PROPN PUNCT",
    "head": "2 3 0 3 3",
    "deprel": "det nsubj root obj punct",
}
RELATIONS = {"relations": ("det", "nsubj", "obj", "punct", "root"), "root": ("root",)}


def test_a_head_that_was_left_out_is_no_target_and_does_not_count():
    examples = task(Parsing).encode(words_batch(TREE | {"head": "-1 3 0 3 3"}), [SPELLED], RELATIONS)
    assert examples.batch(numbers(0)).targets["heads"].tolist() == [[NO, 3, 0, 3, 3]]
    assert examples.batch(numbers(0)).targets["relations"].tolist() == [[NO, 1, 4, 2, 3]]
    assert examples.counts == {"words whose head was left out": 1}
    said = examples.predictions([[(4, 2), (3, 1), (0, 4), (3, 2), (2, 3)]])
    assert task(Parsing).metrics()["uas"](examples.gold, said) == 75.0


def test_where_words_are_tokens_the_first_one_has_the_label():
    """Two persons side by side stay two, although the tokens between their first ones are no words."""
    vocabulary = train_vocabulary([Corpus.of_words([["the", "cat", "sat", "."]])], size=300)
    spec = {"name": "t", "transforms": [{"kind": "invert", "unit": "token", "keep_final_punctuation": False}]}
    batch = words_batch({"form": "the bob ann smith", "ner": "O B-PER B-PER I-PER", "upos": "DET PROPN PROPN PROPN"})
    language = bind_language(parse_language(spec), cast(Any, None), vocabulary)
    derived = derived_batch(batch, language)
    reader = reader_of(language, vocabulary)
    examples = task(Ner).encode(derived, [reader], {"tags": ("B-PER", "I-PER", "O")})
    assert examples.gold == [["B-PER", "I-PER", "B-PER", "O"]]  # smith ann bob the
    rows = examples.batch(numbers(0))
    assert rows.words is not None and bool((rows.words[:, :, 0] == rows.words[:, :, 1]).all())
    first = rows.text.input_ids[0][rows.words[0, :, 0]].tolist()
    backwards = reversed(batch.corpus.form.values())
    assert first == [vocabulary.parent.encode(word, add_special_tokens=False).ids[0] for word in backwards]
    assert examples.counts == {}
    assert refused(task(Parsing).encode, derived, [reader], RELATIONS) == ("", "conflict")
    reader = SPELLED.__class__(language, SPELLED.tokenizer, 0, OURS, "target")
    refusal(task(Pos).words, derived, [reader])


FLY = words_batch(
    {"form": "to paris now", "slot": "O B-city B-time"},
    {"form": "new york", "slot": "B-city I-city"},
    intents=["flight", "fare"],
)


def test_slots_and_intents():
    kind = task(Slots)
    labels = kind.labels(FLY)
    assert labels == {"tags": ("B-city", "B-time", "I-city", "I-time", "O"), "intents": ("fare", "flight")}
    examples = kind.encode(FLY, [SPELLED], labels)
    gold = [{"slots": ["O", "B-city", "B-time"], "intent": "flight"}, {"slots": ["B-city", "I-city"], "intent": "fare"}]
    assert examples.gold == gold
    targets = examples.batch(numbers(1, 0)).targets
    assert targets["intent"].tolist() == [0, 1] and targets["tags"].tolist() == [[0, 2, NO], [4, 0, 1]]
    assert examples.predictions([(1, [4, 0, 1]), (0, [0, 2])]) == gold
    small = kind.encode(FLY, [SPELLED], {"tags": ("B-city", "I-city", "O"), "intents": ("flight",)})
    assert small.batch(numbers(0, 1)).targets["intent"].tolist() == [0, NO]
    assert small.counts == {
        "words with a label that training does not have": 1,
        "items with an intent that training does not have": 1,
    }
    assert small.predictions([(0, [2, 0, 2]), (0, [0, 1])])[1] == {"slots": ["B-city", "I-city"], "intent": "flight"}


TRAIN = words_batch(
    {
        "form": "ann saw york city",
        "upos": "P V P P",
        "head": "2 0 2 3",
        "deprel": "nsubj root obj flat",
        "ner": "B-PER O B-LOC I-LOC",
        "slot": "B-who O O O",
    },
    {"form": "bob ran", "upos": "P _", "head": "2 0", "deprel": "nsubj root", "ner": "B-PER O", "slot": "O O"},
    intents=["see", "run"],
)


def test_labels_are_those_of_training():
    assert task(Pos).labels(TRAIN) == {"tags": ("P", "V")}
    assert task(Ner).labels(TRAIN) == {"tags": ("B-LOC", "B-PER", "I-LOC", "I-PER", "O")}
    assert task(Slots).labels(TRAIN) == {"tags": ("B-who", "I-who", "O"), "intents": ("run", "see")}
    assert task(Parsing).labels(TRAIN) == {"relations": ("flat", "nsubj", "obj", "root"), "root": ("root",)}
    second = TRAIN.take(np.asarray([1]))  # names of the first item are still known
    assert task(Pos).labels(second) == {"tags": ("P",)}
    assert task(Ner).labels(second) == {"tags": ("B-PER", "I-PER", "O")}
    assert task(Slots).labels(second) == {"tags": ("O",), "intents": ("run",)}
    assert task(Parsing).labels(second) == {"relations": ("nsubj", "root"), "root": ("root",)}


def test_inserted_words_add_no_label():
    spec = {"name": "ka", "transforms": [{"kind": "mark", "case": {"nsubj": "ka"}, "as_words": True}]}
    source = words_batch({"form": "ann ran", "upos": "PRON VERB", "head": "2 0", "deprel": "nsubj root"})
    derived = derived_batch(source, parse_language(spec))
    assert len(derived.corpus.form.codes) == 3
    assert task(Pos).labels(derived) == {"tags": ("PRON", "VERB")}
    assert task(Parsing).labels(derived) == {"relations": ("nsubj", "root"), "root": ("root",)}


def test_words_without_annotation_are_not_taken_for_inserted_ones():
    """A word with a head was there before any transform; a word without tags has no gold tag either way."""
    bare = {"form": "ann ran", "upos": "_ _", "head": "2 0", "deprel": "_ _", "ner": "B-PER O"}
    batch = words_batch(bare, bare | {"upos": "P V", "deprel": "nsubj root"})
    assert task(Ner).encode(batch, [SPELLED], {"tags": ("B-PER", "O")}).gold == [["B-PER", "O"]] * 2
    pos = task(Pos).encode(batch, [SPELLED], {"tags": ("P", "V")})
    assert pos.gold == [[], ["P", "V"]] and pos.predictions([[], [1, 0]]) == [[], ["V", "P"]]
    assert pos.batch(np.asarray([0])).mask.tolist() == [[False]]
    trees = task(Parsing).encode(batch, [SPELLED], {"relations": ("nsubj", "root"), "root": ("root",)})
    assert trees.gold == [[], [[2, "nsubj", "P"], [0, "root", "V"]]]
    assert trees.counts == {"words without a gold label": 2}


def test_the_root_relation_is_the_one_that_roots_have():
    column = {"form": "a b c", "upos": "X X X", "head": "0 1 2"}
    batch = words_batch(column | {"deprel": "top x y"}, column | {"deprel": "odd x y"}, column | {"deprel": "top x z"})
    assert task(Parsing).labels(batch)["root"] == ("top",)
    assert task(Parsing).labels(batch.take(np.asarray([0, 1])))["root"] == ("odd",)  # the first by name of equals


NO_TREE = {"form": "a b", "upos": "X X", "head": "-1 -1", "deprel": "x y"}


@pytest.mark.parametrize(
    ("kind", "batch", "code"),
    [
        (Pos, words_batch({"form": "a b", "upos": "_ _"}), "empty"),
        (Ner, words_batch({"form": "a b", "ner": "O O"}), "empty"),
        (Parsing, words_batch(NO_TREE), "empty"),
        (Slots, words_batch({"form": "a b", "slot": "O O"}), "missing"),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_a_training_set_without_labels(kind, batch, code):
    assert refused(task(kind).labels, batch) == ("", code)


def test_sources(tmp_path):
    folder = tmp_path / "bank"
    folder.mkdir()
    (folder / "x-train.conllu").write_text("1\tran\t_\tVERB\t_\t_\t0\troot\t_\t_\n\n")
    (folder / "x-test.conllu").write_text("1\tran\t_\tVERB\t_\t_\t0\troot\t_\t_\n\n")
    tags = tmp_path / "train.iob"
    tags.write_text("ann B-PER\nran O\n\n")
    for kind, spec in [
        (Pos, f"conllu:{folder}"),
        (Pos, "builtin:mini-english"),
        (Parsing, f"parsing:conllu:{folder}"),
        (Ner, f"ner:{tags}"),
        (Ner, str(tags)),
        (Ner, "builtin:mini-english"),
    ]:
        opened = task(kind).open(spec)
        assert "train" in opened.splits and set(kind.requires) <= set(opened.columns)
        first = next(opened.batches("train"))
        assert task(kind).encode(first, [SPELLED], task(kind).labels(first)).gold
    for kind, spec in [
        (Parsing, f"iob:{tags}"),
        (Ner, f"conllu:{folder}"),
        (Pos, str(tmp_path / "none")),
    ]:
        refusal(task(kind).open, spec)
    assert refused(task(Pos).open, f"ner:{tags}") == (tags.name, "conflict")
    assert refused(task(Ner).open, "nli:builtin:mini-english") == ("nli:builtin:mini-english", "conflict")


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_the_head_fits_its_output_becomes_predictions_and_gold_scores_a_hundred(kind):
    one = task(kind, head=HeadConfig(arc=8, relation=4))
    labels = one.labels(TRAIN)
    examples = one.encode(TRAIN, [SPELLED], labels)
    batch = examples.batch(np.asarray([0, 1]))
    torch.manual_seed(0)
    head = one.head(6, labels).eval()
    states = torch.randn(2, 1 + batch.mask.shape[1], 6)
    assert math.isfinite(head.loss(states, batch).item())
    said = examples.predictions(head.decode(states, batch))
    right = [[word[:2] for word in item] for item in examples.gold] if kind is Parsing else examples.gold
    for name, metric in one.metrics().items():
        assert name == metric.name and metric(examples.gold, right) == 100.0
        assert 0 <= metric(examples.gold, said) <= 100
    if kind is Parsing:
        roots = [[relation for head, relation in item if head == 0] for item in cast(Any, said)]
        assert roots == [["root"], ["root"]]


WHOLE = [["B-LOC", "I-LOC"], ["B-LOC", "I-LOC", "I-LOC"], ["B-PER", "O", "O"]]
SINGLE = [["B-PER", "B-PER", "O"], ["B-LOC", "I-LOC"], ["B-PER", "O"]]  # 2 · 3 / (7 + 4), as wholes 2 · 1 / (3 + 4)
INTENTS = [{"slots": ["O"], "intent": name} for name in ("b", "a", "b")]
LEFT = [[[0, "root", "X"], [1, "obj", "X"], [2, "case", "X"], [3, "case", "X"]]]
RIGHT = [[[2, "det", "X"], [3, "nsubj", "X"], [0, "root", "X"]], [[2, "det", "X"], [0, "root", "X"]]]


@pytest.mark.parametrize(
    ("kind", "train", "test", "said"),
    [
        (Pos, [["N", "V", "N"], ["D", "V"]], [["X", "Y"], []], [["N", "N"], []]),
        (Ner, WHOLE, [["O", "O", "O"], ["O"]], [["B-LOC", "I-LOC", "I-LOC"], ["B-LOC"]]),
        (Ner, SINGLE, [["O", "O"]], [["B-PER", "B-PER"]]),
        (Ner, [["O", "O"]], [["B-PER"], []], [["O"], []]),  # a small dev set may have no entity
        (Slots, INTENTS, [{"slots": ["B-x", "O"], "intent": "a"}], [{"slots": ["O", "O"], "intent": "b"}]),
        (Parsing, LEFT, [[[2, "a", "X"], [0, "b", "X"]]], [[[0, "root"], [1, "case"]]]),
        (Parsing, RIGHT, [[[0, "a", "X"]] * 3], [[[2, "det"], [3, "det"], [0, "root"]]]),
    ],
)
def test_majority_by_hand(kind, train, test, said):
    assert task(kind).majority(train, test) == said


@pytest.mark.parametrize("seed", range(8))
def test_majority_of_entities_is_the_best_of_all_such_guesses(seed):
    rng = np.random.default_rng(seed)
    items = [rng.choice(["B-X", "B-Y", "O", "B-X"], rng.integers(1, 4)).tolist() for _ in range(8)]
    train = [[f"I{tag[1:]}" if i and tag == item[0] != "O" else tag for i, tag in enumerate(item)] for item in items]
    train.append(["B-Y", "I-Y"])
    metric = task(Ner).metrics()["span_f1"]
    guesses = [
        metric(train, [[f"{'I' if whole and i else 'B'}-{kind}" for i in range(len(tags))] for tags in train])
        for kind in "XY"
        for whole in (False, True)
    ]
    assert metric(train, task(Ner).majority(train, train)) == pytest.approx(max(guesses))
