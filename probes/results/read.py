"""Reader of the table of measurements, from which reports and claims are computed.

The table is a pandas frame with the columns of `COLUMNS` and one measurement in each row. A missing value has no row.
NaN is a value, because a model that broke down must be reported.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from probes.results.archived import Stages, measurements_of, parsed_labels, read_archived
from probes.results.columns import read_columns
from probes.results.measures import OF_PARENT, measure_of
from probes.results.schema import COLUMNS as WRITTEN
from probes.results.schema import MEASUREMENTS, Labels
from probes.results.scores import MAJORITY
from probes.study.config import LearnedConfig

OF_VIEWS = ("task_kind", "language", "objective", "transfer", "alignment")
"""Columns of measurements.parquet that only its views need."""
COLUMNS = tuple(name for name in WRITTEN if name not in OF_VIEWS)
"""Columns of the table, which schema.Measurement describes."""
JUDGED = {"parent": "Source", "sup": "SUP"}
"""Scores of the convergence criterion → their names in reports."""
LEARNED_SHARE = 0.1
"""Default of the convergence criterion: the share of the way from the majority baseline to 100 that a score covers."""


def read_table(folder: Path, stages: Stages) -> pd.DataFrame:
    """Return the measurements of a study folder.

    Args:
        folder: The folder. It has measurements.parquet, or results.parquet and measures.parquet of an archived study.
        stages: Cell → stage → fingerprint, for an archived study, whose tables lack these fingerprints.

    Raises:
        InputError: A file is not Parquet, a column is missing or cannot hold its values, or labels or mixed scores of
            an archived study are not JSON objects.
    """
    path = folder / MEASUREMENTS
    if not path.exists():
        return _frame(read_archived(folder, stages))
    table = read_columns(path, {name: WRITTEN[name] for name in COLUMNS})
    return _frame(table.filter(pc.is_valid(table["value"])))


def measurements(
    of_results: pa.Table | None = None, of_measures: pa.Table | None = None, stages: Stages | None = None
) -> pd.DataFrame:
    """Return the measurements in tables with the columns of results.parquet and of measures.parquet.

    The arguments and errors are those of ``measurements_of``. The labels must be JSON objects, too.
    """
    return _frame(measurements_of(of_results, of_measures, stages))


def _frame(table: pa.Table | None) -> pd.DataFrame:
    """Convert measurements to a frame. Archives have labels as JSON and lack the declared columns."""
    table = pa.table({"row": pa.array([], pa.int64())}) if table is None else table
    columns = {}
    for name in COLUMNS:
        kind = pa.int32() if name == "labels" else WRITTEN[name]
        if name == "labels" or name not in table.column_names:
            columns[name] = pa.nulls(len(table), kind)
        else:
            columns[name] = table[name].cast(kind)
        if kind == pa.string():
            columns[name] = pc.fill_null(columns[name], "")
    if "unit" not in table.column_names:
        columns |= _declared(columns["measure"])
    kinds = {pa.int64(): pd.Int64Dtype()}
    found: pd.DataFrame = pa.table(columns).to_pandas(strings_to_categorical=True, types_mapper=kinds.get)
    if "labels" in table.column_names:
        found["labels"] = _labels(table)
    return found


def _declared(names: pa.ChunkedArray | pa.Array) -> dict[str, pa.Array]:
    """Look up the unit, range and population of measures by name."""
    encoded = pa.chunked_array(names).combine_chunks().dictionary_encode()
    known = [measure_of(name) for name in encoded.dictionary.to_pylist()]
    ranges = [(None, None) if one is None or one.within is None else one.within for one in known]
    values = {
        "unit": pa.array(["" if one is None else one.unit for one in known], pa.string()),
        "least": pa.array([least for least, _ in ranges], pa.float64()),
        "most": pa.array([most for _, most in ranges], pa.float64()),
        "over": pa.array(["" if one is None else one.over for one in known], pa.string()),
    }
    return {name: column.take(encoded.indices) for name, column in values.items()}


def _labels(table: pa.Table) -> pd.Categorical:
    """Return the labels as a column of `Labels`. Each distinct value is made once."""
    column = table["labels"].combine_chunks()
    if pa.types.is_map(column.type):
        # labels depend on the cell
        encoded = table["cell"].combine_chunks().dictionary_encode()
        codes = encoded.indices.to_numpy()
        _, first = np.unique(codes, return_index=True)
        made = [Labels(dict(column[int(place)].as_py())) for place in first]
    else:
        encoded = pc.fill_null(column, "").dictionary_encode()
        codes = encoded.indices.to_numpy()
        made = [parsed_labels(text) for text in encoded.dictionary.to_pylist()]
    number = {one: place for place, one in enumerate(dict.fromkeys(made))}
    categories = np.empty(len(number), object)
    categories[:] = list(number)
    of_codes = np.array([number[one] for one in made], np.int32)
    return pd.Categorical.from_codes(of_codes[codes] if len(codes) else codes, pd.Index(categories, dtype=object))


def concat(tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Concatenate at least one table. The numbers of rows of scores are shifted, so that they differ between tables."""
    parts, first = [], 0
    for table in tables:
        parts.append(table.assign(row=table["row"].where(table["row"] < 0, table["row"] + first)))
        first += int(table["row"].max() + 1) if len(table) else 0
    return pd.concat(parts, ignore_index=True)


def is_score(table: pd.DataFrame) -> pd.Series[bool]:
    """Return whether each row is a score of a task, and not a measurement of a pretraining or a probe."""
    return table["row"] >= 0


def failed_training(table: pd.DataFrame, limits: LearnedConfig) -> pd.Series[str]:
    """Return for each row the reason why the model of its cell fails the convergence criterion, or "" if it does not.

    A model fails as a whole if its perplexity exceeds the limit. It fails on a task if SUP or the source-language
    score, as the mean over fine-tuning seeds, is below the limit of the task. A task without a limit requires a score
    above the majority baseline (see LEARNED_SHARE), if the baseline was measured. A model that fails on all its tasks
    fails as a whole. A missing value never fails a model. NaN fails it under any limit.
    """
    whole, of_task = dict[str, str](), dict[tuple[str, str], str]()
    if limits.perplexity is not None:
        known = table[table["measure"].isin(OF_PARENT) & table["step"].isna()]
        for cell, value in known.groupby("cell", observed=True)["value"].max().items():
            if not value <= limits.perplexity:
                whole[str(cell)] = f"perplexity {value:.4g}, over {limits.perplexity:g}"
    tasks = defaultdict[str, list[str]](list)
    scores = table[is_score(table) & table["measure"].isin(list(JUDGED))]
    keys = ["cell", "task", "measure"]
    groups = scores.groupby(keys, observed=True)["value"]
    means = groups.mean().where(groups.count() == groups.size()).reset_index()  # NaN if one of them is
    baselines = table[table["measure"] == MAJORITY].groupby(keys[:2], observed=True)["value"].mean().to_dict()
    for cell, task, measure, value in zip(*columns_of(means, (*keys, "value")), strict=True):
        tasks[cell].append(task)
        least, baseline = limits.least(task), baselines.get((cell, task))
        if least is not None:
            if not value >= least:
                of_task[cell, task] = f"{task}: {JUDGED[measure]} {value:.4g}, under {least:g}"
        elif baseline is not None and not value >= baseline + LEARNED_SHARE * (100 - baseline):
            of_task[cell, task] = f"{task}: {JUDGED[measure]} {value:.4g}, majority baseline {baseline:.4g}"
    for cell, names in tasks.items():
        if all((cell, task) in of_task for task in names):
            whole.setdefault(cell, "; ".join(of_task[cell, task] for task in dict.fromkeys(names)))
    if not whole and not of_task:
        return pd.Series("", table.index)
    lines = zip(*columns_of(table, ("cell", "task")), strict=True)
    return pd.Series([whole.get(cell) or of_task.get((cell, task), "") for cell, task in lines], table.index)


def labels_of(value: Labels | Mapping[str, Any] | None) -> Mapping[str, str]:
    """Return axis → label for a value of the column of labels, or for a mapping. None gives no labels."""
    if isinstance(value, Labels):
        return value.mapping
    return {str(axis): "" if label is None else str(label) for axis, label in (value or {}).items()}


def distinct(table: pd.DataFrame, *names: str) -> list[tuple[Any, ...]]:
    """Return the distinct values of some columns, in order of appearance."""
    rows = table[list(names)].drop_duplicates()
    return list(zip(*columns_of(rows, names), strict=True))


def columns_of(table: pd.DataFrame, names: Iterable[str]) -> list[list[Any]]:
    """Return columns as lists. A missing whole number is None, and any other missing number is NaN."""
    return [
        column.astype(object).where(column.notna(), None).tolist() if column.dtype == "Int64" else column.tolist()
        for column in (table[name] for name in names)
    ]
