"""A term of the objective as somebody would add one: word embeddings stay small."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import Field

from pretrain.objectives.term import Term
from synthlang.config import StrictModel

if TYPE_CHECKING:
    import torch


class SmallSettings(StrictModel):
    """small_rate: weight of the term."""

    small_rate: float = Field(default=0.5, gt=0.0)


class Squares:
    """The sum of the squares of all word embeddings."""

    def __init__(self, ids: int) -> None:
        self.ids = ids

    def count(self, batch: Any) -> int:
        return self.ids

    def sum(self, model: Any, batch: Any) -> torch.Tensor:
        found: torch.Tensor = model.embeddings.words.float().square().sum()
        return found


class Small(Term[SmallSettings]):
    """A sum over the vocabulary."""

    name, kind, settings, weight_key = "small", "small_mlm", SmallSettings, "small_rate"
    masked = False

    def own_loss(self, settings: SmallSettings, artifacts: Any, device: torch.device) -> Squares:
        return Squares(artifacts.id_space.size)
