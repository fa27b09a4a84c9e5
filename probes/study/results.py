"""results.csv and results.parquet: a row for each cell, task and seed."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from pretrain.config import PretrainConfig
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
}
DIGITS = 4


def result_row(
    cell: str, config: PretrainConfig, scores: dict[str, Any], probe: dict[str, Any], stages: dict[str, str]
) -> dict[str, Any]:
    """One row; ``stages`` are the fingerprints of pretrain, transfer and probe."""
    subsets = probe["scores"] or {}
    alignment = {
        f"alignment_{column}": round(subsets[key]["cosine"]["mean"], DIGITS) if subsets.get(key) else None
        for column, key in (("all", "all"), ("dictionary", "in_dictionary"), ("held_out", "held_out"))
    }
    copied = {name: scores[name] for name in ("task", "metric", "seed", "parent", "sup", "zs", "delta")}
    return {
        "cell": cell,
        "source": config.members[0].source,
        "language": scores["language"],
        "objective": config.objective.kind,
        "pretrain_seed": config.seed,
        **copied,
        **alignment,
        **stages,
    }


def write_results(folder: Path, rows: list[dict[str, Any]]) -> None:
    """Write both files atomically; the same rows give the same bytes."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(COLUMNS), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    with atomic_file(folder / "results.csv", "w") as handle:
        handle.write(text.getvalue())
    table = pa.Table.from_pylist(rows, schema=pa.schema(list(COLUMNS.items())))
    with atomic_file(folder / "results.parquet") as handle:
        pq.write_table(table, handle)
