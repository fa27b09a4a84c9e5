"""Dropout whose random bits are a function of a key, and cheap on a CPU.

PyTorch draws one float per element with a Mersenne Twister, which is a large part of a step
on a CPU. A decision needs few bits: 16 of them give every rate to within 2⁻¹⁷, and the kept
values are scaled by the rate that was really used, so that the expectation is exact.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

LEVELS = 65_536  # a decision has 16 bits


class Noise:
    """The random bits of one model; ``seed`` before each forward pass makes them a function of its key.

    On a CPU they come from SFC64 (numpy guarantees its stream), elsewhere from the device's
    own generator inside the kernels, which torch.manual_seed sets.
    """

    def __init__(self) -> None:
        self._generator: np.random.SFC64 | None = None

    def seed(self, key: int, device: torch.device) -> None:
        """All dropout until the next call is a function of ``key`` (64 bits) and the shapes."""
        if device.type == "cpu":
            self._generator = np.random.SFC64(key)
        else:
            torch.manual_seed(key >> 1)  # torch takes signed 64-bit seeds

    def bits(self, *shape: int) -> Tensor | None:
        """16 random bits for each element of ``shape``, int16; None: there is no key, the device draws."""
        if self._generator is None:
            return None
        count = int(np.prod(shape))
        raw = self._generator.random_raw(-(-count // 4))
        return torch.from_numpy(raw.view(np.int16)[:count]).view(shape)


def dropout(x: Tensor, rate: float, bits: Tensor | None, training: bool) -> Tensor:
    """``x`` with each element zero at the given rate and the others scaled up to keep the expectation.

    ``bits`` (int16, the shape of ``x``) decide; without them PyTorch's own dropout does.
    """
    if not training or rate == 0.0:
        return x
    if bits is None:
        return F.dropout(x, rate)
    kept, scale = _kept(x, rate, bits)
    return kept * scale


def add_dropout(x: Tensor, y: Tensor, rate: float, bits: Tensor | None, training: bool) -> Tensor:
    """``x + dropout(y)``, the scaling done with the sum."""
    if bits is None or not training or rate == 0.0:
        return x + dropout(y, rate, bits, training)
    kept, scale = _kept(y, rate, bits)
    return torch.add(x, kept, alpha=scale)


def _kept(x: Tensor, rate: float, bits: Tensor) -> tuple[Tensor, float]:
    dropped = min(round(rate * LEVELS), LEVELS - 1)
    return torch.where(bits >= dropped - LEVELS // 2, x, 0.0), LEVELS / (LEVELS - dropped)
