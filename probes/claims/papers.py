"""The numbers of papers as data: the file NAME of the kind papers, one a paper, each table as it is printed.

A file holds facts and no settings: what a table says of which labels. A study is set beside a table where its axes have
the names and labels of the paper's cells. A table is written in blocks, so that a row of the file is a row in print:

    tables: {table3: {title, printed: where it stands, note, digits: 1 after the point, blocks: [
        {where: {transform: trans}, measure: delta,                      # what all of the block have in common
         columns: [{where: {task: pos}}, {where: {task: ner}}],
         rows: [{where: {objective: MLM}, values: [0.4, 2.6]}]}]}}       # null: not printed, or not to be read

A row of numbers that the paper marks as significant has ``tested_against: {objective: MLM}, marked: [true, false]``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import Field, field_validator, model_validator

from probes.claims.spec import Average, Claim, Labels, Quantity, Where, check_labels, check_measure, check_quantity
from synthlang.catalogue import load_yaml, whole_file
from synthlang.config import StrictModel, load
from synthlang.errors import InputError


class Marking(NamedTuple):
    """Whether a paper marks a number as significantly different from that of ``against``, by a test over examples."""

    against: Quantity
    printed: bool


@dataclass(frozen=True)
class Cell:
    """A printed number: ``value`` is of ``quantity``, or of how much more that is than ``against``.

    Cells with the same ``column`` (block, column) are compared with one another.
    """

    quantity: Quantity
    value: float
    against: Quantity | None
    column: tuple[int, int]
    marking: Marking | None = None


class _Column(StrictModel):
    where: Where = Field(default_factory=dict)
    measure: str | None = None
    average: Average = Field(default_factory=dict)

    _measure = field_validator("measure")(check_measure)


class _Row(StrictModel):
    """``marked``: which numbers are marked as significantly different from those at the labels ``tested_against``."""

    where: Where = Field(default_factory=dict)
    values: list[float | None] = Field(min_length=1)
    tested_against: Where | None = None
    marked: list[bool] | None = None

    @model_validator(mode="after")
    def _whole(self) -> _Row:
        if (self.marked is None) != (self.tested_against is None):
            raise ValueError("marked and tested_against go together")
        if self.marked is not None and len(self.marked) != len(self.values):
            raise ValueError(f"marked has {len(self.marked)} entries for {len(self.values)} values")
        return self


class _Block(StrictModel):
    """``against``: the labels of what the numbers are gains over; a printed number is multiplied by ``factor``."""

    where: Where = Field(default_factory=dict)
    measure: str | None = None
    against: Where | None = None
    factor: float = 1.0
    columns: list[_Column] = Field(min_length=1)
    rows: list[_Row] = Field(min_length=1)

    _measure = field_validator("measure")(check_measure)

    @model_validator(mode="after")
    def _complete(self) -> _Block:
        for number, row in enumerate(self.rows, 1):
            if len(row.values) != len(self.columns):
                raise ValueError(f"row {number} has {len(row.values)} values for {len(self.columns)} columns")
        if self.measure is None and any(column.measure is None for column in self.columns):
            raise ValueError("needs a measure, or one for each column")
        return self

    def cells(self, number: int) -> Iterator[Cell]:
        """All that are printed; ``number`` is that of the block."""
        for row in self.rows:
            for place, (column, value) in enumerate(zip(self.columns, row.values, strict=True)):
                measure = column.measure or self.measure
                assert measure is not None, "checked"
                ours, other, tested = (
                    None
                    if where is None
                    else Quantity({**self.where, **column.where, **where}, measure, column.average)
                    for where in (row.where, self.against, row.tested_against)
                )
                marking = None if tested is None or row.marked is None else Marking(tested, row.marked[place])
                if value is not None and ours is not None:
                    yield Cell(ours, round(value * self.factor, 6), other, (number, place), marking)


class _Table(StrictModel):
    title: str
    printed: str
    note: str = ""
    digits: int = Field(default=1, ge=0, le=6)
    blocks: list[_Block] = Field(default_factory=list)

    def cells(self) -> Iterator[Cell]:
        for number, block in enumerate(self.blocks):
            yield from block.cells(number)


@dataclass(frozen=True)
class Table:
    """A table or figure; without ``cells`` where nothing is printed.

    ``printed``: the place in the paper; ``digits``: those after the point, of the values as they are here.
    """

    paper: str
    name: str
    title: str
    printed: str
    note: str
    digits: int
    cells: tuple[Cell, ...]


class _PaperFile(StrictModel):
    paper: str
    title: str
    citation: str
    labels: dict[str, tuple[str, ...]] = Field(min_length=1)
    tables: dict[str, _Table] = Field(min_length=1)

    @model_validator(mode="after")
    def _known(self) -> _PaperFile:
        for name, table in self.tables.items():
            seen = set()
            for cell in table.cells():
                quantity, gain = cell.quantity, cell.against is not None
                try:
                    check_quantity(quantity, self.labels)
                    check_quantity(cell.against or quantity, self.labels)
                    check_quantity(cell.marking.against if cell.marking else quantity, self.labels)
                except ValueError as error:
                    raise ValueError(f"{name}: {error}") from error
                key = frozenset(quantity.where.items()), quantity.measure, repr(quantity.average), gain
                if key in seen:
                    raise ValueError(f"{name}: two values of {quantity.measure} for {dict(quantity.where)}")
                seen.add(key)
        return self


@dataclass(frozen=True)
class Paper:
    """A paper: ``labels`` are all axes and labels of its tables."""

    name: str
    title: str
    citation: str
    labels: Labels
    tables: Mapping[str, Table]


def read_paper(name: str | Path, folder: Path | None = None) -> Paper:
    """A paper by its name, or the YAML file itself (from ``folder``); anything wrong with it is an InputError."""
    content = load(_PaperFile, whole_file("papers", str(name), folder))
    tables = {
        key: Table(content.paper, key, table.title, table.printed, table.note, table.digits, tuple(table.cells()))
        for key, table in content.tables.items()
    }
    return Paper(content.paper, content.title, content.citation, content.labels, tables)


def names_in(value: Any) -> list[str]:
    """What ``paper`` or ``claims`` of a study names: one, several, or none."""
    return [value] if isinstance(value, str) else [str(name) for name in value or ()]


def _paper_and_table(name: str) -> tuple[str, str | None]:
    """Of ``PAPER``, ``PAPER/TABLE`` or ``FILE.yaml/TABLE``."""
    if name.endswith((".yaml", ".yml")) or "/" not in name:
        return name, None
    paper, _, table = name.rpartition("/")
    return paper, table


def tables_file(name: str) -> Path:
    """The file that ``paper:`` of a study names a table of, or all tables."""
    return whole_file("papers", _paper_and_table(name)[0])


def read_tables(name: str, folder: Path | None = None) -> tuple[Table, ...]:
    """What ``paper:`` of a study names: a table, ``PAPER/TABLE`` or ``FILE.yaml/TABLE``, or all tables of a paper."""
    paper, table = _paper_and_table(name)
    tables = read_paper(paper, folder).tables
    if table is not None and table not in tables:
        raise InputError(f"paper: {paper} has no {table!r}; there are: {', '.join(tables)}")
    return tuple(tables.values()) if table is None else (tables[table],)


class _ClaimsFile(StrictModel):
    paper: str | None = None
    claims: list[Claim] = Field(min_length=1)

    @model_validator(mode="after")
    def _ids_differ(self) -> _ClaimsFile:
        for one, other in pairwise(sorted(claim.id for claim in self.claims)):
            if one == other:
                raise ValueError(f"two claims are called {one!r}")
        return self


def claims_files(name: str) -> list[Path]:
    """The files that ``claims:`` of a study names: one of claims, and that of the paper whose labels they name."""
    path = whole_file("claims", name)
    paper = load_yaml(path).get("paper")
    return [path] if paper is None else [path, whole_file("papers", str(paper), path.parent)]


def read_claims(name: str | Path, folder: Path | None = None) -> tuple[Claim, ...]:
    """The claims of a file by its name in the catalogue, or of the YAML file itself (from ``folder``).

    Raises InputError for anything wrong, a label that the file's paper does not have included.
    """
    path = whole_file("claims", str(name), folder)
    content = load(_ClaimsFile, path)
    if content.paper is None:
        return tuple(content.claims)
    labels = read_paper(content.paper, path.parent).labels
    for claim in content.claims:
        try:
            for quantity in claim.quantities():
                check_quantity(quantity, labels)
            for entry in claim.entries():
                check_labels(entry.among, labels)
            for correlate in claim.correlate or ():
                check_labels(dict.fromkeys((*correlate.over, *correlate.by), ()), {**labels, "layer": ()})
        except ValueError as error:
            raise InputError(f"{claim.id}: {error}", path) from error
    return tuple(content.claims)
