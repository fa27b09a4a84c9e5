"""The numbers of papers as data: the file NAME of the kind papers, one a paper, each table as it is printed.

A file holds facts and no settings: what a table says of which labels. A study is set beside a table where its axes have
the names and labels of the paper's cells. A table is written in blocks, so that a row of the file is a row in print:

    tables: {table3: {title, printed: where it stands, note, digits: 1 after the point, blocks: [
        {where: {transform: trans}, measure: delta,                      # what all of the block have in common
         columns: [{where: {task: pos}}, {where: {task: ner}}],
         rows: [{where: {objective: MLM}, values: [0.4, 2.6]}]}]}}       # null: not printed, or not to be read
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import Field, field_validator, model_validator

from probes.study.judged.quantities import Average, Quantity, Where, check_measure, check_quantity
from synthlang.catalogue import whole_file
from synthlang.config import StrictModel, load
from synthlang.errors import InputError


@dataclass(frozen=True)
class Cell:
    """A printed number: ``value`` is of ``quantity``, or of how much more that is than ``against``.

    Cells with the same ``column`` (block, column) are compared with one another.
    """

    quantity: Quantity
    value: float
    against: Quantity | None
    column: tuple[int, int]


@dataclass(frozen=True)
class Table:
    """A table or figure; without ``cells`` where nothing is printed.

    ``printed``: the place in the paper; ``digits``: those after the point, of the values as they are held.
    """

    paper: str
    name: str
    title: str
    printed: str
    note: str
    digits: int
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class Paper:
    """A paper: ``labels`` are all axes and labels of its tables."""

    name: str
    title: str
    citation: str
    labels: Mapping[str, tuple[str, ...]]
    tables: Mapping[str, Table]


class _Column(StrictModel):
    where: Where = Field(default_factory=dict)
    measure: str | None = None
    average: Average = Field(default_factory=dict)

    _measure = field_validator("measure")(check_measure)


class _Row(StrictModel):
    where: Where = Field(default_factory=dict)
    values: list[float | None] = Field(min_length=1)


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
                if value is None:
                    continue
                quantity = Quantity({**self.where, **column.where, **row.where}, measure, column.average)
                against = None
                if self.against is not None:
                    against = Quantity({**self.where, **column.where, **self.against}, measure, column.average)
                yield Cell(quantity, round(value * self.factor, 6), against, (number, place))


class _Table(StrictModel):
    title: str
    printed: str
    note: str = ""
    digits: int = Field(default=1, ge=0, le=6)
    blocks: list[_Block] = Field(default_factory=list)

    def cells(self) -> Iterator[Cell]:
        for number, block in enumerate(self.blocks):
            yield from block.cells(number)


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
                quantity = cell.quantity
                try:
                    check_quantity(quantity, self.labels)
                    check_quantity(cell.against or quantity, self.labels)
                except ValueError as error:
                    raise ValueError(f"{name}: {error}") from error
                key = (
                    frozenset(quantity.where.items()),
                    quantity.measure,
                    repr(quantity.average),
                    cell.against is None,
                )
                if key in seen:
                    raise ValueError(f"{name}: two values of {quantity.measure} for {dict(quantity.where)}")
                seen.add(key)
        return self


def read_paper(name: str | Path, folder: Path | None = None) -> Paper:
    """A paper by its name, or the YAML file itself (from ``folder``); anything wrong with it is an InputError."""
    path = whole_file("papers", str(name), folder)
    held = load(_PaperFile, path)
    tables = {
        key: Table(held.paper, key, table.title, table.printed, table.note, table.digits, tuple(table.cells()))
        for key, table in held.tables.items()
    }
    return Paper(held.paper, held.title, held.citation, held.labels, tables)


def names_in(value: Any) -> list[str]:
    """What ``paper`` or ``claims`` of a study names: one, several, or none."""
    return [value] if isinstance(value, str) else [str(name) for name in value or ()]


def tables_file(name: str) -> Path:
    """The file that ``paper:`` of a study names a table of, or all tables."""
    return whole_file("papers", _paper_and_table(name)[0])


def _paper_and_table(name: str) -> tuple[str, str | None]:
    if name.endswith((".yaml", ".yml")) or "/" not in name:
        return name, None
    paper, _, table = name.rpartition("/")
    return paper, table


def read_tables(name: str, folder: Path | None = None) -> tuple[Table, ...]:
    """What ``paper:`` of a study names: a table, ``PAPER/TABLE`` or ``FILE.yaml/TABLE``, or all tables of a paper."""
    paper, table = _paper_and_table(name)
    tables = read_paper(paper, folder).tables
    if table is None:
        return tuple(tables.values())
    if table not in tables:
        raise InputError(f"paper: {paper} has no {table!r}; there are: {', '.join(tables)}")
    return (tables[table],)
