"""Layers of a model by number."""

from __future__ import annotations

from collections.abc import Sequence

from synthlang.errors import InputError


def numbered(layers: Sequence[int], count: int, key: str) -> tuple[int, ...]:
    """0 … ``count`` for ``layers``, of which negative ones count from the last; InputError for one that is not there.

    0 are the embeddings; ``key`` is where the layers are named.
    """
    numbers = tuple(layer + count + 1 if layer < 0 else layer for layer in layers)
    for layer, number in zip(layers, numbers, strict=True):
        if not 0 <= number <= count:
            raise InputError(f"{key}: the model has no layer {layer}; it has 0 (embeddings) to {count}")
    if len(set(numbers)) < len(numbers):
        raise InputError(f"{key}: {list(layers)} names a layer twice")
    return numbers
