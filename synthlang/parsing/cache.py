"""Parses on disk, named by what was parsed and by whom: never stale, shared by every source.

A file holds one chunk of sentences as gzipped JSON: the checksum inside tells a damaged file, which
counts as missing. The name is the fingerprint of the engine, the mode and the words.
"""

from __future__ import annotations

import gzip
import json
import os
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from synthlang.errors import InputError
from synthlang.files import atomic_file, user_path
from synthlang.fingerprint import canonical_json, fingerprint

FORMAT = 1


def default_cache() -> Path:
    """$SYNTHLANG_CACHE, else $XDG_CACHE_HOME/synthlang, else ~/.cache/synthlang; in it ``parses``."""
    if os.environ.get("SYNTHLANG_CACHE"):
        root = user_path(os.environ["SYNTHLANG_CACHE"])
    else:
        root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "synthlang"
    return root / "parses"


class ParseCache:
    """Chunks under ``root/ENGINE/XX/KEY.json.gz``; any number of processes may read and write."""

    def __init__(self, root: Path) -> None:
        nearest = next((place for place in (root, *root.parents) if place.exists()), root)
        if nearest.exists() and not nearest.is_dir():
            raise InputError("the parse cache must be a folder, this is a file; name another with --cache", nearest)
        self.root = root

    def path(self, engine: str, mode: str, sentences: Sequence[Any]) -> Path:
        """Where the parse of these sentences (words, or a line of text each) is or will be."""
        key = fingerprint("parse", format=FORMAT, engine=engine, mode=mode, sentences=sentences)
        return self.root / engine / key[:2] / f"{key}.json.gz"

    @staticmethod
    def read(path: Path) -> list[Any] | None:
        """What was written there; None if there is nothing, or nothing whole."""
        try:
            data = json.loads(gzip.decompress(path.read_bytes()))
        except FileNotFoundError:
            return None
        except (gzip.BadGzipFile, EOFError, zlib.error, UnicodeDecodeError, json.JSONDecodeError):
            return None  # damaged: it is parsed anew and written over
        except OSError as error:
            raise InputError(f"the parse cache cannot be read: {error.strerror or error}", path) from error
        whole = isinstance(data, dict) and data.get("key") == path.name.partition(".")[0]
        return list(data["parses"]) if whole else None

    @staticmethod
    def write(path: Path, parses: Sequence[Any]) -> None:
        """Write atomically; the bytes are a function of the parses."""
        text = canonical_json({"key": path.name.partition(".")[0], "parses": list(parses)})
        with atomic_file(path) as handle:
            handle.write(gzip.compress(text.encode("utf-8"), compresslevel=6, mtime=0))
