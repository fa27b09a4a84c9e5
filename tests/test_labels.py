"""Labels stay right: 2,000 random items under random changes, against a walk over words."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from synthlang.scripts import SCRIPTS
from synthlang.tasks.batch import Answers
from synthlang.tasks.derive import DELETED, EMPTY_TEXT, LOST_ANSWERS, LOST_SENTENCE, SPLIT, derive_task
from synthlang.tasks.export import answer_texts
from tests.task_cases import CONTEXT, Chain, expected_tags, join, labels_of, random_batch, random_chain, reference

BATCHES, ITEMS = 25, 80


def check(batch, chain: Any, fields) -> Counter[str]:
    """Derive a batch and compare everything with the reference; returns the counts."""
    result, counts = derive_task(batch, chain, fields)
    chosen = np.isin(batch.field_of_text, fields or (0, 1))[batch.text_of_sentence]
    mine, rest = batch.corpus.take(np.flatnonzero(chosen)), batch.corpus.take(np.flatnonzero(~chosen))
    after = join([chain.rewrite(mine).apply(mine), rest])
    expected = reference(batch, after)
    assert result.ids == tuple(expected)
    assert len(batch) - len(result) == sum(counts.get(r, 0) for r in (LOST_SENTENCE, EMPTY_TEXT, LOST_ANSWERS))
    labels = dict(zip(batch.ids, labels_of(batch), strict=True))
    assert labels_of(result) == [labels[name] for name in result.ids]
    bounds, uid = result.word_offsets, result.corpus.columns["uid"].codes
    texts, starts = answer_texts(result)
    for row, (name, (words, answers)) in enumerate(expected.items()):
        for field, text in enumerate(result.texts[row].tolist()):
            assert uid[bounds[text] : bounds[text + 1]].tolist() == words[field], name
        begin = int(bounds[result.texts[row, CONTEXT]])
        of_item = np.flatnonzero(result.answers.item == row)
        found = [(int(result.answers.start[a]) - begin, int(result.answers.stop[a]) - begin) for a in of_item]
        assert found == answers
    contexts = result.strings(CONTEXT)
    for item, text, start in zip(result.answers.item.tolist(), texts, starts, strict=True):
        assert contexts[item][start : start + len(text)] == text
    check_words(batch, result)
    return Counter(counts)


def check_words(batch, result) -> None:
    """Tags, heads and forms of every derived sentence against those of its parent."""
    before = {s.id: s for s in batch.corpus}
    script = SCRIPTS["cyrillic"]
    for sentence in result.corpus:
        parent, columns = before[sentence.id].columns, sentence.columns
        place = {uid: i for i, uid in enumerate(parent["uid"])}
        own = {uid: i for i, uid in reversed(list(enumerate(columns["uid"])))}  # the first of a repeated word
        assert columns["ner"] == expected_tags(parent["ner"], parent["uid"], columns["uid"])
        for uid, form, head in zip(columns["uid"], columns["form"], columns["head"], strict=True):
            if uid == -1:
                assert script.decode(form) == "new" and head == -1
                continue
            assert script.decode(form) == parent["form"][place[uid]]
            old = parent["head"][place[uid]]
            assert head == (0 if old == 0 else own.get(parent["uid"][old - 1], -2) + 1)


def test_labels_stay_right_on_thousands_of_items():
    seen: Counter[str] = Counter()
    for number in range(BATCHES):
        rng = np.random.default_rng(number)
        fields = [None, None, (0,), (1,)][number % 4]
        seen += check(random_batch(rng, ITEMS), random_chain(rng), fields)
    for reason in (LOST_SENTENCE, EMPTY_TEXT, LOST_ANSWERS, SPLIT, DELETED):
        assert seen[reason] > 5, f"the cases must reach: {reason}"


@pytest.mark.parametrize("damage", ["answer", "tag", "label", "order"])
def test_the_check_sees_a_wrong_label(damage, monkeypatch):
    """A positive control: a derivation that is off by one somewhere fails the comparison."""
    right = derive_task

    def wrong(batch, chain, fields):
        result, counts = right(batch, chain, fields)
        if damage == "answer":
            a = result.answers
            return replace(result, answers=Answers(a.item, a.start, a.stop - (a.stop - a.start > 1))), counts
        if damage == "label":
            assert result.label is not None
            return replace(result, label=result.label.take(np.roll(np.arange(len(result)), 1))), counts
        column = "ner" if damage == "tag" else "uid"
        moved = result.corpus.columns[column].take(np.roll(np.arange(int(result.corpus.offsets[-1])), 1))
        columns = {**result.corpus.columns, column: moved}
        return replace(result, corpus=replace(result.corpus, columns=columns)), counts

    monkeypatch.setattr("tests.test_labels.derive_task", wrong)
    with pytest.raises(AssertionError):
        check(random_batch(np.random.default_rng(0), 60), Chain(), None)
