"""Comparisons of a study (key ``compare``): differences between two conditions, and interactions of two axes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from probes.results.labels import is_label, is_seed
from probes.study.axes import label_of
from probes.study.grid import SHOWN
from synthlang.config_errors import show_value
from synthlang.errors import InputError, did_you_mean
from synthlang.wording import first_few, plural

T = TypeVar("T")
Labels = Mapping[str, str]
"""Axis → label."""
FORM = "write two labels for one axis, as in {AXIS: [A, B]}, or for two axes and their interaction"


@dataclass(frozen=True)
class Comparison:
    """A difference, first − second, or an interaction, (first − second) − (third − fourth).

    Attributes:
        sides: The labels of each of the two or four conditions. All sides name the same axes.
    """

    sides: tuple[Labels, ...]

    @property
    def is_interaction(self) -> bool:
        """True if the comparison is a difference of two differences."""
        return len(self.sides) == 4

    def between(self, first: int, second: int) -> list[str]:
        """Return the axes in which two sides differ. ``first`` and ``second`` are indices of ``sides``."""
        return [axis for axis, label in self.sides[first].items() if self.sides[second][axis] != label]

    def matched(self, conditions: Sequence[T], labels_of: Callable[[T], Labels]) -> Iterator[tuple[T, ...]]:
        """Yield one condition for each side, once for each combination of labels of the other axes.

        A combination that lacks a side is left out. If several conditions match a side, the first of them is used.

        Args:
            conditions: The conditions to choose from.
            labels_of: Function that returns the labels of a condition.
        """
        groups: dict[tuple[tuple[str, str], ...], list[T]] = {}
        for condition in conditions:
            rest = (item for item in labels_of(condition).items() if item[0] not in self.sides[0])
            groups.setdefault(tuple(sorted(rest)), []).append(condition)
        for members in groups.values():
            found = [[one for one in members if _fits(labels_of(one), side)] for side in self.sides]
            if all(found):
                yield tuple(of_side[0] for of_side in found)


def _fits(labels: Labels, side: Labels) -> bool:
    return all(is_label(labels.get(axis), label) for axis, label in side.items())


def comparisons(entries: Sequence[Any]) -> list[Comparison]:
    """Return the comparisons of the entries of ``compare``.

    >>> [one] = comparisons([{"order": "free", "marking": ["case", "none"]}])
    >>> one.sides
    ({'order': 'free', 'marking': 'case'}, {'order': 'free', 'marking': 'none'})

    Raises:
        InputError: An entry does not have the form of a comparison, has equal conditions, or names an axis of seeds.
            The number of the entry, from 0, comes first in the keys of the error.
    """
    found = []
    for number, entry in enumerate(entries):
        try:
            sides = entry if isinstance(entry, list) else [entry]
            if seeds := [axis for side in sides for axis in side if is_seed(axis)]:
                reason = "an axis of seeds cannot be compared, because models with equal seeds are paired"
                hint = "remove this axis, or name another one"
                raise InputError(reason, keys=seeds[0], hint=hint, code="conflict")
            found.append(_pair(entry) if isinstance(entry, list) else _crossed(entry))
        except InputError as error:
            raise error.inside(str(number)) from error
    return found


def _crossed(entry: Mapping[str, Any]) -> Comparison:
    """Return the comparison of an entry in which one axis or two axes have two labels."""
    for axis, labels in entry.items():
        if isinstance(labels, list) and (len(labels) != 2 or _label(labels[0]) == _label(labels[1])):
            raise InputError(
                f"{show_value(labels)} is not a pair of different labels", keys=axis, hint=FORM, code="range"
            )
    fixed = {axis: _label(label) for axis, label in entry.items() if not isinstance(label, list)}
    varied = [(axis, [*map(_label, labels)]) for axis, labels in entry.items() if isinstance(labels, list)]
    if len(varied) not in (1, 2):
        reason = f"has {len(varied) or 'no'} axes with two labels, but must have one or two of them"
        raise InputError(reason, hint=FORM, code="range")
    (axis, labels), *others = varied
    outer = [{other: label} for other, of_other in others for label in of_other] or [{}]
    return Comparison(tuple({**fixed, axis: label, **more} for more in outer for label in labels))


def _pair(entry: Sequence[Mapping[str, Any]]) -> Comparison:
    """Return the comparison of an entry that lists two conditions."""
    if len(entry) != 2:
        reason = f"lists {plural(len(entry), 'condition')} instead of two"
        raise InputError(reason, hint="write two conditions, as in [{AXIS: A}, {AXIS: B}]", code="range")
    first, second = ({axis: _label(label) for axis, label in side.items()} for side in entry)
    if first.keys() != second.keys() or first == second:
        hint = "name the same axes in both, with different labels for at least one axis"
        reason = "the two conditions are equal" if first == second else "the two conditions name different axes"
        raise InputError(reason, hint=hint, code="conflict")
    return Comparison((first, second))


def _label(value: Any) -> str:
    return label_of("", value)


def check_comparisons(entries: Sequence[Any], cells: Sequence[Labels]) -> None:
    """Raise InputError for a malformed comparison, and for a comparison whose conditions the study does not have.

    Args:
        entries: The entries of ``compare``.
        cells: The labels of each cell.
    """
    known: dict[str, dict[str, None]] = {}
    for labels in cells:
        for axis, label in labels.items():
            known.setdefault(axis, {})[label] = None
    conditions = [{axis: label for axis, label in labels.items() if not is_seed(axis)} for labels in cells]
    for number, comparison in enumerate(comparisons(entries)):
        keys = ("compare", str(number))
        for axis, label in (item for side in comparison.sides for item in side.items()):
            if axis not in known:
                names = [name for name in known if not is_seed(name)]
                choice = f"choose one of {first_few(names, SHOWN)}" if names else "add an axis to the grid"
                hint = f"{did_you_mean(axis, names)}{choice}"
                raise InputError("unknown axis", keys=(*keys, axis), hint=hint, code="unknown")
            if not any(is_label(one, label) for one in known[axis]):
                hint = f"{did_you_mean(label, known[axis])}choose one of {first_few([*known[axis]], SHOWN)}"
                raise InputError(f"unknown label {label!r}", keys=(*keys, axis), hint=hint, code="unknown")
        if not any(comparison.matched(conditions, lambda labels: labels)):
            reason = "the grid has no cells that have the compared labels and agree in all other axes"
            hint = "change the comparison, or add the missing cells"
            raise InputError(reason, keys=keys, hint=hint, code="no_effect")
