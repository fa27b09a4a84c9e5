"""The shape of the model, and which of its parts the languages share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

from pydantic import Field, field_validator, model_validator

from synthlang.config import StrictModel
from synthlang.errors import InputError


class ModelConfig(StrictModel):
    """RoBERTa's shape; ``init_std`` is the deviation of its random weights (0.02 suits hidden ≥ 512).

    positions   size of the position table (default: the length of a row)
    """

    smoke: ClassVar[Mapping[str, Any]] = {
        "hidden": lambda model: model.heads * min(model.hidden // model.heads, 8),
        "feed_forward": 128,
    }

    layers: int = Field(default=8, ge=1)
    heads: int = Field(default=8, ge=1)
    hidden: int = Field(default=512, ge=1)
    feed_forward: int = Field(default=2048, ge=1)
    dropout: float = Field(default=0.1, ge=0.0, lt=1.0)
    init_std: float = Field(default=0.02, gt=0.0)
    positions: int | None = Field(default=None, ge=8)

    @model_validator(mode="after")
    def _heads_divide(self) -> ModelConfig:
        if self.hidden % self.heads:
            raise ValueError(f"hidden ({self.hidden}) must be a multiple of heads ({self.heads})")
        return self


class SharingConfig(StrictModel):
    """What each language has of its own (Conneau et al. 2020, "Emerging Cross-lingual Structure", section 4.3).

    embeddings   ``separate``: word and position embeddings, and with them the tied output ("Sep Emb")
    layers       numbers of the separate layers, 1 is the lowest: [1, 2, 3] is "L1-3"
    softmax      ``language``: the softmax runs over the ids of the label's language only; default: ``shared``
                 with shared embeddings, ``language`` with separate ones (which have no other)
    """

    embeddings: Literal["shared", "separate"] = "shared"
    layers: tuple[int, ...] = ()
    softmax: Literal["shared", "language"] | None = None

    @field_validator("layers")
    @classmethod
    def _distinct(cls, value: tuple[int, ...]) -> tuple[int, ...]:
        if len(set(value)) < len(value) or any(layer < 1 for layer in value):
            raise ValueError("must be distinct layer numbers from 1 on")
        return tuple(sorted(value))

    @model_validator(mode="after")
    def _one_softmax(self) -> SharingConfig:
        if self.embeddings == "separate" and self.softmax == "shared":
            raise ValueError("softmax is tied to the embeddings; separate embeddings leave no shared one")
        if self.softmax is None:
            object.__setattr__(self, "softmax", "language" if self.embeddings == "separate" else "shared")
        return self

    @property
    def separates(self) -> bool:
        return self.embeddings == "separate" or bool(self.layers)


def numbered(layers: Sequence[int], count: int, key: str) -> tuple[int, ...]:
    """0 … ``count`` for ``layers``, of which negative ones count from the last; InputError for one that is not there.

    0 are the embeddings; ``key`` is where the layers are named.
    """
    numbers = tuple(layer + count + 1 if layer < 0 else layer for layer in layers)
    for layer, number in zip(layers, numbers, strict=True):
        if not 0 <= number <= count:
            hint = f"it has 0 (embeddings) to {count}"
            raise InputError(f"the model has no layer {layer}", keys=key, hint=hint, code="range")
    if len(set(numbers)) < len(numbers):
        raise InputError(f"{list(layers)} names a layer twice", keys=key, code="duplicate")
    return numbers
