"""What ``synthlang correlate`` does: how two columns of results go together, per group, pooled and within blocks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from probes.correlation.figure import Panel, scatter
from probes.correlation.results import CELL, FILE, ResultTable, Row, dropped, read_tables
from probes.correlation.table import Found, correlation_table
from probes.figures.drawing import standalone_svg
from probes.statistics import KINDS, Correlation, CorrelationKind, correlation
from synthlang.errors import InputError
from synthlang.files import atomic_file, write_json
from synthlang.rng import key_of

ALL = "all"
NONE = "none"
Names = tuple[str, ...]


@dataclass(frozen=True)
class CorrelateOptions:
    """The columns: x and y are numbers; by, block and cluster are any, several together make one name.

    cluster   None: the cell, where the tables have one; (): each row for itself
    """

    x: str
    y: str
    by: Names = ()
    block: Names = ()
    cluster: Names | None = None
    kinds: tuple[CorrelationKind, ...] = KINDS
    level: float = 0.95

    @staticmethod
    def of(
        x: str, y: str, by: str | None, block: str | None, cluster: str | None, kind: str, level: float
    ) -> CorrelateOptions:
        """From the texts of the command; InputError for a kind or a level that there is not."""
        kinds = _split(kind)
        if not kinds or any(name not in KINDS for name in kinds):
            raise InputError(f"--kind {kind}: there is {', '.join(KINDS)}")
        if not 0 < level < 1:
            raise InputError("--level is between 0 and 1, such as 0.95")
        if x == y:
            raise InputError("--x and --y name the same column")
        both = set(_split(by)) & set(_split(block))
        if both:
            raise InputError(
                f"--by and --block both name {', '.join(sorted(both))}: in one group it is the same for all"
            )
        clusters = None if cluster is None else () if cluster == NONE else _split(cluster)
        return CorrelateOptions(x, y, _split(by), _split(block), clusters, kinds, level)  # type: ignore[arg-type]


def correlate_command(
    files: Sequence[Path], options: CorrelateOptions, out: Path | None, figure: Path | None
) -> list[Found]:
    """Read the tables, print the correlations, write them as JSON to ``out`` and a scatter to ``figure`` (SVG)."""
    if figure is not None and figure.suffix.lower() != ".svg":
        raise InputError("--figure writes SVG: name a file that ends in .svg", figure)
    console = Console()
    table = read_tables(files)
    cluster = _cluster(table, options)
    table.check([options.x, options.y, *options.by, *options.block, *cluster], "the tables")
    rows, reasons = _usable(table, options)
    reasons |= {"the same row is in an earlier file": table.doubles} if table.doubles else {}
    for reason, count in reasons.items():
        console.print(f"rows left out, {reason}: {count:,}", soft_wrap=True, markup=False, emoji=False)
    if table.alike:
        said = (
            f"rows kept that an earlier file has too, for no column {CELL} says that they are the same: {table.alike:,}"
        )
        console.print(said, soft_wrap=True, markup=False, emoji=False)
    # two studies may have cells of one name that are not the same
    cluster = (FILE, *cluster) if cluster and len(files) > 1 and FILE not in cluster else cluster
    found = correlations(rows, options, cluster)
    shown, notes = correlation_table(found, f"{options.x} and {options.y}", options.level)
    console.print(shown)
    of = f"rows of one {' × '.join(cluster)} belong together" if cluster else "every row counts as independent"
    for note in (*notes, f"{of}; p: two-sided, by permutation; no correction for the number of correlations"):
        console.print(note, soft_wrap=True, markup=False, emoji=False)
    if out is not None:
        write_json(out, _to_json(files, options, cluster, len(rows), reasons, found))
        console.print(f"written: {out}", soft_wrap=True, markup=False, emoji=False)
    if figure is not None:
        svg = standalone_svg(scatter(options.x, options.y, _panels(rows, options, found), " × ".join(options.block)))
        with atomic_file(figure, "w") as handle:
            handle.write(svg)
        console.print(f"written: {figure}", soft_wrap=True, markup=False, emoji=False)
    return found


def correlations(rows: Sequence[Row], options: CorrelateOptions, cluster: Names) -> list[Found]:
    """Of each group as it is and within blocks, then of all rows within groups, and also within blocks."""
    groups = _grouped(rows, options.by)
    tasks: list[tuple[str, Names, Sequence[Row]]] = []
    for name, members in groups.items() if options.by else ():
        tasks.append((name, (), members))
        if options.block:
            tasks.append((name, options.block, members))
    if len(groups) > 1 or not options.by:
        tasks.append((ALL, options.by, rows))
        if options.block:
            tasks.append((ALL, (*options.by, *options.block), rows))
    return [
        Found(name, within, _one(members, options, within, cluster, kind))
        for name, within, members in tasks
        for kind in options.kinds
    ]


def _one(
    rows: Sequence[Row], options: CorrelateOptions, within: Names, cluster: Names, kind: CorrelationKind
) -> Correlation:
    x, y = ([float(row[name]) for row in rows] for name in (options.x, options.y))
    return correlation(
        x,
        y,
        key_of("correlate", options.x, options.y),
        kind,
        blocks=[_key(row, within) for row in rows] if within else None,
        clusters=[_key(row, cluster) for row in rows] if cluster else None,
        level=options.level,
    )


def _split(names: str | None) -> Names:
    """Each once."""
    return tuple(dict.fromkeys(name.strip() for name in (names or "").split(",") if name.strip()))


def _cluster(table: ResultTable, options: CorrelateOptions) -> Names:
    if options.cluster is not None:
        return options.cluster
    return (CELL,) if CELL in table.columns else ()


def _usable(table: ResultTable, options: CorrelateOptions) -> tuple[list[Row], dict[str, int]]:
    """The rows with two numbers, and how many were left out for what reason."""
    why = [dropped({name: row[name] for name in (options.x, options.y)}) for row in table.rows]
    rows = [row for row, reason in zip(table.rows, why, strict=True) if reason is None]
    reasons = Counter(reason for reason in why if reason is not None)
    if not rows:
        said = ", ".join(f"{reason}: {count:,}" for reason, count in reasons.items())
        raise InputError(f"no row has a number in both {options.x} and {options.y} ({said})")
    return rows, dict(reasons)


def _key(row: Row, names: Names) -> str:
    return "\x1f".join(row[name] for name in names)


def _name(row: Row, names: Names) -> str:
    return ", ".join(row[name] or "–" for name in names)


def _grouped(rows: Sequence[Row], names: Names) -> dict[str, list[Row]]:
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(_name(row, names) if names else ALL, []).append(row)
    return groups


def _to_json(
    files: Sequence[Path],
    options: CorrelateOptions,
    cluster: Names,
    rows: int,
    reasons: dict[str, int],
    found: Sequence[Found],
) -> dict[str, Any]:
    columns = {"x": options.x, "y": options.y, "by": options.by, "block": options.block, "cluster": cluster}
    return {
        **columns,
        "files": [str(path) for path in files],
        "rows": rows,
        "left_out": reasons,
        "correlations": [one.to_json() for one in found],
    }


def _panels(rows: Sequence[Row], options: CorrelateOptions, found: Sequence[Found]) -> list[Panel]:
    panels = []
    for name, members in _grouped(rows, options.by).items():
        own = [one.result for one in found if one.group == name and not one.within]
        points = [(float(row[options.x]), float(row[options.y]), _name(row, options.block)) for row in members]
        panels.append(Panel(name, tuple(points), own[0] if own else None))
    return panels
