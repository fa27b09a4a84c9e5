"""Movement of the weights of a model during fine-tuning: word embeddings by row, and all layers as one vector."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from pretrain.model.language_model import LanguageModel

ROWS = 8192
"""Number of rows of the word embeddings that are compared at once."""


def movement(before: LanguageModel, after: LanguageModel) -> dict[str, float]:
    """Return the relative movement of the weights from ``before`` to the trained copy ``after``.

        embeddings   the mean of ‖e′ᵢ − eᵢ‖₂ / ‖eᵢ‖₂ over the rows i of the word embeddings that changed
        layers       ‖W′ − W‖₂ / ‖W‖₂, where W is the vector of all parameters of all layers

    The value is 0 without movement, and 1 if the movement is as long as the original vector. Word embeddings include
    the rows of all languages, without zero rows. Without weight decay, only rows of tokens in the training text change.
    Layers include unused layers, and all copies of a layer that each language has separately. Position and language
    embeddings, the norm below the layers and the output layer are not measured.

    Computation is in float32 on the device of ``after``.
    """
    return {
        "embeddings": _of_rows(before.embeddings.words, after.embeddings.words),
        "layers": _of_layers(before, after),
    }


@torch.no_grad()
def _of_rows(before: Tensor, after: Tensor) -> float:
    """Return the mean relative movement of the rows that changed, or 0 if no row changed."""
    total, count = 0.0, 0
    for old, new in zip(torch.split(before, ROWS), torch.split(after, ROWS), strict=True):
        length = torch.linalg.vector_norm(old.to(new.device), dim=1, dtype=torch.float32)
        moved = torch.linalg.vector_norm(new - old.to(new.device), dim=1, dtype=torch.float32)
        counted = (moved > 0) & (length > 0)
        total += float((moved[counted] / length[counted]).sum())
        count += int(counted.sum())
    return total / count if count else 0.0


@torch.no_grad()
def _of_layers(before: LanguageModel, after: LanguageModel) -> float:
    """Return the relative movement of all parameters of the layers, or 0 if they are all zero."""
    lengths, moves = list[float](), list[float]()
    for old, new in zip(before.layers.parameters(), after.layers.parameters(), strict=True):
        there = old.to(new.device)
        lengths.append(float(torch.linalg.vector_norm(there, dtype=torch.float32)))
        moves.append(float(torch.linalg.vector_norm(new - there, dtype=torch.float32)))
    length = math.hypot(*lengths)
    return math.hypot(*moves) / length if length else 0.0
