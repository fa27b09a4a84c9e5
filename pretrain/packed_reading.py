"""What MaskedLM.read does for rows whose padding is left out."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from pretrain.attention import Layer, at_slots
from pretrain.packed import Packed
from pretrain.reading import Text
from pretrain.routing import SeparateLayers

if TYPE_CHECKING:
    from pretrain.encoder import MaskedLM


def read_packed(
    model: MaskedLM, text: Text, packed: Packed, slots: Tensor | None, wanted: Collection[int]
) -> dict[int, Tensor]:
    """The outputs of the wanted layers, each [r, w, d] with zeros at padding, or [r, k, d] at the slots.

    Equal to reading the padded rows up to rounding, wherever there is a token.
    """
    rows, width = text.input_ids.shape
    ids, languages, positions, segments = _tokens(text, packed)
    x = model.embed(ids, languages, positions, segments).squeeze(0)
    last = max(wanted)
    outputs = {0: _rows(x, packed, slots)} if 0 in wanted else {}
    for number, held in enumerate(model.layers[:last], 1):
        layer = held.copy(text.spans[0][2]) if isinstance(held, SeparateLayers) else held
        assert isinstance(layer, Layer)
        if number == last and slots is not None and slots.numel() < len(packed.places):
            keep = layer.draw(model.noise, rows, slots.shape[1], width)
            outputs[number] = layer(packed.pad(x), packed.valid, slots, keep)
            break
        x = layer.of_tokens(x, packed, layer.draw(model.noise, rows, width, width, len(packed.places)))
        if number in wanted:
            outputs[number] = _rows(x, packed, slots)
    return outputs


def _tokens(text: Text, packed: Packed) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
    """Ids, languages, positions and segments of the tokens, each [1, t]."""
    ids, positions = text.input_ids, text.positions
    if positions is None:
        positions = torch.arange(ids.shape[1], device=ids.device).expand_as(ids)
    segments = None if text.segments is None else packed.pick(text.segments)[None]
    return packed.pick(ids)[None], packed.pick(text.languages)[None], packed.pick(positions)[None], segments


def _rows(x: Tensor, packed: Packed, slots: Tensor | None) -> Tensor:
    padded = packed.pad(x)
    return padded if slots is None else at_slots(padded, slots)
