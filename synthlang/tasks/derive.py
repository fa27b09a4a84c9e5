"""A task in a derived language: every label stays on what it was on, by index.

Class labels stay with their items, tags of words move with their words (see rewrite.py),
answers are kept where their words still stand together. An item is left out when a
sentence of it is, or when no answer of it is whole; everything is counted.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from synthlang.corpus import FORM, Corpus, concatenate
from synthlang.language import Language
from synthlang.rewrite import INSERTED, Rewrite
from synthlang.tasks.batch import Answers, TaskBatch

LOST_SENTENCE = "items dropped, a sentence of theirs was dropped"
EMPTY_TEXT = "items dropped, a text of theirs has no word left"
LOST_ANSWERS = "items dropped, no answer is in one piece"
TORN = "answers torn apart"
DELETED = "answers deleted"
SHORTENED = "answers shortened, a word was deleted"


def derive_task(
    batch: TaskBatch, language: Language, fields: tuple[int, ...] | None = None
) -> tuple[TaskBatch, dict[str, int]]:
    """The batch in the language, and what happened by reason.

    ``fields`` are the fields (as indices) that are derived, None means all; the texts of the
    others stay in the parent's language, for pairs of mixed languages.
    """
    chosen = np.ones(len(batch.corpus), bool)
    if fields is not None:
        chosen = np.isin(batch.field_of_text, fields)[batch.text_of_sentence]
    return rewrite_task(batch, partial_rewrite(language, batch.corpus, chosen))


def partial_rewrite(language: Language, corpus: Corpus, chosen: NDArray[np.bool_]) -> Rewrite:
    """The language's rewrite of the chosen sentences; the others stay as they are, in their places."""
    if chosen.all():
        return language.rewrite(corpus)
    rows, others = np.flatnonzero(chosen).astype(np.int64), np.flatnonzero(~chosen).astype(np.int64)
    mine, rest = language.rewrite(corpus.take(rows)), Rewrite.identity(corpus.take(others))
    kept = np.concatenate([rows if mine.kept is None else rows[mine.kept], others])
    form = concatenate([Corpus(r.offsets, {FORM: r.form}, np.zeros(len(r), np.int64)) for r in (mine, rest)])
    joined = Rewrite(form.offsets, np.concatenate([mine.origin, rest.origin]), form.form, kept, mine.counts)
    return joined.take(np.argsort(kept, kind="stable").astype(np.int64))


def rewrite_task(batch: TaskBatch, rewrite: Rewrite) -> tuple[TaskBatch, dict[str, int]]:
    """The batch after a rewrite of its corpus, and what happened by reason (the rewrite's counts included)."""
    counts = Counter(rewrite.counts)
    place = np.full(len(batch.corpus), -1, np.int64)  # of each sentence in the output
    place[np.arange(len(rewrite)) if rewrite.kept is None else rewrite.kept] = np.arange(len(rewrite))
    lost = np.bincount(batch.text_of_sentence, weights=place < 0, minlength=len(batch.field_of_text)) > 0
    lengths = np.append(np.diff(rewrite.offsets), 0)[place]
    empty = ~lost & (np.bincount(batch.text_of_sentence, weights=lengths, minlength=len(batch.field_of_text)) == 0)
    dropped, emptied = lost[batch.texts].any(axis=1), empty[batch.texts].any(axis=1)
    counts.update({LOST_SENTENCE: int(dropped.sum()), EMPTY_TEXT: int((emptied & ~dropped).sum())})
    items = np.flatnonzero(~(dropped | emptied)).astype(np.int64)
    left, mine = batch.take(items), rewrite.take(place[batch.sentences_of(items)])
    asked = np.unique(left.answers.item)
    answers = _moved(left.answers, mine, left.corpus, counts)
    torn = np.setdiff1d(asked, answers.item)
    counts[LOST_ANSWERS] += len(torn)
    derived = replace(left, corpus=mine.apply(batch.corpus), answers=answers)
    result = derived.take(np.setdiff1d(np.arange(len(left)), torn))
    return result, {reason: n for reason, n in counts.items() if n}


def _moved(answers: Answers, rewrite: Rewrite, corpus: Corpus, counts: Counter[str]) -> Answers:
    """The answers that are in one piece after a rewrite of ``corpus`` (its output sentences are those of the corpus).

    An answer is whole if the words that came from it stand together without another word
    between them; a word inserted in the middle tears it, as it tears an entity.
    """
    if not len(answers):
        return answers
    known = np.flatnonzero(rewrite.origin != INSERTED)
    row = (rewrite.origin + np.repeat(corpus.offsets[:-1], np.diff(rewrite.offsets)))[known]
    words = int(corpus.offsets[-1])
    # where each word went, first and last place, and how often; one more row so that a slice may end there
    first, last = np.full(words + 1, len(rewrite.origin)), np.full(words + 1, -1)
    np.minimum.at(first, row, known)
    np.maximum.at(last, row, known)
    times = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=words))])
    there = np.concatenate([[0], np.cumsum(last[:-1] >= 0)])
    bounds = np.stack([answers.start, answers.stop], axis=1).ravel()
    low, high = np.minimum.reduceat(first, bounds)[::2], np.maximum.reduceat(last, bounds)[::2]
    size = times[answers.stop] - times[answers.start]
    whole = (size > 0) & (high - low + 1 == size)
    shorter = whole & (there[answers.stop] - there[answers.start] < answers.stop - answers.start)
    torn = int(((size > 0) & ~whole).sum())
    counts.update({TORN: torn, DELETED: int((size == 0).sum()), SHORTENED: int(shorter.sum())})
    return Answers(answers.item[whole], low[whole], high[whole] + 1)
