"""Labelled tasks: readers of the usual formats, derivation with labels, and export."""

from __future__ import annotations

import re

from synthlang.errors import InputError
from synthlang.tasks.base import TaskSet
from synthlang.tasks.batch import Answers, TaskBatch
from synthlang.tasks.derive import derive_task
from synthlang.tasks.minimal import open_minimal
from synthlang.tasks.pairs import open_pairs
from synthlang.tasks.questions import open_questions
from synthlang.tasks.word_labels import open_words

FORMS = (
    "nli:PATH[?language=xx], ner:PATH, slots:PATH, qa:PATH, pos:PATH, parsing:PATH or minimal:PATH, each also with"
    " hf:NAME[:CONFIG] or builtin:mini-english[?…] in place of PATH"
)
TASKS = {
    "nli": open_pairs,
    "ner": open_words,
    "slots": open_words,
    "qa": open_questions,
    "pos": open_words,
    "parsing": open_words,
    "minimal": open_minimal,
}
"""Function that opens a task of each scheme, given the scheme and the text after the colon."""
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
    """Return whether a spec names a task, not a source of sentences."""
    return spec.partition(":")[0] in SCHEMES and ":" in spec


def open_task(spec: str) -> TaskSet:
    """Open a task in the notation of the command line.

    ``ner:``, ``slots:``, ``pos:`` and ``parsing:`` also take any source with the columns that they need, such as
    ``pos:hf:NAME`` or ``parsing:conllu:PATH``.

    Raises:
        InputError: The spec is not a task, or the task cannot be opened.
    """
    scheme, _, rest = spec.partition(":")
    if scheme not in TASKS or not rest.strip():
        raise InputError(f"{spec!r} is not a task", hint=f"use one of: {FORMS}", code="unknown")
    return TASKS[scheme](scheme, rest)


def choose(spec: str) -> tuple[str, str | None]:
    """Separate a spec from the split that it chooses. Any other ``#`` is part of the path.

    >>> choose("nli:xnli#dev"), choose("nli:a#b")
    (('nli:xnli', 'dev'), ('nli:a#b', None))
    """
    match = CHOSEN.fullmatch(spec)
    return (match[1], match[2]) if match else (spec, None)


def split_for(task: TaskSet, wanted: str, chosen: str | None, spec: str) -> str:
    """Return the split of a task to read: the chosen split, the only split, or else ``wanted``.

    Args:
        task: The task.
        wanted: The split to use if the task has several.
        chosen: The split that the user chose, if any.
        spec: The spec as the user wrote it, for the error.

    Raises:
        InputError: The task has no such split.
    """
    if chosen is None and len(task.splits) == 1:
        return task.splits[0]
    split = chosen or wanted
    untrained = [one for one in task.splits if one != "train" or wanted != "test"]
    task.check(split, f"choose one of its splits, as in {choose(spec)[0]}#{(untrained or task.splits)[0]}")
    return split
