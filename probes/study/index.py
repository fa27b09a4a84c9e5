"""The index of a store: which stage a task made, and of which files of the user. A file for each ended task."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from synthlang.errors import InputError
from synthlang.files import read_json, write_json
from synthlang.store import Store

if TYPE_CHECKING:
    from probes.study.task import Task

FORMAT = 1
FOLDER = "index"
KEYS = {"format", "kind", "fingerprint", "label", "seconds", "work", "inputs", "parents"}
CHANGED = -1  # in the place of a time: a file that was changed while it was read


def entry_path(store: Store, key: str) -> Path:
    """Where the entry of a task is or will be."""
    return store.root / FOLDER / f"{key}.json"


def entry_of(store: Store, key: str) -> dict[str, Any] | None:
    """What is known of a task that has ended: KEYS; None if it has not. InputError for another version's entry."""
    path = entry_path(store, key)
    if not path.exists():
        return None
    held = read_json(path)
    if not isinstance(held, dict) or held.get("format") != FORMAT:
        raise InputError("the store is of another version of synthlang; name a new folder", path)
    if not held.keys() >= KEYS:
        raise InputError("is no entry of an index; delete it and start again", path)
    return held


def last_change(store: Store) -> int | None:
    """When an entry was last made, replaced or deleted, in ns; None for a store without an index."""
    try:
        return (store.root / FOLDER).stat().st_mtime_ns
    except (FileNotFoundError, NotADirectoryError):
        return None


def entries(store: Store) -> Iterator[dict[str, Any]]:
    """An entry for each stage of a store: that of the task that made it, of which others took no time for theirs."""
    made: dict[tuple[str, str], dict[str, Any]] = {}
    for _, entry in entries_by_key(store):
        stage = entry["kind"], entry["fingerprint"]
        if stage not in made or made[stage]["seconds"] < entry["seconds"]:
            made[stage] = entry
    yield from made.values()


def entries_by_key(store: Store) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every task that has ended, by its key, in the order of the keys."""
    for path in sorted((store.root / FOLDER).glob("*.json")):
        if (entry := entry_of(store, path.stem)) is not None:  # it may have been deleted meanwhile
            yield path.stem, entry


def files_now(task: Task) -> dict[str, list[int]]:
    """The user's files that a task depends on, by absolute path: [size, time of change in ns], CHANGED if not there."""
    return {path: stat_of(Path(path)) or [0, CHANGED] for path in places_of(task)}


@dataclass(frozen=True)
class Seen:
    """What a task finds when its work begins: the user's ``files`` that it names, as ``files_now`` has them, and the
    ``entries`` of all tasks that it is made of, by key."""

    files: Mapping[str, list[int]]
    entries: Mapping[str, dict[str, Any]]


def seen_now(store: Store, task: Task) -> Seen:
    """What there is for ``task`` now. InputError if one that it is made of is not finished, or was made again while
    what is made of that was not."""
    entries: dict[str, dict[str, Any]] = {}
    _gather(store, task.needs, {}, entries)
    return Seen(files_now(task), entries)


def _gather(store: Store, tasks: Iterable[Task], wanted: Mapping[str, str], found: dict[str, dict[str, Any]]) -> None:
    """Put the entries of tasks, and of those that they are made of, into ``found``; ``wanted``: key → fingerprint."""
    for task in tasks:
        entry = found.get(task.key) or entry_of(store, task.key)
        if entry is None or wanted.get(task.key, entry["fingerprint"]) != entry["fingerprint"]:
            raise InputError(f"{task.label} is not finished; start again")
        found[task.key] = entry
        _gather(store, task.needs, entry["parents"], found)


def finish(store: Store, task: Task, fingerprint: str, seconds: float, seen: Seen | None = None) -> None:
    """Note that ``task`` has made the stage ``fingerprint`` in so many seconds; its parents are finished.

    ``seen`` is what ``seen_now`` said when the work began (default: says now). The parents are those of then, which the
    task has read, though others stand in the index by now. A file that is another one since then may have been read as
    either, so it is noted as one to look at again. A stage that was found done keeps the time that it took when it ran.
    The files are those of the parents, too.
    """
    from probes.study.costs import operations  # which knows all kinds of tasks

    seen = seen or seen_now(store, task)
    inputs = {
        path: held if seen.files.get(path) == held else [held[0], CHANGED] for path, held in files_now(task).items()
    }
    for key in task.parents:
        inputs = seen.entries[key]["inputs"] | inputs
    held = entry_of(store, task.key)
    if held is not None and held["fingerprint"] == fingerprint:
        seconds = max(seconds, held["seconds"])
    entry = {
        "format": FORMAT,
        "kind": task.kind,
        "fingerprint": fingerprint,
        "label": task.label,
        "seconds": round(seconds, 1),
        "work": operations(task),
        "inputs": inputs,
        "parents": {key: seen.entries[key]["fingerprint"] for key in task.parents},
    }
    write_json(entry_path(store, task.key), entry)


def places_of(task: Task) -> set[str]:
    """The user's files that a task names, as absolute paths."""
    return {str(path.absolute()) for path in task.files()}


def stat_of(path: Path) -> list[int] | None:
    """[size, time of change in ns]; of a folder, whose size says nothing, the size is 0. None if it is not there."""
    try:
        held = path.stat()
    except OSError:
        return None
    return [0 if path.is_dir() else held.st_size, held.st_mtime_ns]
