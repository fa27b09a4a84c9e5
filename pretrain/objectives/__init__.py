"""What is learned: a weighted sum of terms.

slot_terms.py   mlm, tlm, dict: the cross entropies of the masked slots
alignment.py    align: the cosines of the dictionary's pairs
objective.py    their weighted sum
"""

from __future__ import annotations

import torch

from pretrain.artifacts import Artifacts
from pretrain.config import PretrainConfig
from pretrain.objectives.alignment import Alignment
from pretrain.objectives.objective import Losses, Objective


def build_objective(config: PretrainConfig, artifacts: Artifacts, device: torch.device) -> Objective:
    """The objective of a config."""
    weights: dict[str, float] = dict(config.objective.terms.items())
    align = None
    if "align" in config.objective.terms:
        assert artifacts.dictionary is not None, "prepare draws the dictionary of align"
        align = Alignment(artifacts.dictionary, config.sharing.embeddings == "shared", device)
    return Objective(weights, align)


__all__ = ["Alignment", "Losses", "Objective", "build_objective"]
