"""The index of a store: which stage a task made, and of which files of the user. A file for each ended task."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
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
    """Every entry of a store."""
    for path in sorted((store.root / FOLDER).glob("*.json")):
        entry = entry_of(store, path.stem)
        assert entry is not None, "the file is there"
        yield entry


def finish(store: Store, task: Task, fingerprint: str, seconds: float) -> None:
    """Note that ``task`` has made the stage ``fingerprint`` in so many seconds; its parents are finished.

    A stage that was found done keeps the time that it took when it ran. The files are those of the parents, too.
    """
    from probes.study.costs import operations  # which knows all kinds of tasks

    inputs, parents = _stats(task.files(), since=time.time() - seconds), {}
    for key in task.parents:
        entry = entry_of(store, key)
        assert entry is not None, "parents are finished first"
        parents[key] = entry["fingerprint"]
        inputs = entry["inputs"] | inputs
    before = entry_of(store, task.key)
    if before is not None and before["fingerprint"] == fingerprint:
        seconds = max(seconds, before["seconds"])
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

    Files are not read: their sizes and times decide. A task whose parents have made other stages since is not finished.
    """
    entry = entry_of(store, task.key)
    if entry is None or not _is_there(store, task, entry):
        return None
    for key, made in entry["parents"].items():
        parent = entry_of(store, key)
        if parent is None or parent["fingerprint"] != made:
            return None
    if any(_stat(Path(path)) != held for path, held in entry["inputs"].items()):
        return None
    name: str = entry["fingerprint"]
    return name


def made(store: Store, task: Task) -> str | None:
    """The fingerprint of the stage that ``task`` made last and that is there, whether it is up to date or not."""
    entry = entry_of(store, task.key)
    return entry["fingerprint"] if entry is not None and _is_there(store, task, entry) else None


def _is_there(store: Store, task: Task, entry: dict[str, Any]) -> bool:
    return entry["kind"] == task.kind and store.path(task.kind, entry["fingerprint"]).exists()


def _stats(files: Iterable[Path], since: float) -> dict[str, list[int]]:
    """File → [size, time of change in ns]; a file changed after ``since`` is noted so that it is looked at again."""
    found = {}
    for path in files:
        size, changed = _stat(path) or [0, CHANGED]
        recent = changed > since * 1e9 and path.is_file()
        found[str(path.absolute())] = [size, CHANGED if recent else changed]
    return found


def _stat(path: Path) -> list[int] | None:
    """[size, time of change in ns]; of a folder, whose size says nothing, the size is 0. None if it is not there."""
    try:
        held = path.stat()
    except OSError:
        return None
    return [0 if path.is_dir() else held.st_size, held.st_mtime_ns]
