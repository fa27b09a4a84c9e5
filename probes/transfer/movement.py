"""How far fine-tuning moves a body: its word embeddings row by row, and its layers as one vector."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from pretrain.model.encoder import MaskedLM

ROWS = 8192
"""Rows of the word embeddings that are compared at once."""


def movement(before: MaskedLM, after: MaskedLM) -> dict[str, float]:
    """How far a body has moved, relative to where it was; ``after`` is a copy of ``before`` that was trained on.

        embeddings   the mean of ‖e′ᵢ − eᵢ‖₂ / ‖eᵢ‖₂ over the rows i of the word embeddings [rows, d] that changed
        layers       ‖W′ − W‖₂ / ‖W‖₂, where W is one vector of all parameters of all layers (for matrices the
                     Frobenius norm)

    Neither has a unit: 0 is no movement, 1 one as long as the vector was. The word embeddings are one matrix, also
    where each language has rows of its own; the output they are tied to is that matrix, too. Rows change whose tokens
    are in the training text, and with weight decay all others as well. A row of zeros has no length to compare with and
    is left out. The layers include those that nothing reads, and of a separate one the copies of all languages.
    Positions, language ids, the norm below the layers and the output are in neither.

    Computed in float32 on the device of ``after``, with copies of ROWS rows or one parameter at a time.
    """
    return {
        "embeddings": _of_rows(before.embeddings.words, after.embeddings.words),
        "layers": _of_layers(before, after),
    }


@torch.no_grad()
def _of_rows(before: Tensor, after: Tensor) -> float:
    """Return the mean relative movement of the rows that changed, 0 if none did."""
    total, count = 0.0, 0
    for old, new in zip(torch.split(before, ROWS), torch.split(after, ROWS), strict=True):
        length = torch.linalg.vector_norm(old.to(new.device), dim=1, dtype=torch.float32)
        moved = torch.linalg.vector_norm(new - old.to(new.device), dim=1, dtype=torch.float32)
        counted = (moved > 0) & (length > 0)
        total += float((moved[counted] / length[counted]).sum())
        count += int(counted.sum())
    return total / count if count else 0.0


@torch.no_grad()
def _of_layers(before: MaskedLM, after: MaskedLM) -> float:
    """Return the relative movement of all parameters of the layers together, 0 if these are all zero."""
    lengths, moves = list[float](), list[float]()
    for old, new in zip(before.layers.parameters(), after.layers.parameters(), strict=True):
        there = old.to(new.device)
        lengths.append(float(torch.linalg.vector_norm(there, dtype=torch.float32)))
        moves.append(float(torch.linalg.vector_norm(new - there, dtype=torch.float32)))
    length = math.hypot(*lengths)
    return math.hypot(*moves) / length if length else 0.0
