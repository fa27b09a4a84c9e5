"""Mini-English: exact size, same bytes whatever the borders, legal trees, words that differ from each other."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import cache
from itertools import islice, pairwise
from typing import Any

import pytest

from synthlang.corpus import Corpus, Sentence, concatenate
from synthlang.sources.mini_english import MiniEnglish
from synthlang.sources.mini_english.entries import IT, SHE, THEY, YOU, Clause, I, Name, Noun, NounPhrase
from synthlang.sources.mini_english.lexicon import inflected, plural, takes_an
from synthlang.sources.mini_english.nli import nli_pairs
from synthlang.sources.mini_english.questions import paragraphs
from synthlang.sources.mini_english.realise import realise
from synthlang.sources.mini_english.slots import slot_sentences
from synthlang.sources.mini_english.source import named_sentences
from synthlang.trees import Forest
from tests.refusals import refused

RELATIONS = """root nsubj nsubj:pass obj iobj obl obl:agent nmod nmod:poss amod det case mark aux aux:pass cop advmod
    advcl acl:relcl ccomp xcomp conj cc punct nummod compound flat expl discourse"""
TAGS = "ADJ ADP ADV AUX CCONJ DET INTJ NOUN NUM PART PRON PROPN PUNCT SCONJ VERB"


@cache
def corpus(types: int = 1000, sentences: int = 2500) -> Corpus:
    return concatenate(list(MiniEnglish(types=types, sentences=sentences).batches("train")))


def column(name: str) -> list[str]:
    return corpus().columns[name].values()


@pytest.mark.parametrize("types", [500, 1234, 5000])
def test_lexicon_has_exactly_the_types_and_every_form_comes_from_it(types: int) -> None:
    tags = MiniEnglish(types=types).lexicon.tags
    assert len(tags) == types
    emitted = corpus(types, 300)
    pairs = set(zip(emitted.form.values(), emitted.columns["upos"].values(), strict=True))
    assert [(word, tag) for word, tag in pairs if tag not in tags.get(word, ())] == []


def test_a_sentence_depends_on_nothing_but_its_place(monkeypatch) -> None:
    monkeypatch.setattr("synthlang.sources.mini_english.source.BATCH_SENTENCES", 60)
    source = MiniEnglish(sentences=130)
    batches = list(source.batches("train"))
    assert [len(b) for b in batches] == [60, 60, 10]
    assert concatenate(batches).ids.tolist() == list(range(130))
    for row in (0, 59, 60, 129):  # of a longer corpus, and alone
        again = replace(source, sentences=9999).sentence("train", row)
        assert dict(concatenate(batches)[row].columns) == again
    assert next(replace(source, seed=1, sentences=50).batches("train")).texts() != batches[0].texts()[:50]


def test_splits_have_different_sentences_of_the_same_words() -> None:
    source = MiniEnglish(sentences=400, dev=400, test=400)
    texts = {split: next(source.batches(split)).texts() for split in source.splits}
    assert len(texts["dev"]) == len(texts["test"]) == 400
    assert len(set(texts["train"]) & set(texts["dev"])) < 20
    top = {split: {w for w, _ in Counter(" ".join(t).split()).most_common(30)} for split, t in texts.items()}
    assert len(top["train"] & top["test"]) >= 20


def test_trees_are_legal_labels_are_used_and_lengths_are_natural() -> None:
    forest = Forest.of(corpus())
    assert forest.is_tree.all() and forest.is_projective.all()
    for s in corpus():
        head, deprel, upos = (s.columns[n] for n in ("head", "deprel", "upos"))
        assert deprel.count("root") == 1 and deprel[head.index(0)] == "root"
        assert upos[-1] == "PUNCT" and head[-1] == head.index(0) + 1
    assert set(column("deprel")) == set(RELATIONS.split()) and set(column("upos")) == set(TAGS.split())
    assert 9 < corpus().lengths.mean() < 11.5 and corpus().lengths.max() <= 30
    assert {s.words[-1] for s in corpus()} == {"?", "!", "."}


def test_entities_are_legal_bio_and_mostly_proper_nouns() -> None:
    lexicon, inside, kinds = MiniEnglish().lexicon, Counter[str](), dict[str, set[str]]()
    for name in (*lexicon.given, *lexicon.surnames, *lexicon.places, *lexicon.organisations):
        for word in name.forms:
            kinds.setdefault(word, set()).add(name.kind)
    for s in corpus():
        for before, tag in pairwise(["O", *s.columns["ner"]]):
            assert not tag.startswith("I-") or before[2:] == tag[2:]
    for word, tag, upos in zip(column("form"), column("ner"), column("upos"), strict=True):
        inside[upos] += tag != "O"
        assert tag == "O" or word == "of" or tag[2:] in kinds[word]
        assert (upos == "PROPN") <= (tag != "O")
    assert inside["PROPN"] / inside.total() > 0.95 and set(+inside) == {"PROPN", "ADP"}
    assert set(column("ner")) == {"O"} | {f"{letter}-{kind}" for letter in "BI" for kind in ("PER", "LOC", "ORG")}
    assert sum(len(of) > 1 for of in kinds.values()) >= 5  # Jordan: a person, a place


def agreement_errors(s: Sentence) -> int:
    """Finite present verbs that do not fit a singular or plural noun or pronoun as their subject."""
    lexicon, errors = MiniEnglish().lexicon, 0
    thirds = {v.third for v in lexicon.verbs} | {"is", "was", "has", "does"}
    bases = {v.base for v in lexicon.verbs} - {v.past for v in lexicon.verbs} | {"are", "were", "have", "do", "am"}
    plurals = {n.plural for n in lexicon.nouns if n.plural != n.singular} | {"they", "we"}
    singulars = {n.singular for n in lexicon.nouns if n.plural != n.singular} | {"he", "she", "it"}
    edges = list(zip(s.columns["head"], s.columns["deprel"], strict=True))
    for i, (word, (h, relation)) in enumerate(zip(s.words, edges, strict=True), 1):
        if relation in ("nsubj", "nsubj:pass") and (i, "conj") not in edges:
            helpers = [w for w, (g, r) in zip(s.words, edges, strict=True) if g == h and r[:3] in ("aux", "cop")]
            finite = helpers[0] if helpers else s.words[h - 1]
            errors += (word in plurals and finite in thirds) + (word in singulars and finite in bases)
    return errors


def test_subject_and_verb_agree_and_an_stands_before_vowels() -> None:
    assert sum(agreement_errors(s) for s in islice(corpus(), 1200)) == 0
    wrong: dict[str, list[Any]] = {
        "form": ["she", "walk", "."],
        "head": [2, 0, 2],
        "deprel": ["nsubj", "root", "punct"],
    }
    assert agreement_errors(Sentence(0, wrong)) == 1
    following = {(a, b) for s in corpus() for a, b in pairwise(s.words) if a in ("a", "an")}
    assert all((a == "an") == takes_an(b) for a, b in following)
    assert [takes_an(w) for w in ("apple", "university", "honest", "car", "Oslo")] == [True, False, True, False, True]
    assert sum(a == "an" for a, _ in following) > 10


def test_inflection_and_a_sentence_made_by_hand() -> None:
    assert " ".join(map(plural, ("city", "box", "boy", "wolf", "child"))) == "cities boxes boys wolves children"
    assert inflected("plan").forms == ("plan", "plans", "planned", "planning")
    assert inflected("die").gerund == "dying" and inflected("cry").third == "cries"
    assert inflected("go").forms == ("go", "goes", "went", "gone", "going")
    anna, apple = (
        NounPhrase(Name(("Anna", "Smith"), "PER")),
        NounPhrase(Noun("apple", "apples", "f", 0), determiner="a"),
    )
    plan = Clause("verb", anna, inflected("give"), object=apple, recipient=NounPhrase(SHE), negated=True)
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
    "options",
    [{"types": 499}, {"types": 5001}, {"sentences": -1}, {"dev": -1}, {"test": -1}, {"seed": -1}, {"zipf": -1}],
)
def test_wrong_options(options: dict[str, int]) -> None:
    assert refused(MiniEnglish, **options) == (f"builtin:mini-english {next(iter(options))}", "range")


def test_fingerprint_covers_every_field() -> None:
    base = MiniEnglish()
    names = ("types", "sentences", "dev", "test", "seed", "feats", "lemma")
    changed = [replace(base, **{name: getattr(base, name) + 1}) for name in names]
    assert len({s.fingerprint for s in [base, *changed]}) == 8 and MiniEnglish().fingerprint == base.fingerprint


def test_features_and_lemmas_are_those_of_the_lexicon() -> None:
    """Features and lemma of a verb or noun give its form, and both columns leave all others as they are."""
    source = MiniEnglish(sentences=800, feats=True, lemma=True)
    batch = next(source.batches("train"))
    assert tuple(batch.columns) == source.columns == (*MiniEnglish().columns, "feats", "lemma")
    plain = next(replace(source, feats=False, lemma=False).batches("train"))
    assert all(batch.columns[name].values() == plain.columns[name].values() for name in plain.columns)
    verbs = {verb.base: verb for verb in source.lexicon.verbs}
    nouns = {noun.singular: noun for noun in source.lexicon.nouns}
    finite = Counter[str]()
    rows = zip(*(batch.columns[name].values() for name in ("form", "upos", "feats", "lemma")), strict=True)
    for form, tag, written, lemma in rows:
        feats = dict(pair.split("=") for pair in written.split("|")) if written != "_" else {}
        assert list(feats) == sorted(feats)
        if tag == "VERB" and lemma != "be":
            third = feats.get("Person") == "3" and feats.get("Number") == "Sing"
            past, present = verbs[lemma].past, verbs[lemma].third if third else lemma
            forms = {"Inf": lemma, "Fin": past if feats.get("Tense") == "Past" else present}
            participle = verbs[lemma].participle if feats.get("Tense") == "Past" else verbs[lemma].gerund
            assert form == (forms | {"Part": participle})[feats["VerbForm"]]
            finite[form == verbs[lemma].third] += feats["VerbForm"] == "Fin" and feats.get("Tense") == "Pres"
        if tag == "NOUN":
            assert form == (nouns[lemma].plural if feats["Number"] == "Plur" else lemma)
    assert min(finite.values()) > 40 and len(finite) == 2


def test_features_of_a_sentence_made_by_hand() -> None:
    """ "you" and "I" agree with the second conjunct, which has no subject of its own."""
    subject = NounPhrase(YOU, conjunct=("and", NounPhrase(I)))
    second = Clause("verb", None, inflected("go"), agreement=subject.agreement, person=subject.person)
    plan = Clause("verb", subject, inflected("run"), conjunct=("and", second))
    columns = realise(plan, ("feats", "lemma"))
    found = list(zip(columns["form"], columns["lemma"], columns["feats"], strict=True))
    plural = "Mood=Ind|Number=Plur|Person=1|Tense=Pres|VerbForm=Fin"
    assert found == [
        ("you", "you", "Case=Nom|Person=2|PronType=Prs"),
        ("and", "and", "_"),
        ("I", "I", "Case=Nom|Number=Sing|Person=1|PronType=Prs"),
        ("run", "run", plural),
        ("and", "and", "_"),
        ("go", "go", plural),
        (".", ".", "_"),
    ]


# --- items of tasks: each a few annotated sentences

ITEMS = {
    "inference": lambda *which: [(p.premise, p.hypothesis) for p in nli_pairs(*which)],
    "names": lambda *which: [(s,) for s in named_sentences(*which)],
    "utterances": lambda *which: [(u.sentence,) for u in slot_sentences(*which)],
    "contexts": lambda *which: [(*p.sentences, *(q.sentence for q in p.questions)) for p in paragraphs(*which)],
}


@pytest.mark.parametrize(("types", "seed"), [(500, 3), (5000, 1)])
@pytest.mark.parametrize("items", ITEMS.values(), ids=ITEMS)
def test_items_of_tasks_are_annotated_like_the_corpus(items, types, seed):
    source = MiniEnglish(types=types, seed=seed)
    made = [s for item in items(source, "dev", 60) for s in item]
    for s in made:
        assert tuple(s.columns)[:5] == source.columns and len({len(v) for v in s.columns.values()}) == 1
        assert [w for w, t in zip(s.words, s.columns["upos"], strict=True) if t not in source.lexicon.tags[w]] == []
        assert 2 < len(s.words) <= 30 and s.words[-1] in ".?!"
    forest = Forest.of(Corpus.of([s.columns for s in made]))
    assert forest.is_tree.all() and forest.is_projective.all()


@pytest.mark.parametrize("items", ITEMS.values(), ids=ITEMS)
def test_items_of_tasks_depend_on_nothing_but_their_place(items):
    many, some = items(MiniEnglish(), "train", 80), items(MiniEnglish(sentences=5), "train", 40)
    assert some == many[: len(some)]
    assert items(MiniEnglish(), "dev", 1)[0][0] != many[0][0]
    assert items(MiniEnglish(seed=1), "train", 1)[0][0] != many[0][0]
    assert items(MiniEnglish(), "dev", 0) == []
    assert refused(items, MiniEnglish(), "valid", 1) == ("builtin:mini-english", "missing")
    for seed in range(4):  # the smallest lexicon has what items need
        assert len(items(MiniEnglish(types=500, seed=seed), "dev", 20)) == 20 / (2 if items is ITEMS["contexts"] else 1)
