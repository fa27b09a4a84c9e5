"""Measurements of archived studies, which have only results.parquet and measures.parquet.

A row of results.parquet has a value for each score of a transfer. A row of measures.parquet has one value of a
pretraining, an alignment or a probe. The columns of both files are typed, but labels and mixed scores are JSON. Units,
ranges and populations are looked up by the names of the measures.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from probes.results.columns import AGAIN, read_columns
from probes.results.schema import Labels
from probes.results.scores import ALIGNMENTS, FORWARD, MAJORITY, MIXED, MOVED, PERPLEXITY
from probes.results.scores import COLUMNS as SCORE_COLUMNS
from probes.results.views import MEASURES, RESULTS
from probes.study.config import OF_RUNS
from synthlang.errors import InputError

Stages = Mapping[str, Mapping[str, str]]
"""Cell → stage → its fingerprint."""
LATER = ("task_name", "labels", "pretrain_seed", "adjust", MIXED, PERPLEXITY, *MOVED, FORWARD, MAJORITY)
"""Columns that a results.parquet of an earlier version may lack."""
WANTED = (
    *("cell", "source", "task", "task_name", "labels", "seed", "pretrain_seed", "metric", "pretrain", "transfer"),
    *("probe", "adjust", MIXED, *SCORE_COLUMNS),
)
"""Columns of results.parquet that are read."""


def read_archived(folder: Path, stages: Stages) -> pa.Table | None:
    """Return the measurements in results.parquet and measures.parquet of a folder, or None if neither file has a row.

    Args:
        folder: The folder, which may lack one of the files or both.
        stages: The fingerprints of the stages of each cell, which measures.parquet lacks.

    Raises:
        InputError: A file is not Parquet, a column is missing or cannot hold its values, or labels or mixed scores are
            not a JSON object, or a mixed score is not a number.
    """
    scores = _read(folder / "results.parquet", {name: RESULTS[name] for name in WANTED}, LATER)
    values = _read(folder / "measures.parquet", MEASURES)
    try:
        return measurements_of(scores, values, stages)
    except InputError as error:
        raise error.inside(path=folder / "results.parquet") from error


def _read(path: Path, columns: Mapping[str, pa.DataType], later: Collection[str] = ()) -> pa.Table | None:
    if not path.exists():
        return None
    table = read_columns(path, columns, later)
    for text in table["labels"].unique().to_pylist():
        try:
            parsed_labels(text)
        except InputError as error:
            row = pc.index(table["labels"], text).as_py() + 1
            raise error.inside(f"row {row}", path=path) from error
    return table


def measurements_of(
    of_results: pa.Table | None = None, of_measures: pa.Table | None = None, stages: Stages | None = None
) -> pa.Table | None:
    """Return the measurements of tables with the columns of results.parquet and of measures.parquet.

    The labels of the measurements are still JSON (see `parsed_labels`). Missing values give no row. The result is None
    if no table has a row.

    Args:
        of_results: A table with the columns WANTED of results.parquet.
        of_measures: A table with the columns of measures.parquet.
        stages: The fingerprints of the stages of each cell, for ``of_measures``.

    Raises:
        InputError: Mixed scores are not a JSON object, or one of them is not a number.
    """
    parts = [_of_results(of_results)] if of_results is not None and len(of_results) else []
    parts += [_of_measures(of_measures, stages or {})] if of_measures is not None and len(of_measures) else []
    return pa.concat_tables(parts, promote_options="default") if parts else None


def parsed_labels(text: str | None) -> Labels:
    """Return the labels in a JSON object: axis → label. An empty or missing text gives no labels.

    Raises:
        InputError: The text is not a JSON object.
    """
    labels = json_object(text, "labels")
    return Labels({str(axis): "" if label is None else str(label) for axis, label in labels.items()})


def json_object(text: str | None, column: str) -> dict[str, Any]:
    """Return the JSON object in a text of a column. An empty or missing text gives an empty object.

    Raises:
        InputError: The text is not a JSON object.
    """
    try:
        parsed = json.loads(text or "{}")
    except json.JSONDecodeError:
        parsed = None
    if not isinstance(parsed, dict):
        raise InputError(f"must be a JSON object, not {text!r}", keys=column, hint=AGAIN, code="format")
    return parsed


def _of_results(table: pa.Table) -> pa.Table:
    """Return a row for each score, in the order of the rows of results.parquet."""
    name = table["task_name"]
    task = pc.coalesce(pc.if_else(pc.equal(name, ""), None, name), table["task"])
    table = table.set_column(table.column_names.index("task"), "task", task)
    texts = {
        name: pc.fill_null(table[name].cast(pa.string()), "") for name in ("pretrain", "adjust", "transfer", "probe")
    }
    seeds = pc.fill_null(table["seed"].cast(pa.string()), "")
    finetuned = pc.binary_join_element_wise(texts["pretrain"], texts["adjust"], texts["transfer"], seeds, " ")
    pretrained = pc.binary_join_element_wise(texts["pretrain"], texts["adjust"], texts["probe"], " ")
    runs = {
        False: pc.if_else(pc.equal(texts["transfer"], ""), "", finetuned),
        True: pc.if_else(pc.equal(texts["probe"], ""), "", pretrained),
    }
    names = ("cell", "labels", "task", "metric", "source", "pretrain_seed", "seed", "pretrain", "adjust")
    common = {"row": pa.array(range(len(table)), pa.int64()), **{name: table[name] for name in names}}
    parts = []
    for measure in (name for name in SCORE_COLUMNS if name in table.column_names):
        columns = common | {"run": runs[measure in ALIGNMENTS], "value": table[measure].cast(pa.float64())}
        columns["measure"] = pa.repeat(measure, len(table))
        parts.append(pa.table(columns).filter(pc.is_valid(table[measure])))
    parts.append(_mixed(table["mixed"], pa.table(common | {"run": runs[False]})))
    whole = pa.concat_tables(parts, promote_options="default")
    return whole.take(pc.sort_indices(whole["row"]))  # stable


def _mixed(column: pa.ChunkedArray, common: pa.Table) -> pa.Table:
    """Return two rows for each mixed score: one with the name of its field, and one with the name ``mixed``."""
    found = list[tuple[int, str, float]]()
    for row, text in enumerate(column.to_pylist()):
        try:
            scores = json_object(text, MIXED)
            for field, value in scores.items():
                if isinstance(value, bool) or not isinstance(value, int | float | None):
                    reason = f"must be a number, not {value!r}"
                    raise InputError(reason, keys=(MIXED, field), hint=AGAIN, code="type")
        except InputError as error:
            raise error.inside(f"row {row + 1}") from error
        known = [(field, value) for field, value in scores.items() if value is not None]
        found += [(row, name, value) for field, value in known for name in (f"{MIXED} {field}", MIXED)]
    rows, names, values = zip(*found, strict=True) if found else ((), (), ())
    table = common.take(pa.array(rows, pa.int64())).append_column("value", pa.array(values, pa.float64()))
    return table.append_column("measure", pa.array(names, pa.string()))


def _of_measures(table: pa.Table, stages: Stages) -> pa.Table:
    """Return the rows of measures.parquet that have a value, with the stages of their cells."""
    table = table.filter(pc.is_valid(table["value"]))
    probes = [name for name in table["probe"].unique().to_pylist() if name]
    kinds = {name: name if name in OF_RUNS else f"probe {name}" for name in probes}
    runs = {
        f"{cell}\0{name}": f"{'probe' if name not in OF_RUNS else name} {keys[kind]}"
        for cell, keys in stages.items()
        for name, kind in kinds.items()
        if keys.get(kind)
    }
    found = {name: table[name] for name in table.column_names}
    found["row"] = pa.repeat(-1, len(table))
    found["run"] = _looked_up(pc.binary_join_element_wise(table["cell"], pc.fill_null(table["probe"], ""), "\0"), runs)
    for stage in ("pretrain", "adjust"):
        found[stage] = _looked_up(table["cell"], {cell: keys.get(stage, "") for cell, keys in stages.items()})
    return pa.table(found)


def _looked_up(keys: pa.ChunkedArray, values: Mapping[str, str]) -> pa.Array:
    place = pc.index_in(keys, pa.array(list(values), pa.string()))
    return pa.array(list(values.values()), pa.string()).take(place)
