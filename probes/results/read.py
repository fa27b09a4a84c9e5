"""What studies measured as one tidy table: a row a measurement. Results, reports and claims all read it.

It is a pandas frame made of results.parquet and measures.parquet, with the columns of COLUMNS. What has no value is no
row; NaN is a value: that something collapsed is told.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from probes.results import measures
from probes.results import write as results
from probes.results.labels import unseeded
from probes.study.config import OF_RUNS, LearnedConfig
from synthlang.errors import InputError

COLUMNS = {
    "row": "number of the row of results.parquet, −1 of a measure of a probe",
    "cell": "of the grid",
    "labels": "axis → label of the cell, as JSON",
    "task": "name of a task in the study; empty for a measure of a probe",
    "metric": "of the task",
    "source": "of the first language",
    "pretrain_seed": "seed of the pretraining, missing of a given model",
    "seed": "of fine-tuning, missing of a measure of a probe",
    "pretrain": "fingerprint of the pretraining, empty of a given model",
    "adjust": "fingerprint of the adjustment, empty of none",
    "run": "what names the run that it is of in all studies, empty where that is not known",
    "probe": "name of a probe of the study",
    "measure": "parent, sup, zs, delta, majority, mixed (FIELD), alignment_…, perplexity, moved_…; of a probe its path",
    "layer": "number, missing of none",
    "step": "of the pretraining, missing of none",
    "value": "scores in percent points",
}
TEXTS = ("cell", "labels", "task", "metric", "source", "pretrain", "adjust", "run", "probe", "measure")
SCORES = ("parent", "sup", "zs", "delta")
MAJORITY = "majority"
ALIGNMENTS = {name: f"alignment.scores.{words}.cosine.{way}" for name, (words, way) in results.ALIGNMENTS.items()}
"""Column of the results → the same as a measure, which cells without a task have too."""
PERPLEXITY = "perplexity"
OF_PARENT = (PERPLEXITY, f"{measures.PERPLEXITIES}parent")
"""Column of the results, and the same as a measure, which cells without a task have too."""
JUDGED = {"parent": "Parent", "sup": "SUP"}
"""Scores that tell whether a model has learned, and what they are called."""
LEARNED_SHARE = 0.1
"""A model that comes less than this share of the way from the majority baseline to 100 has not learned the task."""
LATER = (
    "task_name",
    "labels",
    "pretrain_seed",
    "adjust",
    "mixed",
    PERPLEXITY,
    *results.MOVED,
    results.FORWARD,
    MAJORITY,
)
"""Columns that a results.parquet may lack."""
WANTED = (
    *("cell", "source", "task", "task_name", "labels", "seed", "pretrain_seed", "metric", "pretrain", "transfer"),
    *("probe", "adjust", "mixed", *SCORES, *ALIGNMENTS, PERPLEXITY, *results.MOVED, MAJORITY),
)
"""Columns of results.parquet that are read."""
Stages = Mapping[str, Mapping[str, str]]
"""Cell → stage → its fingerprint."""


def read_table(folder: Path, stages: Stages) -> pd.DataFrame:
    """The table of a study folder, whichever of its two files there are.

    InputError for a missing column, a value that a column cannot hold, or labels that are no JSON.
    """
    scores = {name: results.COLUMNS[name] for name in WANTED}
    of_results = _read(folder / "results.parquet", scores, LATER)
    return measurements(of_results, _read(folder / "measures.parquet", measures.COLUMNS), stages)


def _read(path: Path, columns: Mapping[str, pa.DataType], later: Collection[str] = ()) -> pa.Table | None:
    if not path.exists():
        return None
    table = read_columns(path, columns, later)
    for text in table["labels"].unique().to_pylist():
        try:
            labels_of(text)
        except ValueError as error:
            raise InputError(f"row {pc.index(table['labels'], text).as_py() + 1}: {error}", path) from error
    return table


def measurements(
    of_results: pa.Table | None = None, of_measures: pa.Table | None = None, stages: Stages | None = None
) -> pd.DataFrame:
    """The table of rows with the columns of results.parquet and of measures.parquet."""
    parts = [_of_results(of_results)] if of_results is not None and len(of_results) else []
    parts += [_of_measures(of_measures, stages or {})] if of_measures is not None and len(of_measures) else []
    whole = pa.concat_tables(parts, promote_options="default") if parts else pa.table({"row": pa.array([], pa.int64())})
    columns = {}
    for name in COLUMNS:
        kind = pa.string() if name in TEXTS else pa.float64() if name == "value" else pa.int64()
        column = whole[name].cast(kind) if name in whole.column_names else pa.nulls(len(whole), kind)
        columns[name] = pc.fill_null(column, "") if name in TEXTS else column
    kinds = {pa.int64(): pd.Int64Dtype()}
    found: pd.DataFrame = pa.table(columns).to_pandas(strings_to_categorical=True, types_mapper=kinds.get)
    return found


def _of_results(table: pa.Table) -> pa.Table:
    """A row for each score; those of one row of the results stay together."""
    table = table.set_column(
        table.column_names.index("task"), "task", pc.coalesce(_or_null(table["task_name"]), table["task"])
    )
    texts = {
        name: pc.fill_null(table[name].cast(pa.string()), "") for name in ("pretrain", "adjust", "transfer", "probe")
    }
    seeds = pc.fill_null(table["seed"].cast(pa.string()), "")
    tuned = pc.binary_join_element_wise(texts["pretrain"], texts["adjust"], texts["transfer"], seeds, " ")
    untuned = pc.binary_join_element_wise(texts["pretrain"], texts["adjust"], texts["probe"], " ")
    runs = {
        False: pc.if_else(pc.equal(texts["transfer"], ""), "", tuned),
        True: pc.if_else(pc.equal(texts["probe"], ""), "", untuned),
    }
    names = ("cell", "labels", "task", "metric", "source", "pretrain_seed", "seed", "pretrain", "adjust")
    common = {"row": pa.array(range(len(table)), pa.int64()), **{name: table[name] for name in names}}
    parts = []
    numbers = (*SCORES, *ALIGNMENTS, PERPLEXITY, *results.MOVED, MAJORITY)
    for measure in (name for name in numbers if name in table.column_names):
        columns = common | {"run": runs[measure in ALIGNMENTS], "value": table[measure].cast(pa.float64())}
        columns["measure"] = pa.array([measure], pa.string()).take(pa.array([0] * len(table), pa.int32()))
        parts.append(pa.table(columns).filter(pc.is_valid(table[measure])))
    mixed = [
        (row, name, value)
        for row, text in enumerate(table["mixed"].to_pylist())
        for field, value in (json_object(text).items() if text else ())
        for name in (f"mixed {field}", "mixed")
        if value is not None
    ]
    rows, fields, values = zip(*mixed, strict=True) if mixed else ((), (), ())
    of_rows = pa.table(common | {"run": runs[False]}).take(pa.array(rows, pa.int64()))
    of_rows = of_rows.append_column("value", pa.array(values, pa.float64()))
    parts.append(of_rows.append_column("measure", pa.array(fields, pa.string())))
    whole = pa.concat_tables(parts, promote_options="default")
    return whole.take(pc.sort_indices(whole["row"]))  # stable


def _or_null(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.if_else(pc.equal(column, ""), None, column)


def _of_measures(table: pa.Table, stages: Stages) -> pa.Table:
    """The rows of measures.parquet that have a value, with the stages of their cells."""
    table = table.filter(pc.is_valid(table["value"]))
    probes = [name for name in table["probe"].unique().to_pylist() if name]
    kinds = {name: name if name in OF_RUNS else f"probe {name}" for name in probes}
    runs = {
        f"{cell}\0{name}": f"{kind.split(' ')[0]} {keys[kind]}"
        for cell, keys in stages.items()
        for name, kind in kinds.items()
        if keys.get(kind)
    }
    found = {name: table[name] for name in table.column_names}
    found["row"] = pa.array([-1], pa.int64()).take(pa.array([0] * len(table), pa.int32()))
    found["run"] = _looked_up(pc.binary_join_element_wise(table["cell"], pc.fill_null(table["probe"], ""), "\0"), runs)
    for stage in ("pretrain", "adjust"):
        found[stage] = _looked_up(table["cell"], {cell: keys.get(stage, "") for cell, keys in stages.items()})
    return pa.table(found)


def _looked_up(keys: pa.ChunkedArray, values: Mapping[str, str]) -> pa.Array:
    place = pc.index_in(keys, pa.array(list(values), pa.string()))
    return pa.array(list(values.values()), pa.string()).take(place)


def concat(tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """The tables one after the other, with rows of results numbered anew."""
    parts, first = [], 0
    for table in tables:
        parts.append(table.assign(row=table["row"].where(table["row"] < 0, table["row"] + first)))
        first += int(table["row"].max() + 1) if len(table) else 0
    return pd.concat(parts, ignore_index=True)


def is_score(table: pd.DataFrame) -> pd.Series[bool]:
    return table["row"] >= 0


def failed_training(table: pd.DataFrame, limits: LearnedConfig) -> pd.Series[str]:
    """Of each row why its model counts as failed training, "" where it does not.

    Over the limit of perplexity a model fails, with all that was measured of it. Under that of a task (SUP or parent,
    means over seeds of fine-tuning), or of a task without a limit hardly above the majority baseline (LEARNED_SHARE),
    it fails on that task, and where it does on all that it was scored on, as a whole. Nobody fails by what is not
    known; NaN is known, and beyond every limit.
    """
    whole, of_task = dict[str, str](), dict[tuple[str, str], str]()
    if limits.perplexity is not None:
        known = table[table["measure"].isin(OF_PARENT)]
        for cell, value in known.groupby("cell", observed=True)["value"].max().items():
            if not value <= limits.perplexity:
                whole[str(cell)] = f"perplexity {value:.4g}, over {limits.perplexity:g}"
    tasks = defaultdict[str, list[str]](list)
    scores = table[is_score(table) & table["measure"].isin(list(JUDGED))]
    keys = ["cell", "task", "measure"]
    means = scores.groupby(keys, observed=True)["value"].agg(lambda of: of.mean(skipna=False)).reset_index()
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


def pooled(tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """The tables of several studies as one, with a column more: ``studies`` that have the run here, a bit each.

    A run that an earlier study has under the same labels but for seeds is left out; one that has other labels there
    stays, so that no comparison counts it twice (``drop_shared_runs``). Of one study ``run`` is left empty: what it
    lists twice means two conditions.
    """
    if len(tables) == 1:
        return tables[0].assign(run="", studies=0)
    whole = concat(tables)
    study = pd.Series(np.repeat(range(len(tables)), [len(table) for table in tables]), whole.index)
    task = whole["task"].astype(str).where(~whole["measure"].isin(list(ALIGNMENTS)), "")
    place = whole["labels"].map(lambda text: unseeded(labels_of(text))).astype(str)
    owned = pd.DataFrame({"run": whole["run"].astype(str), "task": task, "place": place, "bit": study})
    keys = ["run", "task", "place"]
    owners = owned.drop_duplicates().assign(bit=lambda owner: owner["bit"].map(lambda number: 1 << number))
    bits = owned[keys].merge(owners.groupby(keys, as_index=False)["bit"].sum(), on=keys, how="left")["bit"]
    bits.index = whole.index
    first = owned.groupby(keys)["bit"].transform("min")
    known = owned["run"] != ""
    return whole.assign(studies=bits.where(known, 0))[~known | (first == study)]


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


@lru_cache(maxsize=8192)
def _parsed(text: str) -> Mapping[str, str]:
    try:
        labels = json_object(text)
    except InputError as error:
        raise ValueError(f"labels must be a JSON object, not {text!r}") from error
    return {str(axis): text_of(label) for axis, label in labels.items()}


def json_object(text: str | None) -> dict[str, Any]:
    """Of a column that holds a JSON object; {} of nothing, InputError for anything else."""
    try:
        parsed = json.loads(text or "{}")
    except json.JSONDecodeError:
        parsed = None
    if not isinstance(parsed, dict):
        raise InputError(f"the columns labels and mixed must hold JSON objects, not {text!r}")
    return parsed


def labels_of(value: Any) -> Mapping[str, str]:
    """Axis → label, from a mapping or its JSON text; nothing is {}. ValueError for what is neither."""
    if isinstance(value, Mapping):
        return {str(axis): text_of(label) for axis, label in value.items()}
    return _parsed(value) if value else {}


def text_of(value: Any) -> str:
    return "" if value is None else str(value)


def distinct(table: pd.DataFrame, *names: str) -> list[tuple[Any, ...]]:
    """The values that rows have of these columns, each once, in order of appearance."""
    rows = table[list(names)].drop_duplicates()
    return list(zip(*columns_of(rows, names), strict=True))


def columns_of(table: pd.DataFrame, names: Iterable[str]) -> list[list[Any]]:
    """Columns as lists; what is missing is None."""
    return [
        column.astype(object).where(column.notna(), None).tolist() if column.dtype == "Int64" else column.tolist()
        for column in (table[name] for name in names)
    ]
