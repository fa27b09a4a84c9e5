"""Counter-based randomness: every number is a function of (key, counters).

No state is kept between calls, so the numbers are the same for any number of workers, shards or restarts. The mixer
is SplitMix64's finaliser (Steele, Lea & Flood 2014, "Fast splittable pseudorandom number generators", OOPSLA,
figure 16), applied once for each counter.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)

Integers = NDArray[Any] | int


def key_of(*parts: str | int) -> int:
    """Return a 64-bit key from names and numbers. Different parts give unrelated keys."""
    text = "\x1f".join(f"{type(part).__name__}:{part}" for part in parts)
    return int.from_bytes(hashlib.sha256(text.encode("utf-8")).digest()[:8], "little")


def _mix(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    values = (values ^ (values >> np.uint64(30))) * _MIX_1
    values = (values ^ (values >> np.uint64(27))) * _MIX_2
    return values ^ (values >> np.uint64(31))


def random_bits(key: int, *counters: Integers) -> NDArray[np.uint64]:
    """Return 64 random bits for each element of the broadcast ``counters`` (integers ≥ 0).

    The shape is the broadcast shape of the counters, or [1] if all of them are single numbers or there are none. The
    equation is h0 = mix(key + γ), h_i = mix(h_{i-1} + γ·(counter_i + 1)). Here mix is the finaliser of SplitMix64
    (Steele et al. 2014, figure 16), and γ is the golden ratio in 64 bits.
    """
    with np.errstate(over="ignore"):
        state = _mix(np.asarray([key], dtype=np.uint64) + GOLDEN)
        for counter in counters:
            count = np.asarray(counter).astype(np.uint64) + np.uint64(1)
            state = _mix(state + count * GOLDEN)
    return state if any(np.ndim(c) for c in counters) else state[0:1]


def uniform(key: int, *counters: Integers) -> NDArray[np.float64]:
    """Return uniform numbers in [0, 1) with 53 bits, in the shape of ``random_bits`` for the same arguments.

    A number is the upper 53 of the 64 random bits, divided by 2**53.
    """
    return (random_bits(key, *counters) >> np.uint64(11)).astype(np.float64) * 2.0**-53


def uniform_of_keys(keys: Sequence[int]) -> NDArray[np.float64]:
    """Return ``uniform(key)`` of each key, [keys]."""
    with np.errstate(over="ignore"):
        bits = _mix(np.asarray(keys, dtype=np.uint64) + GOLDEN)
    return (bits >> np.uint64(11)).astype(np.float64) * 2.0**-53


def permutation(key: int, size: int) -> NDArray[np.int64]:
    """Return a random permutation of 0 … size − 1, a function of (key, size), [size].

    The numbers are sorted by ``random_bits(key, number)``.
    """
    return np.argsort(random_bits(key, np.arange(size)), kind="stable").astype(np.int64)
