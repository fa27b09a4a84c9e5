"""Declarations of measures: their units, valid ranges and populations, and the places of their values in a result.

The result of a stage is JSON: nested mappings, and lists over layers, steps or bands of frequency. The code that makes
a result also declares a **tree** of the same shape, with measures as its leaves::

    tree     {"scores": {"all": {"csls": PERCENT_OF_WORDS}}, "layers": Entries({"auc": SHARE_OF_PAIRS})}
    result   {"scores": {"all": {"csls": 12.5, "n": 80}}, "layers": [{"layer": 2, "auc": 0.9}]}
    values   scores.all.csls = 12.5;  layers.auc = 0.9 at layer 2

`values_in` takes the values out of a result, and `find` looks a measure up by its name in tables of finished studies.
Numbers that no leaf declares are not measures.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

Range = tuple[float, float]
PERCENT: Range = (0.0, 100.0)
DIFFERENCE: Range = (-100.0, 100.0)
SHARE: Range = (0.0, 1.0)
COEFFICIENT: Range = (-1.0, 1.0)
AT_LEAST_ZERO: Range = (0.0, math.inf)
AT_LEAST_ONE: Range = (1.0, math.inf)

ANY = "*"
"""The key of a tree that stands for every key that the tree does not name, such as the name of a language."""
MODEL = "model"
"""Replacement in names for the name of the probed model, which differs from cell to cell."""


@dataclass(frozen=True)
class Measure:
    """The declaration of a measure.

    Attributes:
        unit: The unit of the values, such as "percent".
        over: The population of a mean, a share or a count, such as "linked words".
        within: The least and the greatest possible value, or None if they are not known.
        title: The title of figures of the measure (default: the name of the measure).
        main: True if a report draws the measure before other measures of its probe.
    """

    unit: str
    over: str
    within: Range | None = None
    title: str = ""
    main: bool = False


@dataclass(frozen=True)
class Entries:
    """A list of mappings in a result, each with its ``layer`` or ``step`` beside the values.

    Attributes:
        tree: The tree of each entry.
        part: Function from an entry to a part of the names of its measures, such as its distance. None adds no part.
    """

    tree: Tree
    part: Callable[[Mapping[str, Any]], str] | None = None


@dataclass(frozen=True)
class PerLayer:
    """A list of values in a result, one for each number in a list of layers.

    Attributes:
        layers: The key of the list of layers, in a mapping around the values.
        measure: The measure of the values.
    """

    layers: str
    measure: Measure


Tree = Mapping[str, "Node"]
Node = Measure | Entries | PerLayer | Tree


class Value(NamedTuple):
    """A finite number of a result, with the name and the declaration of its measure.

    Attributes:
        name: The path of the number, with dots.
        layer: The layer of the number, or None.
        step: The step of pretraining, or None.
        value: The number, in the unit of the measure.
        measure: The declaration.
    """

    name: str
    layer: int | None
    step: int | None
    value: float
    measure: Measure


def values_in(result: Mapping[str, Any], tree: Tree, model: str | None = None) -> Iterator[Value]:
    """Yield the finite numbers of a result that a tree declares, in the order of the result.

    Args:
        result: The JSON values of a stage.
        tree: The declarations.
        model: The name of the probed model, which becomes `MODEL` where it is a key.
    """
    return _Walk(model, {}).of(result, tree, ())


@dataclass(frozen=True)
class _Walk:
    """The state of a walk through a result: the layer, the step, and key → list for the surrounding mappings."""

    model: str | None
    lists: Mapping[str, Any]
    layer: int | None = None
    step: int | None = None

    def of(self, value: Any, node: Node, path: tuple[str, ...]) -> Iterator[Value]:
        if isinstance(node, Measure):
            if _is_finite(value):
                yield Value(".".join(path), self.layer, self.step, float(value), node)
        elif isinstance(node, Entries):
            for entry in value if isinstance(value, list) else ():
                part = () if node.part is None else (node.part(entry),)
                place = _Walk(self.model, {}, entry.get("layer", self.layer), entry.get("step", self.step))
                yield from place.of(entry, node.tree, (*path, *part))
        elif isinstance(node, PerLayer):
            if isinstance(value, list):
                for layer, one in zip(self.lists[node.layers], value, strict=True):
                    yield from _Walk(self.model, {}, layer, self.step).of(one, node.measure, path)
        elif isinstance(value, Mapping):
            lists = {**self.lists, **{key: inner for key, inner in value.items() if isinstance(inner, list)}}
            inside = _Walk(self.model, lists, self.layer, self.step)
            for key, inner in value.items():
                if (below := node.get(key)) is not None:
                    yield from inside.of(inner, below, (*path, key))
                elif (below := node.get(ANY)) is not None:
                    yield from inside.of(inner, below, (*path, MODEL if key == self.model else key))


def _is_finite(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def find(name: str, tree: Tree) -> Measure | None:
    """Return the measure that a tree declares under a dotted name, or None if no leaf has this name.

    The parts of a name that `ANY` and ``Entries.part`` stand for may contain dots.

    >>> hits = Measure("percent", "words", PERCENT)
    >>> find("languages.de.1st.mean", {"languages": {ANY: {"mean": hits}}}) is hits
    True
    """
    return _find(name.split("."), tree)


def _find(parts: Sequence[str], node: Node) -> Measure | None:
    if isinstance(node, Measure):
        return None if parts else node
    if isinstance(node, PerLayer):
        return _find(parts, node.measure)
    if isinstance(node, Entries):
        return _find(parts, node.tree) if node.part is None else _find_below(parts, node.tree)
    if not parts:
        return None
    below = node.get(parts[0])
    found = None if below is None else _find(parts[1:], below)
    return _find_below(parts, node[ANY]) if found is None and ANY in node else found


def _find_below(parts: Sequence[str], node: Node) -> Measure | None:
    """Find a measure below a free part of a name, which may contain dots."""
    found = (_find(parts[count:], node) for count in range(1, len(parts) + 1))
    return next((measure for measure in found if measure is not None), None)
