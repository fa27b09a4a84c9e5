"""Tasks that label words: named entities, slots, parts of speech and trees. An item is a sentence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from synthlang.corpus import Column
from synthlang.fingerprint import fingerprint
from synthlang.sources import READERS, open_source
from synthlang.sources.base import Labelled, Source, remarks_of, require_columns, size_of, with_columns
from synthlang.sources.hub import HubSource
from synthlang.sources.mini_english import MiniEnglish
from synthlang.sources.mini_english.slots import INTENTS, slot_sentences
from synthlang.sources.mini_english.source import named_sentences
from synthlang.sources.slots import SlotsSource
from synthlang.tasks.base import MiniEnglishTask, TaskSet, built_in
from synthlang.tasks.batch import Item, ItemGroup, TaskBatch, taken_counts, unique_id

FIELD = ("text",)
WORDS: dict[str, tuple[str, tuple[str, ...], str]] = {
    "ner": ("ner", (), "iob"),
    "slots": ("slot", (), "slots"),
    "pos": ("upos", (), "conllu"),
    "parsing": ("deprel", ("upos", "head"), "conllu"),
}
"""The column with the labels of each task, further required columns, and the scheme for a plain path."""
HUB_LABELS: dict[str, dict[str, tuple[str, ...]]] = {
    "ner": {"ner": ("tags",)},
    "slots": {"slot": ("slots", "slot", "slot_tags", "tags")},
}
"""Further names of label columns in data sets of the hub (see ``sources.hub``)."""
HUB_INTENTS = ("intent", "label")
TREEBANK = ("upos", "deprel")
"""Label columns whose gold labels are in treebanks."""


def open_words(scheme: str, rest: str) -> TaskSet:
    """Open a task of labelled words.

    ``scheme`` is a key of WORDS. ``rest`` is the spec of a source, or a path for the usual reader of the task.

    Raises:
        InputError: The source cannot be opened, or lacks a column that the task needs.
    """
    if scheme in BUILT_IN and rest.startswith("builtin:"):
        return BUILT_IN[scheme](built_in(rest))
    tags, needs, plain = WORDS[scheme]
    first, mark, name = rest.partition(":")
    source: Source
    if first == "hf" and mark:
        source = HubSource(name, HUB_LABELS.get(scheme), HUB_INTENTS if scheme == "slots" else (), ids=True)
    elif mark and (first == "builtin" or first in READERS):
        source = open_source(rest)
    else:  # the ending decides, since such a file may hold entities and slots in its last column
        path = rest.partition("?")[0]
        source = open_source(f"{'conllu' if path.endswith('.conllu') else plain}:{rest}")
    return WordTask(f"{scheme}:{rest}", source, tags, needs)


class WordTask(TaskSet):
    """The sentences of a source whose column ``tags`` labels the words. Intents label the items if there are any.

    Args:
        name: The task as the user wrote it, for messages.
        source: The source.
        tags: Name of the column with the labels of the words.
        needs: Names of further columns that the task requires.

    Raises:
        InputError: The source lacks a column.
    """

    kind = "words"
    fields = FIELD
    label_name = "intent"

    def __init__(self, name: str, source: Source, tags: str, needs: tuple[str, ...] = ()) -> None:
        hint = f"use a treebank, as in {name.partition(':')[0]}:FILE.conllu" if tags in TREEBANK else ""
        require_columns(source, (tags, *needs), name, "the task", hint)
        self.name, self.source, self.tags, self._needs = name, source, tags, needs
        self.columns, self.licence = source.columns, getattr(source, "licence", None)
        # All other sources refuse an empty split themselves.
        can_be_empty = isinstance(source, MiniEnglish)
        self.splits = tuple(s for s in source.splits if not can_be_empty or size_of(source, s))

    def with_morphology(self, names: Sequence[str]) -> WordTask:
        return WordTask(self.name, with_columns(self.source, names), str(self.tags), self._needs)

    @property
    def fingerprint(self) -> str:
        """Fingerprint of the source and the labelled column."""
        return fingerprint("word-task", source=self.source.fingerprint, tags=self.tags)

    @property
    def labels(self) -> tuple[str, ...]:
        """The intents, or () for a source without intents.

        Raises:
            InputError: A row of the source is malformed or cannot be read.
        """
        return self.source.intents if isinstance(self.source, SlotsSource | HubSource) else ()

    def size(self, split: str) -> int | None:
        return size_of(self.source, split)

    def batches(self, split: str) -> Iterator[TaskBatch]:
        self.check(split)
        return self._labelled(split)

    def _labelled(self, split: str) -> Iterator[TaskBatch]:
        """Yield batches in which each sentence is an item with its intent and its id."""
        counts: Counter[str] = Counter()
        times: dict[str, int] = {}
        index = {name: code for code, name in enumerate(self.labels)}
        for corpus, labels, seen, names in self._batches(split):
            counts.update(seen)
            label = Column(np.asarray([index[name] for name in labels], np.int32), self.labels) if index else None
            ids = map(str, corpus.ids.tolist()) if names is None else (unique_id(n, times, counts) for n in names)
            rows = np.arange(len(corpus), dtype=np.int64)
            yield TaskBatch(
                corpus, rows, np.zeros_like(rows), rows[:, None], tuple(ids), label, counts=taken_counts(counts)
            )

    def _batches(self, split: str) -> Iterator[Labelled]:
        if isinstance(self.source, SlotsSource | HubSource):
            return self.source.labelled(split)
        return _with_remarks(self.source, split)


def _with_remarks(source: Source, split: str) -> Iterator[Labelled]:
    """Yield unlabelled batches of a source, each with the counts of its remarks."""
    before: Counter[str] = Counter()
    for corpus in source.batches(split):
        remarks = Counter(remarks_of(source, split))
        yield Labelled(corpus, [], dict(remarks - before))
        before = remarks


class MiniEnglishSlots(MiniEnglishTask):
    """Slot filling: utterances with a BIO tag on each word and an intent."""

    kind = "words"
    fields = FIELD
    tags = "slot"
    label_name = "intent"
    name = "slots:builtin:mini-english"
    labels = INTENTS
    version = ("mini-english-slots", 2)

    def _groups(self, split: str, counts: Counter[str]) -> Iterator[ItemGroup]:  # noqa: ARG002
        for number, made in enumerate(slot_sentences(self.source, split, self.source.size(split))):
            yield ItemGroup(((0, [dict(made.sentence.columns)]),), (Item(str(number), (0,), made.intent),))


class MiniEnglishNames(MiniEnglishTask):
    """Named entities: sentences with a BIO tag on each word."""

    kind = "words"
    fields = FIELD
    tags = "ner"
    label_name = "intent"
    name = "ner:builtin:mini-english"
    labels = ()
    version = ("mini-english-names", 1)

    def _groups(self, split: str, counts: Counter[str]) -> Iterator[ItemGroup]:  # noqa: ARG002
        for number, made in enumerate(named_sentences(self.source, split, self.source.size(split))):
            yield ItemGroup(((0, [dict(made.columns)]),), (Item(str(number), (0,)),))


BUILT_IN: dict[str, type[MiniEnglishTask]] = {"ner": MiniEnglishNames, "slots": MiniEnglishSlots}
"""Tasks for which the grammar generates separate items. Other tasks use the sentences of the grammar."""
