"""``SOURCES.json`` in the folder of data: where each data set came from, and what was written.

The record also serves as the memory of checksums. Where no checksum of a file is known, the first one that came is
trusted, and a later download of the same address must have the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import Field

from synthlang.config import StrictModel, parse
from synthlang.data.entries import Variant
from synthlang.data.steps.base import StepRecord
from synthlang.errors import InputError
from synthlang.files import read_json, write_json
from synthlang.fingerprint import sha256_file

SOURCES = "SOURCES.json"
FORMAT = 1


class Received(StrictModel):
    """A file that came."""

    url: str
    """Its address."""
    size: int
    """Its size in bytes."""
    sha256: str
    """Its SHA-256."""
    verified: bool
    """True if a checksum was known before: in the catalogue, or from the hub."""


class Written(StrictModel):
    """A file that was written."""

    size: int
    """Its size in bytes."""
    sha256: str
    """Its SHA-256."""


class SetRecord(StrictModel):
    """The record of a data set."""

    variant: Variant
    """The source of the catalogue: main, or lab."""
    source: Mapping[str, Any]
    """The source, as in the catalogue."""
    revision: str | None
    """The revision that came."""
    licence: str
    """The licence."""
    received: tuple[Received, ...]
    """The files that came."""
    written: Mapping[str, Written]
    """The files that were written, below the folder of data."""
    omitted: Mapping[str, int] = {}
    """Counts of omissions of the conversion, by reason."""
    steps: tuple[StepRecord, ...] = ()
    """The steps that ran."""
    date: str
    """Day of the download."""
    synthlang: str
    """Version of synthlang."""
    converter: int
    """Version of the conversions."""


class Record(StrictModel):
    """The records of all data sets of a folder."""

    format: int = Field(ge=1)
    """Version of this file."""
    sets: Mapping[str, SetRecord]
    """The record of each data set by its name."""

    def with_set(self, name: str, record: SetRecord) -> Record:
        """Return the records with one more, or with another one of this name."""
        return Record(format=FORMAT, sets={**self.sets, name: record})

    def known_sha256(self, url: str) -> str | None:
        """Return the SHA-256 of the file that came from an address earlier, or None."""
        files = (file for one in self.sets.values() for file in one.received)
        return next((file.sha256 for file in files if file.url == url), None)


def read_record(root: Path) -> Record:
    """Return the records of a folder of data, which may be none.

    Raises:
        InputError: The file is damaged, or a later version of synthlang wrote it.
    """
    path = root / SOURCES
    if not path.exists():
        return Record(format=FORMAT, sets={})
    data = read_json(path)
    found = data.get("format") if isinstance(data, dict) else None
    if isinstance(found, int) and found > FORMAT:
        hint = "install a newer version of synthlang"
        raise InputError(f"has the format {found}, which is newer than {FORMAT}", path, hint=hint, code="unsupported")
    if not isinstance(data, dict):
        raise InputError("is no record of sources", path, hint="delete it", code="damaged")
    return parse(Record, data, path)


def write_record(root: Path, record: Record) -> None:
    """Write the records of a folder of data."""
    write_json(root / SOURCES, record.model_dump(mode="json"))


def written_files(paths: Mapping[str, Path]) -> dict[str, Written]:
    """Return the size and the checksum of files by their names."""
    return {name: Written(size=path.stat().st_size, sha256=sha256_file(path)) for name, path in paths.items()}


def damaged(root: Path, record: SetRecord) -> list[str]:
    """Return the files of a record that are missing or have another content."""
    found = []
    for name, known in record.written.items():
        path = root / name
        if not path.is_file() or path.stat().st_size != known.size or sha256_file(path) != known.sha256:
            found.append(name)
    return found
