"""The tasks of mini-english: labelled by construction, with gold annotation of every sentence."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Iterator
from typing import ClassVar

from synthlang.fingerprint import fingerprint
from synthlang.sources.mini_english import MiniEnglish
from synthlang.sources.mini_english.nli import LABELS, nli_pairs
from synthlang.sources.mini_english.questions import Paragraph, paragraphs
from synthlang.sources.mini_english.slots import INTENTS, slot_sentences
from synthlang.tasks.base import TaskSet
from synthlang.tasks.batch import TaskBatch
from synthlang.tasks.build import Group, Item, batches_of_groups
from synthlang.tasks.pairs import FIELDS
from synthlang.tasks.squad import CONTEXT
from synthlang.tasks.squad import FIELDS as QUESTION_FIELDS
from synthlang.tasks.words import FIELD

# of the items: another version may emit others for the same settings
VERSION = 1  # pairs
SLOTS_VERSION = 1
QUESTIONS_VERSION = 1


class _MiniEnglishTask(TaskSet):
    """As many items in each split as the source has sentences there."""

    licence = MiniEnglish.licence
    version: ClassVar[tuple[str, int]]  # what the items are, and the version of what makes them
    answered = 0  # the field that answers lie in

    def __init__(self, source: MiniEnglish) -> None:
        self.source = source

    @property
    def fingerprint(self) -> str:
        """Of the grammar and its settings."""
        kind, version = self.version
        return fingerprint(kind, version=version, source=self.source.fingerprint)

    @property
    def splits(self) -> tuple[str, ...]:
        """All three, but those of no size."""
        return tuple(split for split in self.source.splits if self.source.size(split))

    @property
    def columns(self) -> tuple[str, ...]:
        """Every annotation there is."""
        return self.source.columns if self.tags is None else (*self.source.columns, self.tags)

    def size(self, split: str) -> int:
        """That of the source."""
        return self.source.size(split)

    def batches(self, split: str) -> Iterator[TaskBatch]:
        """The items of a split in order."""
        self.check(split)
        return batches_of_groups(self._groups(split), self.labels, Counter(), self.answered)

    @abstractmethod
    def _groups(self, split: str) -> Iterator[Group]:
        """The items of a split with their texts."""


class MiniEnglishPairs(_MiniEnglishTask):
    """Inference: premise and hypothesis."""

    kind = "classes"
    fields = FIELDS
    name = "nli:builtin:mini-english"
    labels = LABELS
    version = ("mini-english-pairs", VERSION)

    def _groups(self, split: str) -> Iterator[Group]:
        for number, pair in enumerate(nli_pairs(self.source, split, self.source.size(split))):
            texts = tuple((i, [dict(s.columns)]) for i, s in enumerate((pair.premise, pair.hypothesis)))
            yield Group(texts, (Item(str(number), (0, 1), pair.label),))


class MiniEnglishSlots(_MiniEnglishTask):
    """Slot filling: utterances with a BIO tag on each word and an intent."""

    kind = "words"
    fields = FIELD
    tags = "slot"
    label_name = "intent"
    name = "slots:builtin:mini-english"
    labels = INTENTS
    version = ("mini-english-slots", SLOTS_VERSION)

    def _groups(self, split: str) -> Iterator[Group]:
        for number, made in enumerate(slot_sentences(self.source, split, self.source.size(split))):
            yield Group(((0, [dict(made.sentence.columns)]),), (Item(str(number), (0,), made.intent),))


class MiniEnglishQuestions(_MiniEnglishTask):
    """Extractive question answering: several questions on a context; a quarter of them have no answer in it."""

    kind = "spans"
    fields = QUESTION_FIELDS
    name = "qa:builtin:mini-english"
    version = ("mini-english-questions", QUESTIONS_VERSION)
    answered = CONTEXT

    def _groups(self, split: str) -> Iterator[Group]:
        return map(_question_group, paragraphs(self.source, split, self.source.size(split)))


def _question_group(paragraph: Paragraph) -> Group:
    """The context and then its questions; answers counted in the words of the context."""
    starts = [0]
    for sentence in paragraph.sentences:
        starts.append(starts[-1] + len(sentence.words))
    items = []
    for row, question in enumerate(paragraph.questions, start=1):
        answer = question.answer
        at = 0 if answer is None else starts[answer.sentence]
        spans = () if answer is None else ((at + answer.start, at + answer.stop),)
        items.append(Item(str(question.sentence.id), (row, 0), None, spans))
    context = (CONTEXT, [dict(sentence.columns) for sentence in paragraph.sentences])
    questions = ((0, [dict(question.sentence.columns)]) for question in paragraph.questions)
    return Group((context, *questions), tuple(items))
