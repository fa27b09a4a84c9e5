"""Scores of every task against scikit-learn, seqeval, the rules of CoNLL 2018 and by hand; what all must satisfy."""

from __future__ import annotations

import warnings
from itertools import groupby, product
from typing import Any

import numpy as np
import pytest
from seqeval import metrics as seqeval
from seqeval.scheme import IOB2
from sklearn.metrics import accuracy_score, f1_score  # type: ignore[import-untyped]

from probes.transfer.config import TransferConfig
from probes.transfer.tasks.base import task_of
from probes.transfer.tasks.metrics import Metric, defined, mentions_of, repaired


def metrics_of(task: str, **score: Any) -> dict[str, Metric]:
    return task_of(TransferConfig.model_validate({"task": task, "score": score})).metrics()


NLI, POS, NER, SLOTS, PARSING = (metrics_of(task) for task in ("nli", "pos", "ner", "slots", "parsing"))
SPANS = {name: NER[name] for name in ("span_f1", "span_precision", "span_recall")}
CLASSES = tuple("ABCDEFGH")


def cut(labels: list[str], rng: np.random.Generator) -> list[list[str]]:
    """The labels in sentences, some of them empty."""
    borders = np.sort(rng.integers(0, len(labels) + 1, 4)).tolist()
    return [labels[a:b] for a, b in zip([0, *borders], [*borders, len(labels)], strict=True)]


def labels_of(seed: int) -> tuple[list[str], list[str]]:
    """Gold and predicted labels, half of them right; "" predicts nothing."""
    rng = np.random.default_rng(seed)
    n, words = int(rng.integers(1, 8)), int(rng.integers(1, 40))
    gold = rng.integers(0, n, words)
    said = np.where(rng.random(words) < 0.5, gold, rng.integers(-1, n, words))
    return [CLASSES[c] for c in gold], [CLASSES[c] if c >= 0 else "" for c in said]


def test_scores_equal_those_of_sklearn() -> None:
    for seed in range(200):
        gold, said = labels_of(seed)
        macro = f1_score(gold, said, labels=np.unique(gold), average="macro", zero_division=0)
        micro = f1_score(gold, said, labels=CLASSES, average="micro", zero_division=0)
        expected = {"accuracy": 100 * accuracy_score(gold, said), "macro_f1": 100 * macro, "micro_f1": 100 * micro}
        words = [cut(labels, np.random.default_rng(seed)) for labels in (gold, said)]
        found = {name: metric(*words) for name, metric in POS.items() if name != "run_f1"}
        assert found == pytest.approx(expected), seed
        items = {name: metric(gold, said) for name, metric in NLI.items()}
        assert items == pytest.approx({name: expected[name] for name in ("accuracy", "macro_f1")}), seed


def test_f1_of_runs_is_that_of_a_loop_and_of_seqeval_on_tags_without_b_and_i() -> None:
    """The released code of ALIGN-MLM scores POS in this way. seqeval reads SCONJ and SYM as separate kinds of tags."""
    rng, tags = np.random.default_rng(0), np.array(["ADJ", "ADP", "DET", "NOUN", "PRON", "VERB", "CCONJ", ""])
    for _ in range(100):
        lengths = rng.integers(1, 9, 5)
        gold = [tags[rng.integers(0, 4, n)].tolist() for n in lengths]
        said = [np.where(rng.random(len(of)) < 0.6, of, tags[rng.integers(0, 8, len(of))]).tolist() for of in gold]
        runs = []
        for sentences in (gold, said):
            found = set()
            for number, sentence in enumerate(sentences):
                for tag, run in groupby(enumerate(sentence), key=lambda pair: pair[1]):
                    at = [place for place, _ in run]
                    found |= {(number, at[0], at[-1], tag)} if tag else set()
            runs.append(found)
        right = len(runs[0] & runs[1])
        assert POS["run_f1"](gold, said) == pytest.approx(200 * right / (len(runs[0]) + len(runs[1])))
        read = [[tag or "O" for tag in sentence] for sentence in said]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # seqeval says that these are no tags of mentions
            assert POS["run_f1"](gold, said) == pytest.approx(100 * seqeval.f1_score(gold, read))


def test_f1_of_tags_other_than_o_equals_sklearn() -> None:
    rng, tags = np.random.default_rng(0), np.array(["O", "B-X", "I-X", "B-Y"])
    for _ in range(50):
        gold, said = (tags[rng.integers(0, 4, 30)].tolist() for _ in range(2))
        micro = f1_score(gold, said, labels=tags[1:], average="micro", zero_division=0)
        assert NER["token_f1"]([gold[:7], gold[7:]], [said[:7], said[7:]]) == pytest.approx(100 * micro)


def test_what_has_no_gold_label_does_not_count() -> None:
    for metric in POS.values():
        assert metric([["A", ""], [""]], [["A", "B"], ["A"]]) == 100
    for metric in NLI.values():
        assert metric(["A", ""], ["A", ""]) == 100
        assert metric(["A", "B"], ["", ""]) == 0


def frame(slots: str, intent: str) -> dict[str, Any]:
    return {"slots": slots.split(), "intent": intent}


FRAMES = [frame("O B-a I-a", "x"), frame("B-b O", "y"), frame("O O", "y")]


@pytest.mark.parametrize(
    ("score", "said", "expected"),
    [
        ({}, FRAMES, (100, 100, 100)),
        # an I after O is no mention: frame 0 stays right; frame 1 has its slot but not its intent; frame 2 one too many
        ({}, [frame("I-b B-a I-a", "x"), frame("B-b O", "z"), frame("B-a O", "y")], (80, 200 / 3, 100 / 3)),
        # repaired, that I becomes a mention of its own
        (
            {"repair": "final-type"},
            [frame("I-b B-a I-a", "x"), frame("B-b O", "z"), frame("B-a O", "y")],
            (200 / 3, 200 / 3, 0),
        ),
        # right intents and no slots at all
        ({}, [frame("O " * len(f["slots"]), f["intent"]) for f in FRAMES], (0, 100, 100 / 3)),
    ],
    ids=["right", "strict", "repaired", "nothing"],
)
def test_frames_by_hand(score: dict[str, Any], said: list[Any], expected: tuple[float, ...]) -> None:
    metrics = metrics_of("slots", **score)
    assert "frame_accuracy: share of utterances" in str(defined(metrics.values()))
    found = {name: metric(FRAMES, said) for name, metric in metrics.items()}
    assert found == pytest.approx(dict(zip(("slot_f1", "intent_accuracy", "frame_accuracy"), expected, strict=True)))


TAGS = [["B-X", "O"], ["O", "B-Y", "I-Y"], [], ["B-X"]]
TREES = [[[2, "det", "DET"], [0, "root", "NOUN"]], [[0, "root", "VERB"], [1, "punct", "PUNCT"]]]
ANSWERS = [{"answers": ["the cat"]}, {"answers": []}, {"answers": ["a dog", "dogs"]}]
CASES: dict[str, tuple[dict[str, Metric], list[Any], list[Any]]] = {
    "classes": (NLI, ["a", "b", "a"], ["a", "a", "b"]),
    "tokens": ({**POS, "token_f1": NER["token_f1"]}, TAGS, [["B-X", "B-X"], ["O", "B-Y", "O"], [], ["O"]]),
    "spans": (SPANS, TAGS, [["B-X", "B-X"], ["O", "B-Y", "I-Y"], [], ["O"]]),
    "frames": (SLOTS, FRAMES, [FRAMES[0], frame("O O", "y"), frame("B-a O", "x")]),
    "trees": (PARSING, TREES, [[[2, "amod"], [0, "root"]], [[-1, ""], [1, "punct"]]]),
    "answers": (metrics_of("qa"), ANSWERS, [{"answer": "cat"}, {"answer": "x"}, {"answer": ""}]),
}


@pytest.mark.parametrize("name", CASES)
def test_statistics_are_sums_over_items(name: str) -> None:
    """float64 [items, k]; scores are vectorised; an item that is drawn twice counts twice; no item gives 0."""
    metrics, gold, said = CASES[name]
    for key, metric in metrics.items():
        assert metric.name == key
        stats = metric.stats(gold, said)
        assert stats.dtype == np.float64 and stats.ndim == 2 and len(stats) == len(gold)
        assert 0 <= metric(gold, said) <= 100
        drawn = [0, 1, 1]
        assert metric([gold[i] for i in drawn], [said[i] for i in drawn]) == pytest.approx(
            float(metric.score(stats[drawn].sum(axis=0)))
        )
        assert metric.score(np.stack([stats, 2 * stats])).shape == (2, len(gold))
        assert metric([], []) == 0.0


def test_which_metrics_are_means_over_items() -> None:
    found = {key for metrics, _, _ in CASES.values() for key, m in metrics.items() if m.of_items}
    answers = {"f1", "exact_match", "f1_has_answer", "exact_match_has_answer", "no_answer"}
    assert found == {"accuracy", "intent_accuracy", "frame_accuracy", *answers}
    assert not POS["accuracy"].of_items


BIO = ("O", "B-A", "I-A", "B-B", "I-B", "B-C-d", "I-C-d")
Sentences = list[list[str]]


def random_tags(seed: int) -> tuple[Sentences, Sentences]:
    """Sentences with any tags, legal or not; the prediction shares about half of them."""
    rng = np.random.default_rng(seed)
    gold, said = [], []
    for length in rng.integers(1, 12, int(rng.integers(1, 6))).tolist():
        right, other = rng.integers(0, len(BIO), (2, length))
        mixed = np.where(rng.random(length) < 0.6, right, other)
        gold.append([BIO[i] for i in right])
        said.append([BIO[i] for i in mixed])
    return gold, said


def test_equals_seqeval_on_random_cases() -> None:
    above = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # seqeval warns where nothing was found
        for seed in range(300):
            gold, said = random_tags(seed)
            found = seqeval.classification_report(
                gold, said, zero_division=0, mode="strict", scheme=IOB2, output_dict=True
            )["micro avg"]
            expected = [100 * found[name] for name in ("f1-score", "precision", "recall")]
            assert [metric(gold, said) for metric in SPANS.values()] == pytest.approx(expected), (seed, gold, said)
            above += 0 < expected[0] < 100
    assert above > 150  # the cases are no trivial ones


def test_mentions_by_hand() -> None:
    tags = ["I-A", "B-A", "I-A", "I-B", "I-B", "B-B", "B-B", "I-B", "O", "I-B"]
    assert mentions_of(tags) == [(1, 3, "A"), (5, 6, "B"), (6, 8, "B")]
    assert mentions_of([]) == []
    assert mentions_of(["", "X", "S-A", "B"]) == []  # what is no tag is outside


def plain_repair(tags: list[str]) -> list[str]:
    """Runs: from a B, or an I that follows no tag, through all I; every run has the type of its last tag."""
    runs: list[list[int]] = []
    for i, tag in enumerate(tags):
        if tag == "O":
            continue
        if tag[0] == "B" or not runs or runs[-1][-1] != i - 1:
            runs.append([])
        runs[-1].append(i)
    result = ["O"] * len(tags)
    for run in runs:
        for i in run:
            result[i] = ("B-" if i == run[0] else "I-") + tags[run[-1]].split("-", 1)[1]
    return result


def legal(tags: list[str]) -> bool:
    pairs = zip(["O", *tags], tags, strict=False)
    return all(tag[0] != "I" or (before != "O" and before[2:] == tag[2:]) for before, tag in pairs)


def test_repair_equals_a_plain_reading_of_all_short_sentences() -> None:
    changed = 0
    for length in range(6):
        for chosen in product(BIO[:5], repeat=length):
            tags = list(chosen)
            mended = repaired(tags)
            assert mended == plain_repair(tags)
            assert legal(mended)
            assert (mended == tags) == legal(tags)
            assert repaired(tags, "none") == tags
            changed += mended != tags
    assert changed > 1000


def test_repair_of_the_papers_examples_is_a_switch_and_leaves_gold_alone() -> None:
    assert repaired(["O", "I-X", "O"]) == ["O", "B-X", "O"]
    assert repaired(["B-X", "I-Y", "I-Z"]) == ["B-Z", "I-Z", "I-Z"]
    for repair, score in (("none", 0.0), ("final-type", 100.0)):
        f1 = metrics_of("ner", repair=repair)["span_f1"]
        assert f1([["B-Z", "I-Z"]], [["I-X", "I-Z"]]) == score
        assert f1([["O", "I-X"]], [["O", "I-X"]]) == 0


RELATIONS = ("nsubj", "nsubj:pass", "obl", "obl:tmod", "obl:agent", "punct", "root")
Trees = list[list[list[Any]]]


def random_trees(seed: int) -> tuple[Trees, Trees]:
    rng = np.random.default_rng(seed)
    gold: Trees = []
    said: Trees = []
    for length in rng.integers(1, 9, int(rng.integers(1, 5))).tolist():
        heads = rng.integers(0, length + 1, length)
        found = np.where(rng.random(length) < 0.6, heads, rng.integers(-1, length + 1, length))
        names = rng.integers(0, len(RELATIONS), (2, length))
        names[1] = np.where(rng.random(length) < 0.5, names[0], names[1])
        upos = rng.choice(["NOUN", "PUNCT"], length)
        gold.append([[int(h), RELATIONS[r], str(u)] for h, r, u in zip(heads, names[0], upos, strict=True)])
        said.append([[int(h), RELATIONS[r] if h >= 0 else ""] for h, r in zip(found, names[1], strict=True)])
    return gold, said


def conll2018(gold: Trees, said: Trees, attributes: str, punctuation: bool = True) -> float:
    """F1 over aligned words. With gold words every word is aligned with itself, and a head stands for the word
    aligned with it. ``attributes``: what must be equal besides the head."""

    def key(word: list[Any]) -> tuple[str, ...]:
        return {"": (), "universal": (word[1].split(":")[0],), "whole": (word[1],)}[attributes]

    gold_words = system_words = correct = 0
    for right, found in zip(gold, said, strict=True):
        for word, guess in zip(right, found, strict=True):
            if not punctuation and word[2] == "PUNCT":
                continue
            gold_words += 1
            system_words += 1
            correct += guess[0] != -1 and (word[0], *key(word)) == (guess[0], *key(guess))
    precision, recall = (correct / n if n else 0.0 for n in (system_words, gold_words))
    return 100 * 2 * precision * recall / (precision + recall) if correct else 0.0


def test_attachment_equals_the_rules_of_conll_2018_on_random_cases() -> None:
    ways = {"las": "universal", "uas": "", "las_subtypes": "whole"}
    kinds = set()
    for seed in range(300):
        gold, said = random_trees(seed)
        scores = {name: metric(gold, said) for name, metric in PARSING.items()}
        expected = {name: conll2018(gold, said, way) for name, way in ways.items()}
        expected |= {f"{name}_without_punct": conll2018(gold, said, way, False) for name, way in ways.items()}
        assert scores == pytest.approx(expected), seed
        kinds.add(len({round(score, 6) for score in scores.values()}))
    assert max(kinds) == 6  # no two of the scores are the same thing


def test_the_main_metric_comes_first_and_counts_punctuation_or_not() -> None:
    tasks = ("nli", "pos", "ner", "slots", "parsing", "qa")
    main = ["accuracy", "accuracy", "span_f1", "slot_f1", "las", "f1"]
    assert [next(iter(metrics_of(task))) for task in tasks] == main
    without = metrics_of("parsing", punctuation=False)
    assert next(iter(without)) == "las_without_punct" and set(PARSING) == set(without)


def test_a_word_that_was_not_read_is_an_error_and_one_without_gold_head_does_not_count() -> None:
    for name, metric in PARSING.items():
        assert metric([[[-1, "_", "X"], [0, "root", "X"]]], [[[-1, "_"], [0, "root"]]]) == 100, name
        assert metric([[[1, "_", "X"], [0, "root", "X"]]], [[[-1, "_"], [0, "root"]]]) == 50, name
    punctuation = [[[0, "root", "PUNCT"]]], [[[0, "root"]]]
    assert (PARSING["uas_without_punct"](*punctuation), PARSING["uas"](*punctuation)) == (0, 100)
