"""Labelled tasks: read in the field's formats, derived with every label in its place, exported."""

from __future__ import annotations

from synthlang.errors import InputError
from synthlang.files import user_path
from synthlang.sources import READERS, open_source
from synthlang.sources.base import Source
from synthlang.sources.mini_english import MiniEnglish
from synthlang.tasks.base import TaskSet
from synthlang.tasks.batch import Answers, TaskBatch
from synthlang.tasks.derive import derive_task

FORMS = (
    "nli:PATH[?language=xx], ner:PATH, slots:PATH, qa:PATH, pos:PATH or parsing:PATH, each also with hf:NAME[:CONFIG]"
    " or builtin:mini-english[?…] in place of PATH"
)
SCHEMES = ("nli", "ner", "slots", "qa", "pos", "parsing")
# what labels words: the column, further columns that must be there, how a bare path is read
WORDS: dict[str, tuple[str, tuple[str, ...], str]] = {
    "ner": ("ner", (), "iob"),
    "slots": ("slot", (), "slots"),
    "pos": ("upos", (), "conllu"),
    "parsing": ("deprel", ("upos", "head"), "conllu"),
}
# further columns of hub data sets that hold labels; their usual names are in sources.hub_data
HUB_LABELS: dict[str, dict[str, tuple[str, ...]]] = {
    "ner": {"ner": ("tags",)},
    "slots": {"slot": ("slots", "slot", "slot_tags", "tags")},
}
HUB_INTENTS = ("intent", "label")

__all__ = ["FORMS", "SCHEMES", "Answers", "TaskBatch", "TaskSet", "derive_task", "is_task", "open_task"]


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
    if scheme not in SCHEMES or not rest.strip():
        raise InputError(f"task {spec!r} must be one of: {FORMS}")
    if scheme == "nli":
        return _pairs(spec, rest)
    if scheme == "qa":
        return _answers(rest)
    return _words(spec, scheme, rest)


def _words(spec: str, scheme: str, rest: str) -> TaskSet:
    if scheme == "slots" and rest.startswith("builtin:"):
        from synthlang.tasks.mini_english import MiniEnglishSlots

        slots: TaskSet = MiniEnglishSlots(_builtin(rest))
        return slots
    from synthlang.sources.hub import HubSource
    from synthlang.tasks.words import WordTask

    tags, needs, plain = WORDS[scheme]
    first, mark, name = rest.partition(":")
    source: Source
    if first == "hf" and mark:
        source = HubSource(name, HUB_LABELS.get(scheme), HUB_INTENTS if scheme == "slots" else (), ids=True)
    elif mark and (first == "builtin" or first in READERS):
        source = open_source(rest)
    else:
        source = open_source(f"{plain}:{rest}")
    return WordTask(spec, source, tags, needs)


def _answers(rest: str) -> TaskSet:
    if rest.startswith("builtin:"):
        from synthlang.tasks.mini_english import MiniEnglishQuestions

        questions: TaskSet = MiniEnglishQuestions(_builtin(rest))
        return questions
    if rest.startswith("hf:"):
        from synthlang.tasks.hub_answers import HubAnswers

        return HubAnswers(rest.removeprefix("hf:"))
    from synthlang.tasks.squad import SquadTask

    return SquadTask(rest)


def _pairs(spec: str, rest: str) -> TaskSet:
    if rest.startswith("builtin:"):
        from synthlang.tasks.mini_english import MiniEnglishPairs

        return MiniEnglishPairs(_builtin(rest))
    path, mark, query = rest.rpartition("?")
    language: str | None = None
    if not mark or user_path(rest.removeprefix("hf:")).exists():
        path = rest
    else:
        key, _, language = query.partition("=")
        if key != "language" or not language:
            raise InputError(f"task {spec!r}: after ? there must be language=… and not {query!r}")
    if path.startswith("hf:"):
        from synthlang.tasks.hub_pairs import HubPairs

        return HubPairs(path.removeprefix("hf:"), language)
    from synthlang.tasks.pairs import PairTask

    return PairTask(path, language)


def _builtin(rest: str) -> MiniEnglish:
    source = open_source(rest)
    assert isinstance(source, MiniEnglish), "the only built-in source"
    return source
