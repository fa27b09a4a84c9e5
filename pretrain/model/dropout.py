"""Dropout whose random bits are a function of a key, and which is fast on a CPU.

PyTorch draws one float per element with a Mersenne Twister, which is a large part of a step on a CPU. Here 15 bits per
element give every rate to within 2⁻¹⁶. Kept values are scaled by the rate that is used, so the expectation is exact. A
mask has 16-bit integers of all ones or all zeros and is applied by a bitwise and, since torch.where and comparisons are
several times slower on a CPU.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd import Function
from torch.nn import functional as F

from pretrain.devices import seed

BITS = 15
LEVELS = 1 << BITS
LOW_BITS = np.uint64(0x7FFF_7FFF_7FFF_7FFF)
INTEGERS = {2: torch.int16, 4: torch.int32, 8: torch.int64}


class Noise:
    """The dropout masks of one model, which are a function of the key that is given to ``seed`` before a forward pass.

    On a CPU the masks come from SFC64, whose stream NumPy guarantees. Other devices use their own generator.
    """

    def __init__(self) -> None:
        self._generator: np.random.SFC64 | None = None

    def seed(self, key: int, device: torch.device) -> None:
        """Make all dropout until the next call a function of ``key`` (64 bits) and of the shapes."""
        if device.type == "cpu":
            self._generator = np.random.SFC64(key)
        else:
            seed(key >> 1, device)  # torch takes signed 64-bit seeds

    def keep(self, rate: float, *shape: int) -> Tensor | None:
        """Return an int16 mask of ``shape`` that is −1 (all ones) for kept elements and 0 for others.

        ``rate`` is the probability of 0. The mask is None if the device uses its own generator.
        """
        if self._generator is None:
            return None
        count = int(np.prod(shape))
        raw = self._generator.random_raw(-(-count // 4)) & LOW_BITS
        bits = torch.from_numpy(raw.view(np.int16)[:count]).view(shape)
        return bits.neg_().add_(_dropped(rate) - 1).bitwise_right_shift_(BITS)  # the sign of dropped − 1 − bits


def dropout(x: Tensor, rate: float, keep: Tensor | None, training: bool) -> Tensor:
    """Apply dropout to ``x`` with the mask ``keep`` of its shape from Noise, or PyTorch's dropout without a mask.

    Kept elements are divided by 1 − ``rate`` (Srivastava et al. 2014), where the rate of a mask is rounded to 15 bits.
    ``x`` is returned unchanged if ``training`` is False or ``rate`` is 0.
    """
    if not training or rate == 0.0:
        return x
    if keep is None:
        return F.dropout(x, rate)
    return _kept(x, keep) * _scale(rate)


def add_dropout(x: Tensor, y: Tensor, rate: float, keep: Tensor | None, training: bool) -> Tensor:
    """Return ``x + dropout(y)``, with the scaling done in the sum.

    The mask ``keep`` has the shape of ``y``. See ``dropout`` for the other arguments.
    """
    if keep is None or not training or rate == 0.0:
        return x + dropout(y, rate, keep, training)
    return torch.add(x, _kept(y, keep), alpha=_scale(rate))


class _Keep(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, keep: Tensor) -> Tensor:
        ctx.save_for_backward(keep)
        return _and(x, keep)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        (keep,) = ctx.saved_tensors
        return _and(gradient, keep), None


def _kept(x: Tensor, keep: Tensor) -> Tensor:
    kept: Tensor = _Keep.apply(x, keep)  # type: ignore[no-untyped-call]
    return kept


def _and(x: Tensor, keep: Tensor) -> Tensor:
    """Return ``x`` where ``keep`` is all ones, and 0.0 where ``keep`` is 0."""
    integers = INTEGERS[x.element_size()]
    wide = keep.to(integers)  # sign-extended, so that ones stay all ones
    return wide.bitwise_and(x.view(integers)).view(x.dtype)


def _dropped(rate: float) -> int:
    return min(round(rate * LEVELS), LEVELS - 1)


def _scale(rate: float) -> float:
    return LEVELS / (LEVELS - _dropped(rate))
