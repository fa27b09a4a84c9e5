"""Rows without their padding: only attention needs rows of one width."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

WORTH = 0.9  # of the columns: with more tokens than that, picking them costs more than the padding


@dataclass(frozen=True)
class Packed:
    """Where the tokens of padded rows [r, w] are.

    places  [t] int64 the number of each token among the r · w columns, rising
    valid   [r, w] bool, False at padding
    """

    places: Tensor
    valid: Tensor

    @staticmethod
    def of(valid: Tensor | None) -> Packed | None:
        """None where hardly anything is padding. ``valid`` is on the CPU, so that no device is waited for."""
        if valid is None or bool(valid.sum() > WORTH * valid.numel()):
            return None
        return Packed(valid.flatten().nonzero().squeeze(1), valid)

    def to(self, device: torch.device) -> Packed:
        """The same on a device."""
        return Packed(self.places.to(device, non_blocking=True), self.valid.to(device, non_blocking=True))

    def pick(self, x: Tensor) -> Tensor:
        """[r, w, …] → [t, …], the tokens."""
        return x.flatten(0, 1).index_select(0, self.places)

    def pad(self, x: Tensor) -> Tensor:
        """[t, d] → [r, w, d], 0 at padding."""
        rows = x.new_zeros(self.valid.numel(), x.shape[-1]).index_copy(0, self.places, x)
        return rows.view(*self.valid.shape, x.shape[-1])
