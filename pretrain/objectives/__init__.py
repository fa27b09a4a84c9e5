"""The objectives, one a file."""

from __future__ import annotations

import torch

from pretrain.config import ObjectiveConfig
from pretrain.objectives.align_mlm import AlignMLM
from pretrain.objectives.base import Objective, TensorBatch
from pretrain.objectives.mlm import MLM
from pretrain.prepare import Artifacts


def build_objective(config: ObjectiveConfig, artifacts: Artifacts, device: torch.device) -> Objective:
    """The objective of a config."""
    if config.kind == "align_mlm":
        assert artifacts.pairs is not None, "prepare draws the dictionary of align_mlm"
        return AlignMLM(torch.from_numpy(artifacts.pairs).to(device), config.alpha)
    return MLM()


__all__ = ["Objective", "TensorBatch", "build_objective"]
