"""Token labelling: a linear head on the first subword of each word, all shared weights fine-tuned.

What a language has of its own is frozen (Conneau et al. 2020, "Emerging Cross-lingual Structure", section 4.3):
a head that was trained through one language's parts is then tested through another's.
"""

from __future__ import annotations

import copy

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from pretrain.encoder import MaskedLM
from pretrain.optim import learning_rate
from probes.transfer.config import TransferConfig
from probes.transfer.examples import NO_LABEL, Examples
from probes.transfer.metrics import token_scores
from synthlang.progress import Report
from synthlang.rng import key_of, permutation


class Tagger(nn.Module):
    """A body with a linear head: logits [rows, width, classes]."""

    def __init__(self, body: MaskedLM, classes: int, dropout: float, key: int) -> None:
        super().__init__()
        self.body = copy.deepcopy(body)
        frozen = set(body.language_specific())
        for name, parameter in self.body.named_parameters():
            parameter.requires_grad_(name not in frozen)
        self.dropout = nn.Dropout(dropout)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(key >> 1)
            self.head = nn.Linear(body.shape.hidden, classes)
            nn.init.normal_(self.head.weight, std=0.02)
            nn.init.zeros_(self.head.bias)

    def forward(self, input_ids: Tensor, valid: Tensor, member: int) -> Tensor:
        """Logits of every position of a language's rows; ``valid`` [rows, width] is False for padding."""
        hidden = self.body.hidden(input_ids, member, valid)
        assert isinstance(hidden, Tensor)
        logits: Tensor = self.head(self.dropout(hidden))
        return logits


def fine_tune(
    body: MaskedLM,
    member: int,
    train: Examples,
    dev: Examples,
    classes: int,
    config: TransferConfig,
    seed: int,
    report: Report,
) -> Tagger:
    """Fine-tune on ``train``, rows of a language; the epoch with the best accuracy on ``dev`` (the first of equals)."""
    key = key_of("transfer", seed)
    device = next(body.parameters()).device
    tagger = Tagger(body, classes, config.dropout, key).to(device)
    trained = [p for p in tagger.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=config.learning_rate, weight_decay=config.weight_decay, fused=True)
    per_epoch = -(-len(train) // config.rows)
    steps = per_epoch * config.epochs
    warmup = int(config.warmup_share * steps)
    best, best_state = -1.0, tagger.state_dict()
    for epoch in range(config.epochs):
        order = permutation(key_of("epoch", key, epoch), len(train))
        for i in range(per_epoch):
            step = epoch * per_epoch + i
            torch.manual_seed(key_of("dropout", key, step) >> 1)
            tagger.body.seed_dropout(key_of("body dropout", key, step))
            for group in optimizer.param_groups:
                group["lr"] = learning_rate(config.learning_rate, warmup, steps, step)
            _train_step(tagger, member, optimizer, train, order[i * config.rows : (i + 1) * config.rows])
        score = evaluate(tagger, member, dev)["accuracy"]
        report("", epoch + 1, config.epochs, f"dev {score:.1f} %")
        if score > best:
            best, best_state = score, copy.deepcopy(tagger.state_dict())
    tagger.load_state_dict(best_state)
    return tagger


def _train_step(
    tagger: Tagger, member: int, optimizer: torch.optim.Optimizer, train: Examples, rows: NDArray[np.int64]
) -> None:
    tagger.train()
    device = tagger.head.weight.device
    ids, labels, _ = train.batch(rows)
    logits = tagger(ids.to(device), (ids != train.specials.pad).to(device), member).flatten(0, 1)
    loss = F.cross_entropy(logits, labels.to(device).flatten(), ignore_index=NO_LABEL)
    torch.autograd.backward(loss)
    nn.utils.clip_grad_norm_(tagger.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)


@torch.no_grad()
def predict(tagger: Tagger, member: int, examples: Examples, rows: int = 128) -> NDArray[np.int64]:
    """The class of every word, [words]; −1 for a word beyond the length limit."""
    tagger.eval()
    device = tagger.head.weight.device
    predicted = np.full(len(examples.labels), -1, np.int64)
    for batch in examples.batches(rows):
        ids, _, words = examples.batch(batch)
        chosen = tagger(ids.to(device), (ids != examples.specials.pad).to(device), member).argmax(-1).cpu()
        predicted[words[words >= 0].numpy()] = chosen[words >= 0].numpy()
    return predicted


def evaluate(tagger: Tagger, member: int, examples: Examples) -> dict[str, float]:
    """Scores on a set, in percent; a gold label that training never saw is always an error."""
    gold = examples.labels
    unseen = tagger.head.out_features  # no class that can be predicted
    return token_scores(np.where(gold < 0, unseen, gold), predict(tagger, member, examples))
