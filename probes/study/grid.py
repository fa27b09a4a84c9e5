"""The grid of a study: which combinations of its axes are cells."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import Field, field_validator, model_validator

from probes.study.axes import (
    AXIS_ROOTS,
    Choice,
    Labels,
    Setting,
    check_axis,
    check_key,
    check_label,
    check_name,
    choices,
    is_key,
    labelled,
    labels_of,
    named,
    plain,
)
from synthlang.config import StrictModel
from synthlang.errors import InputError

Axes = Mapping[str, Sequence[Choice]]


@dataclass(frozen=True)
class Point:
    """A cell of the grid: one choice of each of its axes."""

    choices: tuple[Choice, ...]

    @property
    def name(self) -> str:
        """As ``trans+inv, MLM, pretrain seed=1``; "" without axes."""
        return ", ".join(choice.shown for choice in self.choices)

    @property
    def full_name(self) -> str:
        """With the name of each axis, as ``pretrain.language=trans+inv, objective=MLM``."""
        return ", ".join(f"{choice.axis}={choice.label}" for choice in self.choices)

    @property
    def labels(self) -> dict[str, str]:
        """Axis → label."""
        return {choice.axis: choice.label for choice in self.choices}

    @property
    def settings(self) -> tuple[Setting, ...]:
        """All changes, in the order of the axes."""
        return tuple(setting for choice in self.choices for setting in choice.settings)

    @property
    def overrides(self) -> dict[str, Any]:
        """Dotted key → value; of two axes that set one key, the later one's."""
        return {setting.key: setting.value for setting in self.settings}


class GridConfig(StrictModel):
    """Which cells there are: every combination of ``product``, with each row of ``zip``, and those of ``include``.

    An axis is a dotted key with the list of its values (``pretrain.seed: [0, 1]``), or a name without a dot with its
    labels, each of which sets any number of keys: ``objective: {MLM: {pretrain.objective.kind: mlm}}``. The axes of
    ``zip`` have equally many values and are walked together. A combination that agrees with every key of an entry of
    ``exclude`` is left out. An entry of ``include`` is one more cell: a value for a dotted key, or for a named axis one
    of its labels, or a label of its own with what it sets; what it does not name has the base's value. What it names is
    applied in the order of the grid's axes, then keys that are none, in its own. Without axes the cells are those of
    ``include``, or else the base alone.
    """

    product: dict[str, Any] = Field(default_factory=dict)
    zip: dict[str, Any] = Field(default_factory=dict)
    include: list[dict[str, Any]] = Field(default_factory=list)
    exclude: list[dict[str, Any]] = Field(default_factory=list)

    @field_validator("product", "zip", mode="before")
    @classmethod
    def _left_empty(cls, value: Any) -> Any:
        return {} if value is None else value

    @model_validator(mode="after")
    def _sound(self) -> GridConfig:
        for part, axes in (("product", self.product), ("zip", self.zip)):
            for axis, values in axes.items():
                check_axis(part, axis, values)
        if len({len(values) for values in self.zip.values()}) > 1:
            raise ValueError("the lists of zip must have the same length")
        if both := self.product.keys() & self.zip.keys():
            raise ValueError(f"axis {min(both)!r} stands in product and in zip")
        return self

    def _labels(self) -> dict[str, Labels]:
        """Dotted key → the labels of all values that an axis or entries of ``include`` have for it."""
        values = {axis: list(held) for axis, held in {**self.product, **self.zip}.items() if is_key(axis)}
        for axis, value in (item for entry in self.include for item in entry.items() if is_key(item[0])):
            values.setdefault(axis, []).append(value)
        return {axis: labels_of(axis, held) for axis, held in values.items()}

    def points(self) -> list[Point]:
        """The cells in the order of the YAML, the last axis fastest, those of ``include`` last.

        Raises InputError for an entry of exclude or include that names no axis, value or label of the grid.
        """
        labels = self._labels()
        axes = {
            axis: choices(axis, values, labels.get(axis, {})) for axis, values in {**self.product, **self.zip}.items()
        }
        rows = list(zip(*(axes[axis] for axis in self.zip), strict=True)) or [()]
        products = itertools.product(*(axes[axis] for axis in self.product))
        points = [Point((*chosen, *row)) for chosen in products for row in rows]
        if not axes and self.include:
            points = []  # then these are all
        left_out = set[int]()
        for number, entry in enumerate(self.exclude):
            left_out |= _excluded(points, axes, entry, f"grid.exclude.{number}")
        kept = [point for i, point in enumerate(points) if i not in left_out]
        return kept + [_included(axes, entry, labels, f"grid.include.{n}") for n, entry in enumerate(self.include)]


def _excluded(points: Sequence[Point], axes: Axes, entry: Mapping[str, Any], where: str) -> set[int]:
    """The numbers of the points that agree with every key of the entry."""
    if not entry:
        raise InputError(f"{where}: names no key of the cells that are left out")
    wanted = {axis: {choice.label for choice in _named(axes, axis, value, where)} for axis, value in entry.items()}
    found = {i for i, point in enumerate(points) if all(point.labels[a] in labels for a, labels in wanted.items())}
    if not found:
        shown = ", ".join(f"{axis}: {value}" for axis, value in entry.items())
        raise InputError(f"{where}: no cell has {shown}")
    return found


def _named(axes: Axes, axis: str, value: Any, where: str) -> list[Choice]:
    """The choices of an axis that ``value`` stands for; InputError if there is none."""
    if axis not in axes:
        raise InputError(f"{where}: {axis!r} is no axis of the grid; it has {', '.join(axes) or 'none'}")
    found = named(axes[axis], value)
    if not found:
        known = ", ".join(choice.label for choice in axes[axis])
        raise InputError(f"{where}: the axis {axis!r} has no {value!r}; it has {known}")
    return found


def _included(axes: Axes, entry: Mapping[str, Any], labels: Mapping[str, Labels], where: str) -> Point:
    """The cell of an entry: what it has for axes in the order of these, then for other keys in its own."""
    if not entry:
        raise InputError(f"{where}: names nothing that the cell has")
    place = {axis: number for number, axis in enumerate(axes)}
    names = sorted(entry, key=lambda axis: place.get(axis, len(place)))
    return Point(tuple(_choice(axes, axis, entry[axis], labels, where) for axis in names))


def _choice(axes: Axes, axis: str, value: Any, labels: Mapping[str, Labels], where: str) -> Choice:
    """What an entry of include has for an axis, or for a key that need be none."""
    if axis in axes and not isinstance(value, dict) and not is_key(axis):
        return _named(axes, axis, value, where)[0]
    try:
        if isinstance(value, dict) and "." not in axis and axis not in AXIS_ROOTS:
            if len(value) != 1:
                raise ValueError(f"axis {axis!r}: one label with what it sets, not {len(value)}")
            ((label, changes),) = value.items()
            check_name(axis)
            check_label(axis, label, changes)
            return labelled(axis, label, changes)
        check_key(axis, f"{axis!r}, which is no axis,")
    except ValueError as error:
        raise InputError(f"{where}: {error}") from error
    return plain(axis, value, labels[axis])
