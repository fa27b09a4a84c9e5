"""What is known of a study on disk: study.json and the logs in its folder, the list of studies in its store.

OUT/study.json        settings, stages that they name by a path, and for each cell its labels, its stages, how far it is
                      and why it failed
OUT/logs/CELL.log     the traceback of a cell that failed
STORE/studies.json    the folders of all studies that use the store, so that none deletes what another needs
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from probes.study.config import StudyConfig
from probes.study.stage_folders import stages_in
from synthlang.errors import InputError
from synthlang.files import LOCK, SAFE_NAME, TEMPORARY, atomic_file, read_json, write_json
from synthlang.fingerprint import fingerprint
from synthlang.store import Store

FORMAT = 2
STORE_FORMAT = 3  # stages are named by their keys
STUDY, STUDIES, STAGES, LOGS = "study.json", "studies.json", "stages", "logs"
KEYS = {"name", "fingerprint", "cells", "seconds", "config", "store"}
LIST = "studies", "list"
"""What is locked while the list of a store's studies is changed, or has to stay as it is."""


@dataclass
class CellRecord:
    """How far a cell has come.

    keys     what a stage is called (``pretrain``, ``transfer pos seed 0`` …) → its key
    stages   the same, of those that are done
    error    one line, of the first stage that failed; ``log`` is its traceback
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
        return "done" if len(self.stages) == len(self.keys) else "failed" if self.error else "pending"

    @property
    def log_name(self) -> str:
        return log_name(self.name)

    def to_json(self, store: str) -> dict[str, Any]:
        """As study.json has it; ``store`` is the store's folder, and ``run`` the model's, from that of the study."""
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
    """The name of the log file of a cell: that of the cell where a file may have it."""
    if SAFE_NAME.fullmatch(cell):
        return f"{cell}.log"
    readable = re.sub("[^A-Za-z0-9_.+=,-]+", "-", cell)[:80].strip("-")
    return f"{readable}-{fingerprint('cell', name=cell)[:8]}.log"


def relative(path: Path, start: Path) -> str:
    """A path from a folder, so that both may be moved together."""
    return os.path.relpath(path.resolve(), start.resolve())


def read_record(folder: Path) -> dict[str, Any]:
    """study.json of a folder; InputError if it is none, or of another format."""
    path = folder / STUDY
    record = read_json(path)
    if isinstance(record, dict) and "fingerprint" in record and record.get("format", 1) != FORMAT:
        raise InputError(
            f"is a study of format {record.get('format', 1)}, this version writes {FORMAT}; choose another folder", path
        )
    if not isinstance(record, dict) or not record.keys() >= KEYS:
        raise InputError("is no record of a study; choose another folder", path)
    return record


def parents_in(record: Mapping[str, Any]) -> Mapping[str, Sequence[str]]:
    """Return the stage graph of a study: the folder of each stage and of the stages it is made of.

    A record of an earlier version has none.
    """
    return record.get("parents") or {}


def named_stages(record: Mapping[str, Any]) -> set[str]:
    """Return the folders of the stages that a study names by a path."""
    named = set(record.get("reads") or ())
    if "parents" not in record:
        # Earlier versions recorded only some of the names. The paths in the settings are the rest.
        overrides = [cell.get("overrides") for cell in record["cells"]]
        named |= stages_in([record["config"], record.get("settings"), overrides])
    return named


def check_folder(folder: Path, study: StudyConfig) -> dict[str, Any] | None:
    """The record of this study in its folder, None if there is none yet; writes nothing.

    A study is known by its name: with other settings it goes on. InputError if the folder holds anything else.
    """
    if (folder / STUDY).exists():
        record = read_record(folder)
        if record["name"] != study.name:
            raise InputError(
                f"holds another study ({record['name']}, {record['fingerprint']}); choose another folder", folder
            )
        return record
    _check_ours(folder, (STAGES,), "is not empty and holds no study; choose another folder")
    if (folder / STAGES).is_dir() and not (folder / STAGES / STUDIES).exists():
        _check_ours(folder / STAGES, (), "is not empty and holds no store; choose another folder")
    return None


def _check_ours(folder: Path, ours: Collection[str], problem: str) -> None:
    """InputError if a folder has anything but what a study that was killed before it wrote its record may have left."""
    if not folder.exists():
        return
    if not folder.is_dir():
        raise InputError("is a file; name another folder", folder)
    if any(
        path.name not in ours and not path.name.startswith((TEMPORARY, LOCK, Store.LOCKS)) for path in folder.iterdir()
    ):
        raise InputError(problem, folder)


def check_can_write(folder: Path, what: str, otherwise: str) -> None:
    """InputError, saying what to do ``otherwise``, if a folder cannot be made or be written into; writes nothing."""
    there = next(path for path in (folder.absolute(), *folder.absolute().parents) if path.exists())
    if not there.is_dir():
        raise InputError(f"{what} cannot be here: {there} is a file; {otherwise}", folder)
    if not os.access(there, os.W_OK | os.X_OK):
        raise InputError(f"{what} cannot be written (no permission, or a read-only file system); {otherwise}", folder)


def check_store(root: Path) -> None:
    """InputError if the folder is there and is no store of this version; writes nothing."""
    if (root / STUDIES).exists():
        _studies(root)
    elif any(root.glob("pretrain-*")):
        raise InputError(f"is a store of another format, this version writes {STORE_FORMAT}; name another folder", root)
    else:
        _check_ours(root, (), "is not empty and holds no store; name another folder")


def studies_of(root: Path) -> list[Path]:
    """The folders of the studies that use a store, as far as they are still there."""
    folders = [Path(os.path.normpath(root / name)) for name in _studies(root)]
    return [folder for folder in folders if (folder / STUDY).exists()]


def _studies(root: Path) -> list[str]:
    data = read_json(root / STUDIES)
    if not isinstance(data, dict) or data.get("format") != STORE_FORMAT or not isinstance(data.get("studies"), list):
        number = data.get("format") if isinstance(data, dict) else None
        raise InputError(
            f"is a store of another format ({number}), this version writes {STORE_FORMAT}; name another folder", root
        )
    return [str(name) for name in data["studies"]]


@contextmanager
def registered(store: Store, folder: Path) -> Iterator[None]:
    """Enter a study in the list of its store; inside the block no weights are deleted from it.

    Who writes study.json in the block, and looks what is finished after, misses no weights that were there.
    """
    with store.lock(*LIST):
        path = store.root / STUDIES
        names = _studies(store.root) if path.exists() else []
        name = relative(folder, store.root)
        if name not in names or not path.exists():
            write_json(path, {"format": STORE_FORMAT, "studies": sorted({*names, name})})
        yield


def write_logs(folder: Path, cells: list[CellRecord], gone: Iterable[str] = ()) -> None:
    """Write ``logs/`` anew: one file for each cell that failed; ``gone`` are cells that the study had before.

    Files of other names are the user's.
    """
    logs = folder / LOGS
    wanted = {cell.log_name: f"{cell.error}\n\n{cell.log}".rstrip() + "\n" for cell in cells if cell.status == "failed"}
    for name in ({log_name(name) for name in gone} | {cell.log_name for cell in cells}) - wanted.keys():
        (logs / name).unlink(missing_ok=True)
    if not wanted and logs.is_dir() and not any(logs.iterdir()):
        logs.rmdir()
    for name, text in wanted.items():
        if not (logs / name).exists() or (logs / name).read_text(encoding="utf-8") != text:
            with atomic_file(logs / name, "w") as handle:
                handle.write(text)
