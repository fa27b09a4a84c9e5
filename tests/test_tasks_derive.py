"""A parser over the sentences of a task: put back by number, items without a parse dropped."""

from __future__ import annotations

from functools import partial

import pytest

from synthlang.corpus import Corpus
from synthlang.tasks import open_task
from synthlang.tasks.derive import NO_PARSE, ParsedTask
from tests.refusals import refused
from tests.task_cases import labels_of
from tests.test_tasks import question, squad

MINI = "builtin:mini-english?types=500&sentences=60&dev=7&test=0"
NLI = "nli:builtin:mini-english?types=500&sentences=55&dev=5&test=0"


@pytest.fixture
def small_batches(monkeypatch):
    """Batches of 40 sentences, or 20 pairs."""
    for module in ("base", "batch"):
        monkeypatch.setattr(f"synthlang.tasks.{module}.BATCH_SENTENCES", 40)


class Parser:
    """Every word hangs on the first; leaves out what ``skip`` says, renumbers, and cuts batches anew."""

    fingerprint = "parser"

    def __init__(self, source, skip=lambda s: False, size=14, change=lambda words: words):
        self.source, self.skip, self.size, self.change = source, skip, size, change
        self.splits = source.splits
        self.columns = tuple(dict.fromkeys((*source.columns, "upos", "head", "deprel")))

    def batches(self, split):
        rows = []
        for batch in self.source.batches(split):
            for sentence in batch:
                if not self.skip(sentence):
                    n = len(sentence.words)
                    tree = {"upos": ["X"] * n, "head": [0] + [1] * (n - 1), "deprel": ["dep"] * n}
                    rows.append({**sentence.columns, "form": self.change(sentence.words), **tree})
        for start in range(0, len(rows), self.size):
            yield Corpus.of(rows[start : start + self.size], start)


@pytest.mark.usefixtures("small_batches")
@pytest.mark.parametrize("size", [7, 500])
def test_sentences_come_back_to_their_items(size):
    task = open_task(NLI)
    parsed = ParsedTask(task, lambda source: Parser(source, size=size))
    assert parsed.columns == ("form", "upos", "head", "deprel", "ner")
    assert (parsed.labels, parsed.fields, parsed.splits) == (task.labels, task.fields, task.splits)
    assert parsed.fingerprint != task.fingerprint
    for before, after in zip(task.batches("train"), parsed.batches("train"), strict=True):
        assert (after.ids, after.counts) == (before.ids, {})
        assert labels_of(after) == labels_of(before)
        assert [after.strings(f) for f in (0, 1)] == [before.strings(f) for f in (0, 1)]
        assert after.corpus.ids.tolist() == before.corpus.ids.tolist()
        assert after.corpus.columns["ner"].values() == before.corpus.columns["ner"].values()
        assert set(after.corpus.columns["head"].codes.tolist()) <= {0, 1}


@pytest.mark.parametrize("skip", [lambda s: s.id % 7 == 3, lambda s: s.id > 45])
@pytest.mark.usefixtures("small_batches")
def test_items_without_a_parse_are_dropped(skip):
    task = open_task(NLI)
    lost = {s.id for batch in task.batches("train") for s in batch.corpus if skip(s)}
    expected, counted = [], 0
    for batch in task.batches("train"):
        for row, name in enumerate(batch.ids):
            if lost.isdisjoint({2 * int(name), 2 * int(name) + 1}):
                expected.append((name, batch.strings(0)[row] if row < 3 else None, labels_of(batch)[row]))
    found = []
    for batch in ParsedTask(task, lambda source: Parser(source, skip)).batches("train"):
        counted += batch.counts.get(NO_PARSE, 0)
        found += list(zip(batch.ids, labels_of(batch), strict=True))
    assert found == [(name, label) for name, _, label in expected]
    assert counted == len(lost) > 0


def test_answers_keep_their_words(tmp_path):
    paragraphs = [
        {"context": "A dog ran. A cat sat.", "qas": [question(f"{c}1", (13, "cat")), question(f"{c}2", (2, "dog"))]}
        for c in "xy"
    ]
    task = open_task(f"qa:{squad(tmp_path / 'q.json', *paragraphs)}")
    skipped = ParsedTask(task, lambda source: Parser(source, lambda s: s.id == 2))  # the first question's
    [batch] = skipped.batches("train")
    assert batch.ids == ("x2", "y1", "y2")
    words = batch.corpus.form.values()
    assert [words[a:b] for a, b in zip(batch.answers.start, batch.answers.stop, strict=True)] == [
        ["dog"],
        ["cat"],
        ["dog"],
    ]


def test_a_parser_that_changes_words_is_refused():
    for change in (lambda words: ["x", *words[1:]], lambda words: words[:1]):
        task = ParsedTask(open_task(NLI), partial(Lossy, change=change))
        assert refused(lambda: list(task.batches("dev")))[1] == "changed"  # noqa: B023


class Lossy(Parser):
    def __init__(self, source, change):
        super().__init__(source)
        self.cut = change

    def batches(self, split):
        for batch in super().batches(split):
            rows = []
            for s in batch:
                words = self.cut(s.words)
                rows.append({n: words if n == "form" else v[: len(words)] for n, v in s.columns.items()})
            yield Corpus.of(rows)


def test_gold_tags_stay_and_gold_trees_want_no_parser():
    task = open_task(f"pos:{MINI}")
    parsed = ParsedTask(task, Parser)
    [before], [after] = list(task.batches("train")), list(parsed.batches("train"))
    assert after.corpus.columns["upos"].values() == before.corpus.columns["upos"].values()
    assert set(after.corpus.columns["deprel"].values()) == {"dep"}  # the parser's
    assert refused(ParsedTask, open_task(f"parsing:{MINI}"), Parser)[1] == "conflict"
