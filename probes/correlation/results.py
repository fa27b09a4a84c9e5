"""Tables of results read column by column: results.csv and results.parquet of studies, one or several together."""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from synthlang.errors import InputError
from synthlang.files import read_lines

Row = dict[str, str]
FILE = "file"
"""A column that every row gets, unless its file has one: which file it is from."""
CELL = "cell"
"""The column of a study's tables that says what a row is of."""


@dataclass(frozen=True)
class ResultTable:
    """Rows as text, "" where a value is missing; ``columns`` are those that all files have.

    doubles   rows left out since an earlier file has the very same (a study as .csv and as .parquet)
    alike     such rows that were kept, since no column ``cell`` says that they are the same measurement
    """

    rows: tuple[Row, ...]
    columns: tuple[str, ...]
    doubles: int = 0
    alike: int = 0

    def check(self, names: Sequence[str], where: str) -> None:
        """Raise InputError, with the columns there are, if one of ``names`` is not among them."""
        missing = [name for name in names if name not in self.columns]
        if missing:
            raise InputError(f"no column {', '.join(missing)} in {where}; there is: {', '.join(self.columns)}")


def read_tables(paths: Sequence[Path]) -> ResultTable:
    """The rows of all files, one after the other; InputError for a file that is no table or has no row."""
    if not paths:
        raise InputError("name at least one table, such as the results.parquet of a study")
    rows: list[Row] = []
    seen: set[tuple[tuple[str, str], ...]] = set()
    columns: list[str] = []
    doubles = alike = 0
    for number, path in enumerate(paths):
        found = _read(path)
        if not found:
            raise InputError("has no row", path)
        columns = list(found[0]) if not number else [name for name in columns if name in found[0]]
        keys = [tuple(sorted(row.items())) for row in found]
        fresh = [row for row, key in zip(found, keys, strict=True) if key not in seen]
        if CELL in found[0]:
            doubles += len(found) - len(fresh)
        else:  # two measurements may give the same numbers
            alike, fresh = alike + len(found) - len(fresh), found
        seen.update(keys)
        rows += [{FILE: str(path), **row} for row in fresh]
    return ResultTable(tuple(rows), (*columns, *([] if FILE in columns else [FILE])), doubles, alike)


def _read(path: Path) -> list[Row]:
    kind = path.suffix.lower()
    if kind not in (".csv", ".parquet"):
        raise InputError("is neither .csv nor .parquet", path)
    return _csv(path) if kind == ".csv" else _parquet(path)


def _csv(path: Path) -> list[Row]:
    reader = csv.DictReader(line + "\n" for _, line in read_lines(path))
    names = list(reader.fieldnames or ())
    if not names or len(set(names)) < len(names):
        raise InputError("the first line must name the columns, each once", path, 1)
    rows = []
    try:
        for row in reader:
            if None in row or None in row.values():
                raise InputError(f"a row has {len(names)} values, as the first line has", path, reader.line_num)
            rows.append(dict(row))
    except csv.Error as error:
        raise InputError(f"not CSV: {error}", path, reader.line_num) from error
    return rows


def _parquet(path: Path) -> list[Row]:
    if not path.is_file():
        raise InputError("no such file", path)
    try:
        table = pq.read_table(path)
    except (pa.ArrowInvalid, OSError) as error:
        raise InputError(f"not parquet: {str(error).splitlines()[0]}", path) from error
    names: Sequence[str] = table.column_names
    return [{name: _text(row[name]) for name in names} for row in table.to_pylist()]


def _text(value: Any) -> str:
    return "" if value is None else str(value)


def is_number(text: str) -> bool:
    """Whether it reads as a number, NaN and infinity among them; ``1_000`` is one for Python only."""
    if "_" in text:
        return False
    try:
        float(text)
    except ValueError:
        return False
    return True


def dropped(texts: Mapping[str, str]) -> str | None:
    """Why a row with these values of its columns has no pair of numbers; None if it has.

    >>> dropped({"x": "1", "y": ""})
    'y is empty'
    """
    for name, text in texts.items():
        if not text.strip():
            return f"{name} is empty"
        if not is_number(text):
            return f"{name} is no number"
        if not math.isfinite(float(text)):
            return f"{name} is NaN or infinite"
    return None
