"""Grid of a study: its axes, the combinations that become cells, and assignments (``--set``) to its keys."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import Field, field_validator, model_validator

from probes.study.axes import (
    KNOWN_ROOTS,
    Choice,
    Setting,
    check_axis,
    check_key,
    check_named_axis,
    distinct_labels,
    is_key,
    is_value,
    labelled,
    plain,
)
from synthlang.config import StrictModel, assigned, override
from synthlang.config_errors import show_value
from synthlang.errors import InputError, did_you_mean
from synthlang.rng import key_of, permutation
from synthlang.wording import enumerated, first_few

Axes = Mapping[str, Sequence[Choice]]
LabelsOfValues = Mapping[str, Mapping[str, str]]
"""Dotted key → value as JSON → label."""
SHOWN = 20
"""Largest number of axes, or of labels of an axis, that an error names."""


@dataclass(frozen=True)
class GridPoint:
    """The choices that give one cell: a choice of each axis of the grid, or the choices of an entry of ``include``."""

    choices: tuple[Choice, ...]

    @property
    def name(self) -> str:
        """The name of the cell, such as ``trans+inv, MLM, pretrain seed=1``. It is empty without axes."""
        return ", ".join(choice.shown for choice in self.choices)

    @property
    def full_name(self) -> str:
        """The name with all axes, such as ``pretrain.language=trans+inv, objective=MLM``."""
        return ", ".join(f"{choice.axis}={choice.label}" for choice in self.choices)

    @property
    def labels(self) -> dict[str, str]:
        """Axis → label."""
        return {choice.axis: choice.label for choice in self.choices}

    @property
    def settings(self) -> tuple[Setting, ...]:
        """The changes of all axes, in their order."""
        return tuple(setting for choice in self.choices for setting in choice.settings)

    @property
    def overrides(self) -> dict[str, Any]:
        """Dotted key → value. If two axes set a key, the later axis takes precedence."""
        return {setting.key: setting.value for setting in self.settings}


class SampleConfig(StrictModel):
    """A random sample, without replacement, of the combinations that are not excluded."""

    cells: int = Field(ge=1)
    """Number of cells in the sample."""
    seed: int = Field(default=0, ge=0)
    """Seed of the sample."""


class GridConfig(StrictModel):
    """The cells of a study: every combination of ``product`` with each row of ``zip``, and the entries of ``include``.

    An axis is a dotted key with a list of values (``pretrain.seed: [0, 1]``), or a name without a dot and its labels,
    each of which sets any number of keys: ``objective: {MLM: {pretrain.objective.kind: mlm}}``. The axes of ``zip``
    have equally many values and change together. Each of them has a separate column in the results.

    A combination that agrees with every key of an entry of ``exclude`` is left out. ``sample`` keeps a random part of
    the others. An entry of ``include`` is one more cell. It gives a value for a dotted key, and for a named axis one of
    its labels or a new label with its settings. All other settings are those of the study. The settings of an entry
    are applied in the order of the grid's axes, and other keys after them, in the order of the entry.

    Without axes the cells are the entries of ``include``. Without such entries the study has one cell.
    """

    product: dict[str, Any] = Field(default_factory=dict)
    """Axes whose combinations are cells: dotted key → values, or name → labels with their changes."""
    zip: dict[str, Any] = Field(default_factory=dict)
    """Axes that change together, with equally many values: dotted key → values, or name → labels."""
    include: list[dict[str, Any]] = Field(default_factory=list)
    """Further cells: a value or label for any number of axes and keys. All other settings are those of the study."""
    exclude: list[dict[str, Any]] = Field(default_factory=list)
    """Combinations to leave out: a value or label for at least one axis."""
    sample: SampleConfig | None = None
    """Random part of the combinations to keep (default: all)."""

    @field_validator("product", "zip", mode="before")
    @classmethod
    def _left_empty(cls, value: Any) -> Any:
        """Remove null axes. A study sets an axis of its base to null to drop it."""
        known = {} if value is None else value
        return {k: v for k, v in known.items() if v is not None} if isinstance(known, dict) else known

    @model_validator(mode="after")
    def _sound(self) -> GridConfig:
        for part, axes in (("product", self.product), ("zip", self.zip)):
            for axis, values in axes.items():
                try:
                    check_axis(part, axis, values)
                except InputError as error:
                    raise error.inside(part) from error
        if len({len(values) for values in self.zip.values()}) > 1:
            lengths = first_few([f"{axis} has {len(values)}" for axis, values in self.zip.items()], SHOWN)
            reason = f"the axes have different numbers of values ({lengths})"
            hint = "give all axes the same number of values"
            raise InputError(reason, keys="zip", hint=hint, code="conflict")
        if both := self.product.keys() & self.zip.keys():
            reason = "the axis appears in both product and zip"
            raise InputError(reason, keys=("zip", min(both)), hint="remove one of them", code="duplicate")
        return self

    def _labels(self) -> dict[str, dict[str, str]]:
        """Return the labels of all values that axes and entries of ``include`` give to dotted keys."""
        values = {axis: list(of_axis) for axis, of_axis in {**self.product, **self.zip}.items() if is_key(axis)}
        for axis, value in (item for entry in self.include for item in entry.items() if is_key(item[0])):
            values.setdefault(axis, []).append(value)
        return {axis: distinct_labels(axis, of_axis) for axis, of_axis in values.items()}

    def points(self) -> list[GridPoint]:
        """Return the combinations that become cells. The combinations of ``include`` are last.

        Other combinations are in the order of the YAML, in which the last axis varies fastest.

        Raises:
            InputError: An entry of exclude or include is empty, or has an unknown axis, key, value or label. An entry
                of exclude matches no cell, or an entry of include has a malformed label.
        """
        labels = self._labels()
        axes: dict[str, list[Choice]] = {
            axis: [labelled(axis, *item) for item in values.items()]
            if isinstance(values, dict)
            else [plain(axis, value, labels[axis]) for value in values]
            for axis, values in {**self.product, **self.zip}.items()
        }
        rows = list(zip(*(axes[axis] for axis in self.zip), strict=True)) or [()]
        products = itertools.product(*(axes[axis] for axis in self.product))
        points = [GridPoint((*chosen, *row)) for chosen in products for row in rows]
        if not axes and self.include:
            points = []  # The entries of include are all cells.
        left_out = set[int]()
        for number, entry in enumerate(self.exclude):
            left_out |= _excluded(points, axes, entry, ("grid", "exclude", str(number)))
        kept = [point for i, point in enumerate(points) if i not in left_out]
        if self.sample is not None and self.sample.cells < len(kept):
            drawn = permutation(key_of("grid", self.sample.seed), len(kept))[: self.sample.cells]
            kept = [kept[i] for i in sorted(drawn.tolist())]
        entries = enumerate(self.include)
        return kept + [_included(axes, entry, labels, ("grid", "include", str(number))) for number, entry in entries]


def _excluded(points: Sequence[GridPoint], axes: Axes, entry: Mapping[str, Any], keys: Sequence[str]) -> set[int]:
    """Return the indices of the points that match every axis of an entry of ``exclude``. ``keys`` is its place."""
    if not entry:  # it would match every point
        raise InputError("the entry is empty", keys=keys, hint="name an axis, or remove this entry", code="empty")
    wanted = {axis: {choice.label for choice in _named(axes, axis, value, keys)} for axis, value in entry.items()}
    found = {i for i, point in enumerate(points) if all(point.labels[a] in labels for a, labels in wanted.items())}
    if not found:
        shown = enumerated([f"{axis}: {show_value(value)}" for axis, value in entry.items()])
        reason = f"no combination of product and zip has {shown}"
        raise InputError(reason, keys=keys, hint="change or remove this entry", code="no_effect")
    return found


def _named(axes: Axes, axis: str, value: Any, keys: Sequence[str]) -> list[Choice]:
    """Return the choices of an axis with this value, or else with this label.

    Raises:
        InputError: The grid has no such axis, or the axis has no such value or label.
    """
    if axis not in axes:
        hint = f"{did_you_mean(axis, axes)}choose one of {first_few([*axes], SHOWN)}"
        hint = hint if axes else "remove this entry, because product and zip are empty"
        raise InputError("unknown axis", keys=(*keys, axis), hint=hint, code="unknown")
    found = [choice for choice in axes[axis] if is_value(choice.value, value)]
    found = found or [choice for choice in axes[axis] if choice.label == str(value)]
    if not found:
        labels = [choice.label for choice in axes[axis]]
        near = did_you_mean(value, labels) if isinstance(value, str) else ""
        hint = f"{near}choose one of {first_few(labels, SHOWN)}"
        reason = f"{show_value(value)} is not a value of this axis"
        raise InputError(reason, keys=(*keys, axis), hint=hint, code="unknown")
    return found


def _included(axes: Axes, entry: Mapping[str, Any], labels: LabelsOfValues, keys: Sequence[str]) -> GridPoint:
    """Return the combination of an entry of ``include``. Axes come in the order of the grid, then other keys."""
    if not entry:
        raise InputError("the entry is empty", keys=keys, hint="give a value, or remove this entry", code="empty")
    place = {axis: number for number, axis in enumerate(axes)}
    names = sorted(entry, key=lambda axis: place.get(axis, len(place)))
    return GridPoint(tuple(_choice(axes, axis, entry[axis], labels, keys) for axis in names))


def _choice(axes: Axes, axis: str, value: Any, labels: LabelsOfValues, keys: Sequence[str]) -> Choice:
    """Return the choice of an entry of ``include`` for an axis or a dotted key."""
    if axis in axes and not isinstance(value, dict) and not is_key(axis):
        return _named(axes, axis, value, keys)[0]
    try:
        if isinstance(value, dict) and "." not in axis and axis not in KNOWN_ROOTS:
            if len(value) != 1:
                reason = f"must have one label, not {len(value)}"
                raise InputError(reason, keys=(axis,), hint="write one label with the keys that it sets", code="range")
            check_named_axis(axis, value)
            return labelled(axis, *next(iter(value.items())))
        check_key(axis, (axis,))
    except InputError as error:
        raise error.inside(*keys) from error
    return plain(axis, value, labels[axis])


PARTS = ("product", "zip")
LISTS = ("include", "exclude")
EXAMPLE = "pretrain.objective.alpha=5"


def with_assignments(data: Mapping[str, Any], assignments: Sequence[str]) -> dict[str, Any]:
    """Return the mapping of a study with all assignments ``KEY=VALUE`` applied.

    grid.product.KEY=[…], grid.zip.KEY=[…]            the values of an axis
    grid.product.NAME=…                               all labels of a named axis
    grid.product.NAME.LABEL=…                         the keys that a label sets
    grid.product.NAME.LABEL.KEY=VALUE                 one key that a label sets
    grid.exclude.N.KEY=VALUE, grid.include.N.KEY=…    one key of an entry

    The value null removes an axis or a label.

    ``synthlang.config.override`` applies any other key.

    Raises:
        InputError: A text is not an assignment, its key names no place in the study, or null removes a label that the
            axis does not have.
    """
    result = dict(data)
    for assignment in assignments:
        keys = assignment.partition("=")[0].split(".")
        place = _place(keys, result)
        value: Any = override({} if place else result, [assignment], EXAMPLE)
        if place is None:
            result = value
            continue
        for key in keys:
            value = value[key]
        if value is None and keys[1] in PARTS and len(place) == 4:  # a label
            *place, gone = place
            value = _without(gone, place, result)
        result = assigned(result, place, value)
    return result


def _without(label: str, place: Sequence[str], data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the labels of the axis at ``place`` without one label, which must exist."""
    labels = [str(name) for name in keys_at(place, data)]
    if label not in labels:
        choice = f"choose one of {first_few(labels, SHOWN)}" if labels else "remove this assignment"
        hint = did_you_mean(label, labels) + choice
        raise InputError(f"has no label {label!r}", "--set", keys=place, hint=hint, code="unknown")
    return {name: changes for name, changes in keys_at(place, data).items() if str(name) != label}


def keys_at(place: Sequence[str], data: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the mapping at the keys ``place``, or an empty mapping if the value there is not a mapping."""
    node: Any = data
    for key in place:
        node = node.get(key) if isinstance(node, Mapping) else None
    return node if isinstance(node, Mapping) else {}


def _place(keys: Sequence[str], data: Mapping[str, Any]) -> list[str] | None:
    """Return the place of an assignment inside an axis or an entry of the grid, or None for any other key."""
    if len(keys) > 2 and keys[0] == "grid" and keys[1] in PARTS:
        axis = keys[2]
        if axis in KNOWN_ROOTS:
            return ["grid", keys[1], ".".join(keys[2:])]
        labels = keys_at(keys[:3], data)
        # A label may contain dots. The longest label that exists is taken.
        ends = (end for end in range(len(keys), 3, -1) if ".".join(keys[3:end]) in labels)
        end = next(ends, 4)
        return [*keys[:3], *(".".join(part) for part in (keys[3:end], keys[end:]) if part)]
    if len(keys) > 3 and keys[0] == "grid" and keys[1] in LISTS:
        return ["grid", keys[1], keys[2], ".".join(keys[3:])]
    return None
