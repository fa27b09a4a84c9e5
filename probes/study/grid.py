"""The grid of a study: its axes, which combinations of them are cells, and ``--set`` inside it."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import PurePath
from typing import Any
from unicodedata import category

from pydantic import Field, field_validator, model_validator

from pretrain.config import PretrainConfig
from probes.results.labels import short_key
from synthlang.catalogue import BASE
from synthlang.config import StrictModel, assigned, override
from synthlang.errors import InputError, did_you_mean
from synthlang.rng import key_of, permutation

AXIS_ROOTS = (
    *("source", "init_from", "pretrain", "target_model", "model", "adjust", "finetuned", "transfer", "tasks", "probes"),
)
RENAMED = {"start": "init_from", "second": "target_model", "tuned": "finetuned"}
"""Sections by the names that they had first, in a study and in the keys of axes."""
KNOWN_ROOTS = (*AXIS_ROOTS, *RENAMED)
RESERVED = ("task", "layer", "probe")
"""Names of no axis: results have these beside the labels of their cells, and claims look them up under these names."""

Labels = Mapping[str, str]
"""Value of a dotted key, as JSON → label."""


@dataclass(frozen=True)
class Setting:
    """One change of a cell: the value at a dotted key, and the axis it comes from."""

    axis: str
    key: str
    value: Any


@dataclass(frozen=True)
class Choice:
    """A value of an axis: its label, how it shows in the name of a cell, what it sets; ``value`` as the YAML has it."""

    axis: str
    label: str
    shown: str
    settings: tuple[Setting, ...]
    value: Any


def is_key(axis: str) -> bool:
    """Whether an axis is a dotted key (or ``source``, ``model``) and not a name with labels."""
    return axis.partition(".")[0] in KNOWN_ROOTS


def _is(one: Any, other: Any) -> bool:
    """Whether two values are the same: numbers as such, 10 is 10.0, others as JSON."""
    numbers = all(isinstance(value, int | float) and not isinstance(value, bool) for value in (one, other))
    return bool(one == other) if numbers else _text(one) == _text(other)


def labelled(axis: str, label: Any, changes: Mapping[str, Any]) -> Choice:
    settings = tuple(Setting(axis, key, value) for key, value in changes.items())
    return Choice(axis, str(label), str(label), settings, label)


def plain(key: str, value: Any, labels: Labels) -> Choice:
    label = labels[_text(value)]
    is_name = isinstance(value, str) or label != _text(value)
    shown = label if is_name else f"{short_key(key)}={label}"
    return Choice(key, label, shown, (Setting(key, key, value),), value)


def labels_of(key: str, values: Iterable[Any]) -> Labels:
    """Value as JSON → its label; where another value would have the same one, a longer one.

    Results are grouped by labels, so values of one label would be averaged as if they were seeds. The longer labels are
    the paths of base files, without the ending, and then the JSON, which no other value has.
    """
    forms = {
        _text(value): (label_of(key, value), label_of(key, value, with_folders=True), _text(value)) for value in values
    }
    chosen = dict.fromkeys(forms, 0)
    while True:
        labels = {text: forms[text][form] for text, form in chosen.items()}
        count = Counter(labels.values())
        alike = [text for text, label in labels.items() if count[label] > 1]
        if not alike:
            return labels
        chosen |= {text: min(chosen[text] + 1, 2) for text in alike}


def label_of(key: str, value: Any, with_folders: bool = False) -> str:
    """A value as text: the ``name`` of a mapping that has one, base files without ending, mostly without folder."""
    if isinstance(value, dict) and isinstance(value.get("name"), str):
        return str(value["name"])
    if BASE in key.split(".")[1:]:
        files = [PurePath(str(name)) for name in (value if isinstance(value, list) else [value])]
        return "+".join((file.parent / file.stem).as_posix() if with_folders else file.stem for file in files)
    return value if isinstance(value, str) else _text(value)


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def check_axis(part: str, axis: str, values: Any) -> None:
    if isinstance(values, dict):
        check_labels(axis, values)
    elif not isinstance(values, list):
        raise ValueError(f"{part}.{axis}: must be a list of values, or labels with what each sets")
    else:
        check_key(axis, f"axis {axis!r}")
        twice = [text for text, count in Counter(map(_text, values)).items() if count > 1]
        if twice and part == "product":  # the lists of zip are walked together
            raise ValueError(f"axis {axis!r} has {twice[0]} twice")
    if not values:
        raise ValueError(f"axis {axis!r} has no values")


def check_labels(axis: str, labels: Mapping[Any, Any]) -> None:
    """Raise ValueError for a named axis without a name of its own, or with labels that results cannot show or that do
    not set dotted keys."""
    if "." in axis or axis in KNOWN_ROOTS:
        raise ValueError(f"axis {axis!r} must be a list of values; an axis with labels has a name of its own, no key")
    if not axis.strip():
        raise ValueError(f"axis {axis!r} has no name")
    if axis in RESERVED:
        raise ValueError(f"axis {axis!r}: results have a {axis} beside the labels of a cell; call the axis otherwise")
    if len({str(label) for label in labels}) < len(labels):
        raise ValueError(f"axis {axis!r} has a label twice")
    for label, changes in labels.items():
        where = f"axis {axis!r}, label {label!r}"
        if not str(label).strip():
            raise ValueError(f"axis {axis!r} has an empty label, which results take for none")
        if any(category(sign) == "Cc" for sign in str(label)):
            raise ValueError(f"{where}: has a control character, which results cannot show")
        if not isinstance(changes, dict):
            raise ValueError(f"{where}: must set dotted keys, as in {{pretrain.steps: 100}}, not {changes!r}")
        for key in changes:
            check_key(str(key), f"{where}: {key!r}")


def check_key(key: str, what: str) -> None:
    """Raise ValueError for a key that no cell can have."""
    parts = key.split(".")
    if parts[0] not in KNOWN_ROOTS:
        raise ValueError(f"{what} must start with one of {', '.join(AXIS_ROOTS)}{_hint(parts)}")
    if not all(parts):
        raise ValueError(f"{what} is no dotted key")
    if parts[0] in ("source", "model") and len(parts) > 1:
        raise ValueError(f"{what}: {parts[0]} is one value, it has no key {parts[1]!r}")


def _hint(parts: list[str]) -> str:
    """What may have been meant by a key with another start."""
    if len(parts) == 1:
        return " (a name without a dot needs labels)"
    if parts[0] in PretrainConfig.model_fields:
        return f"; did you mean {'.'.join(['pretrain', *parts])}?"
    near = get_close_matches(parts[0], AXIS_ROOTS, 1)
    return f"; did you mean {'.'.join([*near, *parts[1:]])}?" if near else ""


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
        return {choice.axis: choice.label for choice in self.choices}

    @property
    def settings(self) -> tuple[Setting, ...]:
        return tuple(setting for choice in self.choices for setting in choice.settings)

    @property
    def overrides(self) -> dict[str, Any]:
        """Dotted key → value; of two axes that set one key, the later one's."""
        return {setting.key: setting.value for setting in self.settings}


class SampleConfig(StrictModel):
    """So many ``cells`` of a product, drawn by ``seed`` without replacement: a random search."""

    cells: int = Field(ge=1)
    seed: int = Field(default=0, ge=0)


class GridConfig(StrictModel):
    """Which cells there are: every combination of ``product``, with each row of ``zip``, and those of ``include``.

    An axis is a dotted key with the list of its values (``pretrain.seed: [0, 1]``), or a name without a dot with its
    labels, each of which sets any number of keys: ``objective: {MLM: {pretrain.objective.kind: mlm}}``. The axes of
    ``zip`` have equally many values and are walked together. A combination that agrees with every key of an entry of
    ``exclude`` is left out; of the others ``sample`` leaves a random part. An entry of ``include`` is one more cell: a
    value for a dotted key, or for a named axis one of its labels, or a label of its own with what it sets; what it does
    not name has the base's value. What it names is applied in the order of the grid's axes, then keys that are none, in
    its own. Without axes the cells are those of ``include``, or else the base alone.
    """

    product: dict[str, Any] = Field(default_factory=dict)
    zip: dict[str, Any] = Field(default_factory=dict)
    include: list[dict[str, Any]] = Field(default_factory=list)
    exclude: list[dict[str, Any]] = Field(default_factory=list)
    sample: SampleConfig | None = None

    @field_validator("product", "zip", mode="before")
    @classmethod
    def _left_empty(cls, value: Any) -> Any:
        """An axis without values is one of a base that is taken away."""
        known = {} if value is None else value
        return {k: v for k, v in known.items() if v is not None} if isinstance(known, dict) else known

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
        values = {axis: list(of_axis) for axis, of_axis in {**self.product, **self.zip}.items() if is_key(axis)}
        for axis, value in (item for entry in self.include for item in entry.items() if is_key(item[0])):
            values.setdefault(axis, []).append(value)
        return {axis: labels_of(axis, of_axis) for axis, of_axis in values.items()}

    def points(self) -> list[Point]:
        """The cells in the order of the YAML, the last axis fastest, those of ``include`` last.

        Raises InputError for an entry of exclude or include that names no axis, value or label of the grid.
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
        points = [Point((*chosen, *row)) for chosen in products for row in rows]
        if not axes and self.include:
            points = []  # then these are all
        left_out = set[int]()
        for number, entry in enumerate(self.exclude):
            left_out |= _excluded(points, axes, entry, f"grid.exclude.{number}")
        kept = [point for i, point in enumerate(points) if i not in left_out]
        if self.sample is not None and self.sample.cells < len(kept):
            drawn = permutation(key_of("grid", self.sample.seed), len(kept))[: self.sample.cells]
            kept = [kept[i] for i in sorted(drawn.tolist())]
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
    """The choices of an axis with this value, or else with this label; InputError if there is none."""
    if axis not in axes:
        raise InputError(f"{where}: {axis!r} is no axis of the grid; it has {', '.join(axes) or 'none'}")
    found = [choice for choice in axes[axis] if _is(choice.value, value)]
    found = found or [choice for choice in axes[axis] if choice.label == str(value)]
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
        if isinstance(value, dict) and "." not in axis and axis not in KNOWN_ROOTS:
            if len(value) != 1:
                raise ValueError(f"axis {axis!r}: one label with what it sets, not {len(value)}")
            check_labels(axis, value)
            return labelled(axis, *next(iter(value.items())))
        check_key(axis, f"{axis!r}, which is no axis,")
    except ValueError as error:
        raise InputError(f"{where}: {error}") from error
    return plain(axis, value, labels[axis])


PARTS = ("product", "zip")
LISTS = ("include", "exclude")
EXAMPLE = "pretrain.objective.alpha=5"


def with_assignments(data: Mapping[str, Any], assignments: Sequence[str]) -> dict[str, Any]:
    """The mapping of a study with each assignment applied.

    grid.product.KEY=[…], grid.zip.KEY=[…]            the values of an axis; null takes it away
    grid.product.NAME=…, grid.product.NAME.LABEL=…    a named axis, what one of its labels sets; null takes the axis,
                                                      or the label, away
    grid.product.NAME.LABEL.KEY=VALUE                 one key of it
    grid.exclude.N.KEY=VALUE, grid.include.N.KEY=…    one key of an entry

    Any other key is that of ``synthlang.config.override``.
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
        if value is None and keys[1] in PARTS and len(place) < 5:  # an axis, or a label, and not what a label sets
            *place, gone = place
            value = _without(gone, place, result)
        result = assigned(result, place, value)
    return result


def _without(name: str, place: Sequence[str], data: Mapping[str, Any]) -> dict[str, Any]:
    """What is at this place but for an axis of a base, or a label; InputError for a label that is not there."""
    known = _keys_at(place, data)
    if name not in known and len(place) > 2:
        labels = [str(label) for label in known]
        has = f"it has {', '.join(labels)}" if labels else "it has no labels"
        raise InputError(f"axis {place[-1]!r} has no label {name!r} to take away: {did_you_mean(name, labels)}{has}")
    return {key: of for key, of in known.items() if key != name}


def _keys_at(place: Sequence[str], data: Mapping[str, Any]) -> Mapping[str, Any]:
    """What stands at this place; nothing where there are no keys, as in an axis that is a list."""
    node: Any = data
    for key in place:
        node = node.get(key) if isinstance(node, Mapping) else None
    return node if isinstance(node, Mapping) else {}


def _place(keys: Sequence[str], data: Mapping[str, Any]) -> list[str] | None:
    """Where in the YAML an assignment goes, if it is inside an axis or an entry of the grid."""
    if len(keys) > 2 and keys[0] == "grid" and keys[1] in PARTS:
        axis = keys[2]
        if axis in KNOWN_ROOTS:
            return ["grid", keys[1], ".".join(keys[2:])]
        labels = _keys_at(keys[:3], data)
        # a label may have dots itself; of several it is the longest that there is
        ends = (end for end in range(len(keys), 3, -1) if ".".join(keys[3:end]) in labels)
        end = next(ends, 4)
        return [*keys[:3], *(".".join(part) for part in (keys[3:end], keys[end:]) if part)]
    if len(keys) > 3 and keys[0] == "grid" and keys[1] in LISTS:
        return ["grid", keys[1], keys[2], ".".join(keys[3:])]
    return None
