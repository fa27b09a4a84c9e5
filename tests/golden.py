"""Golden files under tests/golden/: values that a change of the code must not change.

A test makes a value of dicts, lists, texts, numbers, booleans and None, and compares it with the one kept::

    check_golden("verdicts", value, rtol=1e-6)  # tests/golden/verdicts.json

Everything is compared exactly but for floats, which may differ by ``rtol`` times the kept value or by ``atol``. Keys of
dicts have no order; a tuple is a list. To keep what the code makes today instead of comparing::

    SYNTHLANG_GOLDEN=write python -m pytest tests/test_golden_verdicts.py
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "golden"
"""The folder of the golden files."""
SHOWN = 20
"""Largest number of differing entries that a failure names."""


def writing() -> bool:
    """Return whether golden files are written instead of compared."""
    return os.environ.get("SYNTHLANG_GOLDEN") == "write"


def digest(value: Any) -> str:
    """Return the SHA-256 of the JSON of a value with sorted keys, in hexadecimal."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def check_golden(name: str, value: Any, rtol: float = 0.0, atol: float = 0.0) -> None:
    """Compare a value with tests/golden/NAME.json, or write that file if `writing`.

    Raises:
        AssertionError: If they differ; it names the first entries that do.
    """
    path = FOLDER / f"{name}.json"
    if writing():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(_json(value) + "\n", encoding="utf-8")
        return
    assert path.is_file(), f"{path} is missing: run with SYNTHLANG_GOLDEN=write to make it"
    found = list(differences(json.loads(path.read_text(encoding="utf-8")), value, rtol, atol))
    told = "\n".join(f"  {one}" for one in found[:SHOWN])
    more = f"\n  … and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
    assert not found, f"{len(found)} entries differ from {path.name}:\n{told}{more}"


def differences(kept: Any, value: Any, rtol: float = 0.0, atol: float = 0.0, at: str = "") -> Iterator[str]:
    """Return a line for each entry that differs from the golden value: its place, the golden value and the new one."""
    where = at or "(all)"
    if isinstance(kept, dict) and isinstance(value, dict):
        for key in sorted(kept.keys() | value.keys(), key=str):
            place = f"{at}[{key!r}]"
            if key not in value:
                yield f"{place}: kept {_short(kept[key])}, now gone"
            elif key not in kept:
                yield f"{place}: new, {_short(value[key])}"
            else:
                yield from differences(kept[key], value[key], rtol, atol, place)
    elif isinstance(kept, list) and isinstance(value, list | tuple):
        if len(kept) != len(value):
            yield f"{where}: kept {len(kept)} entries, now {len(value)}"
        for number, (one, other) in enumerate(zip(kept, value, strict=False)):
            yield from differences(one, other, rtol, atol, f"{at}[{number}]")
    elif not _same(kept, value, rtol, atol):
        yield f"{where}: kept {_short(kept)}, now {_short(value)}"


def _json(value: Any, margin: int = 0, room: int = 160) -> str:
    """Return JSON with sorted keys, in which parts of at most ``room`` characters are on one line."""
    line = json.dumps(value, sort_keys=True, ensure_ascii=False)
    if margin + len(line) <= room or not isinstance(value, dict | list | tuple):
        return line
    inside = " " * (margin + 1)
    if isinstance(value, dict):
        entries = [f"{json.dumps(key, ensure_ascii=False)}: {_json(value[key], margin + 1)}" for key in sorted(value)]
    else:
        entries = [_json(one, margin + 1) for one in value]
    first, last = "{}" if isinstance(value, dict) else "[]"
    return f"{first}\n{inside}" + f",\n{inside}".join(entries) + f"\n{' ' * margin}{last}"


def _same(kept: Any, value: Any, rtol: float, atol: float) -> bool:
    if isinstance(kept, float) and isinstance(value, float):
        near = math.isfinite(kept) and abs(kept - value) <= atol + rtol * abs(kept)
        return kept == value or (math.isnan(kept) and math.isnan(value)) or near
    return type(kept) is type(value) and bool(kept == value)


def _short(value: Any, width: int = 200) -> str:
    text = repr(value)
    return text if len(text) <= width else text[: width - 1] + "…"
