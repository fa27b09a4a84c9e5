"""Questions of mini-english: each answered by one span of its context or by none, found again from the trees alone."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

import numpy as np
import pytest

from synthlang.corpus import Sentence
from synthlang.language import parse_language
from synthlang.sources.mini_english import MiniEnglish
from synthlang.sources.mini_english.questions import Answer, Paragraph, paragraphs
from synthlang.tasks import derive_task
from synthlang.tasks.questions import MiniEnglishQuestions
from tests.refusals import refused

ASKING = ("who", "what", "where", "when", "how")
WHERE = ("to", "in", "at", "near", "behind", "on")
WHEN = ("after", "before", "during", "yesterday", "today", "tomorrow", "soon")


@cache
def made(split: str = "train", count: int = 1600, types: int = 1000, seed: int = 0) -> tuple[Paragraph, ...]:
    return tuple(paragraphs(MiniEnglish(types=types, seed=seed), split, count))


@dataclass
class Said:
    """A clause as its tree tells it: role → (what its head is known by, the span of the phrase)."""

    predicate: frozenset[str]
    negated: bool
    roles: dict[str, tuple[frozenset[str], tuple[int, int]]]
    asked: str = ""


class Reader:
    """Reads clauses from columns; knows the lexicon and nothing of plans."""

    def __init__(self, source: MiniEnglish) -> None:
        self.lemmas: dict[str, set[str]] = {}
        self.nouns: dict[str, set[str]] = {}
        for verb in source.lexicon.verbs:
            for form in verb.forms:
                self.lemmas.setdefault(form, set()).add(verb.base)
        for noun in source.lexicon.nouns:
            for form in noun.forms:
                self.nouns.setdefault(form, set()).add(noun.singular)

    def clauses(self, s: Sentence) -> list[Said]:
        """Return the clauses of the root and of its conjuncts."""
        root = s.columns["head"].index(0)
        joined = [i for i in below(s, root) if s.columns["deprel"][i] in ("conj", "advcl")]
        return [self.clause(s, node) for node in (root, *joined)]

    def question(self, s: Sentence) -> Said:
        """The clause that has the question word."""
        [at] = [i for i, word in enumerate(s.words) if word in ASKING]
        return self.clause(s, s.columns["head"][at] - 1)

    def clause(self, s: Sentence, node: int) -> Said:
        said = Said(frozenset(self.lemmas.get(s.words[node], {s.words[node]})), False, {})
        passive = any(s.columns["deprel"][i] == "aux:pass" for i in below(s, node))
        for i in below(s, node):
            relation, word = s.columns["deprel"][i], s.words[i]
            case = next((s.words[k] for k in below(s, i) if s.columns["deprel"][k] == "case" and k < i), "")
            role = {
                **{"nsubj": "subject", "nsubj:pass": "object", "obl:agent": "subject", "obj": "object"},
                **{"iobj": "recipient", "obl": "where" if case in WHERE else "when" if case in WHEN else case},
            }.get(relation, "")
            if relation == "advmod":
                role = word if word in ASKING else "when" if word in WHEN else "" if word == "not" else "how"
            said.negated |= word == "not"
            if word in ASKING:
                said.asked = role
            elif role:
                assert role not in said.roles and not (relation == "nsubj" and passive)
                words = subtree(s, i)
                assert words == list(range(words[0], words[-1] + 1))
                said.roles[role] = (self.known_by(s, i), (words[relation == "obl:agent"], words[-1] + 1))
        return said

    def known_by(self, s: Sentence, node: int) -> frozenset[str]:
        if s.columns["upos"][node] != "PROPN":
            return frozenset(self.nouns.get(s.words[node], {s.words[node]}))
        return frozenset(s.words[k] for k in subtree(s, node) if s.columns["upos"][k] == "PROPN")


def below(s: Sentence, node: int) -> list[int]:
    return [i for i, h in enumerate(s.columns["head"]) if h == node + 1]


def subtree(s: Sentence, node: int) -> list[int]:
    return sorted([node, *(k for i in below(s, node) for k in subtree(s, i))])


def answers(reader: Reader, paragraph: Paragraph, asked: Said) -> list[Answer]:
    """Whatever a reader of the trees takes for an answer."""
    return [
        Answer(row, *said.roles[asked.asked][1])
        for row, s in enumerate(paragraph.sentences)
        for said in reader.clauses(s)
        if said.predicate & asked.predicate
        and said.negated == asked.negated
        and asked.asked in said.roles
        and all(role in said.roles and said.roles[role][0] & known for role, (known, _) in asked.roles.items())
    ]


@pytest.mark.parametrize(("types", "seed", "count"), [(500, 2, 300), (5000, 1, 300)])
def test_the_trees_give_the_one_answer_or_none(types: int, seed: int, count: int) -> None:
    reader, asked = Reader(MiniEnglish(types=types, seed=seed)), Counter[str]()
    for paragraph in made("train", count, types, seed):
        for question in paragraph.questions:
            said = reader.question(question.sentence)
            asked[said.asked] += 1
            found = answers(reader, paragraph, said)
            assert found == ([] if question.answer is None else [question.answer]), question.sentence.text
    assert set(asked) == {"subject", "object", "where", "when", "how"} and min(asked.values()) > 3


def test_the_reader_of_trees_can_fail() -> None:
    """Asked of another context, most questions have no answer; the check above is not empty."""
    reader, some = Reader(MiniEnglish()), made()[:300]
    asked = [(other, q.sentence) for mine, other in pairwise(some) for q in mine.questions]
    found = [answers(reader, other, reader.question(sentence)) for other, sentence in asked]
    assert np.mean([bool(f) for f in found]) < 0.05 and any(found)


def test_the_question_alone_hardly_tells_whether_it_has_an_answer():
    text = pytest.importorskip("sklearn.feature_extraction.text")
    linear = pytest.importorskip("sklearn.linear_model")
    parts = [
        [(q.sentence.text, q.answer is None) for p in made(*which) for q in p.questions]
        for which in ((), ("test", 800))
    ]
    (train, none), (test, gold) = (tuple(zip(*pairs, strict=True)) for pairs in parts)
    leaked = [f"{t} {'no' if n else 'yes'}" for t, n in zip(train, none, strict=True)]

    def score(seen, asked, labels):
        vectors = text.CountVectorizer(token_pattern=r"\S+", lowercase=False)
        model = linear.LogisticRegression(max_iter=200).fit(vectors.fit_transform(seen), none)
        return model.score(vectors.transform(asked), labels)

    assert score(train, test, gold) < 1 - np.mean(gold) + 0.04
    assert score(leaked, leaked, none) > 0.99
    contexts = [{tuple(s.text for s in p.sentences) for p in made(*which)} for which in ((), ("test", 800))]
    assert not contexts[0] & contexts[1] and len(contexts[0]) == len(made())  # splits share none


def test_the_last_context_has_fewer_questions() -> None:
    some = list(paragraphs(MiniEnglish(sentences=3), "train", 41))
    assert some[:20] == list(made()[:20]) and some[20].sentences == made()[20].sentences
    assert some[20].questions == made()[20].questions[:1]


def test_the_task_set(monkeypatch) -> None:
    monkeypatch.setattr("synthlang.tasks.batch.BATCH_SENTENCES", 80)
    task = MiniEnglishQuestions(MiniEnglish(sentences=61, dev=1, test=0))
    assert task.splits == ("train", "dev") and task.labels == () and task.tags is None
    assert (task.kind, task.fields, task.licence) == ("spans", ("question", "context"), "apache-2.0")
    batches = list(task.batches("train"))
    assert [i for b in batches for i in b.ids] == list(map(str, range(61))) and len(batches) > 1
    whole = ((p, q) for p in made() for q in p.questions)
    for batch in batches:
        for question, context in zip(batch.strings(0), batch.strings(1), strict=True):
            paragraph, asked = next(whole)
            assert question == asked.sentence.text and context == " ".join(s.text for s in paragraph.sentences)
        assert len(np.unique(batch.texts[:, 1])) == -(-len(batch) // 2)  # two questions share a context
    assert refused(task.batches, "test")[1] == "missing"


@pytest.fixture(scope="module")
def batch():
    [only] = MiniEnglishQuestions(MiniEnglish(sentences=400)).batches("train")
    return only


FINAL = {"name": "x", "transforms": [{"kind": "typology", "head_direction": "final"}]}


@pytest.mark.parametrize("spec", ["trans", "inv", "trans+inv", FINAL], ids=str)
def test_answers_stay_in_one_piece(spec, batch) -> None:
    derived, counts = derive_task(batch, parse_language(spec))
    assert counts == ({"typology: sentences laid out": len(batch.corpus)} if spec is FINAL else {})
    assert derived.ids == batch.ids and len(derived.answers) == len(batch.answers) > 200
    pieces = [
        [b.corpus.form.values()[i:j] for i, j in zip(b.answers.start, b.answers.stop, strict=True)]
        for b in (batch, derived)
    ]
    assert [len(words) for words in pieces[0]] == [len(words) for words in pieces[1]]
    if spec == "inv":
        assert [words[::-1] for words in pieces[0]] == pieces[1]
    if spec is FINAL:
        assert [sorted(words) for words in pieces[0]] == [sorted(words) for words in pieces[1]]
        assert batch.corpus.form.values() != derived.corpus.form.values()
