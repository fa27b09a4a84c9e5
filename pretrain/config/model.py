"""The shape of the model, and the parts of it that the languages share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, field_validator, model_validator

from synthlang.config import StrictModel
from synthlang.errors import InputError
from synthlang.references import OmitDefaultFromHash


def _smoke_hidden(model: ModelConfig) -> int:
    return model.heads * min(model.hidden // model.heads, 8)


class ModelConfig(StrictModel):
    """Architecture, size, dropout and initialization of the model."""

    smoke: ClassVar[Mapping[str, Any]] = {
        "hidden": _smoke_hidden,
        "feed_forward": lambda model: 4 * _smoke_hidden(model) if model.output == "linear" else 128,
    }

    kind: Annotated[Literal["roberta", "gpt2"], OmitDefaultFromHash()] = "roberta"
    """Architecture: an encoder (``roberta``), or a decoder (``gpt2``) for the term clm."""
    layers: int = Field(default=8, ge=1)
    """Number of layers."""
    heads: int = Field(default=8, ge=1)
    """Number of attention heads of a layer."""
    hidden: int = Field(default=512, ge=1)
    """Width of the model, a multiple of ``heads``."""
    feed_forward: int = Field(default=2048, ge=1)
    """Width of the feed-forward sublayers."""
    dropout: float = Field(default=0.1, ge=0.0, lt=1.0)
    """Dropout rate."""
    init_std: float = Field(default=0.02, gt=0.0)
    """Standard deviation of the random initial weights. 0.02 suits widths of 512 and more."""
    positions: int | None = Field(default=None, ge=8)
    """Size of the position table (default: the length of a row)."""
    output: Annotated[Literal["dense", "linear"], OmitDefaultFromHash()] = "dense"
    """Layers between the last layer and the tied output: a ``dense`` layer, GELU and LayerNorm, or none (``linear``).

    RoBERTa and BERT have the dense layer. XLM has a linear map alone. Models with ``linear`` are exported as
    XLMWithLMHeadModel, whose feed-forward sublayers are four times as wide as the model.
    """

    @model_validator(mode="after")
    def _heads_divide(self) -> ModelConfig:
        if self.hidden % self.heads:
            key, reason = "hidden", f"{self.hidden} is not a multiple of heads ({self.heads})"
            if key not in self.model_fields_set:
                key, reason = "heads", f"{self.heads} does not divide hidden ({self.hidden})"
            hint = f"set hidden to a multiple of {self.heads}, or heads to a divisor of {self.hidden}"
            raise InputError(reason, keys=key, hint=hint, code="conflict")
        return self

    @model_validator(mode="after")
    def _as_xlm(self) -> ModelConfig:
        if self.output == "linear" and self.feed_forward != 4 * self.hidden:
            reason = f"linear needs a feed_forward of four times hidden ({self.hidden}), not {self.feed_forward}"
            hint = f"set feed_forward to {4 * self.hidden}, or this key to dense"
            raise InputError(reason, keys="output", hint=hint, code="conflict")
        return self


class SharingConfig(StrictModel):
    """Parts that are separate for each language.

    See Conneau et al. 2020, "Emerging Cross-lingual Structure in Pretrained Language Models", section 4.3.
    """

    embeddings: Literal["shared", "separate"] = "shared"
    """Sharing of the embeddings and of the tied output.

    ``separate`` gives each language its own word and position embeddings ("Sep Emb").
    """
    layers: tuple[int, ...] = ()
    """Numbers of the separate layers, where 1 is the lowest: [1, 2, 3] is "L1-3"."""
    softmax: Literal["shared", "language"] | None = None
    """Ids of the softmax: all ids (``shared``), or only those of the label's language (``language``).

    The default is ``shared`` with shared embeddings. Separate embeddings require ``language``.
    """

    @field_validator("layers")
    @classmethod
    def _distinct(cls, value: tuple[int, ...]) -> tuple[int, ...]:
        if low := [layer for layer in value if layer < 1]:
            raise InputError(f"{low[0]} is not the number of a layer", hint="count layers from 1", code="range")
        if twice := [layer for layer in value if value.count(layer) > 1]:
            raise InputError(f"names layer {twice[0]} twice", hint="name each layer once", code="duplicate")
        return tuple(sorted(value))

    @model_validator(mode="after")
    def _one_softmax(self) -> SharingConfig:
        if self.embeddings == "separate" and self.softmax == "shared":
            reason = "a shared softmax is not possible with separate embeddings, because the output is tied to them"
            raise InputError(reason, keys="softmax", hint="set this key to language", code="conflict")
        if self.softmax is None:
            object.__setattr__(self, "softmax", "language" if self.embeddings == "separate" else "shared")
        return self

    @property
    def separates(self) -> bool:
        """True if each language has its own embeddings or copies of a layer."""
        return self.embeddings == "separate" or bool(self.layers)


def numbered(layers: Sequence[int], count: int, key: str) -> tuple[int, ...]:
    """Return layer numbers from 0 (the embeddings) to ``count``, where negative numbers count from the last layer.

    Raises:
        InputError: A layer does not exist or is named twice. Errors name the ``key``.
    """
    numbers = tuple(layer + count + 1 if layer < 0 else layer for layer in layers)
    for layer, number in zip(layers, numbers, strict=True):
        if not 0 <= number <= count:
            hint = f"use 0 (embeddings) to {count}, or -1 (the last layer) to -{count + 1}"
            raise InputError(f"the model has no layer {layer}", keys=key, hint=hint, code="range")
    if twice := [number for number in numbers if numbers.count(number) > 1]:
        reason = f"{list(layers)} names layer {twice[0]} twice"
        raise InputError(reason, keys=key, hint="name each layer once", code="duplicate")
    return numbers
