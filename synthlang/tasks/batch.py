"""TaskBatch: labelled items whose texts are sentences of one corpus.

Items refer to texts, and texts consist of sentences. A paragraph with five questions is therefore stored once, and code
that changes sentences (a language, a parser) does not depend on tasks.

    item      premise  hypothesis     text  0 (s0 s1)   1 (s2)   2 (s3)   3 (s4)
    a         0        1              text_of_sentence   0 0 1 2 3
    b         2        3
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from synthlang.corpus import Column, Corpus, concatenate
from synthlang.sources.base import BATCH_SENTENCES

Rows = NDArray[np.int64]


NO_ROWS: Rows = np.zeros(0, np.int64)


@dataclass(frozen=True)
class Answers:
    """Spans of words that answer an item, sorted by item.

    Attributes:
        item: Row of the item, [answers].
        start: Index of the first word of the answer in the corpus, [answers].
        stop: Index after the last word of the answer, [answers]. All words of an answer belong to one text.
    """

    item: Rows = field(default_factory=lambda: NO_ROWS)
    start: Rows = field(default_factory=lambda: NO_ROWS)
    stop: Rows = field(default_factory=lambda: NO_ROWS)

    def __len__(self) -> int:
        return len(self.item)

    def take(self, rows: NDArray[np.int64] | NDArray[np.bool_]) -> Answers:
        """Return the answers at ``rows``, indices [n] or flags [answers]."""
        return Answers(self.item[rows], self.start[rows], self.stop[rows])


@dataclass(frozen=True)
class TaskBatch:
    """A batch of labelled items with the sentences of their texts.

    Attributes:
        corpus: The sentences of all texts, one text after another.
        text_of_sentence: Number of each sentence's text (0 0 1 2 …), in order and without gaps, [sentences].
        field_of_text: Index of each text's field in the task's ``fields``, [texts].
        texts: Index of the text in each field of each item, [items, fields].
        ids: Names of the items, [items].
        label: Class labels, [items], or None if the task has no class labels.
        answers: Spans that answer items. An item without answers is unanswerable.
        extra: Further strings of the items by name (``title``), [items] each, which are never changed.
        counts: Counts of omissions and changes of the reader in these items, by reason.
        paired: True if the fields of an item are variants of one sentence (minimal pairs). Each text is a sentence.
    """

    corpus: Corpus
    text_of_sentence: Rows
    field_of_text: Rows
    texts: Rows
    ids: tuple[str, ...]
    label: Column | None = None
    answers: Answers = field(default_factory=Answers)
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)
    paired: bool = False

    def __post_init__(self) -> None:
        assert len(self.text_of_sentence) == len(self.corpus) and self.texts.shape[:1] == (len(self.ids),)
        # Texts are numbered in the order of their sentences, without gaps.
        assert np.array_equal(np.unique(self.text_of_sentence), np.arange(len(self.field_of_text)))
        assert bool(np.all(np.diff(self.text_of_sentence) >= 0))
        assert bool(np.all(self.field_of_text[self.texts] == np.arange(self.texts.shape[1])))
        assert self.label is None or len(self.label.codes) == len(self.ids)
        assert not self.paired or len(self.corpus) == len(self.field_of_text), "a variant is one sentence"

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def word_offsets(self) -> Rows:
        """Index of the first word of each text in the corpus, [texts + 1]."""
        first = np.searchsorted(self.text_of_sentence, np.arange(len(self.field_of_text) + 1))
        return self.corpus.offsets[first]

    def strings(self, field: int) -> list[str]:
        """Return the text of a field of each item, [items].

        ``field`` is the index of the field. A text is its words, separated by single spaces.
        """
        words, bounds = self.corpus.form.values(), self.word_offsets.tolist()
        return [" ".join(words[bounds[t] : bounds[t + 1]]) for t in self.texts[:, field].tolist()]

    @property
    def draws(self) -> Corpus:
        """The corpus that transforms read, in which all texts of a minimal pair have the same id.

        Random choices of a transform depend on the id, so they are equal in all texts of a pair.
        """
        if not self.paired:
            return self.corpus
        ids = self.corpus.ids.copy()
        ids[self.texts] = ids[self.texts[:, :1]]
        return replace(self.corpus, ids=ids)

    def sentences_of(self, items: Rows) -> Rows:
        """Return the sorted rows of the sentences that the items at ``items`` [n] use."""
        return np.flatnonzero(np.isin(self.text_of_sentence, self.texts[items])).astype(np.int64)

    def take(self, items: Rows) -> TaskBatch:
        """Return the items at ``items`` [n] (sorted) with the texts that they use. Sentences keep their ids."""
        if len(items) == len(self):
            return self
        used, rows = np.unique(self.texts[items]), self.sentences_of(items)
        corpus = self.corpus.take(rows)
        moved = np.full(len(self.corpus), 0, np.int64)  # the number of words by which each sentence moves
        moved[rows] = corpus.offsets[:-1] - self.corpus.offsets[:-1][rows]
        mine = self.answers.take(np.isin(self.answers.item, items))
        shift = moved[np.searchsorted(self.corpus.offsets, mine.start, side="right") - 1]
        answers = Answers(np.searchsorted(items, mine.item), mine.start + shift, mine.stop + shift)
        return replace(
            self,
            corpus=corpus,
            text_of_sentence=np.searchsorted(used, self.text_of_sentence[rows]),
            field_of_text=self.field_of_text[used],
            texts=np.searchsorted(used, self.texts[items]).reshape(len(items), self.texts.shape[1]),
            ids=tuple(self.ids[i] for i in items.tolist()),
            label=None if self.label is None else self.label.take(items),
            answers=answers,
            extra={name: tuple(values[i] for i in items.tolist()) for name, values in self.extra.items()},
        )


def join_batches(batches: Sequence[TaskBatch]) -> TaskBatch:
    """Join one or more batches of a task, and add their counts."""
    if len(batches) == 1:
        return batches[0]
    words = np.cumsum([0, *(int(b.corpus.offsets[-1]) for b in batches)])
    texts = np.cumsum([0, *(len(b.field_of_text) for b in batches)])
    items = np.cumsum([0, *(len(b) for b in batches)])
    labels = [b.label for b in batches if b.label is not None]
    assert len(labels) in (0, len(batches)) and len({c.names for c in labels}) <= 1, "batches of one task"
    shifted = [
        Answers(b.answers.item + i, b.answers.start + w, b.answers.stop + w)
        for b, i, w in zip(batches, items, words, strict=False)
    ]
    counts: Counter[str] = Counter()
    for batch in batches:
        counts.update(batch.counts)
    return TaskBatch(
        concatenate([b.corpus for b in batches]),
        np.concatenate([b.text_of_sentence + t for b, t in zip(batches, texts, strict=False)]),
        np.concatenate([b.field_of_text for b in batches]),
        np.concatenate([b.texts + t for b, t in zip(batches, texts, strict=False)]),
        tuple(name for b in batches for name in b.ids),
        Column(np.concatenate([c.codes for c in labels]), labels[0].names) if labels else None,
        Answers(*(np.concatenate([getattr(a, part) for a in shifted]) for part in ("item", "start", "stop"))),
        {name: tuple(v for b in batches for v in b.extra[name]) for name in batches[0].extra},
        dict(counts),
        batches[0].paired,
    )


Sentences = Sequence[Mapping[str, Sequence[Any]]]
RENAMED = "ids numbered because another item has the same id"


@dataclass(frozen=True)
class Item:
    """A labelled item, whose texts are in an ``ItemGroup``.

    Attributes:
        id: The name of the item.
        texts: Index in the group of the text of each field.
        label: The class label, or None without class labels.
        answers: Spans of words ``(start, stop)`` in the text that contains the answers, counted from the start of the
            text. ``stop`` is the index after the last word.
        extra: Further strings of the item by name.
    """

    id: str
    texts: tuple[int, ...]
    label: str | None = None
    answers: tuple[tuple[int, int], ...] = ()
    extra: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class ItemGroup:
    """Texts and the items that use them.

    Attributes:
        texts: Each text as (index of its field, its sentences as {column: values}).
        items: The items, which refer to texts by their index in ``texts``.
    """

    texts: tuple[tuple[int, Sentences], ...]
    items: tuple[Item, ...]


def batches_of_groups(
    groups: Iterable[ItemGroup], labels: tuple[str, ...], counts: Counter[str], answered: int = 0
) -> Iterator[TaskBatch]:
    """Yield batches of at least BATCH_SENTENCES sentences, except for the last batch. A group is never cut.

    Args:
        groups: The groups in order.
        labels: Names of the class labels, or () for items without class labels.
        counts: Counter to which the reader adds while it yields groups. Each batch takes the counts of its groups.
        answered: Index of the field that contains the answers.
    """
    waiting: list[ItemGroup] = []
    size = first = 0
    for group in groups:
        waiting.append(group)
        size += sum(len(sentences) for _, sentences in group.texts)
        if size >= BATCH_SENTENCES:
            yield _batch(waiting, first, labels, taken_counts(counts), answered)
            first, size, waiting = first + size, 0, []
    if waiting or counts:
        yield _batch(waiting, first, labels, taken_counts(counts), answered)


def unique_ids(groups: Iterable[ItemGroup], counts: Counter[str]) -> Iterator[ItemGroup]:
    """Yield the groups with unique ids. A repeated id becomes ``ID#2``, ``ID#3`` … and is counted in ``counts``."""
    times: dict[str, int] = {}
    for group in groups:
        yield replace(group, items=tuple(replace(item, id=unique_id(item.id, times, counts)) for item in group.items))


def unique_id(wanted: str, times: dict[str, int], counts: Counter[str]) -> str:
    """Return the id ``wanted``, with a number if another item has the same id. A changed id is counted in ``counts``.

    ``times`` records all ids so far, and is updated.
    """
    name = wanted
    while name in times:
        times[wanted] += 1
        name = f"{wanted}#{times[wanted]}"
    times[name] = 1
    counts[RENAMED] += name != wanted
    return name


def taken_counts(counts: Counter[str]) -> dict[str, int]:
    """Return the counts since the last batch, and clear the counter."""
    taken = {reason: n for reason, n in counts.items() if n}
    counts.clear()
    return taken


def _batch(
    groups: Sequence[ItemGroup], first: int, labels: tuple[str, ...], counts: dict[str, int], answered: int
) -> TaskBatch:
    texts = [text for group in groups for text in group.texts]
    before = np.cumsum([0, *(len(group.texts) for group in groups)]).tolist()
    items = [item for group in groups for item in group.items]
    own = [
        [start + t for t in item.texts] for start, group in zip(before, groups, strict=False) for item in group.items
    ]
    assert all(sentences and all(s["form"] for s in sentences) for _, sentences in texts), "a text without a word"
    index = {name: code for code, name in enumerate(labels)}
    batch = TaskBatch(
        corpus=Corpus.of([sentence for _, sentences in texts for sentence in sentences], first),
        text_of_sentence=np.repeat(np.arange(len(texts)), [len(sentences) for _, sentences in texts]).astype(np.int64),
        field_of_text=np.asarray([f for f, _ in texts], np.int64),
        texts=np.asarray(own, np.int64).reshape(-1, len(own[0]) if own else 1),
        ids=tuple(item.id for item in items),
        label=Column(np.asarray([index[i.label or ""] for i in items], np.int32), labels) if labels else None,
        extra={name: tuple(item.extra[name] for item in items) for name in (items[0].extra if items else ())},
        counts=counts,
    )
    spans = [(row, *span) for row, item in enumerate(items) for span in item.answers]
    if not spans:
        return batch
    row, start, stop = np.asarray(spans, np.int64).T
    begin = batch.word_offsets[batch.texts[row, answered]]
    return replace(batch, answers=Answers(row, begin + start, begin + stop))
