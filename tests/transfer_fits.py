"""A planted problem for fits: the label of a token is a function of its id."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from pretrain.config import ModelConfig, SharingConfig
from pretrain.model.roberta import MaskedLM
from pretrain.model.text import Text
from probes.models.pretrained import Role
from probes.transfer.config import FeaturesConfig, FineTuneConfig
from probes.transfer.features import Features, TaskModel
from probes.transfer.tasks.base import NO_LABEL, Batch, Examples, Head
from probes.transfer.tasks.metrics import Metric

PAD, CLASSES, SIZE = 1, 3, 40
IDS = (np.r_[0:5, 5:25], np.r_[0:5, 20:40])  # of two languages
SHAPE = ModelConfig(layers=2, heads=2, hidden=16, feed_forward=32, dropout=0.1, init_std=0.2)
SHARED = SharingConfig()
OWN = SharingConfig(embeddings="separate", layers=(1,), softmax="language")
FIT = FineTuneConfig(epochs=3, rows=8, learning_rate=1e-2, head_learning_rate=2e-2)


@dataclass(frozen=True)
class Tokens(Examples):
    """Rows ``<s> words </s>`` with a label for each word."""

    rows: list[list[int]] = field(default_factory=list)
    labels: list[list[int]] = field(default_factory=list)
    member: int = 0
    role: Role = "source"

    @property
    def lengths(self):
        return np.array([len(row) for row in self.rows], np.int64)

    def batch(self, rows) -> Batch:
        width = max(len(self.rows[r]) for r in rows)
        ids = torch.full((len(rows), width), PAD)
        tags = torch.full((len(rows), width - 2), NO_LABEL)
        for i, r in enumerate(rows):
            ids[i, : len(self.rows[r])] = torch.tensor(self.rows[r])
            tags[i, : len(self.labels[r])] = torch.tensor(self.labels[r])
        mask = tags != NO_LABEL
        words = torch.arange(1, width - 1)[None, :, None].expand(len(rows), -1, 2) * mask[..., None]
        return Batch(Text.of(ids, self.member, ids != PAD), words, mask, {"tags": tags}, self.role, rows)

    def predictions(self, outputs: Sequence[Any]) -> list[Any]:
        return list(outputs)


class Linear(Head):
    def __init__(self, hidden: int, dropout: float = 0.1) -> None:
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.out = nn.Linear(hidden, CLASSES)

    def loss(self, states: Tensor, batch: Batch) -> Tensor:
        logits = self.out(self.dropout(states[:, 1:])).flatten(0, 1)
        return F.cross_entropy(logits, batch.targets["tags"].flatten(), ignore_index=NO_LABEL)

    def decode(self, states: Tensor, batch: Batch) -> list[Any]:
        best = self.out(states[:, 1:]).argmax(-1)
        return [row[seen].tolist() for row, seen in zip(best, batch.mask, strict=True)]


def _right(gold, predictions):
    pairs = list(zip(gold, predictions, strict=True))
    return np.array([[sum(a == b for a, b in zip(*pair, strict=True)), len(pair[0])] for pair in pairs])


ACCURACY = Metric("accuracy", _right, lambda sums: 100 * sums[..., 0] / sums[..., 1])


def tokens(count: int, seed: int = 0, member: int = 0, shuffled: bool = False, longest: int = 12) -> Tokens:
    """Return random rows. The label of a word is its id modulo the number of classes, or random if ``shuffled``."""
    draw = np.random.default_rng(seed)
    own = IDS[member][5:]
    rows = [[0, *draw.choice(own, draw.integers(1, longest)).tolist(), 2] for _ in range(count)]
    labels = [[token % CLASSES for token in row[1:-1]] for row in rows]
    if shuffled:
        labels = [draw.integers(0, CLASSES, len(row)).tolist() for row in labels]
    role: Role = "target" if member else "source"
    return Tokens(tuple(map(str, range(count))), labels, {}, rows, labels, member, role)


def body_of(sharing: SharingConfig = SHARED, shape: ModelConfig = SHAPE, seed: int = 0) -> MaskedLM:
    return MaskedLM(shape, sharing, IDS, SIZE, 16, PAD, language_ids=False, seed=seed)


def model_of(body: MaskedLM | None = None, seed: int = 0, **features: Any) -> TaskModel:
    body = body_of() if body is None else body
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        read = Features({"source": body, "target": body}, FeaturesConfig(**features))
        return TaskModel(read, Linear(read.width))


def weights(model: nn.Module) -> dict[str, Tensor]:
    return {name: p.detach().clone() for name, p in model.named_parameters()}


def moved(before: dict[str, Tensor], after: dict[str, Tensor]) -> set[str]:
    return {name for name in before if not torch.equal(before[name], after[name])}
