"""The axes of a study: which are seeds, which vary, which are numbers, what they are called."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

MAIN = ("objective", "method", "sharing", "anchors")
"""Axes whose labels are compared with one another (bars side by side, one colour each) where a study has them."""
LANGUAGES = frozenset(
    {"language", "languages", "pair", "pairs", "script", "source", "target", "transform", "transforms"}
)
"""What an axis is called that says which languages a model reads: others are compared under each of its labels."""
TUNING = frozenset({"base", "best", "continual", "features", "fine_tune", "head", "rotation", "search", "train_items"})
"""Of the settings of a transfer, what says how a model is fine-tuned; others say on what, and how it is scored."""
COLOURED = 7
"""Most numbers of an axis that have a colour each."""


@dataclass(frozen=True)
class Layout:
    """How the conditions of a study are set out: in groups, and in a group by the labels of its main axis."""

    axes: Mapping[str, Sequence[str]]
    """Axes that vary → their labels."""
    main: str | None
    titles: Mapping[str, str]
    alone: str
    """What a condition is called where nothing varies: the labels that are ``fixed``, if any."""
    compared: tuple[str, ...] = ()
    """Axes whose labels are compared in words, the main one first: all but those of languages, if there are others."""
    fixed: Mapping[str, str] = field(default_factory=dict)
    """Axes that have one label here, and several in the whole grid → this label."""

    def text(self, axis: str, labels: Mapping[str, str]) -> str:
        """The label of an axis; a number or a switch comes with the name of its axis."""
        label = labels.get(axis, "–")
        bare = label in ("–", "true", "false", "True", "False", "None") or numbers_of([label]) is not None
        return f"{self.titles[axis]} {label}" if bare else label

    def name(self, labels: Mapping[str, str]) -> str:
        """The label of the main axis."""
        return self.alone if self.main is None else self.text(self.main, labels)

    def group(self, labels: Mapping[str, str]) -> str:
        """The labels of the other axes; "" where there is none."""
        return self.without(labels, *filter(None, [self.main]))

    def full_name(self, labels: Mapping[str, str]) -> str:
        """The labels of all axes that vary."""
        return self.without(labels) or self.alone

    @property
    def all_fixed(self) -> str:
        """The labels that are ``fixed``, joined."""
        return ", ".join(self.text(axis, self.fixed) for axis in self.fixed)

    def only(self, labels: Mapping[str, str], axes: Collection[str]) -> str:
        """The labels of these axes."""
        return ", ".join(self.text(axis, labels) for axis in self.axes if axis in axes)

    def without(self, labels: Mapping[str, str], *left_out: str) -> str:
        """The labels of all axes that vary but these."""
        return self.only(labels, [axis for axis in self.axes if axis not in left_out])


def layout_of(
    axes: Sequence[str],
    labels: Iterable[Mapping[str, str]],
    alone: str,
    languages: Collection[str] = (),
    grid: Iterable[Mapping[str, str]] = (),
) -> Layout:
    """The layout of a study with these axes, from the labels of its conditions; ``grid``: of all that there will be.

    The main axis is one of MAIN; else of those that are not of languages (by their names, or one of ``languages``) the
    last that is no number, or the last of few numbers; else the last that is no number, else the last.
    """
    conditions = list(labels)
    found = varying(axes, conditions)
    first = conditions[0] if conditions else {}
    fixed = {axis: first[axis] for axis in varying(axes, grid) if axis not in found and axis in first}
    titles = axis_titles([*found, *fixed])
    free = [axis for axis in found if axis not in languages and not is_of_languages(axis)]
    known = [axis for axis in found if titles[axis] in MAIN]
    words = [axis for axis in found if numbers_of(found[axis]) is None]
    few = [axis for axis in free if len(found[axis]) <= COLOURED]
    chosen = known[:1] or [a for a in words if a in free][-1:] or few[-1:] or words[-1:] or list(found)[-1:]
    main = chosen[0] if chosen else None
    compared = sorted(free or chosen, key=lambda axis: axis != main)
    set_out = Layout(found, main, titles, alone, tuple(compared), fixed)
    return set_out if found or not fixed else replace(set_out, alone=set_out.all_fixed)


def is_of_languages(key: str) -> bool:
    """Whether an axis, or a key of the settings, says which languages there are.

    >>> is_of_languages("transform"), is_of_languages("pretrain.languages.1"), is_of_languages("pretrain.steps")
    (True, True, False)
    """
    return next((part for part in reversed(key.split(".")) if not part.isdigit()), "") in LANGUAGES


def is_of_tuning(key: str) -> bool:
    """Whether an axis, or a key of the settings, says how models are fine-tuned.

    >>> is_of_tuning("transfer.fine_tune.rows"), is_of_tuning("tasks.pos.features.tune"), is_of_tuning("tasks.pos.test")
    (True, True, False)
    """
    root, *parts = key.split(".")
    inside = {"transfer": parts[:1], "finetuned": parts[:1], "tuned": parts[:1], "tasks": parts[1:2]}.get(root, [])
    return not TUNING.isdisjoint(inside)


def axes_that_set(config: Mapping[str, Any], is_meant: Callable[[str], bool]) -> set[str]:
    """The named axes of a study, or of several joined, all of whose labels set nothing but keys that are meant."""
    found = set[str]()
    for one in (config, *(part for part in config.values() if isinstance(part, Mapping))):
        grid = one.get("grid")
        for axes in (grid.get("product"), grid.get("zip")) if isinstance(grid, Mapping) else ():
            for axis, labels in axes.items() if isinstance(axes, Mapping) else ():
                if isinstance(labels, Mapping) and all(isinstance(changes, Mapping) for changes in labels.values()):
                    keys = [str(key) for changes in labels.values() for key in changes]
                    found |= {axis} if keys and all(map(is_meant, keys)) else set()
    return found


def is_seed(key: str) -> bool:
    """Whether an axis sets a seed: replicates differ in these only.

    >>> is_seed("pretrain.seed"), is_seed("objective.alpha")
    (True, False)
    """
    last = key.rsplit(".", 1)[-1]
    return last in ("seed", "seeds") or last.endswith("_seed")


def unseeded(labels: Mapping[str, str]) -> str:
    """Labels but for seeds, as a text: those of replicates are the same.

    >>> unseeded({"size": "big", "pretrain.seed": "3"})
    '{"size": "big"}'
    """
    return json.dumps({axis: label for axis, label in sorted(labels.items()) if not is_seed(axis)})


def short_key(key: str) -> str:
    """The last part of a key, of a seed with what it is the seed of: a study has several kinds.

    >>> short_key("pretrain.seed"), short_key("pretrain.objective.alpha")
    ('pretrain seed', 'alpha')
    """
    parts = key.split(".")
    return " ".join(parts[-2:] if parts[-1] == "seed" else parts[-1:])


def settings_of(labels: Mapping[str, str], cell: str) -> dict[str, str]:
    """The labels but those of seeds; a cell without labels stands for itself."""
    return {axis: label for axis, label in labels.items() if not is_seed(axis)} if labels else {"cell": cell}


def varying(axes: Sequence[str], labels: Iterable[Mapping[str, str]]) -> dict[str, list[str]]:
    """Axes that have several labels, with their labels in order of appearance; axes in the order of the study.

    A condition that lacks an axis others have (of another study, joined to it) has the label "–".
    """
    found: dict[str, dict[str, None]] = {axis: {} for axis in axes}
    conditions = list(labels)
    for condition in conditions:
        for axis in condition:
            found.setdefault(axis, {})
    for condition in conditions:
        for axis, names in found.items():
            names.setdefault(condition.get(axis, "–"))
    return {axis: list(names) for axis, names in found.items() if len(names) > 1 and not is_seed(axis)}


def axis_titles(axes: Iterable[str]) -> dict[str, str]:
    """A short name for each axis, the whole key where two would be the same.

    >>> axis_titles(["pretrain.objective.kind", "adjust.steps", "pretrain.steps"])
    {'pretrain.objective.kind': 'objective', 'adjust.steps': 'adjust.steps', 'pretrain.steps': 'pretrain.steps'}
    """
    short: dict[str, str] = {}
    for axis in axes:
        parts = axis.split(".")
        if len(parts) > 2 and parts[-1] in ("kind", "name"):
            parts.pop()
        short[axis] = parts[-1].replace("_", " ")
    names = list(short.values())
    return {axis: name if names.count(name) == 1 else axis for axis, name in short.items()}


def numbers_of(labels: Iterable[str]) -> dict[str, float] | None:
    """The labels as numbers, percent as they are written, None unless all are.

    >>> numbers_of(["0", "0.25", "1"]), numbers_of(["50%", "100%"]), numbers_of(["MLM", "1"])
    ({'0': 0.0, '0.25': 0.25, '1': 1.0}, {'50%': 50.0, '100%': 100.0}, None)
    """
    found = {}
    for label in labels:
        match = re.fullmatch(r"\s*([-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?)\s*%?\s*", label, re.IGNORECASE)
        if match is None:
            return None
        found[label] = float(match[1])
    return found or None
