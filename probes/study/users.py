"""Which studies use a store, and which of its stages they name by a path instead of making them.

A path is known by the name of the folder in it (``pretrain-0123456789abcdef``), wherever the store is now: rather one
stage too many is kept than one too few.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from probes.study.cell import Cell
from probes.study.inputs import named_in
from probes.study.record import read_record, studies_of
from probes.study.tasks import KINDS
from synthlang.fingerprint import LENGTH
from synthlang.store import Store

STAGE = re.compile(rf"(?:{'|'.join(task.kind for task in KINDS)})-[0-9a-f]{{{LENGTH}}}")
"""The name of a stage's folder."""
SETTINGS = "config.yaml", "run.json"
"""What a run says of itself, with the model that it is made of."""


def records_of(folders: Iterable[Path]) -> dict[Path, dict[str, Any]]:
    """The records of studies that are named by their folders; InputError for a folder that is none."""
    return {folder.resolve(): read_record(folder) for folder in folders}


def root_of(folder: Path, record: Mapping[str, Any]) -> Path:
    """The store of a study."""
    root: Path = (folder / record["store"]).resolve()
    return root


def users_of(store: Store, named: Mapping[Path, dict[str, Any]]) -> dict[Path, dict[str, Any]]:
    """The studies of a store: those that its list knows where they are, and of those ``named`` the ones that use it,
    though their folder has another name by now."""
    listed = {folder.resolve(): read_record(folder) for folder in studies_of(store.root)}
    root = store.root.resolve()
    return listed | {folder: record for folder, record in named.items() if root_of(folder, record) == root}


def stages_named(record: Mapping[str, Any], store: Store) -> set[str]:
    """The folders of stages that a study names by a path, and those that the named runs were made of in turn."""
    overrides = [cell.get("overrides") for cell in record["cells"]]
    found = _in(json.dumps([record["config"], record.get("settings"), record.get("reads"), overrides]))
    new = list(found)
    while new:
        folder = store.root / new.pop()
        held = [folder / name for name in SETTINGS if (folder / name).is_file()]
        more = {name for path in held for name in _in(path.read_text("utf-8", "replace"))} - found
        found |= more
        new += more
    return found


def stages_read(cells: Iterable[Cell]) -> list[str]:
    """The folders of stages, of any store, that cells name by a path or a link, also in files that they are based on.

    For study.json: relative paths are from the folder where the study runs.
    """
    names = {cell.model for cell in cells if cell.model is not None}
    parts = [(c.start, c.pretrain, c.second, c.adjust, c.tuned, *c.tasks.values(), *c.probes.values()) for c in cells]
    for config in {id(part): part for of_cell in parts for part in of_cell if part is not None}.values():
        names |= {str(named.name) for named in named_in(config) if named.kind in ("model", "file")}
    paths = [os.path.abspath(os.path.expanduser(name)) for name in names]
    return sorted({stage for path in paths for stage in _in(path) | _in(os.path.realpath(path))})


def _in(text: str) -> set[str]:
    return set(STAGE.findall(text))
