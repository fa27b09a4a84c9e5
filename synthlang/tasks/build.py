"""From what a reader finds to batches: groups of texts and the items on them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from synthlang.corpus import Column, Corpus
from synthlang.sources.base import BATCH_SENTENCES
from synthlang.tasks.batch import Answers, TaskBatch

Sentences = Sequence[Mapping[str, Sequence[Any]]]
RENAMED = "ids numbered, another item has the same"


@dataclass(frozen=True)
class Item:
    """An item of a group.

    texts     for each field the index of its text in the group
    answers   spans of words ``(start, stop)``, counted in the text ``texts[field]`` of the answered field
    """

    id: str
    texts: tuple[int, ...]
    label: str | None = None
    answers: tuple[tuple[int, int], ...] = ()
    extra: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Group:
    """Texts, each (field, its sentences as {column: values}), and the items that use them."""

    texts: tuple[tuple[int, Sentences], ...]
    items: tuple[Item, ...]


def batches_of_groups(
    groups: Iterable[Group], labels: tuple[str, ...], counts: Counter[str], answered: int = 0
) -> Iterator[TaskBatch]:
    """Batches of at least BATCH_SENTENCES sentences, the last one shorter; a group is never cut.

    counts     the reader adds to it while it yields groups; each batch takes what came with it
    answered   the field that answers lie in
    """
    waiting: list[Group] = []
    size = first = 0
    for group in groups:
        waiting.append(group)
        size += sum(len(sentences) for _, sentences in group.texts)
        if size >= BATCH_SENTENCES:
            yield _batch(waiting, first, labels, taken_counts(counts), answered)
            first, size, waiting = first + size, 0, []
    if waiting or counts:
        yield _batch(waiting, first, labels, taken_counts(counts), answered)


def unique_ids(groups: Iterable[Group], counts: Counter[str]) -> Iterator[Group]:
    """The groups with each id once: what comes later with the same one is ``ID#2``, ``ID#3`` …, and counted."""
    times: dict[str, int] = {}
    for group in groups:
        yield replace(group, items=tuple(replace(item, id=unique_id(item.id, times, counts)) for item in group.items))


def unique_id(wanted: str, times: dict[str, int], counts: Counter[str]) -> str:
    """The id itself, or with a number if it is among those that were given before, which ``times`` keeps."""
    name = wanted
    while name in times:
        times[wanted] += 1
        name = f"{wanted}#{times[wanted]}"
    times[name] = 1
    counts[RENAMED] += name != wanted
    return name


def taken_counts(counts: Counter[str]) -> dict[str, int]:
    """What was counted since the last batch; the counter is empty then."""
    taken = {reason: n for reason, n in counts.items() if n}
    counts.clear()
    return taken


def _batch(
    groups: Sequence[Group], first: int, labels: tuple[str, ...], counts: dict[str, int], answered: int
) -> TaskBatch:
    texts = [text for group in groups for text in group.texts]
    before = np.cumsum([0, *(len(group.texts) for group in groups)]).tolist()
    items = [(start, item) for start, group in zip(before, groups, strict=False) for item in group.items]
    assert all(sentences and all(s["form"] for s in sentences) for _, sentences in texts), "a text without a word"
    corpus = Corpus.of([sentence for _, sentences in texts for sentence in sentences], first)
    width = len(items[0][1].texts) if items else 1
    batch = TaskBatch(
        corpus=corpus,
        text_of_sentence=np.repeat(np.arange(len(texts)), [len(sentences) for _, sentences in texts]).astype(np.int64),
        field_of_text=np.asarray([f for f, _ in texts], np.int64),
        texts=np.asarray([[start + t for t in item.texts] for start, item in items], np.int64).reshape(-1, width),
        ids=tuple(item.id for _, item in items),
        label=_labels([item.label for _, item in items], labels),
        extra={name: tuple(item.extra[name] for _, item in items) for name in (items[0][1].extra if items else ())},
        counts=counts,
    )
    return _with_answers(batch, [item for _, item in items], answered)


def _labels(values: list[str | None], names: tuple[str, ...]) -> Column | None:
    if not names:
        return None
    index = {name: code for code, name in enumerate(names)}
    return Column(np.asarray([index[value or ""] for value in values], np.int32), names)


def _with_answers(batch: TaskBatch, items: list[Item], answered: int) -> TaskBatch:
    spans = [(row, start, stop) for row, item in enumerate(items) for start, stop in item.answers]
    if not spans:
        return batch
    row, start, stop = np.asarray(spans, np.int64).T
    begin = batch.word_offsets[batch.texts[row, answered]]
    answers = Answers(row, begin + start, begin + stop)
    return replace(batch, answers=answers)
