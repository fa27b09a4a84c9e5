"""A batch on a device."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pretrain.data.batch import Batch, RowGroup


@dataclass(frozen=True)
class TensorBatch:
    """The fields of a Batch as tensors."""

    input_ids: Tensor
    languages: Tensor
    masked: Tensor
    labels: Tensor
    terms: Tensor
    positions: Tensor | None
    valid: Tensor | None
    sentences: Tensor | None
    groups: tuple[RowGroup, ...]
    samples: Tensor

    @staticmethod
    def of(batch: Batch, device: torch.device) -> TensorBatch:
        """Copy a batch to a device. A copy to CUDA runs in parallel with the computation."""
        pinned = device.type == "cuda"

        def moved(array: NDArray[Any]) -> Tensor:
            tensor = torch.from_numpy(array)
            return (tensor.pin_memory() if pinned else tensor).to(device, non_blocking=pinned)

        fields: dict[str, Any] = {n: moved(v) if isinstance(v, np.ndarray) else v for n, v in vars(batch).items()}
        return TensorBatch(**fields)

    def seen(self) -> Tensor | None:
        """Return the attention mask, [rows, 1 or length, length] bool, or None if a token attends to its whole row."""
        if self.sentences is not None:
            return self.sentences.unsqueeze(2) == self.sentences.unsqueeze(1)
        return None if self.valid is None else self.valid.unsqueeze(1)
