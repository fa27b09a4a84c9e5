"""Word tasks: what can be predicted, sources, heads, scores and baselines."""

import math
from typing import Any, cast

import numpy as np
import pytest
import torch

from probes.transfer.config import HeadConfig, ScoreConfig, TransferConfig
from probes.transfer.tasks.ner import Ner
from probes.transfer.tasks.parsing import Parsing
from probes.transfer.tasks.pos import Pos
from probes.transfer.tasks.slots import Slots
from synthlang.errors import InputError
from synthlang.language import parse_language
from tests.word_task_cases import SPELLED, derived_batch, words_batch

KINDS = (Pos, Ner, Slots, Parsing)


def task(kind, **values):
    return kind(TransferConfig(task=kind.name, **values))


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
    ("kind", "batch", "message"),
    [
        (Pos, words_batch({"form": "a b", "upos": "_ _"}), "no word of the training set has a UPOS tag"),
        (Ner, words_batch({"form": "a b", "ner": "O O"}), "no word of the training set is part of an entity"),
        (Parsing, words_batch(NO_TREE), "no word of the training set has a head and a relation"),
        (Slots, words_batch({"form": "a b", "slot": "O O"}), "needs an intent for each utterance"),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_a_training_set_without_labels(kind, batch, message):
    with pytest.raises(InputError, match=message):
        task(kind).labels(batch)


def test_sources(tmp_path):
    folder = tmp_path / "bank"
    folder.mkdir()
    (folder / "x-train.conllu").write_text("1\tran\t_\tVERB\t_\t_\t0\troot\t_\t_\n\n")
    (folder / "x-test.conllu").write_text("1\tran\t_\tVERB\t_\t_\t0\troot\t_\t_\n\n")
    tags = tmp_path / "train.iob"
    tags.write_text("ann B-PER\nran O\n\n")
    for kind, spec in [
        (Pos, f"conllu:{folder}"),
        (Pos, f"pos:conllu:{folder}"),
        (Pos, "builtin:mini-english"),
        (Parsing, f"conllu:{folder}"),
        (Parsing, f"parsing:conllu:{folder}"),
        (Parsing, "parsing:builtin:mini-english"),
        (Ner, f"iob:{tags}"),
        (Ner, f"ner:{tags}"),
        (Ner, str(tags)),
        (Ner, "builtin:mini-english"),
    ]:
        opened = task(kind).open(spec)
        assert "train" in opened.splits and set(kind.requires) <= set(opened.columns)
        first = next(opened.batches("train"))
        assert task(kind).encode(first, [SPELLED], task(kind).labels(first)).gold
    for kind, spec, message in [
        (Parsing, f"iob:{tags}", "needs the column '(upos|deprel)'"),
        (Pos, f"ner:{tags}", "names items of the task ner; this is the task pos"),
        (Ner, "nli:builtin:mini-english", "names items of the task nli; this is the task ner"),
        (Ner, f"conllu:{folder}", "needs the column 'ner'"),
        (Pos, str(tmp_path / "none"), "no such"),
    ]:
        with pytest.raises(InputError, match=message):
            task(kind).open(spec)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_the_head_fits_and_its_output_becomes_predictions(kind):
    one = task(kind, head=HeadConfig(arc=8, relation=4))
    labels = one.labels(TRAIN)
    examples = one.encode(TRAIN, [SPELLED], labels)
    batch = examples.batch(np.asarray([0, 1]))
    torch.manual_seed(0)
    head = one.head(6, labels).eval()
    states = torch.randn(2, 1 + batch.mask.shape[1], 6)
    assert math.isfinite(head.loss(states, batch).item())
    said = examples.predictions(head.decode(states, batch))
    for metric in one.metrics().values():
        assert 0 <= metric(examples.gold, said) <= 100
    if kind is Parsing:
        roots = [[relation for head, relation in item if head == 0] for item in cast(Any, said)]
        assert roots == [["root"], ["root"]]


def as_prediction(kind, gold):
    return [[word[:2] for word in item] for item in gold] if kind is Parsing else gold


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_gold_scores_a_hundred(kind):
    examples = task(kind).encode(TRAIN, [SPELLED], task(kind).labels(TRAIN))
    for name, metric in task(kind).metrics().items():
        assert name == metric.name
        assert metric(examples.gold, as_prediction(kind, examples.gold)) == 100.0


def test_the_main_metric_comes_first():
    assert [next(iter(task(kind).metrics())) for kind in KINDS] == ["accuracy", "span_f1", "slot_f1", "las"]
    assert next(iter(task(Parsing, score=ScoreConfig(punctuation=False)).metrics())) == "las_without_punct"
    assert {"span_precision", "span_recall", "token_f1", "token_accuracy"} <= set(task(Ner).metrics())
    said, gold = [["I-PER", "O"]], [["B-PER", "O"]]
    repaired = task(Ner, score=ScoreConfig(repair="final-type"))
    assert task(Ner).metrics()["span_f1"](gold, said) == 0.0
    assert repaired.metrics()["span_f1"](gold, said) == 100.0


@pytest.mark.parametrize("predicted", [0, 1])
def test_a_label_that_training_never_saw_is_an_error_whatever_is_predicted(predicted):
    batch = words_batch({"form": "a b", "upos": "P NEW"})
    examples = task(Pos).encode(batch, [SPELLED], {"tags": ("P", "V")})
    said = examples.predictions([[0, predicted]])
    assert task(Pos).metrics()["accuracy"](examples.gold, said) == 50.0


def test_majority_of_tags():
    train = [["N", "V", "N"], ["D", "V"]]
    assert task(Pos).majority(train, [["X", "Y"], []]) == [["N", "N"], []]


def test_majority_of_entities_is_one_word_or_the_whole_item_whichever_is_right_more_often():
    whole = [["B-LOC", "I-LOC"], ["B-LOC", "I-LOC", "I-LOC"], ["B-PER", "O", "O"]]
    assert task(Ner).majority(whole, [["O", "O", "O"], ["O"]]) == [["B-LOC", "I-LOC", "I-LOC"], ["B-LOC"]]
    words = [["B-PER", "B-PER", "O"], ["B-LOC", "I-LOC"], ["B-PER", "O"]]
    # as words of their own 2 · 3 / (7 + 4), as whole items 2 · 1 / (3 + 4)
    assert task(Ner).majority(words, [["O", "O"]]) == [["B-PER", "B-PER"]]


@pytest.mark.parametrize("seed", range(20))
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


def test_majority_of_frames():
    train = [{"slots": ["O"], "intent": name} for name in ("b", "a", "b")]
    assert task(Slots).majority(train, [{"slots": ["B-x", "O"], "intent": "a"}]) == [
        {"slots": ["O", "O"], "intent": "b"}
    ]


def test_majority_of_trees_is_the_neighbour_that_is_more_often_the_head():
    left = [[[0, "root", "X"], [1, "obj", "X"], [2, "case", "X"], [3, "case", "X"]]]
    assert task(Parsing).majority(left, [[[2, "a", "X"], [0, "b", "X"]]]) == [[[0, "root"], [1, "case"]]]
    right = [[[2, "det", "X"], [3, "nsubj", "X"], [0, "root", "X"]], [[2, "det", "X"], [0, "root", "X"]]]
    assert task(Parsing).majority(right, [[[0, "a", "X"]] * 3]) == [[[2, "det"], [3, "det"], [0, "root"]]]
