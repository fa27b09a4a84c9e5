"""The record of a study on disk: study.json and the logs in its folder, and the list of studies in its store.

OUT/study.json        settings, the graph of the stages, stages named by a path, and the state of each cell
OUT/logs/CELL.log     the traceback of a failed cell
STORE/studies.json    the folders of all studies that use the store, so that a collection keeps the stages they need
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from probes.study.config import StudyConfig
from synthlang.errors import InputError
from synthlang.files import LOCK, SAFE_NAME, TEMPORARY, atomic_file, read_json, write_json, writing
from synthlang.fingerprint import fingerprint
from synthlang.store import Store

FORMAT = 2
OTHER_FOLDER, OTHER_STORE = "name another folder with --out", "name another folder with --store"
STORE_FORMAT = 3
STUDY, STUDIES, STAGES, LOGS = "study.json", "studies.json", "stages", "logs"
ARCHIVED = "kept"
"""Key of the record of an archived study. It keeps its former name, so that earlier archives can be read."""
KEYS = {"name", "fingerprint", "cells", "seconds", "config", "store"}
LIST = "studies", "list"
"""Name of the lock on the list of the studies of a store."""


@dataclass
class CellRecord:
    """The state of a cell.

    Attributes:
        name: Name of the cell.
        labels: Axis → label.
        overrides: The changes to the settings of the study: dotted key → value.
        keys: Name of a stage in the cell (``pretrain``, ``transfer pos seed 0`` …) → key.
        stages: The entries of ``keys`` whose stages are finished.
        error: Error of the first stage that failed, in one line, or None.
        log: The traceback of this error, or "".
    """

    name: str
    labels: Mapping[str, str]
    overrides: Mapping[str, Any]
    keys: Mapping[str, str]
    stages: dict[str, str] = field(default_factory=dict)
    error: str | None = None
    log: str = ""

    @property
    def status(self) -> str:
        """The state of the cell: ``done``, ``failed`` or ``pending``."""
        return "done" if len(self.stages) == len(self.keys) else "failed" if self.error else "pending"

    def to_json(self, store: str) -> dict[str, Any]:
        """Return the entry of the cell in study.json. ``store`` is the store relative to the folder of the study."""
        made = next((kind for kind in ("adjust", "pretrain") if kind in self.stages), None)
        run = None if made is None else f"{store}/{made}-{self.stages[made]}"
        return {
            "name": self.name,
            "labels": dict(self.labels),
            "overrides": dict(self.overrides),
            "status": self.status,
            "error": self.error if self.status == "failed" else None,
            "log": self.log if self.status == "failed" else "",
            "stages": self.stages,
            "keys": dict(self.keys),
            "run": run,
        }


def log_name(cell: str) -> str:
    """Return the file name of the log of a cell. A cell name that is no safe file name is shortened and hashed."""
    if SAFE_NAME.fullmatch(cell):
        return f"{cell}.log"
    readable = re.sub("[^A-Za-z0-9_.+=,-]+", "-", cell)[:80].strip("-")
    return f"{readable}-{fingerprint('cell', name=cell)[:8]}.log"


def relative(path: Path, start: Path) -> str:
    """Return a path relative to a folder, so that both can be moved together."""
    return os.path.relpath(path.resolve(), start.resolve())


def read_record(folder: Path, otherwise: str = "name another folder") -> dict[str, Any]:
    """Read the study.json of a folder. ``otherwise`` is the remedy in errors if the file cannot be restored.

    Raises:
        InputError: The file is missing or cannot be read, is not the record of a study, has another format, or belongs
            to an archived study.
    """
    path = folder / STUDY
    record = read_json(path)
    if isinstance(record, dict) and "fingerprint" in record:
        check_format(record, path)
        if ARCHIVED in record:
            reason = "is the record of an archived study, which has no store and no runs"
            hint = "name the folder in which the study was run"
            raise InputError(reason, path, hint=hint, code="unsupported")
    if not isinstance(record, dict) or not record.keys() >= KEYS:
        hint = f"restore the file, or {otherwise}"
        raise InputError("is not the record of a study", path, hint=hint, code="format")
    return record


def check_format(record: Mapping[str, Any], path: Path) -> None:
    """Raise InputError if the record of a study in the file ``path`` has another format than FORMAT."""
    if record.get("format") != FORMAT:
        found = f"format {json.dumps(record['format'])}" if "format" in record else "no key 'format'"
        reason = f"has {found}, but this version of synthlang reads format {FORMAT}"
        hint = "use the version of synthlang that wrote this file, or run the study again in another folder"
        raise InputError(reason, path, hint=hint, code="format")


def check_folder(folder: Path, study: StudyConfig) -> dict[str, Any] | None:
    """Return the record of a study in its folder, or None for a new folder. Nothing is written.

    A study is identified by its name, so it continues with changed settings.

    Raises:
        InputError: The folder is a file, holds another study or other files, or has a record that cannot be read or has
            another format.
    """
    if (folder / STUDY).exists():
        record = read_record(folder)
        if record["name"] != study.name:
            reason = f"holds another study, {record['name']!r}"
            raise InputError(reason, folder, hint=OTHER_FOLDER, code="exists")
        return record
    _check_ours(folder, (STAGES,), "is not empty and holds no study", OTHER_FOLDER)
    if (folder / STAGES).is_dir() and not (folder / STAGES / STUDIES).exists():
        _check_ours(folder / STAGES, (), "is not empty and holds no store", OTHER_FOLDER)
    return None


def _check_ours(folder: Path, ours: Collection[str], problem: str, hint: str) -> None:
    """Raise InputError if a path is a file, or a folder with files besides ``ours`` and leftovers of killed studies."""
    if not folder.exists():
        return
    if not folder.is_dir():
        raise InputError("is a file, not a folder", folder, hint=hint, code="exists")
    if any(
        path.name not in ours and not path.name.startswith((TEMPORARY, LOCK, Store.LOCKS)) for path in folder.iterdir()
    ):
        raise InputError(problem, folder, hint=hint, code="exists")


def check_store(root: Path) -> None:
    """Raise InputError if a path is a file, or a folder with files that is not a store of this version."""
    if (root / STUDIES).exists():
        _studies(root)
    else:
        _check_ours(root, (), "is not empty and holds no store", OTHER_STORE)


def studies_of(root: Path) -> list[Path]:
    """Return the folders of the studies that use a store and still exist.

    Raises:
        InputError: The list of studies in the store cannot be read, or has another format.
    """
    folders = [Path(os.path.normpath(root / name)) for name in _studies(root)]
    return [folder for folder in folders if (folder / STUDY).exists()]


def _studies(root: Path) -> list[str]:
    data = read_json(root / STUDIES)
    if not isinstance(data, dict) or not isinstance(data.get("studies"), list):
        hint = "restore the file"
        raise InputError("is not the list of the studies of a store", root / STUDIES, hint=hint, code="format")
    if data.get("format") != STORE_FORMAT:
        reason = f"is a store of format {data.get('format')}, but this version of synthlang reads format {STORE_FORMAT}"
        hint = "use the version of synthlang that made the store, or run the study with another --store"
        raise InputError(reason, root, hint=hint, code="format")
    return [str(name) for name in data["studies"]]


@contextmanager
def registered(store: Store, folder: Path) -> Iterator[None]:
    """Add a study to the list of its store, and keep the list locked inside the block.

    No weights of the store are deleted inside the block. A study that writes its study.json in the block, and looks for
    finished stages afterwards, therefore does not lose weights that it needs.

    Raises:
        InputError: The list of studies in the store cannot be read, or has another format.
        DiskError: The list cannot be written.
    """
    with writing(store.root), store.lock(*LIST):
        path = store.root / STUDIES
        names = _studies(store.root) if path.exists() else []
        name = relative(folder, store.root)
        if name not in names or not path.exists():
            write_json(path, {"format": STORE_FORMAT, "studies": sorted({*names, name})})
        yield


def write_logs(folder: Path, cells: list[CellRecord], gone: Iterable[str] = ()) -> None:
    """Write ``logs/`` again, with one file for each failed cell. Files that are not logs of cells are kept.

    Args:
        folder: The folder of the study.
        cells: The cells of the study.
        gone: Names of former cells, whose logs are deleted.

    Raises:
        DiskError: A log cannot be written.
    """
    logs = folder / LOGS
    wanted = {
        log_name(cell.name): f"{cell.error}\n\n{cell.log}".rstrip() + "\n" for cell in cells if cell.status == "failed"
    }
    for name in ({log_name(name) for name in gone} | {log_name(cell.name) for cell in cells}) - wanted.keys():
        (logs / name).unlink(missing_ok=True)
    if not wanted and logs.is_dir() and not any(logs.iterdir()):
        logs.rmdir()
    for name, text in wanted.items():
        if not (logs / name).exists() or (logs / name).read_text(encoding="utf-8") != text:
            with atomic_file(logs / name, "w") as handle:
                handle.write(text)
