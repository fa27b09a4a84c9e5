"""Rows of text as a model reads them, for fine-tuning and probes."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from pretrain.data.batch import Span

WORTH = 0.9  # packing costs more than padding above this share of tokens among the columns


@dataclass(frozen=True)
class Packed:
    """Indices of the tokens in padded rows [r, w].

    Attributes:
        places: Sorted indices of the tokens among the r · w columns, [t] int64.
        valid: False at padding, [r, w] bool.
    """

    places: Tensor
    valid: Tensor

    @staticmethod
    def of(valid: Tensor | None) -> Packed | None:
        """Return the indices of the tokens for a mask ``valid`` [r, w] bool on the CPU, which is False at padding.

        The result is None without a mask, or if the share of tokens is above WORTH.
        """
        if valid is None or bool(valid.sum() > WORTH * valid.numel()):
            return None
        return Packed(valid.flatten().nonzero().squeeze(1), valid)

    def to(self, device: torch.device) -> Packed:
        """Return a copy with all tensors on ``device``."""
        return Packed(self.places.to(device, non_blocking=True), self.valid.to(device, non_blocking=True))

    def pick(self, x: Tensor) -> Tensor:
        """Select the tokens: [r, w, …] → [t, …]."""
        return x.flatten(0, 1).index_select(0, self.places)

    def pad(self, x: Tensor) -> Tensor:
        """Put the tokens into padded rows: [t, d] → [r, w, d], 0 at padding."""
        rows = x.new_zeros(self.valid.numel(), x.shape[-1]).index_copy(0, self.places, x)
        return rows.view(*self.valid.shape, x.shape[-1])


@dataclass(frozen=True)
class Text:
    """Rows padded to one width.

    Attributes:
        input_ids: Token ids, [rows, width] int64.
        valid: False at padding, [rows, width] bool. None means that there is no padding.
        spans: The columns of each language as (start, stop, language).
        positions: 0-based positions, [rows, width] int64. None means 0 … width − 1 in every row.
        segments: Token types of BERT, [rows, width] int64. None means that all are 0.
        packed: The indices of the tokens, for computation without padding. With None, padding is computed, too.
    """

    input_ids: Tensor
    valid: Tensor | None
    spans: tuple[Span, ...]
    positions: Tensor | None = None
    segments: Tensor | None = None
    packed: Packed | None = None

    @staticmethod
    def of(input_ids: Tensor, language: int, valid: Tensor | None = None) -> Text:
        """Return rows of one language, with positions from 0. See the attributes for shapes."""
        return Text(input_ids, valid, ((0, input_ids.shape[1], language),))

    def without_padding(self) -> Text:
        """Return the same text, packed if packing is faster. The tensors must be on the CPU.

        Rows with several languages are never packed.
        """
        return replace(self, packed=Packed.of(self.valid) if len(self.spans) == 1 else None)

    def seen(self) -> Tensor | None:
        """Return the attention mask, [rows, 1, width] bool, or None if a token attends to its whole row."""
        return None if self.valid is None else self.valid.unsqueeze(1)

    @property
    def languages(self) -> Tensor:
        """Number of the language of each token by the spans, [rows, width] int64."""
        columns = torch.zeros(self.input_ids.shape[1], dtype=torch.int64, device=self.input_ids.device)
        for start, stop, language in self.spans:
            columns[start:stop] = language
        return columns.expand_as(self.input_ids)

    def to(self, device: torch.device) -> Text:
        """Return a copy with all tensors on ``device``."""

        def moved(tensor: Tensor | None) -> Tensor | None:
            return None if tensor is None else tensor.to(device, non_blocking=True)

        ids = self.input_ids.to(device, non_blocking=True)
        packed = None if self.packed is None else self.packed.to(device)
        return Text(ids, moved(self.valid), self.spans, moved(self.positions), moved(self.segments), packed)
