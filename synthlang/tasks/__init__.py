"""Labelled tasks: read in the field's formats, derived with every label in its place, exported."""

from __future__ import annotations

import re

from synthlang.errors import InputError
from synthlang.tasks.base import TaskSet
from synthlang.tasks.batch import Answers, TaskBatch
from synthlang.tasks.derive import derive_task
from synthlang.tasks.pairs import open_pairs
from synthlang.tasks.questions import open_questions
from synthlang.tasks.word_labels import open_words

FORMS = (
    "nli:PATH[?language=xx], ner:PATH, slots:PATH, qa:PATH, pos:PATH or parsing:PATH, each also with hf:NAME[:CONFIG]"
    " or builtin:mini-english[?…] in place of PATH"
)
# scheme → what opens it, from the scheme and what stands after the colon
TASKS = {
    "nli": open_pairs,
    "ner": open_words,
    "slots": open_words,
    "qa": open_questions,
    "pos": open_words,
    "parsing": open_words,
}
SCHEMES = tuple(TASKS)
CHOSEN = re.compile(r"(.+)#(train|dev|test)", re.DOTALL)

__all__ = [
    "FORMS",
    "SCHEMES",
    "Answers",
    "TaskBatch",
    "TaskSet",
    "choose",
    "derive_task",
    "is_task",
    "open_task",
    "split_for",
]


def is_task(spec: str) -> bool:
    """Whether a spec names a task and not a source of sentences."""
    return spec.partition(":")[0] in SCHEMES and ":" in spec


def open_task(spec: str) -> TaskSet:
    """Open the task that ``spec`` names, as on the command line.

    ``ner:``, ``slots:``, ``pos:`` and ``parsing:`` also take any source with the columns they need:
    ``ner:builtin:mini-english``, ``pos:hf:NAME``, ``parsing:conllu:PATH``.
    Raises InputError for an unknown form and for whatever cannot be opened.
    """
    scheme, _, rest = spec.partition(":")
    if scheme not in TASKS or not rest.strip():
        raise InputError(f"task {spec!r} must be one of: {FORMS}")
    return TASKS[scheme](scheme, rest)


def choose(spec: str) -> tuple[str, str | None]:
    """The spec without its choice of a split, and the choice; any other ``#`` is part of the path.

    >>> choose("nli:xnli#dev"), choose("nli:a#b")
    (('nli:xnli', 'dev'), ('nli:a#b', None))
    """
    match = CHOSEN.fullmatch(spec)
    return (match[1], match[2]) if match else (spec, None)


def split_for(task: TaskSet, wanted: str, chosen: str | None, spec: str) -> str:
    """The split of a task that stands for ``wanted``: the chosen one, the only one, or the one of that name.

    ``spec`` is what the user wrote, for the message. InputError if the task has no such split.
    """
    if chosen is None and len(task.splits) == 1:
        return task.splits[0]
    split = chosen or wanted
    task.check(split, "" if chosen else f"; choose one, as in {spec}#{task.splits[0]}")
    return split
