"""Reading of columns from Parquet files, with checks, because a user may have changed the files."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from synthlang.errors import InputError
from synthlang.files import unreadable
from synthlang.wording import plural

AGAIN = "restore the file, or write it again with the command that made its folder"


@contextmanager
def parquet_file(path: Path, hint: str = AGAIN) -> Iterator[pq.ParquetFile]:
    """Open a Parquet file.

    ``hint`` is shown if the file is not Parquet or is damaged.

    Raises:
        InputError: The file cannot be opened or read, or is not Parquet.
    """
    try:
        with pq.ParquetFile(path) as file:
            yield file
    except (pa.ArrowException, OSError) as error:
        if isinstance(error, OSError) and error.errno:
            raise unreadable(error, path) from error
        reason = f"cannot be read as Parquet: {str(error).splitlines()[0].rstrip('.')}"
        raise InputError(reason, path, hint=hint, code="format") from error


def read_columns(path: Path, columns: Mapping[str, pa.DataType], later: Collection[str] = ()) -> pa.Table:
    """Read some columns of a Parquet file.

    Args:
        path: The file.
        columns: Names and types of the columns.
        later: Columns that earlier versions did not write. If such a column is missing, it is filled with null.

    Raises:
        InputError: The file cannot be read or is not Parquet, lacks a column, has two columns of one name, or has
            a column that cannot be cast to its type.
    """
    with parquet_file(path) as file:
        names = file.schema_arrow.names
        if missing := sorted(set(columns) - set(names) - set(later)):
            reason = f"lacks {plural(len(missing), 'column')}: {', '.join(missing)}"
            raise InputError(reason, path, hint=AGAIN, code="missing")
        if twice := next((name for name in columns if names.count(name) > 1), None):
            raise InputError(f"two columns have the name {twice!r}", path, hint=AGAIN, code="duplicate")
        table = file.read(columns=[name for name in columns if name in names])
    arrays = []
    for name, kind in columns.items():
        try:
            arrays.append(table[name].cast(kind) if name in names else pa.nulls(len(table), kind))
        except pa.ArrowException as error:
            reason = f"the column cannot be read as {kind}: {str(error).splitlines()[0].rstrip('.')}"
            raise InputError(reason, path, keys=(name,), hint=AGAIN, code="type") from error
    return pa.table(arrays, list(columns))
