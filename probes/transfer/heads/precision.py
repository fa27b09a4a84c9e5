"""Heads compute in float32 whatever the body does: they are small, and log-sums and arc scores need the digits."""

from __future__ import annotations

from contextlib import AbstractContextManager

import torch
from torch import Tensor
from torch.nn import functional as F

from probes.transfer.batch import NO_LABEL


def full_precision(states: Tensor) -> AbstractContextManager[object]:
    """No autocast on the device of ``states``; what comes in must be made float32 by the caller."""
    return torch.autocast(states.device.type, enabled=False)


def mean_loss(scores: Tensor, target: Tensor) -> Tensor:
    """Cross entropy in nats of scores [..., c] against classes [...], mean over those that are not NO_LABEL.

    0 with a gradient where there is none.
    """
    flat, gold = scores.reshape(-1, scores.shape[-1]), target.reshape(-1)
    total = F.cross_entropy(flat, gold, ignore_index=NO_LABEL, reduction="sum")
    return total / (gold != NO_LABEL).sum().clamp(min=1)
