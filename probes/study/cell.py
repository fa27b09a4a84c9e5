"""A cell of a study: one combination of its grid, as checked configs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pydantic

from pretrain.adjust.config import AdjustConfig
from pretrain.config import PretrainConfig
from probes.measures.table import ProbeConfig
from probes.transfer.config import TransferConfig

# what stands in a config for a model of the cell: its own before it is adjusted and after, its second one, what its own
# starts from
MODEL, ADJUSTED, SECOND, START = "cell:model", "cell:adjusted", "cell:second", "cell:start"
OF_CELL = (MODEL, ADJUSTED, SECOND, START)


@dataclass(frozen=True)
class Cell:
    """One combination of the grid.

    name       unique in the study
    labels     axis → label
    overrides  dotted key → value, the changes to the base
    model      instead of ``pretrain``
    start      what ``pretrain`` starts from: its ``start.model`` is ``cell:start``, an export of this run
    adjust     its model is ``cell:model``, filled in when it runs
    tuned      what the probes' model is fine-tuned on before they read it, and with which seed
    tasks      by name; ``target_model`` is ``cell:second`` where there is a second model
    probes     by name; ``model2`` likewise
    """

    name: str
    labels: Mapping[str, str]
    overrides: Mapping[str, Any]
    pretrain: PretrainConfig | None
    second: PretrainConfig | None
    model: str | None
    adjust: AdjustConfig | None
    tasks: Mapping[str, TransferConfig]
    probes: Mapping[str, ProbeConfig]
    tuned: TransferConfig | None = None
    tuned_seed: int = 0
    start: PretrainConfig | None = None

    @property
    def configs(self) -> dict[str, pydantic.BaseModel]:
        found: dict[str, pydantic.BaseModel | None] = {
            name: getattr(self, name) for name in ("start", "pretrain", "second", "adjust", "tuned")
        }
        found |= {f"tasks.{name}": task for name, task in self.tasks.items()}
        found |= {f"probes.{name}": probe for name, probe in self.probes.items()}
        return {name: config for name, config in found.items() if config is not None}


@dataclass(frozen=True)
class ModelLimits:
    """What is known of a model before it is opened: its layers, and how many tokens it reads at once.

    bert   whether it is one of BERT's, whose rows of two texts have a token less between them
    """

    layers: int
    positions: int
    bert: bool = False


def limits_of(pretrain: PretrainConfig, start: PretrainConfig | None = None) -> ModelLimits | None:
    """That of the model of a run; None where a checkpoint decides that is no run of the study."""
    if pretrain.start is not None:
        return None if start is None else limits_of(start)
    return ModelLimits(pretrain.model.layers, pretrain.model.positions or pretrain.batch.length)
