"""Whether studies that have numbers under the same labels, but for seeds, got them with the same settings.

Results take what has the same labels but for seeds for replicates: within a study it is, of two studies it need not be.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pretrain.adjust.config import OF_WEIGHTS as OF_ADJUSTMENT
from pretrain.config.run import OF_WEIGHTS
from probes.study.labels import is_seed, unseeded
from probes.study.report.data import Study
from probes.study.report.pooled import probes_of
from probes.study.resolved import DIFFERS
from probes.study.stage import DATA

RUNS = ("start", "pretrain", "second")
MODEL = "model"
"""What every number is of."""


@dataclass(frozen=True)
class Replicated:
    """A study as far as others may have replicates of what it measured."""

    study: Study

    @cached_property
    def measured(self) -> frozenset[tuple[str, str]]:
        """Labels but for seeds, and a part of the settings that numbers under them are of."""
        tasks = {(unseeded(row.labels), f"task {row.task_name}") for row in self.study.rows}
        cells = {cell.name: cell for cell in self.study.cells}
        probes = {(unseeded(cells[cell].labels), f"probe {probe}") for cell, probe in probes_of(self.study)}
        held = tasks | probes
        return frozenset(held | {(labels, MODEL) for labels, _ in held})

    def agrees(self, other: Replicated) -> bool:
        """Whether all that both have numbers of under the same labels has the same settings in both, as far as both say
        what these are."""
        shared = self.measured & other.measured
        one, two = self.study, other.study
        # in full, or as written where one does not know them in full
        settings = (one.settings, two.settings) if one.settings and two.settings else (one.config, two.config)
        held = all(_agree(*(_part(of_study, part) for of_study in settings)) for part in {part for _, part in shared})
        return held and all(_agree(self._changes[labels], other._changes[labels]) for labels in dict(shared))

    @cached_property
    def _changes(self) -> dict[str, Mapping[str, Any]]:
        return {unseeded(cell.labels): cell.overrides for cell in reversed(self.study.cells)}


def _part(settings: Mapping[str, Any], part: str) -> Any:
    """What says which model it is, or how a task or a probe was done."""
    kind, _, name = part.partition(" ")
    if kind == "task":
        tasks, common = settings.get("tasks"), mapping(settings.get("transfer"))
        return {**common, **mapping(mapping(tasks).get(name))} if tasks is None or name in tasks else DIFFERS
    if kind == "probe":
        return [mapping(settings.get("probes")).get(name), settings.get("tuned")]
    runs = [_only(settings.get(run), OF_WEIGHTS | DATA) for run in RUNS]
    return [settings.get("model"), _only(settings.get("adjust"), frozenset(OF_ADJUSTMENT)), *runs]


def _only(settings: Any, keys: frozenset[str]) -> Any:
    return {key: value for key, value in settings.items() if key in keys} if isinstance(settings, Mapping) else settings


def _agree(one: Any, other: Any) -> bool:
    """Whether two settings are the same in all that both have; seeds do not count, nor what differs among the cells."""
    if DIFFERS in (one, other):
        return True
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return all(_agree(one[key], other[key]) for key in one.keys() & other.keys() if not is_seed(key))
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(_agree(*pair) for pair in zip(one, other, strict=True))
    return bool(plain_place(one) == plain_place(other))


def mapping(value: Any) -> Mapping[str, Any]:
    """The value if it is a mapping, else an empty one."""
    return value if isinstance(value, Mapping) else {}


def plain_place(value: Any) -> Any:
    """A source or path with no superfluous signs; in mappings and lists, too."""
    if isinstance(value, Mapping):
        return {key: plain_place(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain_place(inner) for inner in value]
    if not isinstance(value, str) or not value:
        return value
    kind, colon, path = value.rpartition(":")
    return f"{kind}{colon}{posixpath.normpath(path)}"
