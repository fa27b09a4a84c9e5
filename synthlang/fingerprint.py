"""Fingerprints: sixteen hexadecimal digits that identify the content of an artifact.

A fingerprint covers everything that affects the content: the kind of artifact, the version of the format, the settings
and the fingerprints of the artifacts that it is made from. It covers no path, no time and no number of workers.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

LENGTH = 16


def canonical_json(value: Any) -> str:
    """Serialize a value as JSON with sorted keys and no spaces.

    Raises:
        ValueError: A number is NaN or infinite.

    >>> canonical_json({"b": 1, "a": [1.0, None]})
    '{"a":[1.0,null],"b":1}'
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def fingerprint(kind: str, **parts: Any) -> str:
    """Return the fingerprint of an artifact of ``kind`` made from ``parts`` (JSON values).

    Raises:
        ValueError: A number is NaN or infinite.
    """
    text = canonical_json({"kind": kind, **parts})
    return hashlib.sha256(text.encode("utf-8")).hexdigest()[:LENGTH]


def digest_files(paths: Iterable[Path]) -> str:
    """Return the fingerprint of the names and bytes of files, read in blocks.

    Raises:
        OSError: A file cannot be read.
    """
    parts = [(path.name, sha256_file(path)) for path in sorted(paths)]
    return fingerprint("files", files=parts)


def git_blob_id(content: Path | bytes) -> str:
    """Return the id that Git gives to a file or to the bytes of a file: a SHA-1 in hexadecimal.

    Raises:
        OSError: The file cannot be read.
    """
    size = len(content) if isinstance(content, bytes) else content.stat().st_size
    start = hashlib.sha1(b"blob %d\0" % size, usedforsecurity=False)
    with io.BytesIO(content) if isinstance(content, bytes) else content.open("rb") as handle:
        return hashlib.file_digest(handle, start.copy).hexdigest()


def sha256_file(path: Path) -> str:
    """Return the SHA-256 of a file in hexadecimal, read in blocks.

    Raises:
        OSError: The file cannot be read.
    """
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()
