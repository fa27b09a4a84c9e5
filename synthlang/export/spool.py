"""Batches in a file, on the way from the process that reads to the one that writes.

A stream of Arrow record batches, a row a sentence: memory is one batch at either end, and
nothing is pickled.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from synthlang.corpus import Column, Corpus
from synthlang.export.arrow import Strings, coded, lists, numbers, values_of


def write_batches(path: Path, batches: Iterable[Corpus]) -> None:
    """Write batches that have the same columns; at least one."""
    with path.open("wb") as handle:  # scratch: nobody reads it after a crash, so it need not reach the disk
        writer = None
        for batch in batches:
            rows = _rows(batch)
            writer = writer or pa.ipc.new_stream(handle, rows.schema)
            writer.write_batch(rows)
        assert writer is not None, "a spool holds at least one batch"
        writer.close()


def read_batches(path: Path) -> Iterator[Corpus]:
    """The same batches again: codes, names and all."""
    with path.open("rb") as handle, pa.ipc.open_stream(handle) as stream:
        for rows in stream:
            ids, *arrays = rows.columns
            columns = {n: _column(a.values) for n, a in zip(rows.schema.names[1:], arrays, strict=True)}
            yield Corpus(values_of(arrays[0].offsets, np.int32).astype(np.int64), columns, values_of(ids, np.int64))


def _rows(batch: Corpus) -> pa.RecordBatch:
    arrays = [numbers(batch.ids), *(lists(batch.offsets, _values(column)) for column in batch.columns.values())]
    return pa.RecordBatch.from_arrays(arrays, ["id", *batch.columns])


def _values(column: Column) -> Any:
    codes = column.codes.astype(np.int32, copy=False)
    return numbers(codes) if column.names is None else coded(codes, Strings.of(column.names).array)


def _column(values: Any) -> Column:
    if pa.types.is_dictionary(values.type):
        return Column(values_of(values.indices, np.int32), tuple(values.dictionary.to_pylist()))
    return Column(values_of(values, np.int32))
