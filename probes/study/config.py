"""A study: a base configuration and a grid of changes to it."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

from pydantic import Field, field_validator, model_validator

from pretrain.config import PretrainConfig
from probes.transfer.config import TransferConfig
from synthlang.config import StrictModel, load_yaml, override, parse
from synthlang.errors import InputError
from synthlang.files import safe_name
from synthlang.fingerprint import fingerprint

Overrides = dict[str, Any]
AXIS_ROOTS = ("source", "pretrain", "transfer")


class GridConfig(StrictModel):
    """Which cells there are: every combination of ``product``, with each row of ``zip``.

    Both map a dotted key to the list of its values; lists of ``zip`` have the same length and
    are walked together. A cell that agrees with every key of an entry of ``exclude`` is left out.
    """

    product: dict[str, list[Any]] = Field(default_factory=dict)
    zip: dict[str, list[Any]] = Field(default_factory=dict)
    exclude: list[dict[str, Any]] = Field(default_factory=list)

    @model_validator(mode="after")
    def _sound(self) -> GridConfig:
        for key, values in {**self.product, **self.zip}.items():
            if key.split(".")[0] not in AXIS_ROOTS:
                raise ValueError(f"axis {key!r} must start with one of {', '.join(AXIS_ROOTS)}")
            if not values:
                raise ValueError(f"axis {key!r} has no values")
        if len({len(values) for values in self.zip.values()}) > 1:
            raise ValueError("the lists of zip must have the same length")
        if both := self.product.keys() & self.zip.keys():
            raise ValueError(f"axis {min(both)!r} stands in product and in zip")
        return self

    def cells(self) -> list[Overrides]:
        """The overrides of each cell, in the order of the YAML, the last axis fastest."""
        rows = [dict(zip(self.zip, values, strict=True)) for values in zip(*self.zip.values(), strict=True)] or [{}]
        combinations = [
            dict(zip(self.product, values, strict=True)) for values in itertools.product(*self.product.values())
        ]
        cells = [combination | row for combination in combinations for row in rows]
        return [c for c in cells if not any(all(c.get(k) == v for k, v in e.items()) for e in self.exclude)]


class StudyConfig(StrictModel):
    """The YAML of ``synthlang study``.

    pretrain   a pretraining config without its source
    seeds      seeds of the transfer step; a pretraining seed is an axis: pretrain.seed
    """

    name: str
    title: str = ""
    source: str
    pretrain: dict[str, Any]
    transfer: TransferConfig = TransferConfig()
    seeds: list[int] = Field(default=[0], min_length=1)
    grid: GridConfig = GridConfig()

    @field_validator("name")
    @classmethod
    def _safe(cls, value: str) -> str:
        return safe_name(value, "study name")

    @field_validator("seeds")
    @classmethod
    def _distinct(cls, value: list[int]) -> list[int]:
        if len(set(value)) < len(value) or min(value) < 0:
            raise ValueError("must be distinct numbers from 0 on")
        return value

    @property
    def fingerprint(self) -> str:
        """Of everything but the title."""
        return fingerprint("study", config=self.model_dump(mode="json", exclude={"title"}))


class Cell(StrictModel):
    """One combination of the grid."""

    name: str
    overrides: dict[str, Any]
    pretrain: PretrainConfig
    transfer: TransferConfig


def load_study(path: Path, assignments: list[str]) -> tuple[StudyConfig, list[Cell]]:
    """Read a study and check every cell of it before anything starts."""
    study = parse(StudyConfig, override(load_yaml(path), assignments), path)
    return study, expand(study, path)


def expand(study: StudyConfig, path: Path | None = None) -> list[Cell]:
    """The cells of a study; wrong values are errors that name the cell."""
    cells = []
    for overrides in study.grid.cells():
        name = cell_name(overrides) or study.name
        merged: dict[str, Any] = {
            "source": study.source,
            "pretrain": study.pretrain,
            "transfer": study.transfer.model_dump(mode="json"),
        }
        for key, value in overrides.items():
            merged = _assign(merged, key.split("."), value)
        where = f"{path or study.name} cell {name}"
        if "source" in merged["pretrain"]:
            raise InputError("the source of a study stands at its top, not under pretrain", where)
        pretrain = parse(PretrainConfig, {"source": merged["source"], **merged["pretrain"]}, where)
        transfer = parse(TransferConfig, merged["transfer"], where)
        length = positions_of(pretrain)
        if transfer.length > length:
            raise InputError(
                f"transfer.length {transfer.length} exceeds the {length} tokens that the model reads", where
            )
        cells.append(Cell.model_construct(name=name, overrides=overrides, pretrain=pretrain, transfer=transfer))
    if not cells:
        raise InputError("the grid has no cell", path)
    names = [cell.name for cell in cells]
    if len(set(names)) < len(names):
        raise InputError("two cells of the grid are the same", path)
    return cells


def positions_of(pretrain: PretrainConfig) -> int:
    """How many tokens the model of a run reads at once, as far as its config tells."""
    positions = None if pretrain.start else pretrain.model.positions
    return positions or pretrain.batch.length


def _assign(data: Any, keys: list[str], value: Any) -> Any:
    """A copy of nested mappings with one value replaced."""
    if not keys:
        return value
    inner = data.get(keys[0], {}) if isinstance(data, dict) else {}
    return {**data, keys[0]: _assign(inner, keys[1:], value)}


def cell_name(overrides: Overrides) -> str:
    """The values of a cell, as ``trans+inv, align_mlm``; numbers keep the last part of their key."""
    parts = []
    for key, value in overrides.items():
        shown = value.get("name", value) if isinstance(value, dict) else value
        parts.append(shown if isinstance(shown, str) else f"{key.split('.')[-1]}={shown}")
    return ", ".join(parts)
