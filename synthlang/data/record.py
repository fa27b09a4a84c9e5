"""``SOURCES.json`` in the folder of data, with the source and the written files of each data set.

The record also stores checksums. If the checksum of a file is not known, the checksum of the first download is trusted.
A later download from the same address must have the same checksum.
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
    """Record of a downloaded file."""

    url: str
    """Address of the file."""
    size: int
    """Size in bytes."""
    sha256: str
    """SHA-256 in hexadecimal."""
    verified: bool
    """True if the catalogue or the hub gave a checksum before the download."""


class Written(StrictModel):
    """Record of a file that ``synthlang data fetch`` wrote."""

    size: int
    """Size in bytes."""
    sha256: str
    """SHA-256 in hexadecimal."""


class SetRecord(StrictModel):
    """The record of a data set that ``synthlang data fetch`` wrote."""

    variant: Variant
    """Origin in the catalogue: ``main`` or ``lab``."""
    source: Mapping[str, Any]
    """The source, as in the catalogue."""
    revision: str | None
    """The downloaded revision, such as a commit, or null if the source has none."""
    licence: str
    """The licence, as in the catalogue."""
    received: tuple[Received, ...]
    """The downloaded files."""
    written: Mapping[str, Written]
    """The written files, by their paths below the folder of data."""
    omitted: Mapping[str, int] = {}
    """Counts of omissions of the conversion, by reason."""
    steps: tuple[StepRecord, ...] = ()
    """Records of the steps that ran."""
    date: str
    """Day of the download, in ISO 8601."""
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
        """Return a copy with the record of the data set ``name`` added or replaced."""
        return Record(format=FORMAT, sets={**self.sets, name: record})

    def known_sha256(self, url: str) -> str | None:
        """Return the SHA-256, in hexadecimal, of an earlier download from an address, or None without a download."""
        files = (file for one in self.sets.values() for file in one.received)
        return next((file.sha256 for file in files if file.url == url), None)


def read_record(root: Path) -> Record:
    """Return the records of a folder of data. A folder without ``SOURCES.json`` has no records.

    Raises:
        InputError: ``root`` is a file, or ``SOURCES.json`` cannot be read, is damaged or is of a later version of
            synthlang.
    """
    if root.exists() and not root.is_dir():
        raise InputError("is a file, not a folder", root, hint="name the folder of the data (--to)", code="type")
    path = root / SOURCES
    if not path.exists():
        return Record(format=FORMAT, sets={})
    data = read_json(path)
    found = data.get("format") if isinstance(data, dict) else None
    if isinstance(found, int) and found > FORMAT:
        hint = "install a newer version of synthlang"
        reason = f"has format {found}, but this version of synthlang reads formats up to {FORMAT}"
        raise InputError(reason, path, hint=hint, code="unsupported")
    if not isinstance(data, dict):
        hint = "delete this file; the data sets then count as filled by hand"
        raise InputError("is not a record of sources", path, hint=hint, code="damaged")
    return parse(Record, data, path)


def write_record(root: Path, record: Record) -> None:
    """Write the records of a folder of data to ``SOURCES.json``.

    Raises:
        DiskError: The file cannot be written.
    """
    write_json(root / SOURCES, record.model_dump(mode="json"))


def written_file(path: Path) -> Written | None:
    """Return the size and the checksum of a file, or None if there is no such file.

    Raises:
        OSError: The file cannot be read.
    """
    return Written(size=path.stat().st_size, sha256=sha256_file(path)) if path.is_file() else None
