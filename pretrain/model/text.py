"""Rows of text as an encoder reads them, for fine-tuning and probes."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from pretrain.data.batch import Span

WORTH = 0.9  # of the columns: with more tokens than that, picking them costs more than the padding


@dataclass(frozen=True)
class Packed:
    """Where the tokens, or words, of padded rows [r, w] are.

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
        return Packed(self.places.to(device, non_blocking=True), self.valid.to(device, non_blocking=True))

    def pick(self, x: Tensor) -> Tensor:
        """[r, w, …] → [t, …], the tokens."""
        return x.flatten(0, 1).index_select(0, self.places)

    def pad(self, x: Tensor) -> Tensor:
        """[t, d] → [r, w, d], 0 at padding."""
        rows = x.new_zeros(self.valid.numel(), x.shape[-1]).index_copy(0, self.places, x)
        return rows.view(*self.valid.shape, x.shape[-1])


@dataclass(frozen=True)
class Text:
    """Rows padded to one width.

    input_ids  [rows, width] int64
    valid      [rows, width] bool, False at padding; None: there is none
    spans      (start, stop, language): which columns are of which language; one span for rows of one language
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
    def of(input_ids: Tensor, language: int, valid: Tensor | None = None) -> Text:
        """Rows of one language."""
        return Text(input_ids, valid, ((0, input_ids.shape[1], language),))

    def without_padding(self) -> Text:
        """The same, to be read without its padding where that is worth it; for tensors on the CPU."""
        return replace(self, packed=Packed.of(self.valid) if len(self.spans) == 1 else None)

    def seen(self) -> Tensor | None:
        """[rows, 1, width] bool: which tokens of its row every token sees; None: all."""
        return None if self.valid is None else self.valid.unsqueeze(1)

    @property
    def languages(self) -> Tensor:
        columns = torch.zeros(self.input_ids.shape[1], dtype=torch.int64, device=self.input_ids.device)
        for start, stop, language in self.spans:
            columns[start:stop] = language
        return columns.expand_as(self.input_ids)

    def to(self, device: torch.device) -> Text:

        def moved(tensor: Tensor | None) -> Tensor | None:
            return None if tensor is None else tensor.to(device, non_blocking=True)

        ids = self.input_ids.to(device, non_blocking=True)
        packed = None if self.packed is None else self.packed.to(device)
        return Text(ids, moved(self.valid), self.spans, moved(self.positions), moved(self.segments), packed)
