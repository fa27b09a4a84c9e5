"""Labelled tasks: read in the field's formats, derived with every label in its place, exported."""

from __future__ import annotations

from synthlang.errors import InputError
from synthlang.files import user_path
from synthlang.sources import open_source
from synthlang.sources.mini_english import MiniEnglish
from synthlang.tasks.base import TaskSet
from synthlang.tasks.batch import Answers, TaskBatch
from synthlang.tasks.derive import derive_task

FORMS = "nli:PATH[?language=xx], nli:builtin:mini-english[?…], ner:PATH, slots:PATH or qa:PATH"
SCHEMES = ("nli", "ner", "slots", "qa")

__all__ = ["FORMS", "SCHEMES", "Answers", "TaskBatch", "TaskSet", "derive_task", "is_task", "open_task"]


def is_task(spec: str) -> bool:
    """Whether a spec names a task and not a source of sentences."""
    return spec.partition(":")[0] in SCHEMES and ":" in spec


def open_task(spec: str) -> TaskSet:
    """Open the task that ``spec`` names, as on the command line.

    ``ner:`` also takes a source with the column ``ner``: ``ner:builtin:mini-english``, ``ner:hf:NAME``.
    Raises InputError for an unknown form and for whatever cannot be opened.
    """
    scheme, _, rest = spec.partition(":")
    if scheme not in SCHEMES or not rest.strip():
        raise InputError(f"task {spec!r} must be one of: {FORMS}")
    if scheme == "nli":
        return _pairs(spec, rest)
    if scheme == "qa":
        from synthlang.tasks.squad import SquadTask

        return SquadTask(rest)
    from synthlang.sources.iob import IobSource
    from synthlang.sources.slots import SlotsSource
    from synthlang.tasks.words import WordTask

    if scheme == "slots":
        return WordTask(spec, SlotsSource(rest), "slot")
    named = rest.startswith(("builtin:", "hf:"))
    return WordTask(spec, open_source(rest) if named else IobSource(rest), "ner")


def _pairs(spec: str, rest: str) -> TaskSet:
    if rest.startswith("builtin:"):
        from synthlang.tasks.mini_english import MiniEnglishPairs

        source = open_source(rest)
        assert isinstance(source, MiniEnglish), "the only built-in source"
        return MiniEnglishPairs(source)
    from synthlang.tasks.pairs import PairTask

    path, mark, query = rest.rpartition("?")
    if not mark or user_path(rest).exists():
        return PairTask(rest)
    key, _, language = query.partition("=")
    if key != "language" or not language:
        raise InputError(f"task {spec!r}: after ? there must be language=… and not {query!r}")
    return PairTask(path, language)
