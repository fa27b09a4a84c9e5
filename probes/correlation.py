"""The command ``synthlang correlate``: correlations of two columns of results."""

from __future__ import annotations

import csv
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from probes.figures.drawing import standalone_svg
from probes.figures.scatter import Panel, scatter
from probes.report.data import FAILED, read_study
from probes.results.columns import parquet_file
from probes.results.read import distinct
from probes.statistics import COEFFICIENTS, Correlation, CorrelationKind, correlation
from probes.study.record import STUDY
from synthlang.errors import InputError, did_you_mean
from synthlang.files import atomic_file, no_such, read_lines, write_json
from synthlang.rng import key_of
from synthlang.wording import first_few, plural

Row = dict[str, str]
Names = tuple[str, ...]
FILE = "file"
"""Name of the column that is added to hold the file of each row, unless the file has such a column."""
CELL = "cell"
"""Name of the column that holds the cell in tables of studies."""
COLUMNS = 20
"""Number of columns that an error lists."""
ALL = "all"
NONE = "none"
OF_P = "p is two-sided, from permutations, and not corrected for multiple comparisons"


@dataclass(frozen=True)
class _Tables:
    """Rows of several files as text.

    Attributes:
        rows: The rows. A missing value is "".
        columns: The columns that all files have.
        doubles: Number of rows left out because an earlier file has an equal row. This happens if both the .csv and the
            .parquet of a study are given.
        alike: Number of rows kept although an earlier file has an equal row. Without a column ``cell`` they may be
            different measurements.
        excluded: Number of rows left out because the model fails the convergence criterion of its study.
    """

    rows: tuple[Row, ...]
    columns: Names
    doubles: int = 0
    alike: int = 0
    excluded: int = 0


def read_tables(paths: Sequence[Path]) -> _Tables:
    """Read the rows of all files, except rows of models that fail the convergence criterion of their study.

    In a file with the column ``cell``, a row that equals a row of an earlier file is left out, too.

    Raises:
        InputError: No file is given. A file does not exist, has no rows, or is not a table in CSV or Parquet. The
            ``study.json`` beside a file cannot be read.
    """
    if not paths:
        hint = "give at least one file, such as results.parquet of a study"
        raise InputError("no table is given", hint=hint, code="missing")
    rows: list[Row] = []
    seen: set[tuple[tuple[str, str], ...]] = set()
    heads: list[Row] = []
    doubles = alike = excluded = 0
    for path in paths:
        found = _read(path)
        heads.append(found[0])
        keys = [tuple(sorted(row.items())) for row in found]
        fresh = [row for row, key in zip(found, keys, strict=True) if key not in seen]
        if CELL in found[0]:
            doubles += len(found) - len(fresh)
        else:  # two measurements may have equal numbers
            alike, fresh = alike + len(found) - len(fresh), found
        seen.update(keys)
        failed = _failed(path)
        learned = [row for row in fresh if (row.get(CELL), row.get("task_name", "")) not in failed]
        excluded += len(fresh) - len(learned)
        rows += [{FILE: str(path), **row} for row in learned]
    columns = [name for name in heads[0] if all(name in head for head in heads)]
    return _Tables(tuple(rows), tuple(dict.fromkeys((*columns, FILE))), doubles, alike, excluded)


def _failed(path: Path) -> set[tuple[str, str]]:
    """Return the (cell, task) pairs that a study excludes. An empty task means the whole model.

    The convergence criterion is read from the study.json beside the table. Without this file, no pair is excluded.
    """
    if not (path.parent / STUDY).is_file():
        return set()
    measured = read_study(path.parent).measured
    return set(distinct(measured[measured[FAILED] != ""], "cell", "task"))


def _read(path: Path) -> list[Row]:
    readers = {".csv": _csv, ".parquet": _parquet}
    if path.suffix.lower() not in readers:
        hint = "give a CSV or Parquet table, such as results.csv of a study"
        raise InputError("must end in .csv or .parquet", path, hint=hint, code="format")
    if not path.is_file():
        raise no_such(path)
    rows = readers[path.suffix.lower()](path)
    if not rows:
        raise InputError("has no rows", path, hint="give another table", code="empty")
    return rows


def _csv(path: Path) -> list[Row]:
    reader = csv.DictReader(line + "\n" for _, line in read_lines(path))
    rows = []
    try:
        names = list(reader.fieldnames or ())
        if not names:
            hint = "give a table with the names of the columns in the first line"
            raise InputError("the first line has no column names", path, 1, hint=hint, code="format")
        _check_names(names, path, 1)
        for row in reader:
            if None in row or None in row.values():
                reason = f"the line does not have one value for each of the {plural(len(names), 'column')}"
                hint = "separate values by commas, and quote a value that contains a comma"
                raise InputError(reason, path, reader.line_num, hint=hint, code="format")
            rows.append(dict(row))
    except csv.Error as error:
        reason, hint = f"is not CSV: {error}", "correct the line, or write the table again"
        raise InputError(reason, path, reader.reader.line_num, hint=hint, code="format") from error
    return rows


def _check_names(names: Sequence[str], path: Path, line: int | None = None) -> None:
    if twice := [name for name, count in Counter(names).items() if count > 1]:
        reason = f"two columns have the name {twice[0]!r}"
        raise InputError(reason, path, line, hint="give each column its own name", code="format")


def _parquet(path: Path) -> list[Row]:
    hint = "write the table as Parquet again, or give a CSV file (.csv)"
    with parquet_file(path, hint) as file:
        _check_names(file.schema_arrow.names, path)
        rows = file.read().to_pylist()
    return [{name: "" if value is None else str(value) for name, value in row.items()} for row in rows]


def why_dropped(texts: Mapping[str, str]) -> str | None:
    """Return the first reason why a value is not a finite number, or None if all values are finite numbers.

    ``texts`` has each value as text, by its name.

    >>> why_dropped({"x": "1", "y": ""})
    'y is empty'
    """
    for name, text in texts.items():
        if not text.strip():
            return f"{name} is empty"
        try:
            number = float(text.replace("_", "?"))  # Python alone reads 1_000 as a number
        except ValueError:
            return f"{name} is not a number"
        if not math.isfinite(number):
            return f"{name} is NaN or infinite"
    return None


@dataclass(frozen=True)
class GroupCorrelation:
    """A correlation over the rows of one group, or over all rows.

    Attributes:
        group: The name of the group, or ``all``.
        within: Columns that form blocks. Only rows with equal values in these columns are compared.
        result: The coefficient with its interval and p-value.
    """

    group: str
    within: Names
    result: Correlation

    def to_json(self) -> dict[str, Any]:
        """Return the group, the blocks and the numbers, for JSON."""
        return {"group": self.group, "within": list(self.within), **self.result.to_json()}


def correlation_table(found: Sequence[GroupCorrelation], title: str, level: float) -> tuple[Table, list[str]]:
    """Return a table with one row per correlation, and numbered notes that explain missing numbers.

    Args:
        found: The correlations.
        title: Title of the table.
        level: Confidence level of the intervals, for the heading of their column.
    """
    table = Table(title=title)
    table.add_column("rows of")
    for name in ("kind", "rows", "clusters", "r", f"{100 * level:g} % interval", "p"):
        table.add_column(name, justify="left" if name == "kind" else "right", no_wrap=True)
    notes: dict[str, int] = {}
    for one in found:
        r = one.result
        bounds = "–" if r.low is None or r.high is None else f"{r.low:+.2f} … {r.high:+.2f}"
        numbers = ["–" if r.r is None else f"{r.r:+.3f}", bounds, "–" if r.p is None else f"{r.p:.4f}"]
        for place, why in enumerate((r.reason, r.no_interval, r.no_p)):
            if why is not None:
                numbers[place] += f" [{notes.setdefault(why, len(notes) + 1)}]"
        within = f" within {' × '.join(one.within)}" if one.within else ""
        table.add_row(Text(one.group + within), r.kind, str(r.n), str(r.clusters), *numbers)
    return table, [f"[{number}] {why}" for why, number in notes.items()]


@dataclass(frozen=True)
class CorrelateOptions:
    """Options of ``synthlang correlate``, which ``probes.correlate`` explains.

    ``cluster`` is empty if rows are independent. None selects ``cell``, if the tables have this column.
    """

    x: str
    y: str
    by: Names = ()
    block: Names = ()
    cluster: Names | None = None
    kinds: tuple[CorrelationKind, ...] = COEFFICIENTS
    level: float = 0.95

    @staticmethod
    def of(
        x: str, y: str, by: str | None, block: str | None, cluster: str | None, kind: str, level: float
    ) -> CorrelateOptions:
        """Return the options, parsed from the arguments of ``probes.correlate``.

        Raises:
            InputError: A coefficient is unknown or none is named, ``level`` is out of range, ``x`` and ``y`` are the
                same column, or a column is both in ``by`` and in ``block``.
        """
        kinds = _split(kind)
        if not kinds or any(name not in COEFFICIENTS for name in kinds):
            wrong = next((repr(name) for name in kinds if name not in COEFFICIENTS), "")
            reason, hint = f"unknown coefficient {wrong}" if wrong else "names no coefficient", ", ".join(COEFFICIENTS)
            raise InputError(reason, "--kind", hint=f"choose from {hint}", code="unknown" if wrong else "empty")
        if not 0 < level < 1:
            reason = f"must be above 0 and below 1, not {level:g}"
            raise InputError(reason, "--level", hint="give 0.95, for example", code="range")
        if x == y:
            raise InputError(f"{y!r} is also --x", "--y", hint="give two different columns", code="conflict")
        if both := sorted(set(_split(by)) & set(_split(block))):
            reason = f"{both[0]!r} is also in --by, and all rows of a group have the same value"
            raise InputError(reason, "--block", hint="remove this column from one of the two", code="no_effect")
        clusters = None if cluster is None else () if cluster == NONE else _split(cluster)
        return CorrelateOptions(x, y, _split(by), _split(block), clusters, kinds, level)  # type: ignore[arg-type]


def _check_columns(options: CorrelateOptions, cluster: Names, columns: Names, files: int) -> None:
    """Check that all tables have the columns of the options. ``files`` is the number of tables.

    Raises:
        InputError: A table lacks a column.
    """
    named = {"x": (options.x,), "y": (options.y,), "by": options.by, "block": options.block, "cluster": cluster}
    for option, name in ((option, name) for option, names in named.items() for name in names):
        if name not in columns:
            hint = f"{did_you_mean(name, columns)}choose from {first_few(columns, COLUMNS)}"
            reason = f"the table has no column {name!r}" if files == 1 else f"not all tables have a column {name!r}"
            raise InputError(reason, f"--{option}", hint=hint, code="unknown")


def correlate_command(
    files: Sequence[Path], options: CorrelateOptions, out: Path | None, figure: Path | None
) -> list[GroupCorrelation]:
    """Print and return the correlations, and write them to ``out`` (JSON) and ``figure`` (SVG), if given.

    The result has a correlation for each group and coefficient (see ``correlations``). The arguments and the errors are
    those of ``probes.correlate``. The name of ``figure`` must end in ``.svg``.
    """
    if figure is not None and figure.suffix.lower() != ".svg":
        reason = f"{figure.name!r} does not end in .svg"
        raise InputError(reason, "--figure", hint="give a name with this ending", code="format")
    console = Console()

    def say(text: str) -> None:
        console.print(text, soft_wrap=True, markup=False, emoji=False)

    table = read_tables(files)
    cluster = (CELL,) * (CELL in table.columns) if options.cluster is None else options.cluster
    _check_columns(options, cluster, table.columns, len(files))
    rows, reasons = _usable(table, options)
    reasons |= {"an earlier file has the same row": table.doubles} if table.doubles else {}
    for reason, count in reasons.items():
        say(f"rows left out, {reason}: {count:,}")
    if table.alike:
        why = f"kept because no column {CELL} shows whether they are the same measurement"
        say(f"rows equal to a row of an earlier file, {why}: {table.alike:,}")
    # cells of different studies may have the same name
    cluster = (FILE, *cluster) if cluster and len(files) > 1 and FILE not in cluster else cluster
    found = correlations(rows, options, cluster)
    shown, notes = correlation_table(found, f"{options.x} and {options.y}", options.level)
    console.print(shown)
    of = f"rows of one {' × '.join(cluster)} are dependent" if cluster else "rows are treated as independent"
    for note in (*notes, of, OF_P):
        say(note)
    if out is not None:
        columns = {"x": options.x, "y": options.y, "by": options.by, "block": options.block, "cluster": cluster}
        counts = {"files": [str(path) for path in files], "rows": len(rows), "left_out": reasons}
        write_json(out, {**columns, **counts, "correlations": [one.to_json() for one in found]})
        say(f"written: {out}")
    if figure is not None:
        title = " × ".join(options.block)
        with atomic_file(figure, "w") as handle:
            handle.write(standalone_svg(scatter(options.x, options.y, _panels(rows, options, found), title)))
        say(f"written: {figure}")
    return found


def correlations(rows: Sequence[Row], options: CorrelateOptions, cluster: Names) -> list[GroupCorrelation]:
    """Correlate the rows of each group, and all rows with the groups as blocks (see ``statistics.correlation``).

    If ``options.block`` names columns, each correlation is also computed within blocks of equal values in these
    columns. With a single group, all rows are not correlated a second time.

    Args:
        rows: Rows with finite numbers in both columns.
        options: The columns and the coefficients. ``options.cluster`` is not read.
        cluster: Columns that mark dependent rows. An empty tuple treats rows as independent.
    """
    groups = _grouped(rows, options.by)
    tasks: list[tuple[str, Names, Sequence[Row]]] = [(name, (), rows) for name, rows in groups.items() if options.by]
    if len(groups) > 1 or not options.by:
        tasks.append((ALL, options.by, rows))
    return [
        GroupCorrelation(name, within, _one(members, options, within, cluster, kind))
        for name, by, members in tasks
        for within in dict.fromkeys((by, (*by, *options.block)))
        for kind in options.kinds
    ]


def _one(
    rows: Sequence[Row], options: CorrelateOptions, within: Names, cluster: Names, kind: CorrelationKind
) -> Correlation:
    x, y = ([float(row[name]) for row in rows] for name in (options.x, options.y))
    blocks, clusters = (
        ["\x1f".join(row[name] for name in names) for row in rows] if names else None for names in (within, cluster)
    )
    key = key_of("correlate", options.x, options.y)
    return correlation(x, y, key, kind, blocks=blocks, clusters=clusters, level=options.level)


def _split(names: str | None) -> Names:
    return tuple(dict.fromkeys(name.strip() for name in (names or "").split(",") if name.strip()))


def _usable(table: _Tables, options: CorrelateOptions) -> tuple[list[Row], dict[str, int]]:
    """Return the rows with a number in both columns, and counts of all left-out rows by reason.

    Raises:
        InputError: No row has a number in both columns.
    """
    why = [why_dropped({name: row[name] for name in (options.x, options.y)}) for row in table.rows]
    rows = [row for row, reason in zip(table.rows, why, strict=True) if reason is None]
    reasons = Counter(reason for reason in why if reason is not None)
    if table.excluded:
        reasons["the model fails the convergence criterion of the study"] = table.excluded
    if not rows:
        said = ", ".join(f"{reason}: {count:,}" for reason, count in reasons.items())
        reason = f"no row has a number in both {options.x} and {options.y} ({said})"
        raise InputError(reason, hint="choose columns with numbers, or other tables", code="empty")
    return rows, dict(reasons)


def _name(row: Row, names: Names) -> str:
    return ", ".join(row[name] or "–" for name in names)


def _grouped(rows: Sequence[Row], names: Names) -> dict[str, list[Row]]:
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(_name(row, names) or ALL, []).append(row)
    return groups


def _panels(rows: Sequence[Row], options: CorrelateOptions, found: Sequence[GroupCorrelation]) -> list[Panel]:
    panels = []
    for name, members in _grouped(rows, options.by).items():
        own = [one.result for one in found if one.group == name and not one.within]
        points = [(float(row[options.x]), float(row[options.y]), _name(row, options.block)) for row in members]
        panels.append(Panel(name, tuple(points), own[0] if own else None))
    return panels
