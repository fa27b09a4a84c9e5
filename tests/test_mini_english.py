"""Mini-English: exact size, same bytes whatever the borders, legal trees, words that differ from each other."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from itertools import islice, pairwise
from math import log2
from typing import Any

import numpy as np
import pytest

from synthlang.corpus import Corpus, Sentence, concatenate
from synthlang.errors import InputError
from synthlang.sources.mini_english import MiniEnglish
from synthlang.sources.mini_english.entries import IT, SHE, THEY, Clause, Frame, Name, Noun, NounPhrase
from synthlang.sources.mini_english.lexicon import inflected, plural, takes_an
from synthlang.sources.mini_english.nli import nli_pairs
from synthlang.sources.mini_english.questions import paragraphs
from synthlang.sources.mini_english.realise import realise
from synthlang.sources.mini_english.slots import slot_sentences
from synthlang.trees import Forest

DEPRELS = {
    *("root", "nsubj", "nsubj:pass", "obj", "iobj", "obl", "obl:agent", "nmod", "nmod:poss", "amod", "det", "case"),
    *("mark", "aux", "aux:pass", "cop", "advmod", "advcl", "acl:relcl", "ccomp", "xcomp", "conj", "cc", "punct"),
    *("nummod", "compound", "flat", "expl", "discourse"),
}
TAGS = {
    *("ADJ", "ADP", "ADV", "AUX", "CCONJ", "DET", "INTJ", "NOUN", "NUM", "PART", "PRON", "PROPN", "PUNCT", "SCONJ"),
    "VERB",
}


@cache
def corpus(types: int = 1000, sentences: int = 5000) -> Corpus:
    return concatenate(list(MiniEnglish(types=types, sentences=sentences).batches("train")))


def edges(deprel: str, upos: str) -> list[tuple[str, str]]:
    """(head word, dependent) of a relation in the corpus."""
    found = []
    for s in corpus():
        for word, tag, head, relation in zip(s.words, *(s.columns[n] for n in ("upos", "head", "deprel")), strict=True):
            if relation == deprel and tag == upos and s.columns["upos"][head - 1] in ("VERB", "NOUN"):
                found.append((s.words[head - 1], word))
    return found


def information(pairs: list[tuple[str, str]]) -> float:
    """Mutual information of the two words of a pair, in bits (plug-in estimate)."""
    total, joint = len(pairs), Counter(pairs)
    first, second = Counter(a for a, _ in pairs), Counter(b for _, b in pairs)
    return sum(n / total * log2(n * total / (first[a] * second[b])) for (a, b), n in joint.items())


@pytest.mark.parametrize("types", [500, 1000, 1234, 5000])
def test_lexicon_has_exactly_the_types_and_every_form_comes_from_it(types: int) -> None:
    lexicon = MiniEnglish(types=types).lexicon
    assert len(lexicon.tags) == types
    emitted = corpus(types, 1000)
    tags = zip(emitted.form.values(), emitted.columns["upos"].values(), strict=True)
    assert [(w, t) for w, t in set(tags) if t not in lexicon.tags.get(w, ())] == []


def test_a_sentence_depends_on_nothing_but_its_place() -> None:
    source = MiniEnglish(sentences=4100)
    batches = list(source.batches("train"))
    assert [len(b) for b in batches] == [2000, 2000, 100]
    assert concatenate(batches).ids.tolist() == list(range(4100))
    for row in (0, 1999, 2000, 4099):  # of a longer corpus, and alone
        again = replace(source, sentences=9999).sentence("train", row)
        assert dict(concatenate(batches)[row].columns) == again
    assert next(replace(source, seed=1).batches("train")).texts()[:50] != batches[0].texts()[:50]


def test_splits_have_different_sentences_of_the_same_words() -> None:
    source = MiniEnglish(sentences=1000)
    texts = {split: next(source.batches(split)).texts() for split in source.splits}
    assert len(texts["dev"]) == len(texts["test"]) == 1000
    assert len(set(texts["train"]) & set(texts["dev"])) < 50
    top = {split: {w for w, _ in Counter(" ".join(t).split()).most_common(30)} for split, t in texts.items()}
    assert len(top["train"] & top["test"]) >= 20


def test_trees_are_legal() -> None:
    forest = Forest.of(corpus())
    assert forest.is_tree.all() and forest.is_projective.all()
    for s in corpus():
        head, deprel, upos = (s.columns[n] for n in ("head", "deprel", "upos"))
        assert deprel.count("root") == 1 and deprel[head.index(0)] == "root"
        assert upos[-1] == "PUNCT" and head[-1] == head.index(0) + 1 and s.words[-1] in ".?!"


def test_labels_are_used_and_lengths_are_natural() -> None:
    assert set(corpus().columns["deprel"].values()) == DEPRELS
    assert set(corpus().columns["upos"].values()) == TAGS
    assert 9 < corpus().lengths.mean() < 11.5 and corpus().lengths.max() <= 30
    assert {"?", "!", "."} <= {s.words[-1] for s in corpus()}


def test_entities_are_legal_bio_and_mostly_proper_nouns() -> None:
    lexicon, inside, tags, kinds = MiniEnglish().lexicon, Counter[str](), set[str](), dict[str, set[str]]()
    for name in (*lexicon.given, *lexicon.surnames, *lexicon.places, *lexicon.organisations):
        for word in name.forms:
            kinds.setdefault(word, set()).add(name.kind)
    for s in corpus():
        ner = s.columns["ner"]
        for before, tag in pairwise(["O", *ner]):
            assert not tag.startswith("I-") or before[2:] == tag[2:]
        for word, tag, upos in zip(s.words, ner, s.columns["upos"], strict=True):
            if tag != "O":
                inside[upos] += 1
                tags.add(tag)
                assert word == "of" or tag[2:] in kinds[word]
            assert (upos == "PROPN") <= (tag != "O")
    assert inside["PROPN"] / inside.total() > 0.95 and set(inside) == {"PROPN", "ADP"}
    assert tags == {f"{letter}-{kind}" for letter in "BI" for kind in ("PER", "LOC", "ORG")}
    assert sum(len(of) > 1 for of in kinds.values()) >= 5  # Jordan: a person, a place


def test_words_are_ambiguous() -> None:
    tags: dict[str, set[str]] = {}
    for word, tag in zip(corpus().form.values(), corpus().columns["upos"].values(), strict=True):
        tags.setdefault(word, set()).add(tag)
    assert sum({"NOUN", "VERB"} <= t for t in tags.values()) >= 15
    assert sum(len(t) > 1 for t in tags.values()) >= 30
    assert tags["to"] == {"PART", "ADP"} and tags["that"] == {"SCONJ", "DET", "PRON"}
    relations = {
        r for w, r in zip(corpus().form.values(), corpus().columns["deprel"].values(), strict=True) if w == "her"
    }
    assert relations >= {"obj", "nmod:poss"}


def test_frequencies_are_zipfian() -> None:
    counts = np.asarray(sorted(Counter(corpus().form.values()).values(), reverse=True), float)
    counts = counts[counts >= 5]
    slope = np.polyfit(np.log(np.arange(1, len(counts) + 1)), np.log(counts), 1)[0]
    assert -1.5 < slope < -0.8


@pytest.mark.parametrize(("deprel", "upos"), [("obj", "NOUN"), ("nsubj", "NOUN"), ("amod", "ADJ"), ("advmod", "ADV")])
def test_heads_have_preferences_of_their_own(deprel: str, upos: str) -> None:
    pairs = edges(deprel, upos)
    shuffled = [b for _, b in pairs]
    random.Random(0).shuffle(shuffled)
    control = information(list(zip([a for a, _ in pairs], shuffled, strict=True)))
    assert information(pairs) > control + 0.3


def test_topics_are_unequal_and_stay_for_a_document() -> None:
    source = MiniEnglish()
    topics = [source.world.context("train", i).topic for i in range(8000)]
    assert all(len(set(topics[i : i + 8])) == 1 for i in range(0, 8000, 8))
    counts = sorted(Counter(topics).values())
    assert len(counts) == 10 and counts[-1] > 3 * counts[0]
    by_word = {form: n.topic for n in source.lexicon.nouns for form in (n.singular, n.plural)}
    own = [by_word[w] == topics[s.id] for s in corpus() for w in s.words if w in by_word]
    other = [by_word[w] == topics[(s.id + 800) % 8000] for s in corpus() for w in s.words if w in by_word]
    assert np.mean(own) > np.mean(other) + 0.15


def agreement_errors(s: Sentence) -> int:
    """Finite present verbs that do not fit a singular or plural noun or pronoun as their subject."""
    lexicon, errors = MiniEnglish().lexicon, 0
    thirds, bases = {v.third for v in lexicon.verbs}, {v.base for v in lexicon.verbs}
    plurals = {n.plural for n in lexicon.nouns if n.plural != n.singular} | {"they", "we"}
    singulars = {n.singular for n in lexicon.nouns if n.plural != n.singular} | {"he", "she", "it"}
    head, deprel = s.columns["head"], s.columns["deprel"]
    for i, (word, h, relation) in enumerate(zip(s.words, head, deprel, strict=True), 1):
        if relation not in ("nsubj", "nsubj:pass") or any(
            r == "conj" and g == i for r, g in zip(deprel, head, strict=True)
        ):
            continue
        helpers = [
            s.words[j] for j, (g, r) in enumerate(zip(head, deprel, strict=True)) if g == h and r[:3] in ("aux", "cop")
        ]
        finite = helpers[0] if helpers else s.words[h - 1]
        ends_like_third = finite in ("is", "was", "has", "does") or (not helpers and finite in thirds)
        ends_like_base = finite in ("are", "were", "have", "do", "am") or (
            not helpers and finite in bases and all(v.past != finite for v in lexicon.verbs)
        )
        errors += (word in plurals and ends_like_third) + (word in singulars and ends_like_base)
    return errors


def test_subject_and_verb_agree() -> None:
    assert sum(agreement_errors(s) for s in islice(corpus(), 2500)) == 0
    wrong: dict[str, list[Any]] = {
        "form": ["she", "walk", "."],
        "head": [2, 0, 2],
        "deprel": ["nsubj", "root", "punct"],
    }
    assert agreement_errors(Sentence(0, wrong)) == 1


def test_a_and_an() -> None:
    following = {(a, b) for s in corpus() for a, b in pairwise(s.words) if a in ("a", "an")}
    assert all((a == "an") == takes_an(b) for a, b in following)
    assert [takes_an(w) for w in ("apple", "university", "honest", "car", "Oslo")] == [True, False, True, False, True]
    assert sum(a == "an" for a, _ in following) > 10


def test_inflection() -> None:
    assert " ".join(map(plural, ("city", "box", "boy", "wolf", "child"))) == "cities boxes boys wolves children"
    assert inflected("plan").forms == ("plan", "plans", "planned", "planning")
    assert inflected("die").gerund == "dying" and inflected("cry").third == "cries"
    assert inflected("go").forms == ("go", "goes", "went", "gone", "going")


def test_a_sentence_made_by_hand() -> None:
    give, apple = inflected("give", -1, (Frame("di", "pg", "ft"),)), Noun("apple", "apples", "f", 0)
    anna = NounPhrase(Name(("Anna", "Smith"), "PER"))
    plan = Clause("verb", anna, give, object=NounPhrase(apple, determiner="a"), recipient=NounPhrase(SHE), negated=True)
    assert realise(plan) == {
        "form": ["Anna", "Smith", "does", "not", "give", "her", "an", "apple", "."],
        "upos": ["PROPN", "PROPN", "AUX", "PART", "VERB", "PRON", "DET", "NOUN", "PUNCT"],
        "head": [5, 1, 5, 5, 0, 5, 8, 5, 5],
        "deprel": ["nsubj", "flat", "aux", "advmod", "root", "iobj", "det", "obj", "punct"],
        "ner": ["B-PER", "I-PER", "O", "O", "O", "O", "O", "O", "O"],
    }
    asked = replace(plan, negated=False, mood="question", past=True, object=NounPhrase(IT), recipient=None)
    assert " ".join(realise(asked)["form"]) == "did Anna Smith give it ?"
    done = replace(asked, mood="declarative", passive=True, agent=True, object=NounPhrase(THEY))
    assert " ".join(realise(done)["form"]) == "they were given by Anna Smith ."


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"types": 499}, "between 500 and 5000"),
        ({"types": 5001}, "5001"),
        ({"dev": -1}, "dev must be"),
        ({"seed": -1}, "seed"),
    ],
)
def test_wrong_options(options: dict[str, int], message: str) -> None:
    with pytest.raises(InputError, match=message):
        MiniEnglish(**options)
    with pytest.raises(InputError, match="no split 'valid'"):
        list(MiniEnglish().batches("valid"))


def test_fingerprint_covers_every_field() -> None:
    base = MiniEnglish()
    changed = [
        replace(base, **{name: getattr(base, name) + 1}) for name in ("types", "sentences", "dev", "test", "seed")
    ]
    assert len({s.fingerprint for s in [base, *changed]}) == 6 and MiniEnglish().fingerprint == base.fingerprint


def inference(source: MiniEnglish, split: str, count: int) -> list[tuple[Sentence, ...]]:
    return [(p.premise, p.hypothesis) for p in nli_pairs(source, split, count)]


def utterances(source: MiniEnglish, split: str, count: int) -> list[tuple[Sentence, ...]]:
    return [(u.sentence,) for u in slot_sentences(source, split, count)]


def contexts(source: MiniEnglish, split: str, count: int) -> list[tuple[Sentence, ...]]:
    return [(*p.sentences, *(q.sentence for q in p.questions)) for p in paragraphs(source, split, count)]


ITEMS = pytest.mark.parametrize("items", [inference, utterances, contexts])
Items = Callable[[MiniEnglish, str, int], list[tuple[Sentence, ...]]]


@pytest.mark.parametrize(("types", "seed"), [(500, 3), (1000, 0), (5000, 1)])
@ITEMS
def test_items_of_tasks_are_annotated_like_the_corpus(items: Items, types: int, seed: int) -> None:
    source = MiniEnglish(types=types, seed=seed)
    made = [s for item in items(source, "dev", 400) for s in item]
    for s in made:
        assert tuple(s.columns)[:5] == source.columns and len({len(v) for v in s.columns.values()}) == 1
        assert [w for w, t in zip(s.words, s.columns["upos"], strict=True) if t not in source.lexicon.tags[w]] == []
        assert 2 < len(s.words) <= 30 and s.words[-1] in ".?!"
    forest = Forest.of(Corpus.of([s.columns for s in made]))
    assert forest.is_tree.all() and forest.is_projective.all()


@ITEMS
def test_items_of_tasks_depend_on_nothing_but_their_place(items: Items) -> None:
    many = items(MiniEnglish(), "train", 80)
    assert items(MiniEnglish(sentences=5), "train", 40) == many[: len(items(MiniEnglish(), "train", 40))]
    assert items(MiniEnglish(), "dev", 1)[0][0] != many[0][0]
    assert items(MiniEnglish(seed=1), "train", 1)[0][0] != many[0][0]


@pytest.mark.parametrize("seed", range(20))
@ITEMS
def test_the_smallest_lexicon_has_what_items_need(items: Items, seed: int) -> None:
    assert len(items(MiniEnglish(types=500, seed=seed), "dev", 20)) == (5 if items is contexts else 20)


@ITEMS
def test_wrong_items(items: Items) -> None:
    with pytest.raises(InputError, match="no split 'valid'"):
        items(MiniEnglish(), "valid", 1)
    assert items(MiniEnglish(), "dev", 0) == []
