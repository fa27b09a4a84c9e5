"""Which cells would be the same work: what their results depend on, of their settings."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pydantic

from pretrain.config import PretrainConfig
from synthlang.fingerprint import fingerprint

if TYPE_CHECKING:
    from probes.study.cell import Cell

DATA = {"source", "language", "languages", "vocabulary", "dictionary", "start"}
"""Of a pretraining, what says which data it reads, and what of it counts as translations."""


class Sameness:
    """The same ``of`` for cells whose stages are the same; each config is looked at once, whoever shares it."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, bool], tuple[pydantic.BaseModel, str]] = {}

    def of(self, cell: Cell) -> str:
        """Of what the results depend on: how often a run logs, say, is left out, as it is of the names of stages.

        Known without a look at any data, so another spelling of a source or a language counts as another one.
        """
        look = any("words" in probe.probes and probe.words.checkpoints for probe in cell.probes.values())
        runs = [
            self._once(run, look, lambda held: _of_run(held, look)) for run in (cell.start, cell.pretrain, cell.second)
        ]
        adjusted = self._once(cell.adjust, False, lambda held: [held.fingerprint({}), _json(held, {"model", "pairs"})])
        tasks = {name: self._once(task, False, _json) for name, task in cell.tasks.items()}
        probes = {name: self._once(probe, False, _json) for name, probe in cell.probes.items()}
        tuned = [self._once(cell.tuned, False, _json), cell.tuned_seed]
        return fingerprint(
            "work", model=cell.model, runs=runs, adjust=adjusted, tuned=tuned, tasks=tasks, probes=probes
        )

    def _once(self, config: pydantic.BaseModel | None, look: bool, parts: Callable[[Any], Any]) -> str | None:
        if config is None:
            return None
        key = id(config), look
        if key not in self._known:  # with the config itself, so that no other one gets its place in memory
            self._known[key] = config, fingerprint("settings", of=type(config).__name__, parts=parts(config))
        return self._known[key][1]


def _of_run(run: PretrainConfig, look: bool) -> list[Any]:
    """``look``: a probe reads every checkpoint that the run keeps."""
    names = DATA | ({"parallel"} if run.objective.needing("pairs") else set()) | ({"checkpoints"} if look else set())
    return [run.fingerprint({}), _json(run, names)]


def _json(config: pydantic.BaseModel, names: set[str] | None = None) -> dict[str, Any]:
    return config.model_dump(mode="json", include=names)
