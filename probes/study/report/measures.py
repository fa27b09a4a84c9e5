"""What probes measured over layers and steps, what runs logged, and the labels of cells, read for the report."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from probes.study.measures import COLUMNS
from synthlang.errors import InputError
from synthlang.files import read_lines

WITHOUT_CONTEXT = {
    "maps.embeddings.words.csls.mean.p@1": "embeddings, rotated",
    "maps.embeddings.static.words.csls.mean.p@1": "static vectors, rotated",
    "maps.embeddings.before.csls.mean.p@1": "embeddings, no map",
}
"""Measures that are drawn without a layer or a step (words_alone.py), and what they are called."""


@dataclass(frozen=True)
class Measure:
    """A number that a probe found in a cell, at a layer or at a step of the pretraining or both, or at neither."""

    cell: str
    labels: Mapping[str, str]
    probe: str
    measure: str
    """Its dotted path in the results of the probe."""
    layer: int | None
    step: int | None
    value: float
    run: str = ""
    """The fingerprint of the pretraining that the cell's model rests on; "" of a given model."""


def over_models(found: Iterable[tuple[str, float]]) -> list[float]:
    """What an interval of (run, value) is over: the mean of each pretraining, or of one the value of each cell (such
    differ in the seed of what was done to it since)."""
    held: dict[str, list[float]] = {}
    for run, value in found:
        held.setdefault(run, []).append(value)
    means = [sum(values) / len(values) for values in held.values()]
    return means if len(held) > 1 else next(iter(held.values()), [])


def read_columns(path: Path, columns: Mapping[str, pa.DataType], later: Collection[str] = ()) -> pa.Table:
    """These columns of a parquet file, null where one of ``later`` is missing; InputError for what is none of ours."""
    try:
        with pq.ParquetFile(path) as file:
            names = file.schema_arrow.names
            if missing := sorted(set(columns) - set(names) - set(later)):
                raise InputError(f"columns missing: {', '.join(missing)}; run the study again", path)
            table = file.read(columns=[name for name in columns if name in names])
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"not parquet: {str(error).splitlines()[0]}", path) from error
    arrays = []
    for name, kind in columns.items():
        try:
            arrays.append(table[name].cast(kind) if name in names else pa.nulls(len(table), kind))
        except pa.ArrowException as error:
            raise InputError(f"column {name} must be of {kind}: {str(error).splitlines()[0]}", path) from error
    return pa.table(arrays, list(columns))


def read_measures(path: Path) -> pa.Table:
    """The rows of a measures.parquet; InputError for a missing column or a wrong number."""
    return read_columns(path, COLUMNS)


def drawn_measures(table: pa.Table, path: Path, runs: Mapping[str, str]) -> tuple[Measure, ...]:
    """The rows of a table read from ``path`` that have a layer or a step, or are of WITHOUT_CONTEXT; ``runs``: cell →
    the fingerprint of its pretraining.

    InputError for labels that are no JSON.
    """
    alone = pc.is_in(table["measure"], pa.array(list(WITHOUT_CONTEXT), pa.string()))
    placed = table.filter(pc.or_(alone, pc.or_(pc.is_valid(table["layer"]), pc.is_valid(table["step"]))))
    columns = [placed[name].to_pylist() for name in ("cell", "labels", "probe", "measure", "layer", "step", "value")]
    rows = zip(*columns, strict=True)
    try:
        return tuple(
            Measure(cell, labels_of(labels), probe, measure, layer, step, value, runs.get(cell, ""))
            for cell, labels, probe, measure, layer, step, value in rows
        )
    except ValueError as error:
        raise InputError(str(error), path) from error


@lru_cache(maxsize=4096)
def _parsed(text: str) -> Mapping[str, str]:
    try:
        held = json.loads(text)
    except json.JSONDecodeError:
        held = None
    if not isinstance(held, dict):
        raise ValueError(f"labels must be a JSON object, not {text!r}")
    return {str(axis): text_of(label) for axis, label in held.items()}


def labels_of(value: Any) -> Mapping[str, str]:
    """Axis → label, from a mapping or its JSON text; nothing is {}. ValueError for what is neither."""
    if isinstance(value, Mapping):
        return {str(axis): text_of(label) for axis, label in value.items()}
    return _parsed(value) if value else {}


def text_of(value: Any) -> str:
    """Text of a value, "" for none."""
    return "" if value is None else str(value)


def read_metrics(path: Path) -> tuple[list[dict[str, float]], int]:
    """Finite numbers of each line of a metrics.jsonl, and the number of lines that could not be read.

    A run that was killed leaves half a last line: that is no reason to lose the report.
    """
    records, broken = [], 0
    for _, line in read_lines(path):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except json.JSONDecodeError:
            record = None
        if isinstance(record, dict) and _finite(record.get("step")):
            records.append({str(k): float(v) for k, v in record.items() if _finite(v)})
        else:
            broken += 1
    return records, broken


def _finite(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
