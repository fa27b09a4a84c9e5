"""Which split of a task is meant: ``SPEC#dev`` chooses one, else the one of the usual name."""

from __future__ import annotations

import re

from synthlang.tasks import TaskSet, open_task

CHOSEN = re.compile(r"(.+)#(train|dev|test)", re.DOTALL)


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


def open_split(spec: str, wanted: str) -> tuple[TaskSet, str]:
    """The task that ``spec`` names, and which of its splits is meant where ``wanted`` is asked for."""
    plain, chosen = choose(spec)
    task = open_task(plain)
    return task, split_for(task, wanted, chosen, plain)
