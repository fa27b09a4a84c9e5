"""Measure the effect of an adjustment by the distances between aligned words of held-out sentence pairs."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from pretrain.adjust.batches import dev_batches
from pretrain.adjust.config import LossConfig
from pretrain.adjust.vectors import encoder_of, layer_numbers, word_vectors
from synthlang.parallel.prepare import PairData
from synthlang.vocabularies.space import Specials

ROWS = 32  # sentence pairs that are encoded at once


@torch.no_grad()
def distances(model: nn.Module, pairs: Sequence[PairData], special: Specials, settings: LossConfig) -> dict[str, float]:
    """Return the mean L2 distance of aligned and of unrelated words of each pair of languages.

    The words are those of the held-out sentence pairs. An unrelated word is an aligned word of another sentence ("The
    Impact of Cross-Lingual Adjustment", 2022, section 5.4).

    Args:
        model: The model, whose encoder is measured without dropout.
        pairs: The data of each pair of languages.
        special: The special ids of the model.
        settings: Settings of the loss, of which the layers and the vector of a word are used.

    Returns:
        The means over words and layers, rounded to six decimals, with the keys ``related/NAME`` and ``unrelated/NAME``.
        A pair of languages without aligned words has neither key. A pair whose aligned words are in a single sentence
        has no ``unrelated/NAME``.

    Raises:
        InputError: The model lacks a layer that the settings name, or the settings name a layer twice.
    """
    encoder = encoder_of(model)
    was_training = encoder.training
    encoder.eval()
    found = {}
    for pair in pairs:
        left, right, sentence = _linked_vectors(encoder, pair, special, settings)
        if not len(sentence):
            continue
        found[f"related/{pair.name}"] = _mean_distance(left, right)
        other = torch.arange(len(sentence)).roll(len(sentence) // 2)
        apart = sentence != sentence[other]
        if apart.any():
            found[f"unrelated/{pair.name}"] = _mean_distance(left[:, apart], right[:, other[apart]])
    encoder.train(was_training)
    return found


def _mean_distance(one: Tensor, other: Tensor) -> float:
    return round(float(torch.linalg.vector_norm(one.double() - other.double(), dim=-1).mean()), 6)


def _linked_vectors(
    encoder: nn.Module, pair: PairData, special: Specials, settings: LossConfig
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the left and right vectors of aligned words, [layers, words, d] each, and their sentences, [words]."""
    layers = layer_numbers(settings.layers, encoder)
    device = next(encoder.parameters()).device
    left, right, sentences = [torch.zeros(1, 0, 1)], [torch.zeros(1, 0, 1)], [torch.zeros(0)]
    count = 0
    for batch in dev_batches(pair, special, ROWS):
        moved = batch.to(device)
        for words, found, link in ((moved.left, left, moved.links[:, 0]), (moved.right, right, moved.links[:, 1])):
            found.append(word_vectors(encoder, words, layers, settings.subword)[:, link].cpu())
        rows, width = batch.left.input_ids.shape
        sentences.append(count + batch.left.start[batch.links[:, 0]] // width)
        count += rows
    if not count:
        return left[0], right[0], sentences[0]
    return torch.cat(left[1:], 1), torch.cat(right[1:], 1), torch.cat(sentences[1:])
