"""Questions of mini-english: each answered by one span of its context or by none, found again from the trees alone."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest

from synthlang.corpus import Sentence
from synthlang.errors import InputError
from synthlang.language import parse_language
from synthlang.sources.mini_english import MiniEnglish
from synthlang.sources.mini_english.questions import Answer, Paragraph, paragraphs
from synthlang.tasks import derive_task
from synthlang.tasks.questions import MiniEnglishQuestions

ASKING = ("who", "what", "where", "when", "how")
WHERE = ("to", "in", "at", "near", "behind", "on")
WHEN = ("after", "before", "during", "yesterday", "today", "tomorrow", "soon")


@cache
def made(split: str = "train", count: int = 2400, types: int = 1000, seed: int = 0) -> tuple[Paragraph, ...]:
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
        for verb in source.lexicon.verbs:
            for form in (verb.base, verb.third, verb.past, verb.participle, verb.gerund):
                self.lemmas.setdefault(form, set()).add(verb.base)
        self.nouns: dict[str, set[str]] = {}
        for noun in source.lexicon.nouns:
            for form in (noun.singular, noun.plural):
                self.nouns.setdefault(form, set()).add(noun.singular)

    def clauses(self, s: Sentence) -> list[Said]:
        """Those of the root and of what is joined to it."""
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
                drop = int(relation == "obl:agent")
                said.roles[role] = (self.known_by(s, i), (words[drop], words[-1] + 1))
                assert words == list(range(words[0], words[-1] + 1))
        return said

    def known_by(self, s: Sentence, node: int) -> frozenset[str]:
        if s.columns["upos"][node] != "PROPN":
            return frozenset(self.nouns.get(s.words[node], {s.words[node]}))
        name = [k for k in subtree(s, node) if s.columns["upos"][k] == "PROPN"]
        return frozenset(s.words[k] for k in name)


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


@pytest.mark.parametrize(("types", "seed", "count"), [(500, 2, 600), (1000, 0, 2400), (5000, 1, 600)])
def test_the_trees_give_the_one_answer_or_none(types: int, seed: int, count: int) -> None:
    reader, asked = Reader(MiniEnglish(types=types, seed=seed)), Counter[str]()
    for paragraph in made("train", count, types, seed):
        for question in paragraph.questions:
            said = reader.question(question.sentence)
            asked[said.asked] += 1
            found = answers(reader, paragraph, said)
            assert found == ([] if question.answer is None else [question.answer]), question.sentence.text
    assert set(asked) == {"subject", "object", "where", "when", "how"} and min(asked.values()) > 0.01 * count


def test_the_reader_of_trees_can_fail() -> None:
    """Asked of another context, most questions have no answer; the check above is not empty."""
    reader = Reader(MiniEnglish())
    pairs = zip(made(), made()[1:], strict=False)
    found = [answers(reader, other, reader.question(q.sentence)) for mine, other in pairs for q in mine.questions]
    assert np.mean([bool(f) for f in found]) < 0.05 and any(found)


def test_shares_and_lengths() -> None:
    questions = [q for p in made() for q in p.questions]
    lengths = Counter(q.answer.stop - q.answer.start for q in questions if q.answer is not None)
    assert set(lengths) == {1, 2, 3, 4, 5}
    assert 0.2 < np.mean([q.answer is None for q in questions]) < 0.3
    assert {w for q in questions for w in q.sentence.words if w in ASKING} == set(ASKING)
    for p in made():
        assert 2 <= len(p.sentences) <= 7 and len(p.questions) == 4
        assert len({q.sentence.text for q in p.questions}) == 4
        given = [q.answer for q in p.questions if q.answer is not None]
        assert len(set(given)) == len(given)
        for s in p.sentences:
            assert s.words[-1] == "." and not set(s.words) & set(ASKING)


def test_the_most_similar_sentence_is_often_not_the_answers() -> None:
    """Overlap of words finds the sentence far more often than chance, and is often wrong."""
    hits, chances = [], []
    for p in made():
        for q in p.questions:
            if q.answer is not None:
                shared = [len(set(q.sentence.words) & set(s.words)) for s in p.sentences]
                best = [row for row, n in enumerate(shared) if n == max(shared)]
                hits.append((q.answer.sentence in best) / len(best))
                chances.append(1 / len(p.sentences))
    assert np.mean(chances) + 0.3 < np.mean(hits) < 0.85


def test_the_question_alone_hardly_tells_whether_it_has_an_answer() -> None:
    text = pytest.importorskip("sklearn.feature_extraction.text")
    linear = pytest.importorskip("sklearn.linear_model")
    split = [
        [(q.sentence.text, q.answer is None) for p in made(s, n) for q in p.questions]
        for s, n in (("train", 2400), ("test", 800))
    ]
    vectors = text.CountVectorizer(token_pattern=r"\S+", lowercase=False)
    (train, none), (test, gold) = (tuple(zip(*pairs, strict=True)) for pairs in split)
    score = (
        linear.LogisticRegression(max_iter=200)
        .fit(vectors.fit_transform(train), none)
        .score(vectors.transform(test), gold)
    )
    assert score < 1 - np.mean(gold) + 0.04
    leaked = [f"{t} {'no' if n else 'yes'}" for t, n in zip(train, none, strict=True)]
    assert (
        linear.LogisticRegression().fit(vectors.fit_transform(leaked), none).score(vectors.transform(leaked), none)
        > 0.99
    )


def test_an_item_depends_on_nothing_but_its_place() -> None:
    some = list(paragraphs(MiniEnglish(sentences=3), "train", 41))
    assert some[:10] == list(made()[:10]) and some[10].sentences == made()[10].sentences
    assert some[10].questions == made()[10].questions[:1]
    assert next(paragraphs(MiniEnglish(), "dev", 1)).sentences != made()[0].sentences
    assert next(paragraphs(MiniEnglish(seed=1), "train", 1)).sentences != made()[0].sentences


def test_splits_share_no_context() -> None:
    train, test = ({tuple(s.text for s in p.sentences) for p in made(*which)} for which in (("train",), ("test", 800)))
    assert not train & test and len(train) == len(made())


def test_the_task_set() -> None:
    task = MiniEnglishQuestions(MiniEnglish(sentences=1501, dev=1, test=0))
    assert task.splits == ("train", "dev") and task.labels == () and task.tags is None
    assert (task.kind, task.fields, task.licence) == ("spans", ("question", "context"), "apache-2.0")
    batches = list(task.batches("train"))
    assert [i for b in batches for i in b.ids] == list(map(str, range(1501))) and len(batches) == 2
    whole = [q for p in paragraphs(task.source, "train", 1501) for q in p.questions]
    texts = [p for p in paragraphs(task.source, "train", 1501) for _ in p.questions]
    row = 0
    for batch in batches:
        words = batch.corpus.form.values()
        spans: dict[int, list[str]] = {}
        for item, start, stop in zip(batch.answers.item, batch.answers.start, batch.answers.stop, strict=True):
            assert spans.setdefault(int(item), words[start:stop]) is not None
        for item, (question, context) in enumerate(zip(batch.strings(0), batch.strings(1), strict=True)):
            answer = whole[row].answer
            gold = None if answer is None else texts[row].sentences[answer.sentence].words[answer.start : answer.stop]
            assert question == whole[row].sentence.text and spans.get(item) == gold
            assert context == " ".join(s.text for s in texts[row].sentences)
            row += 1
        assert len(np.unique(batch.texts[:, 1])) == -(-len(batch) // 4)  # four questions share a context
        assert tuple(batch.corpus.columns) == task.columns
    [single] = task.batches("dev")
    assert len(single) == 1
    with pytest.raises(InputError, match="no split 'test'"):
        next(iter(task.batches("test")))


@pytest.mark.parametrize("spec", ["trans", "inv", "trans+inv"])
def test_answers_stay_in_one_piece(spec: str) -> None:
    [batch] = MiniEnglishQuestions(MiniEnglish(sentences=400)).batches("train")
    derived, counts = derive_task(batch, parse_language(spec))
    assert counts == {} and derived.ids == batch.ids and len(derived.answers) == len(batch.answers)
    assert (derived.answers.stop - derived.answers.start).tolist() == (
        batch.answers.stop - batch.answers.start
    ).tolist()
    if spec == "inv":
        old, new = batch.corpus.form.values(), derived.corpus.form.values()
        spans = [zip(b.answers.start.tolist(), b.answers.stop.tolist(), strict=True) for b in (batch, derived)]
        assert [old[a:b][::-1] for a, b in spans[0]] == [new[a:b] for a, b in spans[1]]


def test_a_language_of_trees_keeps_every_answer() -> None:
    language = parse_language({"name": "x", "transforms": [{"kind": "typology", "head_direction": "final"}]})
    [batch] = MiniEnglishQuestions(MiniEnglish(sentences=400)).batches("train")
    derived, counts = derive_task(batch, language)
    assert counts == {"typology: sentences laid out": len(batch.corpus)}
    assert derived.ids == batch.ids and len(derived.answers) == len(batch.answers) > 200
    old, new = batch.corpus.form.values(), derived.corpus.form.values()
    spans = [zip(b.answers.start.tolist(), b.answers.stop.tolist(), strict=True) for b in (batch, derived)]
    assert [sorted(old[a:b]) for a, b in spans[0]] == [sorted(new[a:b]) for a, b in spans[1]]
    assert old != new
