"""Rows of text as an encoder reads them, for fine-tuning and probes."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from pretrain.data.rows import Span
from pretrain.packed import Packed


@dataclass(frozen=True)
class Text:
    """Rows padded to one width.

    input_ids  [rows, width] int64
    valid      [rows, width] bool, False at padding; None: there is none
    spans      (start, stop, member): which columns are of which language; one span for rows of one language
    positions  [rows, width] int64, 0-based; None: 0 … width − 1 in every row
    segments   [rows, width] int64, the token types of BERT; None: all 0
    packed     where the tokens are, so that padding costs nothing; None: it is computed with
    """

    input_ids: Tensor
    valid: Tensor | None
    spans: tuple[Span, ...]
    positions: Tensor | None = None
    segments: Tensor | None = None
    packed: Packed | None = None

    @staticmethod
    def of(input_ids: Tensor, member: int, valid: Tensor | None = None) -> Text:
        """Rows of one language."""
        return Text(input_ids, valid, ((0, input_ids.shape[1], member),))

    def without_padding(self) -> Text:
        """The same, to be read without its padding where that is worth it; for tensors on the CPU."""
        return replace(self, packed=Packed.of(self.valid) if len(self.spans) == 1 else None)

    @property
    def languages(self) -> Tensor:
        """[rows, width] the member of each token."""
        columns = torch.zeros(self.input_ids.shape[1], dtype=torch.int64, device=self.input_ids.device)
        for start, stop, member in self.spans:
            columns[start:stop] = member
        return columns.expand_as(self.input_ids)

    def to(self, device: torch.device) -> Text:
        """The same on a device."""

        def moved(tensor: Tensor | None) -> Tensor | None:
            return None if tensor is None else tensor.to(device, non_blocking=True)

        ids = self.input_ids.to(device, non_blocking=True)
        packed = None if self.packed is None else self.packed.to(device)
        return Text(ids, moved(self.valid), self.spans, moved(self.positions), moved(self.segments), packed)
