"""What must be checked in local files before a data set is loaded from them."""

from __future__ import annotations

from pathlib import Path

from synthlang.errors import InputError
from synthlang.sources.text import open_bytes

LINES = 1 << 20  # bytes read at a time


def check_json_lines(folder: Path) -> None:
    """Raise InputError for a line of JSON that is ``null``: the Arrow reader does not survive one."""
    for path in sorted(folder.rglob("*.json*")):
        if path.suffix not in (".json", ".jsonl") or not path.is_file():
            continue
        with open_bytes(path) as handle:
            number, is_array = 0, None
            while line := handle.readline(LINES):
                number += 1
                start = line.lstrip()[:4]
                is_array = start[:1] == b"[" if is_array is None and start else is_array
                if start == b"null" and not is_array:
                    raise InputError("a row must be an object, not null", path, number)
