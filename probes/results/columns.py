"""Columns of Parquet files that a user may have changed, read with checks."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from synthlang.errors import InputError


def read_columns(path: Path, columns: Mapping[str, pa.DataType], later: Collection[str] = ()) -> pa.Table:
    """Read some columns of a Parquet file.

    Args:
        path: The file.
        columns: Names and types of the columns.
        later: Columns that earlier versions did not write. They are null where they are missing.

    Raises:
        InputError: The file is not Parquet, lacks a column, or a column cannot have its type.
    """
    try:
        with pq.ParquetFile(path) as file:
            names = file.schema_arrow.names
            if missing := sorted(set(columns) - set(names) - set(later)):
                reason = f"columns missing: {', '.join(missing)}"
                raise InputError(reason, path, hint="run the study again", code="missing")
            table = file.read(columns=[name for name in columns if name in names])
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"not parquet: {str(error).splitlines()[0]}", path, code="format") from error
    arrays = []
    for name, kind in columns.items():
        try:
            arrays.append(table[name].cast(kind) if name in names else pa.nulls(len(table), kind))
        except pa.ArrowException as error:
            reason = f"column {name} must be of {kind}: {str(error).splitlines()[0]}"
            raise InputError(reason, path, code="type") from error
    return pa.table(arrays, list(columns))
