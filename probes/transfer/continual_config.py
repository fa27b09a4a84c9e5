"""Settings of continual learning: an alignment loss beside that of the task."""

from __future__ import annotations

from pydantic import Field

from pretrain.adjust.config import DataConfig, LossConfig
from pretrain.adjust.pairs import PairConfig, TextPair
from synthlang.config import StrictModel


class ContinualConfig(StrictModel):
    """L_target + α · L_align (The Impact of Cross-Lingual Adjustment, equation 2; α = 0.01, 16 pairs a step).

    pairs   sentence pairs with links, as in an adjustment; none: the pretraining text in the derived language and in
            the parent's, aligned by construction
    """

    alpha: float = Field(default=0.01, ge=0.0)
    rows: int = Field(default=16, ge=1)
    pairs: dict[str, PairConfig | None] = Field(default_factory=dict)
    loss: LossConfig = LossConfig(subword="mean", pulled="all")
    data: DataConfig = DataConfig(dev=0)


def has_text(config: ContinualConfig) -> bool:
    """Whether sentences of the target language itself are named, so that it need not be a derived one."""
    return any(isinstance(pair, TextPair) for pair in config.pairs.values())
