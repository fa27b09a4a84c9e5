"""The index of a store: which stage a task made, and of which files of the user. A file for each ended task."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from synthlang.errors import InputError
from synthlang.files import read_json, write_json
from synthlang.store import Store

if TYPE_CHECKING:
    from probes.study.tasks import Task

FORMAT = 1
FOLDER = "index"
KEYS = {"format", "kind", "fingerprint", "label", "seconds", "work", "inputs", "parents"}
CHANGED = -1  # in the place of a time: a file that was changed while it was read
END = b"\n}\n"  # of a JSON object that is whole and holds something, as write_json writes it


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
        entry = entry_of(store, path.stem)
        assert entry is not None, "the file is there"
        yield path.stem, entry


def files_now(task: Task) -> dict[str, list[int]]:
    """The user's files that a task depends on, by absolute path: [size, time of change in ns], CHANGED if not there."""
    return {path: _stat(Path(path)) or [0, CHANGED] for path in _places(task)}


def finish(
    store: Store, task: Task, fingerprint: str, seconds: float, before: Mapping[str, list[int]] | None = None
) -> None:
    """Note that ``task`` has made the stage ``fingerprint`` in so many seconds; its parents are finished.

    ``before`` is what ``files_now`` said when the work began (default: says now): a file that is another one since then
    may have been read as either, so it is noted as one to look at again. A stage that was found done keeps the time
    that it took when it ran. The files are those of the parents, too.
    """
    from probes.study.costs import operations  # which knows all kinds of tasks

    now, parents = files_now(task), {}
    inputs = {
        path: held if before is None or before.get(path) == held else [held[0], CHANGED] for path, held in now.items()
    }
    for key in task.parents:
        entry = entry_of(store, key)
        assert entry is not None, "parents are finished first"
        parents[key] = entry["fingerprint"]
        inputs = entry["inputs"] | inputs
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
        "parents": parents,
    }
    write_json(entry_path(store, task.key), entry)


def finished(store: Store, task: Task) -> str | None:
    """The fingerprint of the stage that ``task`` made; None if it has not, or if a file it read has changed since.

    Files are not read: which they are, their sizes and times decide. The same relative path is another file in another
    working folder. A task whose parents have made other stages since is not finished.
    """
    entry = entry_of(store, task.key)
    if entry is None or not _is_there(store, task, entry):
        return None
    places = _places(task)
    for key, made in entry["parents"].items():
        parent = entry_of(store, key)
        if parent is None or parent["fingerprint"] != made:
            return None
        places |= parent["inputs"].keys()
    if places != entry["inputs"].keys():
        return None
    if any(_stat(Path(path)) != held for path, held in entry["inputs"].items()):
        return None
    name: str = entry["fingerprint"]
    return name


def made(store: Store, task: Task) -> str | None:
    """The fingerprint of the stage that ``task`` made last of the files that it names here, up to date or not.

    None if it made none, or if the stage is not there.
    """
    entry = entry_of(store, task.key)
    if entry is None or not _is_there(store, task, entry) or not _places(task) <= entry["inputs"].keys():
        return None
    return str(entry["fingerprint"])


def is_whole(task: Task, folder: Path) -> bool:
    """Whether a stage is there with its files, of which the one that is written last is not truncated (by its end)."""
    paths = [folder / name for name in task.content]
    if not all(path.is_file() for path in paths):
        return False
    with paths[0].open("rb") as handle:
        handle.seek(max(0, paths[0].stat().st_size - len(END)))
        return handle.read() == END


def _is_there(store: Store, task: Task, entry: dict[str, Any]) -> bool:
    return entry["kind"] == task.kind and is_whole(task, store.path(task.kind, entry["fingerprint"]))


def _places(task: Task) -> set[str]:
    """The user's files that a task names, as absolute paths."""
    return {str(path.absolute()) for path in task.files()}


def _stat(path: Path) -> list[int] | None:
    """[size, time of change in ns]; of a folder, whose size says nothing, the size is 0. None if it is not there."""
    try:
        held = path.stat()
    except OSError:
        return None
    return [0 if path.is_dir() else held.st_size, held.st_mtime_ns]
