"""Transfer: scores against scikit-learn, examples by hand, fine-tuning with planted answers."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.metrics import accuracy_score, f1_score  # type: ignore[import-untyped]

from pretrain.config import ModelConfig, PretrainConfig, SharingConfig
from pretrain.encoder import MaskedLM
from pretrain.model import new_model
from pretrain.prepare import prepare
from probes.transfer import tagging
from probes.transfer.config import TransferConfig
from probes.transfer.examples import NO_LABEL, Examples, build_examples, class_names, read_split
from probes.transfer.metrics import token_scores
from probes.transfer.run import load_task, transfer, transfer_fingerprint
from probes.transfer.tagging import Tagger, evaluate, fine_tune, predict
from synthlang.config import parse
from synthlang.corpus import Corpus
from synthlang.errors import InputError
from synthlang.language import PARENT, parse_language
from synthlang.progress import silent
from synthlang.sources import open_source
from synthlang.store import Store
from synthlang.vocabularies import OURS, MemberTokenizer
from synthlang.vocabulary import BOS, EOS, PAD, Encoded, Vocabulary, train_vocabulary
from tests.tiny import PRETRAIN, TRANSFER, changed

CLASSES = 3


def numbers(*values: int) -> np.ndarray:
    return np.asarray(values, np.int64)


@pytest.mark.parametrize("seed", range(200))
def test_scores_equal_those_of_sklearn(seed):
    rng = np.random.default_rng(seed)
    classes, words = int(rng.integers(1, 8)), int(rng.integers(1, 40))
    gold = rng.integers(0, classes, words)
    predicted = np.where(rng.random(words) < 0.5, gold, rng.integers(-1, classes, words))
    scores = token_scores(gold, predicted)
    macro = f1_score(gold, predicted, labels=np.unique(gold), average="macro", zero_division=0)
    micro = f1_score(gold, predicted, labels=np.arange(classes), average="micro", zero_division=0)
    assert scores["accuracy"] == pytest.approx(100 * accuracy_score(gold, predicted), abs=1e-4)
    assert scores["macro_f1"] == pytest.approx(100 * macro, abs=1e-4)
    assert scores["micro_f1"] == pytest.approx(100 * micro, abs=1e-4)


def test_scores_by_hand():
    # class 0: tp 2, fp 1, fn 0; class 1: tp 0, fp 0, fn 2 (one of them predicted nothing)
    assert token_scores(numbers(0, 0, 1, 1), numbers(0, 0, 0, -1)) == {
        "accuracy": 50.0,
        "macro_f1": 40.0,  # (4/5 + 0) / 2
        "micro_f1": round(100 * 4 / 7, 4),  # tp 2, fp 1, fn 2
    }
    assert token_scores(numbers(2), numbers(2)) == {"accuracy": 100.0, "macro_f1": 100.0, "micro_f1": 100.0}
    assert token_scores(numbers(1), numbers(-1)) == {"accuracy": 0.0, "macro_f1": 0.0, "micro_f1": 0.0}
    assert token_scores(numbers(), numbers()) == {"accuracy": 0.0, "macro_f1": 0.0, "micro_f1": 0.0}


def by_hand(length: int) -> Examples:
    """Two sentences: words of 2, 1, 3 and 1 tokens; words of 1 and of no token."""
    encoded = Encoded(numbers(10, 11, 12, 13, 14, 15, 16, 20), numbers(0, 2, 3, 6, 7, 8, 8))
    return Examples(encoded, numbers(0, 4, 6), numbers(3, 1, -1, 0, 2, 1), length, OURS)


def test_a_batch_by_hand():
    ids, labels, words = by_hand(6).batch(numbers(1, 0))
    assert ids.tolist() == [[BOS, 20, EOS, *[PAD] * 5], [BOS, 10, 11, 12, 13, EOS, PAD, PAD]]
    assert words.tolist() == [[-1, 4, *[-1] * 6], [-1, 0, -1, 1, 2, -1, -1, -1]]
    no = NO_LABEL
    # word 2 has a label that training did not see; only the first subword of word 0 has its label
    assert labels.tolist() == [[no, 2, *[no] * 6], [no, 3, no, 1, no, no, no, no]]


@pytest.mark.parametrize(
    ("length", "kept"),
    [
        (9, [True, True, True, True, True, False]),
        (8, [True, True, True, False, True, False]),
        (6, [True, True, True, False, True, False]),
        (5, [True, True, False, False, True, False]),
        (4, [True, False, False, False, True, False]),
    ],
)
def test_words_beyond_the_length_are_cut(length, kept):
    examples = by_hand(length)
    assert examples.kept.tolist() == kept
    _, _, words = examples.batch(numbers(0, 1))
    assert sorted(words[words >= 0].tolist()) == [i for i, keep in enumerate(kept) if keep]


def test_width_is_the_longest_row_rounded_up():
    examples = by_hand(128)
    assert examples.batch(numbers(1))[0].shape == (1, 8)
    assert examples.batch(numbers(0))[0].shape == (1, 16)  # 7 tokens, <s> and </s>


def test_batches_go_by_length_and_hold_every_row_once():
    examples = by_hand(128)
    assert [b.tolist() for b in examples.batches(1)] == [[1], [0]]
    assert [b.tolist() for b in examples.batches(8)] == [[1, 0]]


@pytest.fixture(scope="module")
def small_vocabulary() -> Vocabulary:
    return train_vocabulary([Corpus.of_words([["the", "cat", "sat", "."]])], size=300)


def sentence_of(words: str, tags: str) -> dict[str, list[str]]:
    return {"form": words.split(), "upos": tags.split()}


@pytest.mark.parametrize("name", ["parent", "inv", "trans+inv"])
def test_labels_follow_their_words(small_vocabulary, name):
    corpus = Corpus.of([sentence_of("the cat sat .", "DET NOUN VERB PUNCT"), sentence_of("cat .", "NOUN PUNCT")])
    language = PARENT if name == "parent" else parse_language(name)
    tokenizer = small_vocabulary.tokenizer(language.script)
    member = MemberTokenizer(name, tokenizer, numbers(0, 1))
    examples = build_examples(corpus, language, member, OURS, "upos", ("DET", "NOUN", "VERB"), 32)
    # a final mark stays in its place; PUNCT is no class here
    assert examples.labels.tolist() == ([0, 1, 2, -1, 1, -1] if name == "parent" else [2, 1, 0, -1, 1, -1])
    words = language.derive(corpus).form.values()
    first = examples.encoded.word_offsets[:-1]
    expected = [tokenizer.encode(word, add_special_tokens=False).ids[0] for word in words]
    assert examples.encoded.ids[first].tolist() == expected
    ids, labels, _ = examples.batch(numbers(0))
    labelled = labels[0] != NO_LABEL
    assert ids[0][labelled].tolist() == expected[:3]
    assert labels[0][labelled].tolist() == examples.labels[:3].tolist()


def test_a_split_without_a_sentence_is_an_error(small_vocabulary):
    member = MemberTokenizer("parent", small_vocabulary.parent, numbers(0, 1))
    with pytest.raises(InputError, match="no sentence"):
        build_examples(Corpus.of_words([]), PARENT, member, OURS, "upos", ("A",), 8)


def test_class_names_are_those_that_occur():
    corpus = Corpus.of([sentence_of("a b", "X Y"), sentence_of("c d", "Z X")])
    assert class_names(corpus.columns["upos"]) == ("X", "Y", "Z")
    assert class_names(corpus.between(0, 1).columns["upos"]) == ("X", "Y")


def planted(seed: int, sentences: int = 60, words: int = 6) -> Examples:
    """One token a word, ids 5 … 34; the label of a word is its id modulo 3."""
    ids = np.random.default_rng(seed).integers(5, 35, sentences * words)
    offsets = np.arange(0, sentences * words + 1, words, dtype=np.int64)
    return Examples(Encoded(ids, np.arange(len(ids) + 1, dtype=np.int64)), offsets, ids % CLASSES, 16, OURS)


@pytest.fixture(scope="module")
def body():
    shape = ModelConfig(layers=1, heads=2, hidden=32, feed_forward=32, dropout=0.0, init_std=0.2)
    ids = np.arange(40, dtype=np.int64)
    return MaskedLM(shape, SharingConfig(), [ids], 40, 16, PAD, language_ids=False, seed=0)


SETTINGS = TransferConfig(epochs=8, rows=8, learning_rate=0.01, length=16, dropout=0.0)


def test_fine_tuning_learns_what_words_tell(body):
    before = {name: tensor.clone() for name, tensor in body.state_dict().items()}
    untrained = evaluate(Tagger(body, CLASSES, 0.0, 1), 0, planted(2))["accuracy"]
    tagger = fine_tune(body, 0, planted(0), planted(1), CLASSES, SETTINGS, 0, silent)
    assert untrained < 60 < 90 < evaluate(tagger, 0, planted(0))["accuracy"]
    assert evaluate(tagger, 0, planted(2))["accuracy"] > 90
    assert all(torch.equal(before[name], tensor) for name, tensor in body.state_dict().items()), "the body is a copy"


def test_shuffled_labels_do_not_generalise(body):
    train, dev = (planted(seed) for seed in (0, 1))
    shuffled = np.random.default_rng(3).permutation(train.labels)
    train = Examples(train.encoded, train.offsets, shuffled, train.length, OURS)
    tagger = fine_tune(body, 0, train, dev, CLASSES, SETTINGS, 0, silent)
    assert evaluate(tagger, 0, planted(2))["accuracy"] < 60


def test_the_best_epoch_on_dev_is_kept(body, monkeypatch):
    """Whatever the scores say: the weights of the first epoch with the highest."""
    kept, scores = [], iter([10.0, 70.0, 70.0, 20.0])

    def scored(tagger, member, examples):
        kept.append(tagger.head.weight.detach().clone())
        return {"accuracy": next(scores)}

    monkeypatch.setattr(tagging, "evaluate", scored)
    settings = SETTINGS.model_copy(update={"epochs": 4})
    tagger = fine_tune(body, 0, planted(0), planted(1), CLASSES, settings, 0, silent)
    assert [torch.equal(tagger.head.weight, weight) for weight in kept] == [False, True, False, False]


def test_prediction_says_nothing_for_a_word_beyond_the_length(body):
    tagger = Tagger(body, CLASSES, 0.0, 1)
    examples = planted(0, sentences=3)
    cut = Examples(examples.encoded, examples.offsets, examples.labels, 6, OURS)  # four of six words fit
    assert (predict(tagger, 0, cut) < 0).tolist() == [False, False, False, False, True, True] * 3
    assert (predict(tagger, 0, examples) >= 0).all()


def test_prediction_does_not_depend_on_the_batch(body):
    encoded = Encoded(numbers(*range(5, 25)), numbers(*range(21)))
    examples = Examples(encoded, numbers(0, 1, 5, 7, 18, 20), numbers(*[0] * 20), 16, OURS)
    tagger = Tagger(body, CLASSES, 0.0, 1)
    assert predict(tagger, 0, examples, rows=1).tolist() == predict(tagger, 0, examples, rows=128).tolist()


@pytest.mark.parametrize("predicted_class", range(CLASSES))
def test_a_label_that_training_never_saw_is_an_error_whatever_is_predicted(body, predicted_class, monkeypatch):
    """Also where the gold labels of the test set leave out the highest classes."""
    examples = Examples(Encoded(numbers(5, 6), numbers(0, 1, 2)), numbers(0, 2), numbers(0, -1), 16, OURS)
    monkeypatch.setattr(tagging, "predict", lambda *_: numbers(0, predicted_class))
    assert evaluate(Tagger(body, CLASSES, 0.0, 1), 0, examples)["accuracy"] == 50.0


CONLLU = "1\tthe\t_\tDET\t_\t_\t2\tdet\t_\t_\n2\tw{i}\t_\tNOUN\t_\t_\t0\troot\t_\t_\n\n"


def treebank(folder: Path, **sizes: int) -> str:
    """A treebank whose sentences are ``the w0``, ``the w1``, …"""
    folder.mkdir()
    for split, size in sizes.items():
        (folder / f"x-{split}.conllu").write_text("".join(CONLLU.format(i=i) for i in range(size)))
    return f"conllu:{folder}"


def last_words(corpus: Corpus) -> list[str]:
    return [sentence.words[-1] for sentence in corpus]


@pytest.mark.parametrize(("limit", "train", "dev"), [(None, 18, 2), (10, 9, 1), (5, 4, 1), (2, 1, 1)])
def test_without_a_dev_split_sentences_of_train_are_held_out(tmp_path, limit, train, dev):
    data = load_task(treebank(tmp_path / "t", train=20, test=3), TransferConfig(train_sentences=limit))
    assert last_words(data.train) == [f"w{i}" for i in range(train)]
    assert last_words(data.dev) == [f"w{i}" for i in range(train, train + dev)]
    assert last_words(data.test) == ["w0", "w1", "w2"]
    assert data.classes == ("DET", "NOUN")


def test_a_dev_split_is_used_and_each_split_is_limited(tmp_path):
    spec = treebank(tmp_path / "t", train=20, dev=6, test=5)
    whole = load_task(spec, TransferConfig())
    assert [len(whole.train), len(whole.dev), len(whole.test)] == [20, 6, 5]
    part = load_task(spec, TransferConfig(train_sentences=7, dev_sentences=3, test_sentences=2))
    assert [last_words(c) for c in (part.dev, part.test)] == [["w0", "w1", "w2"], ["w0", "w1"]]
    assert len(part.train) == 7


def test_a_split_is_read_over_batches(tmp_path):
    source = open_source(treebank(tmp_path / "t", train=4100))  # batches of 2000 sentences
    assert last_words(read_split(source, "train", 2003)) == [f"w{i}" for i in range(2003)]
    assert len(read_split(source, "train", 2000)) == 2000
    assert len(read_split(source, "train", None)) == 4100


def test_a_task_that_the_source_cannot_serve(tmp_path):
    with pytest.raises(InputError, match="no split 'test'; it has train, dev"):
        load_task(treebank(tmp_path / "no-test", train=20, dev=3), TransferConfig())
    with pytest.raises(InputError, match="too small for the task pos"):
        load_task(treebank(tmp_path / "one", train=1, test=3), TransferConfig())
    (tmp_path / "text").mkdir()
    for split in ("train", "test"):
        (tmp_path / "text" / f"{split}.txt").write_text("the cat sat .\n")
    with pytest.raises(InputError, match=r"the task pos needs the column 'upos'; text:.* has form"):
        load_task(f"text:{tmp_path / 'text'}", TransferConfig())


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return Store(tmp_path_factory.mktemp("store"))


def run_transfer(store, language: str, seed: int = 0, length: int = 48, **values):
    """Transfer of an untrained model; the scores differ from chance by fine-tuning only."""
    plain = {"objective__kind": "mlm", "model__init_std": 0.2}
    config = parse(PretrainConfig, changed(PRETRAIN, language=language, **plain, **values))
    artifacts = prepare(config, store)
    model = new_model(config, artifacts)
    return transfer(model, config, artifacts, parse(TransferConfig, TRANSFER | {"length": length}), seed)


@pytest.fixture(scope="module")
def scores(store):
    return run_transfer(store, "trans+inv")


def test_the_result_of_a_transfer(scores):
    assert scores["delta"] == pytest.approx(scores["sup"] - scores["zs"], abs=1e-4)
    assert scores["sup"] != scores["zs"]
    assert {kind: scores[kind] for kind in ("parent", "sup", "zs")} == {
        kind: values["accuracy"] for kind, values in scores["scores"].items()
    }
    assert (scores["task"], scores["metric"], scores["seed"]) == ("pos", "accuracy", 0)
    assert scores["sentences"] == {"train": 60, "dev": 40, "test": 40}
    assert {"NOUN", "VERB", "PUNCT"} <= set(scores["classes"])
    assert len(scores["words_beyond_length"]) == 6


def test_a_transfer_is_a_function_of_its_seed(scores, store):
    assert run_transfer(store, "trans+inv") == scores
    other = run_transfer(store, "trans+inv", seed=1)
    assert other["seed"] == 1
    assert other["scores"] != scores["scores"]


def words_of_test_sentences() -> int:
    return int(load_task(PRETRAIN["source"], TransferConfig()).test.offsets[-1])


def test_words_beyond_the_length_are_counted_and_cost_accuracy(scores, store):
    short = run_transfer(store, "trans+inv", length=8)
    counts = [result["words_beyond_length"] for result in (short, scores)]
    assert all(counts[0][name] > counts[1][name] for name in counts[1])
    # the words of all 40 test sentences that were cut are errors, so the accuracy has this bound
    words = words_of_test_sentences()
    assert short["sup"] <= 100 * (1 - counts[0]["trans+inv test"] / words) + 1e-3


def test_a_language_equal_to_its_parent_has_no_gap(store):
    same = run_transfer(store, "perm:0")
    assert same["parent"] == same["zs"] == same["sup"]
    assert same["scores"]["parent"] == same["scores"]["zs"] == same["scores"]["sup"]
    assert same["delta"] == 0.0


def test_a_length_beyond_the_model_is_an_error(store):
    with pytest.raises(InputError, match="transfer length 64 is longer than the model's 48 tokens"):
        run_transfer(store, "trans", length=64)


def test_the_fingerprint_covers_run_source_language_settings_and_seed():
    settings = TransferConfig()
    names = {
        transfer_fingerprint("run", "source", "language", settings, 0),
        transfer_fingerprint("other", "source", "language", settings, 0),
        transfer_fingerprint("run", "other", "language", settings, 0),
        transfer_fingerprint("run", "source", "other", settings, 0),
        transfer_fingerprint("run", "source", "language", settings, 1),
        *(
            transfer_fingerprint("run", "source", "language", parse(TransferConfig, {key: value}), 0)
            for key, value in {"epochs": 3, "learning_rate": 1e-3, "length": 64, "test_sentences": 9}.items()
        ),
    }
    assert len(names) == 9
    assert transfer_fingerprint("run", "source", "language", TransferConfig(epochs=10), 0) in names


SEPARATE: dict[str, Any] = {"sharing": {"embeddings": "separate", "layers": [1]}, "model__layers": 2}


def test_what_a_language_has_of_its_own_is_frozen(store):
    """Fine-tuning moves the shared layer and leaves embeddings and layer 1 as they were."""
    config = parse(PretrainConfig, changed(PRETRAIN, language="trans", objective__kind="mlm", **SEPARATE))
    model = new_model(config, prepare(config, store))
    tagger = fine_tune(model, 0, planted(0), planted(1), CLASSES, SETTINGS, 0, silent)
    before = dict(model.named_parameters())
    moved = {name for name, p in tagger.body.named_parameters() if not torch.equal(p, before[name])}
    own = set(model.language_specific())
    assert own and not moved & own
    assert any(name.startswith("layers.1.") for name in moved)


def test_a_separated_model_is_tested_through_the_parts_of_the_language(store):
    """Zero-shot goes through the derived language's own parts, so the scores differ from the parent's."""
    result = run_transfer(store, "perm:0", **SEPARATE)
    assert result["parent"] != result["zs"]


def test_transfer_needs_a_derived_language(store):
    with pytest.raises(InputError, match="no language derived from its first one"):
        run_transfer(store, "parent")


def test_the_parents_name_is_reserved():
    """Corpora, scores and exports are kept by the language's name, so another parent would replace it."""
    with pytest.raises(InputError, match="parent"):
        parse_language({"name": "parent", "transforms": [{"kind": "invert"}]})
    assert parse_language("parent") == PARENT
