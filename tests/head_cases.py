"""Batches for heads, and training on batches drawn anew at each step."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from pretrain.model.text import Text
from probes.transfer.batch import Batch
from probes.transfer.tasks.base import Head

Drawn = tuple[Tensor, Batch]


def batch_of(mask: Tensor, **targets: Tensor) -> Batch:
    """A batch of which heads read the mask and the targets only."""
    rows = len(mask)
    text = Text.of(torch.zeros(rows, 1, dtype=torch.int64), 0)
    return Batch(text, None, mask, targets, "source", np.arange(rows))


def prefix(lengths: list[int], words: int | None = None) -> Tensor:
    """[r, k] the mask of sentences with so many words."""
    width = max(lengths, default=0) if words is None else words
    return torch.arange(width) < torch.tensor(lengths)[:, None]


def train(head: Head, draw: Callable[[torch.Generator], Drawn], steps: int, rate: float = 1e-2) -> Drawn:
    """Trains on ``steps`` batches and gives one more that was not seen; the head is in evaluation mode then."""
    generator = torch.Generator().manual_seed(7)
    optimizer = torch.optim.Adam(head.parameters(), lr=rate)
    head.train()
    for _ in range(steps):
        states, batch = draw(generator)
        optimizer.zero_grad()
        head.loss(states, batch).backward()
        optimizer.step()
    head.eval()
    return draw(generator)
