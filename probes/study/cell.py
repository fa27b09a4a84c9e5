"""A cell of a study: one combination of its grid, as checked configs."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pydantic

from pretrain.adjust.config import AdjustConfig
from pretrain.config import PretrainConfig
from pretrain.folder import named_steps
from probes.measures.table import ProbeConfig
from probes.study.axes import RENAMED
from probes.transfer.config import TransferConfig
from synthlang.errors import InputError


@dataclass(frozen=True)
class Cell:
    """One combination of the grid.

    Attributes:
        name: Name of the cell, unique in the study.
        labels: Axis → label.
        overrides: The changes to the settings of the study: dotted key → value.
        pretrain: Settings of the pretraining, or None if the cell has a ``model``.
        target_model: Settings of the second pretraining, whose model reads the target language, or None.
        model: Name or folder of a model in place of ``pretrain``, or None.
        adjust: Settings of the adjustment, or None. Their ``model`` is the placeholder ``cell:model``.
        tasks: Settings of the transfers by name. In a cell with a second model, their default of ``target_model`` is
            ``cell:second``.
        probes: Settings of the probes by name. In a cell with a second model, their default of ``model2`` is
            ``cell:second``, unless another key names this model.
        finetuned: Settings of the fine-tuning after which the probes read the model, or None.
        finetuned_seed: Seed of this fine-tuning, or 0 without one.
        init_from: Settings of the run from which ``pretrain`` is initialised, or None. With such a run, the
            ``start.model`` of ``pretrain`` is ``cell:start``, the export of the first language of the run.
        source: Source of the study for all pretrainings of the cell, or None if their configs name the sources.
    """

    name: str
    labels: Mapping[str, str]
    overrides: Mapping[str, Any]
    pretrain: PretrainConfig | None
    target_model: PretrainConfig | None
    model: str | None
    adjust: AdjustConfig | None
    tasks: Mapping[str, TransferConfig]
    probes: Mapping[str, ProbeConfig]
    finetuned: TransferConfig | None = None
    finetuned_seed: int = 0
    init_from: PretrainConfig | None = None
    source: str | None = None

    @property
    def parts(self) -> dict[str, pydantic.BaseModel]:
        """Configs of the cell except those of tasks and probes: section of the study → config."""
        found = {name: getattr(self, name) for name in PARTS}
        return {name: config for name, config in found.items() if config is not None}

    @property
    def configs(self) -> dict[str, pydantic.BaseModel]:
        """All configs of the cell: dotted key in the study → config."""
        tasks = {f"tasks.{name}": task for name, task in self.tasks.items()}
        return {**self.parts, **tasks, **{f"probes.{name}": probe for name, probe in self.probes.items()}}

    def probed_checkpoints(self, probe: str) -> dict[int, str]:
        """Return step → name of the stage that probes this checkpoint, or {} for a probe of the selected checkpoint.

        The stage without a step in its name probes the checkpoint that the pretraining selects.
        """
        if self.pretrain is None or self.probes[probe].checkpoints == "selected":
            return {}
        policy, last = self.pretrain.checkpoints, self.pretrain.steps
        found = {step: f"probe {probe} step {step}" for step in named_steps(policy, last)}
        return found | ({last: f"probe {probe}"} if policy.select == "last" else {})

    def placed(self, error: InputError, section: Sequence[str]) -> InputError:
        """Return an error of a config with its place in the study.

        ``section`` has the keys of the config in the study, which precede the keys of the error. An error about the
        source of the whole study belongs to no section, so its keys do not change. Keys of another file, such as the
        config.json of a model, become part of the reason.
        """
        if error.keys and error.path is not None and not error.absent and Path(error.path).suffix == ".json":
            found = error.inside()
            found.keys, found.reason = tuple(section), f"{'.'.join(error.keys)}: {error.reason}"
            return found
        if self.source is not None and error.keys == ("source",):
            return error.inside()
        return error.inside(*section)


PARTS = ("init_from", "pretrain", "target_model", "adjust", "finetuned")
"""Sections of a study that each hold one config."""
RECORDED_AS = {name: first for first, name in RENAMED.items()}
"""Section → its former name, which fingerprints and ``study.json`` still use."""


def in_cell(error: InputError, cell: str) -> InputError:
    """Return an error with the cell as its place. The file and line of the error become part of the reason."""
    if error.path is None:
        return error.inside(path=cell)
    found = copy.copy(error)
    line = "" if error.line is None else f":{error.line}"
    found.reason, found.path, found.line = f"{error.path}{line}: {error.reason}", cell, None
    return found
