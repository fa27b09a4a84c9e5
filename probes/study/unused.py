"""Deleting stages that no cell of any study of a store has: of cells that left a grid, or of studies that are gone.

Only what the index of the store knows as finished is looked at, so nothing that is being made is touched. Texts that
were prepared for pretraining stay: other runs share them.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from probes.study.gc import size_of
from probes.study.index import entries_by_key, entry_path
from probes.study.record import held_for_deletion, read_record, studies_of
from synthlang.files import TEMPORARY, remove_leftovers
from synthlang.store import Store

GONE = "unused-"
"""A stage that is being deleted is called this first, so that no half of one is ever taken for a whole."""


@dataclass(frozen=True)
class Unused:
    """A stage that no cell has: its folder, what it is, its size in bytes, and the tasks that made it."""

    folder: Path
    label: str
    size: int
    keys: tuple[str, ...]


def delete_unused(folders: Iterable[Path], dry_run: bool = False) -> list[Unused]:
    """Delete the unused stages of the stores of these studies; with ``dry_run`` nothing is. Raises InputError for a
    folder that is no study."""
    roots = dict.fromkeys((folder / read_record(folder)["store"]).resolve() for folder in folders)
    found: list[Unused] = []
    for root in roots:
        store = Store(root)
        with held_for_deletion(store, dry_run):
            here = list(_unused(store))
            if not dry_run:
                remove_leftovers(root, GONE)
                for one in here:
                    _delete(store, one)
            found += here
    return found


def _unused(store: Store) -> Iterator[Unused]:
    keys, stages = set[str](), set[str]()
    for folder in studies_of(store.root):
        for cell in read_record(folder)["cells"]:
            keys |= set(cell["keys"].values())
            stages |= {name for name in cell["stages"].values() if name}
    made: dict[Path, dict[str, str]] = {}  # folder → key → label
    for key, entry in entries_by_key(store):
        path = store.path(entry["kind"], entry["fingerprint"])
        if path.is_dir() and entry["fingerprint"] not in stages:
            made.setdefault(path, {})[key] = entry["label"]
    for path, labels in made.items():
        if keys.isdisjoint(labels):
            yield Unused(path, next(iter(labels.values())), size_of(path), tuple(labels))


def _delete(store: Store, one: Unused) -> None:
    """First the folder's name goes, then what the index says of it; killed between, what is left goes the next time."""
    aside = one.folder.with_name(f"{TEMPORARY}{GONE}{one.folder.name}")
    one.folder.rename(aside)
    for key in one.keys:
        entry_path(store, key).unlink()
    shutil.rmtree(aside)
