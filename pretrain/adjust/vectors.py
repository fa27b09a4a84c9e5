"""Contextual vectors of words, from the first subword, the last one, or the mean of all, and their distances."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from pretrain.adjust.batches import SideWords, dev_batches
from pretrain.adjust.config import LossConfig
from pretrain.config.model import numbered
from pretrain.hub import longest_input
from pretrain.model.language_model import LanguageModel
from pretrain.model.text import Text
from synthlang.parallel.prepare import PairData
from synthlang.vocabularies.space import Specials

Subword = Literal["start", "end", "mean"]
ROWS = 32  # sentence pairs that are encoded at once to measure distances


def encoder_of(model: nn.Module) -> nn.Module:
    """Return the encoder of a model of transformers (its ``base_model``), or the model itself if it is ours."""
    base = getattr(model, "base_model", model)
    return base if isinstance(base, nn.Module) else model


def layer_count(encoder: nn.Module) -> int:
    """Return the number of layers above the embeddings."""
    if isinstance(encoder, LanguageModel):
        return encoder.shape.layers
    config: Any = encoder.config
    return int(config.num_hidden_layers)


def layer_numbers(layers: Sequence[int], encoder: nn.Module, key: str = "loss.layers") -> tuple[int, ...]:
    """Return ``layers`` as numbers 0 … N, where negative numbers count from the last layer.

    Errors name the ``key`` of the setting.

    Raises:
        InputError: The encoder does not have one of the layers, or a layer is named twice.
    """
    return numbered(layers, layer_count(encoder), key)


def layer_states(encoder: nn.Module, words: SideWords, layers: Sequence[int]) -> Tensor:
    """Return the output of each of ``layers``, 0 (the embeddings) … N, [layers, rows, width, d] float32.

    The encoder is ours or from Hugging Face. Widths are rounded up, so columns beyond the limit of the model are
    padding, and their states are 0.
    """
    full = words.input_ids.shape[1]
    width = min(full, encoder.embeddings.length if isinstance(encoder, LanguageModel) else longest_input(encoder))
    ids, mask = words.input_ids[:, :width], words.mask[:, :width]
    if isinstance(encoder, LanguageModel):
        states = encoder.read(Text.of(ids, words.language, mask.bool()), layers=layers)
    else:
        count = layer_count(encoder)
        out: Any = encoder(input_ids=ids, attention_mask=mask, output_hidden_states=any(n != count for n in layers))
        states = [out.last_hidden_state if layer == count else out.hidden_states[layer] for layer in layers]
    stacked = torch.stack(states).float()
    return stacked if width == full else F.pad(stacked, (0, 0, 0, full - width))


def word_vectors(
    encoder: nn.Module, words: SideWords, layers: Sequence[int], subword: Subword, sentence_tokens: int = 0
) -> Tensor:
    """Return the vectors of all words, then of sentence tokens, [layers, items, d] float32.

    The vector of a word without subwords has no meaning.

    Args:
        encoder: The encoder, ours or from Hugging Face.
        words: The sentences and the columns of their words.
        layers: Numbers 0 … N from ``layer_numbers``.
        subword: The part of a word whose vector is taken: the first subword, the last subword, or the mean of all.
        sentence_tokens: 0 for words alone, 1 to add the tokens before the sentences, and 2 to add also the tokens after
            them.
    """
    flat = layer_states(encoder, words, layers).flatten(1, 2)
    vectors = _pooled(flat, words, subword)
    around = words.sentence_tokens[:sentence_tokens]
    return torch.cat([vectors, *(flat[:, columns] for columns in around)], dim=1)


def _pooled(flat: Tensor, words: SideWords, subword: Subword) -> Tensor:
    """Return word vectors [layers, words, d] from the token states ``flat`` [layers, rows · width, d]."""
    if subword == "start":
        return flat[:, words.start]
    if subword == "end":
        return flat[:, words.stop - 1]
    lengths = words.stop - words.start
    longest = int(lengths.max()) if len(lengths) else 0
    offsets = torch.arange(longest, device=flat.device)
    inside = offsets < lengths[:, None]
    index = torch.where(inside, words.start[:, None] + offsets, words.start[:, None])
    weights = inside / lengths.clamp(min=1)[:, None]
    return (flat[:, index] * weights[..., None].to(flat.dtype)).sum(2)


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
