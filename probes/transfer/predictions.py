"""Predictions kept beside a result, so that any test can be made of them later."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from synthlang.errors import InputError
from synthlang.files import atomic_file

SCHEMA = pa.schema(
    [
        ("test", pa.string()),
        ("seed", pa.int64()),
        ("setting", pa.int64()),
        ("id", pa.string()),
        ("gold", pa.string()),
        ("prediction", pa.string()),
    ]
)


@dataclass(frozen=True)
class Predictions:
    """What one fine-tuned model predicted on a test set.

    test      ``parent``, ``zs``, ``sup`` or ``mixed …``
    setting   0, 1, …: its rank where several settings of a search are kept
    """

    test: str
    seed: int
    setting: int
    ids: tuple[str, ...]
    gold: list[Any]
    predicted: list[Any]


def write_predictions(path: Path, parts: Iterable[Predictions]) -> None:
    """A parquet file with a row for each item, atomically; values as JSON."""
    with atomic_file(path) as handle, pq.ParquetWriter(handle, SCHEMA, compression="zstd") as writer:
        for part in parts:
            n = len(part.ids)
            columns = [[part.test] * n, [part.seed] * n, [part.setting] * n, list(part.ids)]
            columns += [[json.dumps(v, ensure_ascii=False) for v in values] for values in (part.gold, part.predicted)]
            writer.write_table(pa.table(columns, schema=SCHEMA))


def read_predictions(path: Path) -> list[Predictions]:
    """What ``write_predictions`` wrote, in its order; InputError for anything else."""
    try:
        table = pq.read_table(path)
    except (pa.ArrowException, OSError) as error:
        reason = "there is no such file" if not path.exists() else str(error).splitlines()[0]
        raise InputError(f"cannot be read as predictions: {reason}", path) from error
    if table.schema.names != SCHEMA.names:
        raise InputError(f"holds no predictions: its columns are {', '.join(table.schema.names)}", path)
    if any(table[column].null_count for column in SCHEMA.names) or not table.schema.equals(SCHEMA):
        raise InputError("holds no predictions: a column has gaps or values of another type", path)
    rows = table.to_pydict()
    parts: dict[tuple[str, int, int], tuple[list[str], list[Any], list[Any]]] = {}
    for test, seed, setting, name, gold, predicted in zip(*(rows[c] for c in SCHEMA.names), strict=True):
        ids, right, said = parts.setdefault((test, seed, setting), ([], [], []))
        ids.append(name)
        try:
            right.append(json.loads(gold))
            said.append(json.loads(predicted))
        except (json.JSONDecodeError, TypeError) as error:
            raise InputError(f"holds no predictions: the values of {test} {name} are no JSON", path) from error
    return [Predictions(*key, tuple(ids), right, said) for key, (ids, right, said) in parts.items()]
