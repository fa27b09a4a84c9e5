"""What ``done.json`` of a finished run says of its export: the size of each file, by which one that is truncated or
gone is seen without reading any weights."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from synthlang.files import TEMPORARY

EXPORT = "export"  # the folder in a run, and the key in done.json
CARD = "README.md"  # is for people, who may change it


def export_sizes(run: Path) -> dict[str, int]:
    """File below ``run/export`` → bytes, of all that a model is read from."""
    folder = run / EXPORT
    names = {path.relative_to(folder): path for path in sorted(folder.rglob("*")) if path.is_file()}
    return {
        name.as_posix(): path.stat().st_size
        for name, path in names.items()
        if name.name != CARD and not any(part.startswith(TEMPORARY) for part in name.parts)
    }


def is_as_exported(run: Path, done: Mapping[str, Any]) -> bool:
    """Whether every file of the export is there with the size that ``done``, the run's done.json, has; also if that is
    of a version that noted none."""
    sizes = done.get(EXPORT, {})
    return all(_size(run / EXPORT / name) == size for name, size in sizes.items())


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except (FileNotFoundError, NotADirectoryError):
        return None
