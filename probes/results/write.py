"""Writer of the table of measurements: measurements.parquet, and its views results.* and measures.*."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any, Generic, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from probes.results.schema import MEASUREMENTS, SCHEMA, Measurement, table_of
from probes.results.views import MEASURES, RESULTS, AxisColumns, measure_row, result_row
from synthlang.files import atomic_file

Row = TypeVar("Row")
GROUP = 1 << 16
"""Number of rows of a row group of a Parquet file, which are in memory together."""


def write_measurements(folder: Path, measurements: Iterable[Measurement], axes: AxisColumns) -> None:
    """Write measurements.parquet and its views results and measures, each of these as .csv and as .parquet.

    Each file is written atomically and in bounded memory. The same measurements give the same bytes.

    Args:
        folder: The folder of the study.
        measurements: The measurements. The scores of one transfer must be adjacent.
        axes: The columns of the axes, which both views have.

    Raises:
        DiskError: A file cannot be written.
    """
    with ExitStack() as stack:
        table = stack.enter_context(_table_file(folder / MEASUREMENTS))
        results = stack.enter_context(_view_file(folder, "results", {**RESULTS, **axes.types}))
        measures = stack.enter_context(_view_file(folder, "measures", {**MEASURES, **axes.types}))
        for row, of in groupby(measurements, attrgetter("row")):
            if row < 0:
                for one in of:
                    table.add(one)
                    measures.add(axes.of(measure_row(one)))
            else:
                scores = list(of)
                for one in scores:
                    table.add(one)
                results.add(axes.of(result_row(scores)))


class _Groups(Generic[Row]):
    """Buffer that writes rows to a file in groups."""

    def __init__(self, write: Callable[[list[Row]], None]) -> None:
        self._write, self._rows, self._written = write, list[Row](), False

    def add(self, row: Row) -> None:
        self._rows.append(row)
        if len(self._rows) == GROUP:
            self._flush()

    def close(self) -> None:
        """Write the remaining rows, or an empty group if nothing was written."""
        if self._rows or not self._written:
            self._flush()

    def _flush(self) -> None:
        self._write(self._rows)
        self._rows, self._written = [], True


@contextmanager
def _table_file(path: Path) -> Iterator[_Groups[Measurement]]:
    with atomic_file(path) as binary, pq.ParquetWriter(binary, SCHEMA) as writer:
        groups = _Groups[Measurement](lambda rows: writer.write_table(table_of(rows)))
        yield groups
        groups.close()


@contextmanager
def _view_file(folder: Path, name: str, columns: Mapping[str, pa.DataType]) -> Iterator[_Groups[Mapping[str, Any]]]:
    schema = pa.schema(list(columns.items()))
    with atomic_file(folder / f"{name}.csv", "w") as text, atomic_file(folder / f"{name}.parquet") as binary:
        lines = csv.DictWriter(text, list(columns), lineterminator="\n")
        lines.writeheader()
        with pq.ParquetWriter(binary, schema) as writer:

            def write(rows: list[Mapping[str, Any]]) -> None:
                lines.writerows(rows)
                writer.write_table(pa.Table.from_pylist(rows, schema=schema))

            groups = _Groups(write)
            yield groups
            groups.close()
