"""Slot filling of mini-english: legal, annotated, right by another path, and not to be had from the words alone."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache
from itertools import pairwise

import numpy as np
import pytest

from synthlang.corpus import Sentence
from synthlang.language import parse_language
from synthlang.sources.mini_english import MiniEnglish
from synthlang.sources.mini_english.slots import ASIDES, INTENTS, SlotSentence, slot_sentences
from synthlang.tasks import derive_task
from synthlang.tasks.word_labels import MiniEnglishSlots
from tests.refusals import refused

Span = tuple[int, int, str]
# preposition and sense of a head → its slot
BY = {
    **{("to", "l"): "destination", ("to", "e"): "event", ("to", "p"): "recipient", ("through", "l"): "via"},
    **{("from", "l"): "origin", ("from", "p"): "sender", ("for", "p"): "recipient", ("with", "p"): "companion"},
    **{("near", "l"): "place", ("at", "l"): "place", ("at", "e"): "event"},
}
SLOTS = {*BY.values(), "agent", "contact", "item", "message", "quantity", "reason", "time"}


@cache
def utterances(types: int = 1000, split: str = "train", count: int = 2500, seed: int = 0) -> tuple[SlotSentence, ...]:
    return tuple(slot_sentences(MiniEnglish(types=types, seed=seed), split, count))


def spans(tags: list[str]) -> list[Span]:
    """(start, stop, slot) of each B- with its I-."""
    starts = [i for i, tag in enumerate(tags) if tag.startswith("B-")]
    return [
        (i, next((j for j in range(i + 1, len(tags)) if tags[j] != f"I-{tags[i][2:]}"), len(tags)), tags[i][2:])
        for i in starts
    ]


def marked() -> Iterator[tuple[Sentence, int, str, int]]:
    """Sentence, first word, slot, and the one word whose head is outside, of every span."""
    for s in (u.sentence for u in utterances()):
        for start, stop, slot in spans(s.columns["slot"]):
            [top] = [i for i in range(start, stop) if not start < s.columns["head"][i] <= stop]
            yield s, start, slot, top


@pytest.mark.parametrize(("types", "seed"), [(500, 3), (5000, 1)])
def test_tags_are_legal(types: int, seed: int) -> None:
    for s in (u.sentence for u in utterances(types, count=200, seed=seed)):
        for column in ("slot", "ner"):
            for before, tag in pairwise(["O", *s.columns[column]]):
                assert tag == "O" or tag.startswith("B-") or (tag[:2] == "I-" and before[2:] == tag[2:])
        assert {tag[2:] for tag in s.columns["slot"]} - {""} <= SLOTS


def test_every_intent_and_slot_is_used_and_most_slots_have_several_words() -> None:
    assert len(INTENTS) == 11
    intents = Counter(u.intent for u in utterances())
    assert set(intents) == set(INTENTS) and min(intents.values()) > 0.03 * len(utterances())
    lengths = defaultdict(list)
    for u in utterances():
        for start, stop, slot in spans(u.sentence.columns["slot"]):
            lengths[slot].append(stop - start)
    assert set(lengths) == SLOTS and min(map(len, lengths.values())) > 80
    assert all(max(of) > 1 for of in lengths.values()) and np.mean([n for of in lengths.values() for n in of]) > 1.5


def test_slots_agree_with_preposition_and_sense() -> None:
    """Another path to the slots: the preposition, and the kind of name or noun, of the span's head."""
    known = {form: noun.sense for noun in reversed(MiniEnglish().lexicon.nouns) for form in noun.forms}
    checked = Counter[str]()
    for s, _, slot, top in marked():
        if slot in ("time", "reason", "message", "quantity"):
            continue
        kind = {"PER": "p", "ORG": "p", "LOC": "l"}.get(s.columns["ner"][top][2:])
        sense = kind or known[s.words[top]].replace("g", "p")
        edges = zip(s.words, s.columns["head"], s.columns["deprel"], strict=True)
        case = next((w for w, h, d in edges if h == top + 1 and d == "case" and w != "of"), "")
        relation = s.columns["deprel"][top]
        expected = {"nsubj": {"agent"}, "iobj": {"recipient"}, "obj": {"item", "contact", "recipient"}}.get(relation)
        if relation == "obl" and (case, sense) in BY:
            expected = {BY[case, sense]}
        if expected is not None:
            checked[relation] += 1
            assert slot in expected, (s.text, slot)
    assert min(checked.values()) > 200 and set(checked) == {"nsubj", "obj", "iobj", "obl"}


def test_whole_phrases_are_marked() -> None:
    """Messages are the clauses that somebody is told; reasons and times begin where they should."""
    seen, when = set(), {"tomorrow", "yesterday", *(relation.split()[1] for relation in ASIDES)}
    for s, start, slot, top in marked():
        before, relation = s.words[start - 1] if start else "", s.columns["deprel"][top]
        seen.add(slot)
        if slot == "message":
            assert relation in ("ccomp", "xcomp") and (before == "to") == (relation == "xcomp")
            assert s.words[s.columns["head"][top] - 1] in ("tell", "ask", "tells", "told")
        elif slot == "reason":
            assert relation == "advcl" and before == "because"
        assert slot != "time" or s.words[start] in when
        assert slot != "quantity" or relation == "nummod"
    assert seen == SLOTS


def test_a_bag_of_words_is_far_above_chance_and_not_perfect() -> None:
    text = pytest.importorskip("sklearn.feature_extraction.text")
    linear = pytest.importorskip("sklearn.linear_model")
    vectors = text.CountVectorizer(token_pattern=r"\S+", lowercase=False)
    (train, intents), (test, gold) = (
        ([u.sentence.text for u in us], [u.intent for u in us])
        for us in (utterances(), utterances(split="test", count=600))
    )
    model = linear.LogisticRegression(max_iter=200).fit(vectors.fit_transform(train), intents)
    majority = Counter(gold).most_common(1)[0][1] / len(gold)
    assert majority + 0.4 < model.score(vectors.transform(test), gold) < 0.95
    assert len(set(train) & set(test)) < 12 and len(set(train)) > 0.98 * len(train)  # splits hardly share an utterance


def test_the_task_set(monkeypatch) -> None:
    monkeypatch.setattr("synthlang.tasks.batch.BATCH_SENTENCES", 100)
    task = MiniEnglishSlots(MiniEnglish(sentences=130, dev=1, test=0))
    assert task.splits == ("train", "dev") and task.labels == INTENTS and task.tags == "slot"
    assert (task.kind, task.fields, task.label_name) == ("words", ("text",), "intent")
    assert task.licence == "apache-2.0" and task.columns[-1] == "slot" and task.size("train") == 130
    first, second = task.batches("train")
    assert [len(first), len(second)] == [100, 30] and second.ids == tuple(map(str, range(100, 130)))
    assert first.label is not None and tuple(first.corpus.columns) == task.columns
    assert dict(first.corpus[99].columns) == dict(utterances()[99].sentence.columns)
    assert first.label.values() == [u.intent for u in utterances()[:100]]
    assert refused(task.batches, "test")[1] == "missing"


@pytest.mark.parametrize("spec", ["inv", "trans+inv"])
def test_labels_follow_their_words(spec: str) -> None:
    [batch] = MiniEnglishSlots(MiniEnglish(sentences=100)).batches("train")
    derived, counts = derive_task(batch, parse_language(spec))
    assert len(derived) == len(batch) and counts == {} and derived.ids == batch.ids
    for old, new in zip(batch.corpus, derived.corpus, strict=True):
        mine, theirs = (Counter((b - a, slot) for a, b, slot in spans(s.columns["slot"])) for s in (old, new))
        assert mine == theirs
