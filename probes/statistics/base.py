"""What all statistics start from: arrays without NaN, streams of random numbers with a key."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from synthlang.errors import InputError

BOOTSTRAP_ROUNDS = 2_000

Floats = NDArray[np.float64]


def generator(key: int) -> np.random.Generator:
    """The stream of random numbers that belongs to ``key`` (0 ≤ key < 2¹²⁸)."""
    return np.random.Generator(np.random.Philox(key=key))


def values_of(values: ArrayLike, dimensions: tuple[int, ...]) -> Floats:
    """The values as an array with one of these numbers of dimensions; InputError for none, NaN or infinity."""
    array = np.asarray(values, dtype=np.float64)
    assert array.ndim in dimensions, array.shape
    if not array.size:
        raise InputError("no values to average")
    if not np.isfinite(array).all():
        raise InputError("the values hold NaN or infinity")
    return array
