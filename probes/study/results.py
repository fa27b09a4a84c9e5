"""results.csv and results.parquet: a row for each cell, task and seed."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from pretrain.config import PretrainConfig
from probes.statistics import Interval, mean_interval
from synthlang.files import atomic_file

COLUMNS = {
    "cell": pa.string(),
    "source": pa.string(),
    "language": pa.string(),
    "objective": pa.string(),
    "task": pa.string(),
    "metric": pa.string(),
    "seed": pa.int64(),
    "pretrain_seed": pa.int64(),
    "parent": pa.float64(),
    "sup": pa.float64(),
    "zs": pa.float64(),
    "delta": pa.float64(),
    "alignment_all": pa.float64(),
    "alignment_dictionary": pa.float64(),
    "alignment_held_out": pa.float64(),
    "pretrain": pa.string(),
    "transfer": pa.string(),
    "probe": pa.string(),
    "task_name": pa.string(),
    "labels": pa.string(),
    "adjust": pa.string(),
    "mixed": pa.string(),
}
"""Scores in percent points; ``labels`` and ``mixed`` (field in the other language → score; null: none) are JSON;
``pretrain``, ``transfer``, ``probe`` (the alignment) and ``adjust`` are fingerprints."""
SCORES = ("task", "metric", "seed", "parent", "sup", "zs", "delta", "language")
SUBSETS = {"alignment_all": "all", "alignment_dictionary": "in_dictionary", "alignment_held_out": "held_out"}
Range = tuple[float, float]

RETRIEVAL = r"(.*\.)?(cosine|csls)\.(mean|forward|backward)(\.p@\d+)?"
PERCENT: Range = (0.0, 100.0)
DIFFERENCE: Range = (-100.0, 100.0)
SHARE: Range = (0.0, 1.0)
DIGITS = 4
GROUP = 1 << 16
"""Rows that are held at once, and rows of a row group of a parquet file."""


def transfer_columns(result: Mapping[str, Any]) -> dict[str, Any]:
    """The columns of a row that the result of a transfer fills."""
    prefix, metric = "mixed ", result["metric"]
    found = {test.removeprefix(prefix): s[metric] for test, s in result["scores"].items() if test.startswith(prefix)}
    mixed = json.dumps(found, sort_keys=True) if found else None
    return {**{name: result[name] for name in SCORES}, "mixed": mixed}


def alignment_columns(result: Mapping[str, Any]) -> dict[str, Any]:
    """The columns that the quick alignment of a run fills; null where there is no such word."""
    scores = result["scores"] or {}
    means = {column: (scores.get(key) or {}).get("cosine", {}).get("mean") for column, key in SUBSETS.items()}
    return {column: None if mean is None else round(mean, DIGITS) for column, mean in means.items()}


def run_columns(config: PretrainConfig | None) -> dict[str, Any]:
    """The columns that the pretraining of a cell fills, all null for a cell on a finished model."""
    if config is None:
        return {"source": None, "objective": None, "pretrain_seed": None}
    return {"source": config.all_languages[0].source, "objective": config.objective.kind, "pretrain_seed": config.seed}


def write_results(
    folder: Path, rows: Iterable[Mapping[str, Any]], axes: Mapping[str, pa.DataType] | None = None
) -> None:
    """Write results.csv and results.parquet; ``axes`` are the columns of axes (axis_columns.py)."""
    write_table(folder, "results", {**COLUMNS, **(axes or {})}, rows)


def write_table(folder: Path, name: str, columns: Mapping[str, pa.DataType], rows: Iterable[Mapping[str, Any]]) -> None:
    """Write ``NAME.csv`` and ``NAME.parquet`` atomically and in bounded memory; the same rows give the same bytes.

    A column that a row lacks is null.
    """
    schema = pa.schema(list(columns.items()))
    with atomic_file(folder / f"{name}.csv", "w") as text, atomic_file(folder / f"{name}.parquet") as binary:
        lines = csv.DictWriter(text, list(columns), lineterminator="\n")
        lines.writeheader()
        with pq.ParquetWriter(binary, schema) as tables:
            for group in _groups(rows):
                lines.writerows(group)
                tables.write_table(pa.Table.from_pylist(group, schema=schema))


def _groups(rows: Iterable[Mapping[str, Any]]) -> Iterator[list[Mapping[str, Any]]]:
    """The rows in lists, at least an empty one."""
    rest = iter(rows)
    group = list(islice(rest, GROUP))
    yield group
    while group := list(islice(rest, GROUP)):
        yield group


def range_of(column: str) -> Range | None:
    """Of a column of results (``zs``), or a measure of a probe by its path; None where it is not known.

    >>> range_of("delta"), range_of("probe:words.scores.all.csls.mean"), range_of("words.types")
    ((-100.0, 100.0), (0.0, 100.0), None)
    """
    if column == "delta":
        return DIFFERENCE
    if re.fullmatch(RETRIEVAL, column) or re.fullmatch(r"parent|sup|zs|mixed.*|alignment[^.]*", column):
        return PERCENT
    return SHARE if re.fullmatch(r"(.*\.)?auc", column) else None


def interval_within(values: Sequence[float], column: str) -> Interval:
    """The 95 % t interval of values of a column or measure, with what it can be."""
    return replace(mean_interval(values), within=range_of(column))
