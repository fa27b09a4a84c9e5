"""What of a store is up to date: finished tasks, whose stages and files are as they were left."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pretrain.folder import is_as_exported
from probes.study.at_work import TaskStore
from probes.study.index import entry_of, places_of, stat_of
from probes.study.kinds import DONE
from synthlang.errors import InputError
from synthlang.files import read_json
from synthlang.store import Store

if TYPE_CHECKING:
    from probes.study.task import Task

DROPPED = "dropped.json"  # of a run: what `synthlang gc` left of it
END = b"\n}\n"  # of a JSON object that is whole and holds something, as write_json writes it


def finished(store: Store, task: Task) -> str | None:
    """The fingerprint of the stage that ``task`` made; None if it has not, or if a file it read has changed since.

    Files are not read: which they are, their sizes and times decide. The same relative path is another file in another
    working folder. A task whose parents have made other stages since is not finished.
    """
    return _finished(store, task, {})


def all_finished(store: Store, tasks: Mapping[str, Task]) -> dict[str, str]:
    """Key → stage of those of ``tasks`` (parents first) that are ``finished``, as are the tasks that they are made of:
    what was made from a stage that has to be made again is out of date with it. Each entry is read once."""
    read: dict[str, dict[str, Any] | None] = {}
    done: dict[str, str] = {}
    for key, task in tasks.items():
        if all(parent in done for parent in task.parents) and (name := _finished(store, task, read)) is not None:
            done[key] = name
    return done


def _finished(store: Store, task: Task, read: dict[str, dict[str, Any] | None]) -> str | None:
    """``finished``; entries are looked for among those that were ``read``."""

    def known(key: str) -> dict[str, Any] | None:
        if key not in read:
            read[key] = entry_of(store, key)
        return read[key]

    entry = known(task.key)
    if entry is None or not _is_there(store, task, entry):
        return None
    places = places_of(task)
    for key, made in entry["parents"].items():
        parent = known(key)
        if parent is None or parent["fingerprint"] != made:
            return None
        places |= parent["inputs"].keys()
    if places != entry["inputs"].keys():
        return None
    if any(stat_of(Path(path)) != held for path, held in entry["inputs"].items()):
        return None
    name: str = entry["fingerprint"]
    return name


def made(store: Store, task: Task) -> str | None:
    """The fingerprint of the stage that ``task`` made last of the files that it names here, up to date or not.

    For a task at work that is the stage that stood in the index when the work began. None if it made none, or if the
    stage is not there.
    """
    entry = store.entries.get(task.key) if isinstance(store, TaskStore) else None
    entry = entry or entry_of(store, task.key)
    if entry is None or not _is_there(store, task, entry) or not places_of(task) <= entry["inputs"].keys():
        return None
    return str(entry["fingerprint"])


def is_whole(task: Task | type[Task], folder: Path) -> bool:
    """Whether a stage of a task, or of its kind, is there with its files, of which the one that is written last is not
    truncated (by its end)."""
    paths = [folder / name for name in task.content]
    if not all(path.is_file() for path in paths):
        return False
    with paths[0].open("rb") as handle:
        handle.seek(max(0, paths[0].stat().st_size - len(END)))
        return handle.read() == END


def is_intact(task: Task | type[Task], folder: Path) -> bool:
    """Whether a stage is whole and its export, if it has one, as it was written: by the sizes of the files.

    Not of one whose weights were deleted for good, and of those that an earlier version made, which noted no sizes.
    """
    if not is_whole(task, folder):
        return False
    if task.content[0] != DONE:
        return True
    try:
        return is_as_exported(folder, read_json(folder / DONE)) or kept_of(folder) == "results"
    except InputError:  # damaged, though it ends as it should
        return False


def kept_of(run: Path) -> str | None:
    """What is left of a run by the policy that was applied; None if nothing was deleted."""
    return str(read_json(run / DROPPED)["keep"]) if (run / DROPPED).exists() else None


def _is_there(store: Store, task: Task, entry: dict[str, Any]) -> bool:
    return entry["kind"] == task.kind and is_intact(task, store.path(task.kind, entry["fingerprint"]))
