"""The files of papers and claims: numbers as a paper prints them, and the claims that are tested on results.

A file of the kind ``papers`` holds one paper, with each table as it is printed. The file has facts but no settings. A
study is compared with a table if the axes of the study have the names and labels of the table. A table is written in
blocks, so that a row of the file is a row in print::

    tables: {table3: {title, printed: the place in the paper, note, digits: 1 after the point, blocks: [
        {where: {transform: trans}, measure: delta,                      # shared by the whole block
         columns: [{where: {task: pos}}, {where: {task: ner}}],
         rows: [{where: {objective: MLM}, values: [0.4, 2.6]}]}]}}       # null: not printed, or illegible

A row of numbers that the paper marks as significant has ``tested_against: {objective: MLM}, marked: [true, false]``.
The YAML of claims is explained in spec.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import Field, PrivateAttr, field_validator, model_validator

from probes.claims.spec import Average, AxisLabels, Claim, Quantity, Where, check_labels, check_measure, check_quantity
from synthlang.catalogue import load_yaml, whole_file
from synthlang.config import StrictModel, load
from synthlang.errors import InputError, did_you_mean
from synthlang.wording import plural


class Marking(NamedTuple):
    """A paper's mark of significance. ``printed`` is true if the number is marked as different from ``against``."""

    against: Quantity
    printed: bool


@dataclass(frozen=True)
class PaperNumber:
    """A printed number.

    Attributes:
        quantity: The quantity that the number states.
        value: The number, times the factor of its block, rounded to six decimal places.
        against: The baseline quantity, if the number is a gain over a baseline.
        column: Index of the block in the table and of the column in the block. Numbers of one column are compared with
            one another.
        marking: The mark of significance, where the paper tests the number.
    """

    quantity: Quantity
    value: float
    against: Quantity | None
    column: tuple[int, int] = (0, 0)
    marking: Marking | None = None


class _Column(StrictModel):
    """A printed column."""

    where: Where = Field(default_factory=dict)
    """Axis → label of the numbers in the column."""
    measure: str | None = None
    """Measure of the numbers (default: the measure of the block)."""
    average: Average = Field(default_factory=dict)
    """Axis → labels over which the numbers are averages. An empty list stands for all labels."""

    _known_measure = field_validator("measure")(check_measure)


class _Row(StrictModel):
    """A printed row. In ``marked``, true stands for a significant difference from ``tested_against``."""

    where: Where = Field(default_factory=dict)
    """Axis → label of the numbers in the row."""
    values: list[float | None] = Field(min_length=1)
    """Number of each column. null stands for a number that is not printed."""
    tested_against: Where | None = None
    """Axis → label of the row with which the paper's test of significance compares (default: no test)."""
    marked: list[bool] | None = None
    """Mark of significance of each number, if ``tested_against`` is given."""

    @model_validator(mode="after")
    def _marks_fit(self) -> _Row:
        if (self.marked is None) != (self.tested_against is None):
            missing, given = ("marked", "tested_against") if self.marked is None else ("tested_against", "marked")
            hint = f"add this key, or delete {given}"
            raise InputError(f"is required, because {given} is given", keys=missing, hint=hint, code="missing")
        if self.marked is not None and len(self.marked) != len(self.values):
            reason = f"has {plural(len(self.marked), 'mark')} for {plural(len(self.values), 'value')}"
            raise InputError(reason, keys="marked", hint="give true or false for each value", code="range")
        return self


class _Block(StrictModel):
    """A block of rows with the same columns. Its numbers are scores, or gains over a baseline."""

    where: Where = Field(default_factory=dict)
    """Axis → label of all numbers in the block."""
    measure: str | None = None
    """Measure of all numbers (default: the measure of each column)."""
    against: Where | None = None
    """Axis → label of the baseline, if the numbers are gains over a baseline."""
    factor: float = 1.0
    """Factor by which the numbers are multiplied."""
    columns: list[_Column] = Field(min_length=1)
    """Columns of the block."""
    rows: list[_Row] = Field(min_length=1)
    """Rows of the block."""

    _known_measure = field_validator("measure")(check_measure)

    @model_validator(mode="after")
    def _rows_fit_columns(self) -> _Block:
        for number, row in enumerate(self.rows):
            if len(row.values) != len(self.columns):
                reason = f"has {plural(len(row.values), 'value')} for {plural(len(self.columns), 'column')}"
                hint = "give a number or null for each column"
                raise InputError(reason, keys=["rows", str(number), "values"], hint=hint, code="range")
        if self.measure is None and any(column.measure is None for column in self.columns):
            hint = "set this key, or the measure of each column"
            raise InputError("is required", keys="measure", hint=hint, code="missing")
        return self

    def numbers(self, block: int) -> Iterator[PaperNumber]:
        """Yield the printed numbers. ``block`` is the index of this block in its table."""
        for row in self.rows:
            for place, (column, value) in enumerate(zip(self.columns, row.values, strict=True)):
                if value is None:
                    continue
                ours = self._quantity(column, row.where)
                other = None if self.against is None else self._quantity(column, self.against)
                marking = None
                if row.tested_against is not None and row.marked is not None:
                    marking = Marking(self._quantity(column, row.tested_against), row.marked[place])
                yield PaperNumber(ours, round(value * self.factor, 6), other, (block, place), marking)

    def _quantity(self, column: _Column, where: Where) -> Quantity:
        measure = column.measure or self.measure
        assert measure is not None, "checked when the block was read"
        return Quantity({**self.where, **column.where, **where}, measure, column.average)


class PaperTable(StrictModel):
    """A table or figure of a paper. It has no blocks if the paper prints no numbers."""

    title: str
    """Title of the table."""
    printed: str
    """Place in the paper."""
    note: str = ""
    """Note on the numbers."""
    digits: int = Field(default=1, ge=0, le=6)
    """Digits after the point of the numbers in this table."""
    blocks: list[_Block] = Field(default_factory=list)
    """Blocks of rows with the same columns."""
    _paper: str = PrivateAttr(default="")
    _name: str = PrivateAttr(default="")

    @property
    def paper(self) -> str:
        """Name of the paper."""
        return self._paper

    @property
    def name(self) -> str:
        """Name of the table in the paper's file."""
        return self._name

    @cached_property
    def numbers(self) -> tuple[PaperNumber, ...]:
        """The printed numbers, row by row."""
        return tuple(number for place, block in enumerate(self.blocks) for number in block.numbers(place))


class Paper(StrictModel):
    """A paper with its printed tables."""

    paper: str
    """Name of the paper, as in the names of its files."""
    title: str
    """Title of the paper."""
    citation: str
    """The reference to the paper, as text."""
    labels: dict[str, tuple[str, ...]] = Field(min_length=1)
    """All axes and labels of the tables."""
    tables: dict[str, PaperTable] = Field(min_length=1)
    """Name → printed table."""

    @model_validator(mode="after")
    def _check_numbers(self) -> Paper:
        for name, table in self.tables.items():
            table._paper, table._name = self.paper, name
            seen = set()
            for number in table.numbers:
                quantity = number.quantity
                try:
                    for one in (quantity, number.against, number.marking and number.marking.against):
                        check_quantity(one or quantity, self.labels)
                except InputError as error:
                    raise error.inside("tables", name, "blocks", str(number.column[0])) from error
                where = frozenset(quantity.where.items())
                key = where, quantity.measure, repr(quantity.average), number.against is not None
                if key in seen:
                    labels = ", ".join(f"{axis} {label}" for axis, label in quantity.where.items())
                    reason = f"has two values of {quantity.measure}{f' for {labels}' if labels else ''}"
                    hint = "delete one of these values, or correct its where"
                    raise InputError(reason, keys=["tables", name], hint=hint, code="duplicate")
                seen.add(key)
        return self


class About(StrictModel):
    """Title and citation of a paper, or of claims without a paper."""

    title: str = ""
    """Title of the paper or of the claims."""
    citation: str = ""
    """The reference to the paper, as text."""


class _ClaimsFile(About):
    paper: str | None = None
    claims: list[Claim] = Field(min_length=1)

    @model_validator(mode="after")
    def _ids_differ(self) -> _ClaimsFile:
        seen = set()
        for number, claim in enumerate(self.claims):
            if claim.id in seen:
                reason, keys = f"{claim.id!r} is also the id of an earlier claim", ["claims", str(number), "id"]
                raise InputError(reason, keys=keys, hint="give one of the claims another id", code="duplicate")
            seen.add(claim.id)
        return self


def names_in(value: Any) -> list[str]:
    """Return the names in the key ``paper`` or ``claims`` of a study, whose value is a text, a list or None."""
    return [value] if isinstance(value, str) else [str(name) for name in value or ()]


def read_paper(name: str | Path, folder: Path | None = None) -> Paper:
    """Read a paper by its name in the catalogue, or from a YAML file relative to ``folder``.

    Raises:
        InputError: The catalogue has no such paper, or the file is missing or wrong.
    """
    path = whole_file("papers", str(name), folder)
    return _paper(path, _state(path))


def _state(path: Path) -> tuple[int, ...]:
    """Return device, inode, modification time and size of a file."""
    found = path.stat()
    return found.st_dev, found.st_ino, found.st_mtime_ns, found.st_size


@lru_cache(maxsize=32)
def _paper(path: Path, _version: tuple[int, ...]) -> Paper:
    return load(Paper, path)


def read_tables(name: str, folder: Path | None = None) -> tuple[PaperTable, ...]:
    """Read the tables that ``paper:`` of a study names.

    Args:
        name: ``PAPER`` or ``FILE.yaml`` for all tables, ``PAPER/TABLE`` or ``FILE.yaml/TABLE`` for one table.
        folder: The folder that a file is relative to (default: the current folder).

    Raises:
        InputError: The catalogue has no such paper, its file is missing or wrong, or it has no table of this name.
    """
    paper, table = _paper_and_table(name)
    tables = read_paper(paper, folder).tables
    if table is not None and table not in tables:
        hint = f"{did_you_mean(table, tables)}choose one of {', '.join(tables)}"
        raise InputError(f"{paper} has no table {table!r}", hint=hint, code="unknown")
    return tuple(tables.values()) if table is None else (tables[table],)


def tables_file(name: str) -> Path:
    """Return the file behind a name in ``paper:`` of a study, without the part ``/TABLE``.

    Raises:
        InputError: The catalogue has no such paper, or the file is missing.
    """
    return whole_file("papers", _paper_and_table(name)[0])


def _paper_and_table(name: str) -> tuple[str, str | None]:
    if name.endswith((".yaml", ".yml")) or "/" not in name:
        return name, None
    paper, _, table = name.rpartition("/")
    return paper, table


def claims_files(name: str) -> list[Path]:
    """Return the files behind a name in ``claims:`` of a study.

    The first file holds the claims. If the claims name a paper, the second file is that of the paper.

    Raises:
        InputError: A name is not in the catalogue, or a file is missing or not YAML.
    """
    path = whole_file("claims", name)
    return [path, *_paper_file(path, _state(path))]


@lru_cache(maxsize=32)
def _paper_file(claims: Path, _version: tuple[int, ...]) -> tuple[Path, ...]:
    paper = load_yaml(claims).get("paper")
    return () if paper is None else (whole_file("papers", str(paper), claims.parent),)


def read_claims(name: str | Path, folder: Path | None = None) -> tuple[Claim, ...]:
    """Read claims by their name in the catalogue, or from a YAML file relative to ``folder``.

    Raises:
        InputError: A name is not in the catalogue, a file is missing or wrong, or the claims name an axis or a label
            that their paper does not have.
    """
    path = whole_file("claims", str(name), folder)
    return _claims(path, tuple(map(_state, (path, *_paper_file(path, _state(path))))))


@lru_cache(maxsize=32)
def _claims(path: Path, _versions: tuple[tuple[int, ...], ...]) -> tuple[Claim, ...]:
    content = load(_ClaimsFile, path)
    if content.paper is not None:
        labels = read_paper(content.paper, path.parent).labels
        for number, claim in enumerate(content.claims):
            try:
                _check_claim(claim, labels)
            except InputError as error:
                raise error.inside("claims", str(number), path=path) from error
    return tuple(content.claims)


def read_about(path: Path) -> About:
    """Return the title and the citation in a file of a paper or of claims. Without a title, it is the name of the file.

    Raises:
        InputError: The file is missing or not YAML.
    """
    found = load_yaml(path)
    return About(title=str(found.get("title", path.stem)), citation=str(found.get("citation", "")))


def _check_claim(claim: Claim, labels: AxisLabels) -> None:
    for quantity in claim.quantities():
        check_quantity(quantity, labels)
    for entry in claim.entries():
        check_labels(entry.restrict_to, labels)
    for compare in claim.compare or ():
        for floor in compare.floors():
            check_quantity(floor, labels)
    for correlate in claim.correlate or ():
        check_labels(dict.fromkeys((*correlate.over, *correlate.by), ()), {**labels, "layer": ()})
