"""Axes of a study in results: short names, numbers, seeds, and the axes that vary."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

MAIN = ("objective", "method", "sharing", "anchors")
"""Short names of the preferred main axes. The labels of the main axis are drawn side by side, each in its colour."""
LANGUAGES = frozenset(
    {"language", "languages", "pair", "pairs", "script", "source", "target", "transform", "transforms"}
)
"""Names of axes that set the languages of a model. Other axes are compared under each label of such an axis."""
TUNING = frozenset({"base", "best", "continual", "features", "fine_tune", "head", "rotation", "search", "train_items"})
"""Settings of a transfer that decide how a model is fine-tuned. Its other settings decide about data and scores."""
COLOURED = 7
"""Maximum number of labels of a numeric main axis, each of which has its colour."""


@dataclass(frozen=True)
class Layout:
    """Arrangement of the conditions of a study: in groups, and within a group by the labels of the main axis."""

    axes: Mapping[str, Sequence[str]]
    """Axes that vary → their labels."""
    main: str | None
    """The main axis, or None if no axis varies."""
    titles: Mapping[str, str]
    """Axis → short name."""
    alone: str
    """Name of the only condition if no axis varies: the ``fixed`` labels, or else a given name."""
    compared: tuple[str, ...] = ()
    """Axes whose labels are compared in the text of reports, the main axis first.

    Axes of languages are included only if no other axis varies.
    """
    fixed: Mapping[str, str] = field(default_factory=dict)
    """Axis → label, for axes that have only this label here and several labels in the whole grid."""

    def text(self, axis: str, labels: Mapping[str, str]) -> str:
        """Return the label of an axis as text, or "–" if ``labels`` lacks the axis.

        The name of the axis precedes a label that is a number, a truth value, None or "–".
        """
        label = labels.get(axis, "–")
        bare = label in ("–", "true", "false", "True", "False", "None") or numbers_of([label]) is not None
        return f"{self.titles[axis]} {label}" if bare else label

    def name(self, labels: Mapping[str, str]) -> str:
        """Return the label of the main axis, or ``alone`` if no axis varies."""
        return self.alone if self.main is None else self.text(self.main, labels)

    def group(self, labels: Mapping[str, str]) -> str:
        """Return the labels of all axes that vary except the main axis, or "" if there are none."""
        return self.without(labels, *filter(None, [self.main]))

    def full_name(self, labels: Mapping[str, str]) -> str:
        """Return the labels of all axes that vary, joined by commas, or ``alone`` if no axis varies."""
        return self.without(labels) or self.alone

    @property
    def all_fixed(self) -> str:
        """The ``fixed`` labels, joined by commas."""
        return ", ".join(self.text(axis, self.fixed) for axis in self.fixed)

    def only(self, labels: Mapping[str, str], axes: Collection[str]) -> str:
        """Return the labels of those ``axes`` that vary, joined by commas in the order of the study."""
        return ", ".join(self.text(axis, labels) for axis in self.axes if axis in axes)

    def without(self, labels: Mapping[str, str], *left_out: str) -> str:
        """Return the labels of all axes that vary except ``left_out``, joined by commas in the order of the study."""
        return self.only(labels, [axis for axis in self.axes if axis not in left_out])


def layout_of(
    axes: Sequence[str],
    labels: Iterable[Mapping[str, str]],
    alone: str,
    languages: Collection[str] = (),
    grid: Iterable[Mapping[str, str]] = (),
) -> Layout:
    """Return the layout of a study.

    The main axis is the first one of this list that exists among the axes that vary:

    1. the first axis whose short name is in MAIN
    2. the last axis that neither has numbers as labels nor sets languages
    3. the last axis that has at most COLOURED labels and does not set languages
    4. the last axis without numbers as labels
    5. the last axis

    Args:
        axes: The axes of the study.
        labels: The labels of the conditions of the study.
        alone: The name of the condition if no axis varies and no label is fixed.
        languages: Axes that set languages although their names are not in LANGUAGES.
        grid: The labels of all conditions that the study will have.
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
    """Return whether an axis, or a key of the settings, sets the languages.

    >>> is_of_languages("transform"), is_of_languages("pretrain.languages.1"), is_of_languages("pretrain.steps")
    (True, True, False)
    """
    return next((part for part in reversed(key.split(".")) if not part.isdigit()), "") in LANGUAGES


def is_of_tuning(key: str) -> bool:
    """Return whether an axis, or a key of the settings, decides how models are fine-tuned.

    >>> is_of_tuning("transfer.fine_tune.rows"), is_of_tuning("tasks.pos.features.tune"), is_of_tuning("tasks.pos.test")
    (True, True, False)
    """
    root, *parts = key.split(".")
    inside = {"transfer": parts[:1], "finetuned": parts[:1], "tuned": parts[:1], "tasks": parts[1:2]}.get(root, [])
    return not TUNING.isdisjoint(inside)


def axes_that_set(config: Mapping[str, Any], is_meant: Callable[[str], bool]) -> set[str]:
    """Return the named axes of a study whose labels set only keys that ``is_meant`` accepts.

    ``config`` is the config of the study. A joined study has a mapping with the config of each of its studies.
    """
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
    """Return whether an axis sets a seed. Replicates differ in such axes only.

    >>> is_seed("pretrain.seed"), is_seed("objective.alpha")
    (True, False)
    """
    last = key.rsplit(".", 1)[-1]
    return last in ("seed", "seeds") or last.endswith("_seed")


def is_label(known: str | None, label: str) -> bool:
    """Return whether the text ``label`` denotes the label ``known``, where None is no label.

    Numbers without a percent sign are compared by value.

    >>> is_label("10.0", "10"), is_label("50%", "50"), is_label(None, "10")
    (True, False, False)
    """
    if known is None or known == label:
        return known == label
    numbers = numbers_of([known, label])
    return numbers is not None and "%" not in known + label and numbers[known] == numbers[label]


def unseeded(labels: Mapping[str, str]) -> str:
    """Return the labels without seeds as a text, which is equal for replicates.

    >>> unseeded({"size": "big", "pretrain.seed": "3"})
    '{"size": "big"}'
    """
    return json.dumps({axis: label for axis, label in sorted(labels.items()) if not is_seed(axis)})


def short_key(key: str) -> str:
    """Return the last part of a key, or the last two parts for a seed, since a study has several kinds of seeds.

    >>> short_key("pretrain.seed"), short_key("pretrain.objective.alpha")
    ('pretrain seed', 'alpha')
    """
    parts = key.split(".")
    return " ".join(parts[-2:] if parts[-1] == "seed" else parts[-1:])


def settings_of(labels: Mapping[str, str], cell: str) -> dict[str, str]:
    """Return the labels of a cell without seeds. A cell without labels gets its name under the axis ``cell``."""
    return {axis: label for axis, label in labels.items() if not is_seed(axis)} if labels else {"cell": cell}


def varying(axes: Sequence[str], labels: Iterable[Mapping[str, str]]) -> dict[str, list[str]]:
    """Return the axes with several labels, in the order of the study, and their labels in order of appearance.

    Axes of seeds are left out. A condition has the label "–" for an axis that it lacks, as in a joined study.
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
    """Return a short name for each axis, or the whole key where two names would be the same.

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
    """Return label → number (a percentage without its sign), or None unless there are labels and all are numbers.

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
