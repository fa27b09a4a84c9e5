"""Deleting stages that no cell of any study of a store has: of cells that left a grid, of texts that have changed, of
studies that are gone.

What goes is whole: a run that is not finished, and what is beside a stage while it is made (``.work``, ``.again``),
stays, and so does a stage that somebody makes or finds at this moment. So do stages that a study names by their path.
Texts that were prepared for pretraining stay: other runs share them.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from filelock import Timeout

from probes.study.finished import is_whole
from probes.study.gc import size_of
from probes.study.index import entries_by_key, entry_of, entry_path
from probes.study.record import held_for_deletion
from probes.study.tasks import KINDS
from probes.study.users import STAGE, records_of, root_of, stages_named, users_of
from synthlang.files import TEMPORARY, remove_leftovers
from synthlang.store import Store

GONE = "unused-"
"""A stage that is being deleted is called this first, so that no half of one is ever taken for a whole."""


@dataclass(frozen=True)
class Unused:
    """A stage that no cell has: its folder, what it is, its size in bytes, and the tasks that made it, as far as the
    index knows them still."""

    folder: Path
    label: str
    size: int
    keys: tuple[str, ...]


def delete_unused(folders: Iterable[Path], dry_run: bool = False) -> list[Unused]:
    """Delete the unused stages of the stores of these studies; with ``dry_run`` nothing is. Raises InputError for a
    folder that is no study."""
    named = records_of(folders)
    found: list[Unused] = []
    for root in dict.fromkeys(root_of(folder, record) for folder, record in named.items()):
        store = Store(root)
        with held_for_deletion(store, dry_run):
            uses = _Uses(store, named)
            here = list(_unused(store, uses))
            if not dry_run:
                remove_leftovers(root, GONE)
                here = [one for one in here if _delete(store, uses, one)]
            found += here
    return found


class _Uses:
    """The stages of a store that its studies have: as study.json says, by the index, or by a path that they name."""

    def __init__(self, store: Store, named: dict[Path, dict[str, Any]]) -> None:
        records = users_of(store, named)
        cells = [cell for record in records.values() for cell in record["cells"]]
        self._store = store
        self._keys = {key for cell in cells for key in cell["keys"].values()}
        self._recorded = {name for cell in cells for name in cell["stages"].values()}
        self._named = {name for record in (records | named).values() for name in stages_named(record, store)}
        self._read: dict[str, tuple[tuple[int, int], str]] = {}  # key → (its file, the stage that it names)
        self.look()

    def has(self, kind: str, fingerprint: str) -> bool:
        """As things stood at the last look."""
        name = f"{kind}-{fingerprint}"
        return fingerprint in self._recorded or name in self._named or name in self._indexed

    def look(self) -> None:
        """See what the index says now; what has not changed is not read again."""
        for key in self._keys:
            try:
                held = entry_path(self._store, key).stat()
            except FileNotFoundError:
                self._read.pop(key, None)
                continue
            mark = held.st_ino, held.st_mtime_ns
            if key not in self._read or self._read[key][0] != mark:
                entry = entry_of(self._store, key)
                assert entry is not None, "entries of tasks that a study has are not deleted"
                self._read[key] = mark, f"{entry['kind']}-{entry['fingerprint']}"
        self._indexed = {name for _, name in self._read.values()}


def _unused(store: Store, uses: _Uses) -> Iterator[Unused]:
    labels: dict[str, dict[str, str]] = {}  # stage → key → label
    for key, entry in entries_by_key(store):
        labels.setdefault(f"{entry['kind']}-{entry['fingerprint']}", {})[key] = entry["label"]
    for task in KINDS:
        for folder in sorted(store.root.glob(f"{task.kind}-*")):
            if not STAGE.fullmatch(folder.name) or not is_whole(task, folder):
                continue
            if not uses.has(task.kind, folder.name.removeprefix(f"{task.kind}-")):
                held = labels.get(folder.name, {})
                label = next(iter(held.values()), f"this {task.kind}")
                yield Unused(folder, label, size_of(folder), tuple(held))


def _delete(store: Store, uses: _Uses, one: Unused) -> bool:
    """First the folder's name goes, then what the index says of it; killed between, what is left goes the next time.

    False for a stage that somebody works on, or has found meanwhile: it stays.
    """
    kind, _, fingerprint = one.folder.name.partition("-")
    aside = one.folder.with_name(f"{TEMPORARY}{GONE}{one.folder.name}")
    try:
        with store.lock(kind, fingerprint).acquire(timeout=0):
            uses.look()
            if uses.has(kind, fingerprint) or not one.folder.is_dir():
                return False
            one.folder.rename(aside)
            for key in one.keys:
                entry = entry_of(store, key)
                if entry is not None and entry["fingerprint"] == fingerprint:
                    entry_path(store, key).unlink()
    except Timeout:
        return False
    shutil.rmtree(aside)
    return True
