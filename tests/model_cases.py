"""Small models and batches, and the encoder written out position by position."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save_file
from torch import Tensor

from pretrain.config import ModelConfig, SharingConfig
from pretrain.data.batch import IGNORE, Batch, RowGroup
from pretrain.model.attention import Layer, SeparateLayers
from pretrain.model.kinds import to_hf
from pretrain.model.language_model import LanguageModel
from pretrain.model.roberta import DenseHead, MaskedLM
from pretrain.model.tensors import TensorBatch

SIZE, WIDTH, PAD, SLOTS = 21, 8, 1, 3
IDS = (np.r_[0:5, 5:12], np.r_[0:5, 10:21])  # two languages with the specials and two more ids in common
SHAPE = ModelConfig(layers=3, heads=2, hidden=12, feed_forward=20, dropout=0.0, init_std=0.3)
SHARED = SharingConfig()
KINDS = {
    "shared": SHARED,
    "language softmax": SharingConfig(softmax="language"),
    "sep emb": SharingConfig(embeddings="separate", softmax="language"),
    "sep emb + L1-2": SharingConfig(embeddings="separate", layers=(1, 2), softmax="language"),
    "sep L1": SharingConfig(layers=(1,), softmax="shared"),
    "sep L1-3": SharingConfig(layers=(1, 2, 3), softmax="shared"),
    "sep L3": SharingConfig(layers=(3,), softmax="shared"),
}
MONOLINGUAL = (RowGroup(0, 2, ((0, WIDTH, 0),)), RowGroup(2, 4, ((0, WIDTH, 1),)))
HALVES = (0, WIDTH // 2, 0), (WIDTH // 2, WIDTH, 1)
MIXED = (*MONOLINGUAL, RowGroup(4, 6, HALVES))


def model_of(
    sharing: SharingConfig = SHARED, language_ids: bool = False, shape: ModelConfig = SHAPE, seed: int = 0
) -> MaskedLM:
    model = MaskedLM(shape, sharing, IDS, SIZE, WIDTH + 2, PAD, language_ids, seed)
    with torch.no_grad():
        for parameter in model.parameters():  # biases and norms too, so that each is seen to matter
            if parameter.ndim < 2:
                parameter.add_(torch.randn(parameter.shape, generator=torch.Generator().manual_seed(seed)) / 4)
    return model.eval()


def opened_export(model: LanguageModel, language: int, folder: Path, auto: Any) -> Any:
    """Write the export of a language, and open it with transformers. It must have all weights and no others."""
    config, state = to_hf(model, language)
    config.save_pretrained(folder)
    save_file(state, folder / "model.safetensors", metadata={"format": "pt"})
    theirs, info = auto.from_pretrained(folder, output_loading_info=True)
    assert not any(info.values())
    return theirs.eval()


def assert_every_weight_is_exported(model: LanguageModel) -> None:
    """A change of any parameter that language 0 has is seen in its export. Layers 1 and 2 of the model are separate."""
    for name, parameter in model.named_parameters():
        before = to_hf(model, 0)[1]
        with torch.no_grad():
            parameter.add_(1.0)
        after = to_hf(model, 0)[1]
        other = name.startswith(("layers.0.1.", "layers.1.1."))
        assert any(not torch.equal(before[key], after[key]) for key in before) != other, name


def batch_of(
    groups: tuple[RowGroup, ...] = MIXED, padded: bool = True, seed: int = 0, alone: bool = False
) -> TensorBatch:
    """Return random rows of the groups. Each span ends with padding, and each row has a position without a label.

    With ``alone``, each span has two sentences that attend only to themselves. Two spans of a row form two pairs.
    """
    draw = np.random.default_rng(seed)
    rows = groups[-1].stop
    languages = np.zeros((rows, WIDTH), np.int64)
    positions, valid = np.tile(np.arange(WIDTH), (rows, 1)), np.ones((rows, WIDTH), bool)
    for group in groups:
        for start, stop, member in group.spans:
            languages[group.start : group.stop, start:stop] = member
            positions[group.start : group.stop, start:stop] -= start
            valid[group.start : group.stop, stop - 1] = not padded
    words = [own[own >= 5] for own in IDS]
    ids = np.where(languages == 0, draw.choice(words[0], (rows, WIDTH)), draw.choice(words[1], (rows, WIDTH)))
    ids = np.where(valid, ids, PAD)
    slots = np.sort(np.stack([draw.permutation(WIDTH - 1)[:SLOTS] for _ in range(rows)]), axis=1)
    at = np.take_along_axis(languages, slots, 1)
    labels = np.where(at == 0, draw.choice(words[0], slots.shape), draw.choice(words[1], slots.shape))
    labels[:, 1] = IGNORE
    inputs = (ids, languages, slots, labels, np.zeros_like(slots))
    numbers = None
    if alone:  # the second sentence of each span begins at its third token
        numbers = np.where(valid, (positions >= 2).astype(np.int64), -1)
        positions -= np.where(positions >= 2, 2, 0)
    batch = Batch(*inputs, positions, valid if padded else None, numbers, groups, np.arange(rows))
    return TensorBatch.of(batch, torch.device("cpu"))


def norm(module: torch.nn.LayerNorm, x: Tensor) -> Tensor:
    centred = x - x.mean()
    return centred / torch.sqrt((centred**2).mean() + module.eps) * module.weight + module.bias


def gelu(x: Tensor) -> Tensor:
    return x * (1 + torch.erf(x / math.sqrt(2))) / 2


def plain_losses(model: MaskedLM, batch: TensorBatch) -> Tensor:
    """Return −log p of each label, computed for one position at a time with the parameters of its language."""
    rows = [_plain_row(model, batch, row) for row in range(len(batch.input_ids))]
    return torch.stack(rows)


def word_row(model: MaskedLM, token: int, member: int) -> Tensor:
    if not model.embeddings.separate:
        return model.embeddings.words[token]
    return model.embeddings.words[sum(map(len, IDS[:member])) + list(IDS[member]).index(token)]


def word_bias(model: MaskedLM, token: int, member: int) -> Tensor:
    if not model.embeddings.separate:
        return model.embeddings.bias[token]
    return model.embeddings.bias[sum(map(len, IDS[:member])) + list(IDS[member]).index(token)]


def _plain_row(model: MaskedLM, batch: TensorBatch, row: int) -> Tensor:
    tables = model.embeddings
    members = batch.languages[row].tolist()
    group = next(g for g in batch.groups if g.start <= row < g.stop)
    copies = [next(m for start, stop, m in group.spans if start <= column < stop) for column in range(WIDTH)]
    seen = [[True] * WIDTH if batch.valid is None else batch.valid[row].tolist()] * WIDTH
    if batch.sentences is not None:
        numbers = batch.sentences[row].tolist()
        seen = [[other == number for other in numbers] for number in numbers]
    x = []
    for column, member in enumerate(members):
        position = column if batch.positions is None else int(batch.positions[row, column])
        vector = word_row(model, int(batch.input_ids[row, column]), member)
        vector = vector + tables.positions[position + (member * tables.length if tables.separate else 0)]
        x.append(norm(model.norm, vector if tables.languages is None else vector + tables.languages[member]))
    for layer in model.layers:
        own = [layer.copy(m) if isinstance(layer, SeparateLayers) else layer for m in copies]
        x = _plain_layer([module for module in own if isinstance(module, Layer)], x, seen)
    head = model.head
    assert isinstance(head, DenseHead)
    losses = []
    for slot, label in zip(batch.masked[row].tolist(), batch.labels[row].tolist(), strict=True):
        state = norm(head.norm, gelu(head.dense.weight @ x[slot] + head.dense.bias))
        member = members[slot]
        restricted = model.sharing.softmax == "language"
        tokens = IDS[member].tolist() if restricted else list(range(SIZE))
        if label == IGNORE:
            losses.append(torch.zeros(()))
            continue
        logits = [word_row(model, t, member) @ state + word_bias(model, t, member) for t in tokens]
        losses.append(-torch.log_softmax(torch.stack(logits), 0)[tokens.index(label)])
    return torch.stack(losses)


def _plain_layer(own: list[Layer], x: list[Tensor], seen: list[list[bool]]) -> list[Tensor]:
    d = len(x[0])
    size = d // own[0].heads
    projected = [layer.qkv.weight @ vector + layer.qkv.bias for layer, vector in zip(own, x, strict=True)]
    result = []
    for layer, vector, here, mine in zip(own, x, projected, seen, strict=True):
        context = []
        for start in range(0, d, size):
            query = here[start : start + size]
            scores = torch.stack([query @ p[d + start : d + start + size] / math.sqrt(size) for p in projected])
            weights = torch.softmax(torch.where(torch.tensor(mine), scores, -math.inf), 0)
            values = torch.stack([p[2 * d + start : 2 * d + start + size] for p in projected])
            context.append(weights @ values)
        attended = norm(layer.attention_norm, vector + layer.out.weight @ torch.cat(context) + layer.out.bias)
        inner = gelu(layer.up.weight @ attended + layer.up.bias)
        result.append(norm(layer.norm, attended + layer.down.weight @ inner + layer.down.bias))
    return result
