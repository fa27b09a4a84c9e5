"""Slot filling of mini-english: legal, annotated, right by another path, and not to be had from the words alone."""

from __future__ import annotations

from collections import Counter, defaultdict
from functools import cache
from itertools import pairwise

import numpy as np
import pytest

from synthlang.corpus import Sentence
from synthlang.errors import InputError
from synthlang.language import parse_language
from synthlang.sources.mini_english import MiniEnglish
from synthlang.sources.mini_english.slots import INTENTS, SLOTS, SlotSentence, slot_sentences
from synthlang.tasks import derive_task
from synthlang.tasks.words import MiniEnglishSlots

Span = tuple[int, int, str]


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


def outer_head(s: Sentence, start: int, stop: int) -> int:
    """The one word of a span whose head is outside it."""
    [top] = [i for i in range(start, stop) if not start < s.columns["head"][i] <= stop]
    return top


@pytest.mark.parametrize(("types", "seed"), [(500, 3), (1000, 0), (5000, 1)])
def test_tags_are_legal(types: int, seed: int) -> None:
    for s in (u.sentence for u in utterances(types, count=600, seed=seed)):
        for column in ("slot", "ner"):
            for before, tag in pairwise(["O", *s.columns[column]]):
                assert tag == "O" or tag[:2] in ("B-", "I-")
                assert not tag.startswith("I-") or before[2:] == tag[2:]
        assert {tag[2:] for tag in s.columns["slot"]} - {""} <= set(SLOTS)


def test_every_intent_and_slot_is_used_and_most_slots_have_several_words() -> None:
    assert len(INTENTS) == 11 and len(SLOTS) == 15
    intents = Counter(u.intent for u in utterances())
    assert set(intents) == set(INTENTS) and min(intents.values()) > 0.03 * len(utterances())
    lengths = defaultdict(list)
    for u in utterances():
        for start, stop, slot in spans(u.sentence.columns["slot"]):
            lengths[slot].append(stop - start)
    assert set(lengths) == set(SLOTS) and min(map(len, lengths.values())) > 80
    assert all(max(of) > 1 for of in lengths.values()) and np.mean([n for of in lengths.values() for n in of]) > 1.5


def senses() -> dict[str, str]:
    """Noun form → its sense (the first noun that has it)."""
    found: dict[str, str] = {}
    for noun in MiniEnglish().lexicon.nouns:
        for form in (noun.singular, noun.plural):
            found.setdefault(form, noun.sense)
    return found


def test_slots_agree_with_preposition_and_sense() -> None:
    """Another path to the slots: the preposition, and the kind of name or noun, of the span's head."""
    known, checked = senses(), Counter[str]()
    by = {
        ("to", "l"): {"destination"},
        ("to", "e"): {"event"},
        ("to", "p"): {"recipient"},
        ("from", "l"): {"origin"},
        ("from", "p"): {"sender"},
        ("for", "p"): {"recipient"},
        ("with", "p"): {"companion"},
        ("through", "l"): {"via"},
        ("near", "l"): {"place"},
        ("at", "l"): {"place"},
        ("at", "e"): {"event"},
    }
    for u in utterances():
        s = u.sentence
        for start, stop, slot in spans(s.columns["slot"]):
            if slot in ("time", "reason", "message", "quantity"):
                continue
            top = outer_head(s, start, stop)
            kind = s.columns["ner"][top][2:]
            sense = {"PER": "p", "ORG": "p", "LOC": "l"}.get(kind) or known[s.words[top]].replace("g", "p")
            cases = [
                w
                for w, h, d in zip(s.words, *(s.columns[n] for n in ("head", "deprel")), strict=True)
                if h == top + 1 and d == "case" and w != "of"
            ]
            relation = s.columns["deprel"][top]
            expected = by[cases[0], sense] if relation == "obl" and (cases[0], sense) in by else None
            expected = {"agent"} if relation == "nsubj" else {"recipient"} if relation == "iobj" else expected
            expected = {"item", "contact", "recipient"} if relation == "obj" else expected
            if expected is not None:
                checked[relation] += 1
                assert slot in expected, (s.text, slot)
    assert min(checked.values()) > 200 and set(checked) == {"nsubj", "obj", "iobj", "obl"}


def test_whole_phrases_are_marked() -> None:
    """Messages are the clauses that somebody is told; reasons and times begin where they should."""
    for u in utterances():
        s = u.sentence
        for start, stop, slot in spans(s.columns["slot"]):
            top, before = outer_head(s, start, stop), s.words[start - 1] if start else ""
            relation = s.columns["deprel"][top]
            if slot == "message":
                assert relation in ("ccomp", "xcomp") and (before == "to") == (relation == "xcomp")
                assert s.words[s.columns["head"][top] - 1] in ("tell", "ask", "tells", "told")
            elif slot == "reason":
                assert relation == "advcl" and before == "because"
            elif slot == "time":
                assert s.words[start] in (
                    *("today", "tomorrow", "yesterday", "now", "soon"),
                    *("after", "before", "during", "when"),
                )
            elif slot == "quantity":
                assert relation == "nummod"
    assert any(u.intent == "tell" for u in utterances())


def test_the_same_words_stand_in_several_slots() -> None:
    seen: dict[str, Counter[str]] = defaultdict(Counter)
    for u in utterances():
        for word, tag in zip(u.sentence.words, u.sentence.columns["slot"], strict=True):
            seen[word][tag] += 1
    frequent = {w: c for w, c in seen.items() if c.total() >= 10 and c["O"] < c.total() / 2}
    several = [w for w, c in frequent.items() if sum(n >= 2 for tag, n in c.items() if tag != "O") >= 2]
    assert len(several) > 0.9 * len(frequent) > 100
    test = utterances(split="test", count=500)
    pairs = [p for u in test for p in zip(u.sentence.words, u.sentence.columns["slot"], strict=True)]
    guesses = [seen[w].most_common(1)[0][0] if w in seen else "O" for w, _ in pairs]
    right = np.mean([g == tag for g, (_, tag) in zip(guesses, pairs, strict=True)])
    outside = np.mean([tag == "O" for _, tag in pairs])
    assert outside + 0.05 < right < 0.75  # the word tells something, and far from all


def test_no_word_gives_an_intent_away() -> None:
    total = Counter(w for u in utterances() for w in set(u.sentence.words))
    for intent in INTENTS:
        mine = [u for u in utterances() if u.intent == intent]
        words = Counter(w for u in mine for w in set(u.sentence.words))
        assert max(2 * n / (len(mine) + total[w]) for w, n in words.items()) < 0.93, intent


def test_a_bag_of_words_is_far_above_chance_and_not_perfect() -> None:
    text = pytest.importorskip("sklearn.feature_extraction.text")
    linear = pytest.importorskip("sklearn.linear_model")
    test = utterances(split="test", count=600)
    vectors = text.CountVectorizer(token_pattern=r"\S+", lowercase=False)
    model = linear.LogisticRegression(max_iter=200)
    model.fit(vectors.fit_transform([u.sentence.text for u in utterances()]), [u.intent for u in utterances()])
    score = model.score(vectors.transform([u.sentence.text for u in test]), [u.intent for u in test])
    majority = Counter(u.intent for u in test).most_common(1)[0][1] / len(test)
    assert majority + 0.4 < score < 0.95


def test_splits_share_hardly_an_utterance_and_utterances_hardly_repeat() -> None:
    train = [u.sentence.text for u in utterances()]
    test = {u.sentence.text for u in utterances(split="test", count=600)}
    assert len(set(train) & test) < 12 and len(set(train)) > 0.98 * len(train)


def test_the_task_set() -> None:
    task = MiniEnglishSlots(MiniEnglish(sentences=2100, dev=1, test=0))
    assert task.splits == ("train", "dev") and task.labels == INTENTS and task.tags == "slot"
    assert (task.kind, task.fields, task.label_name) == ("words", ("text",), "intent")
    assert task.licence == "apache-2.0" and task.columns[-1] == "slot" and task.size("train") == 2100
    batches = list(task.batches("train"))
    assert [len(b) for b in batches] == [2000, 100] and batches[1].ids == tuple(map(str, range(2000, 2100)))
    first, label = batches[0], batches[0].label
    assert label is not None and tuple(first.corpus.columns) == task.columns
    for row in (0, 1999):
        assert dict(first.corpus[row].columns) == dict(utterances()[row].sentence.columns)
        assert label.values()[row] == utterances()[row].intent
    [single] = task.batches("dev")
    assert len(single) == 1
    with pytest.raises(InputError, match="no split 'test'"):
        next(iter(task.batches("test")))


@pytest.mark.parametrize("spec", ["trans", "inv", "trans+inv"])
def test_labels_follow_their_words(spec: str) -> None:
    [batch] = MiniEnglishSlots(MiniEnglish(sentences=300)).batches("train")
    derived, counts = derive_task(batch, parse_language(spec))
    assert len(derived) == len(batch) and counts == {} and derived.ids == batch.ids
    for old, new in zip(batch.corpus, derived.corpus, strict=True):
        mine = Counter((stop - start, slot) for start, stop, slot in spans(old.columns["slot"]))
        assert mine == Counter((stop - start, slot) for start, stop, slot in spans(new.columns["slot"]))
