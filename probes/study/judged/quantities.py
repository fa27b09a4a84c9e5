"""What papers, claims and results have in common: a measure at some labels of the axes of a study."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from synthlang.errors import did_you_mean

MEASURE = re.compile(r"parent|sup|zs|delta|alignment_(all|dictionary|held_out)|mixed( \w+)?|probe:\S.*")
Where = dict[str, str]
Average = dict[str, tuple[str, ...]]
Layer = int | Literal["first", "last", "lower", "upper", "middle", "mean", "best", "each"]


@dataclass(frozen=True)
class Quantity:
    """A number to look up in results.

    where     axis → label; ``task`` is the name of a task of the study. Other axes may have any label
    measure   parent, sup, zs, delta; mixed FIELD, or mixed for the mean over fields; alignment_all,
              alignment_dictionary, alignment_held_out; ``probe:PATH``, a measure of a probe
    average   axis → labels whose mean it is, all of which must be there; no labels: of those that are there
    layer     of a measure that has several: its number, ``first`` or ``last``, the mean of the ``lower`` or ``upper``
              half, the ``middle`` one, the ``mean`` of all, or the ``best`` (largest value); ``each``: the layer is one
              more axis of the conditions, ``layer``. Default: the last
    instead   the measure that is read where nothing was measured of ``measure``
    """

    where: Mapping[str, str]
    measure: str
    average: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    layer: Layer | None = None
    instead: str | None = None


def check_measure(value: str | None) -> str | None:
    """ValueError for what is no measure; None is none."""
    if value is not None and not MEASURE.fullmatch(value):
        raise ValueError(
            "must be parent, sup, zs, delta, mixed, mixed FIELD, alignment_all, alignment_dictionary, "
            "alignment_held_out or probe:PATH"
        )
    return value


def check_axes(axes: Iterable[str], labels: Mapping[str, tuple[str, ...]]) -> None:
    """ValueError for an axis that ``labels`` does not have."""
    for axis in axes:
        if axis not in labels:
            raise ValueError(f"{axis!r} is no axis of the paper's labels; there are: {', '.join(labels)}")


def check_quantity(quantity: Quantity, labels: Mapping[str, tuple[str, ...]]) -> None:
    """ValueError for an axis or a label of ``quantity`` that is not among ``labels``."""
    check_labels(quantity.where, labels)
    check_axes(quantity.average, labels)
    for axis, averaged in quantity.average.items():
        for label in averaged:
            check_labels({axis: label}, labels)


def check_labels(where: Mapping[str, str], labels: Mapping[str, tuple[str, ...]]) -> None:
    """ValueError for an axis or a label that is not among ``labels``."""
    check_axes(where, labels)
    for axis, label in where.items():
        if label not in labels[axis]:
            hint = did_you_mean(label, labels[axis])
            raise ValueError(f"{axis}: no label {label!r}; {hint}there are: {', '.join(labels[axis])}")
