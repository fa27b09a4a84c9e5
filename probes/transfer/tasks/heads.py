"""Heads that several tasks share, for a class per row and for a tag per word.

A head for words is linear, or has a CRF, or has a BiLSTM and a CRF.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from probes.transfer.config import HeadConfig
from probes.transfer.tasks.base import NO_LABEL, Batch, Head

LSTM_LAYERS = 2


def mean_loss(scores: Tensor, target: Tensor) -> Tensor:
    """Return the mean cross entropy in nats of ``scores`` [..., c] for the classes ``target`` [...], a scalar.

    NO_LABEL is ignored. Without any label, the result is 0 with a gradient.
    """
    flat, gold = scores.reshape(-1, scores.shape[-1]), target.reshape(-1)
    total = F.cross_entropy(flat, gold, ignore_index=NO_LABEL, reduction="sum")
    return total / (gold != NO_LABEL).sum().clamp(min=1)


class ClassifyHead(Head):
    """Head that predicts a class for each row by a linear map of the state of the row.

    Dropout and optionally a pooler come before the linear map. The pooler computes tanh(W · state + b).

    Args:
        hidden: The width of the states.
        classes: Number of classes.
        dropout: The dropout rate.
        target: The name of the target in a batch.
        pooler: True for a pooler. With ``roberta`` there is dropout below the pooler, too, as in
            RobertaForSequenceClassification.
    """

    def __init__(
        self,
        *,
        hidden: int,
        classes: int,
        dropout: float,
        target: str = "label",
        pooler: bool | Literal["roberta"] = False,
    ) -> None:
        super().__init__()
        self.target = target
        below = [nn.Dropout(dropout)] if pooler == "roberta" else []
        self.pooler = nn.Sequential(*below, nn.Linear(hidden, hidden), nn.Tanh()) if pooler else nn.Identity()
        self.dropout = nn.Dropout(dropout)
        self.linear = nn.Linear(hidden, classes)

    def take_pooler(self, weights: Mapping[str, Tensor]) -> None:
        """Copy the ``weight`` [d, d] and the ``bias`` [d] of a pooler into the pooler of this head.

        Weights of another width are ignored. A head without a pooler does not change.
        """
        for name, parameter in self.pooler.named_parameters():
            given = weights[name.rpartition(".")[2]]
            if given.shape == parameter.shape:
                parameter.data.copy_(given)

    def scores(self, states: Tensor) -> Tensor:
        """Return the scores [r, classes] for states [r, 1 + k, d]."""
        y: Tensor = self.linear(self.dropout(self.pooler(states[:, 0])))
        return y

    def loss(self, states: Tensor, batch: Batch) -> Tensor:
        """Return the mean cross entropy in nats over rows with a label, for states [r, 1 + k, d]."""
        return mean_loss(self.scores(states), batch.targets[self.target])

    @torch.no_grad()
    def decode(self, states: Tensor, batch: Batch) -> list[int]:  # noqa: ARG002
        """Return the best class of each row for states [r, 1 + k, d]. Ties go to the first class."""
        best: list[int] = self.scores(states).argmax(dim=1).tolist()
        return best


class TagHead(Head):
    """Head that predicts a class for each word: linear, with a CRF, or with a BiLSTM and a CRF (``config.kind``).

    Some words have no label, such as words with a tag that does not occur in training. The loss of a linear head leaves
    these words out. A CRF needs a whole path, so it sums over all tags of such a word.

    Args:
        hidden: The width of the states.
        classes: Number of classes.
        config: The kind of head, the width of the BiLSTM, and the dropout.
    """

    def __init__(self, *, hidden: int, classes: int, config: HeadConfig) -> None:
        super().__init__()
        self.lstm: BiLstm | None = None
        if config.kind == "bilstm_crf":
            self.lstm = BiLstm(hidden=hidden, width=config.hidden, dropout=config.dropout)
        self.dropout = nn.Dropout(0.0 if self.lstm else config.dropout)  # the BiLSTM has dropout of its own
        self.linear = nn.Linear(self.lstm.width if self.lstm else hidden, classes)
        self.crf = None if config.kind == "linear" else Crf(classes)

    def scores(self, states: Tensor, mask: Tensor) -> Tensor:
        """Return the scores [r, k, classes] of k words, which are the emissions if the head has a CRF.

        ``states`` are [r, 1 + k, d], and ``mask`` [r, k] is False for padding.
        """
        words = states[:, 1:]
        if self.lstm is not None:
            words = self.lstm(words, mask)
        y: Tensor = self.linear(self.dropout(words))
        return y

    def loss(self, states: Tensor, batch: Batch) -> Tensor:
        """Return the cross entropy, or −log p of the paths of a CRF, in nats per labelled word.

        ``states`` are [r, 1 + k, d]. Without labelled words, the loss is 0 with a gradient.
        """
        tags = batch.targets["tags"].masked_fill(~batch.mask, NO_LABEL)
        scores = self.scores(states, batch.mask)
        if self.crf is None:
            return mean_loss(scores, tags)
        total = self.crf.log_likelihood(scores, tags, batch.mask).sum()
        return -total / (tags != NO_LABEL).sum().clamp(min=1)

    @torch.no_grad()
    def decode(self, states: Tensor, batch: Batch) -> list[list[int]]:
        """Return the predicted class of each word, by row, for states [r, 1 + k, d].

        A CRF predicts the classes of its best path. A linear head resolves ties in favour of the first class.
        """
        scores = self.scores(states, batch.mask)
        if self.crf is not None:
            return self.crf.viterbi(scores, batch.mask)
        best, here = scores.argmax(dim=2).tolist(), batch.mask.sum(dim=1).tolist()
        return [row[:count] for row, count in zip(best, here, strict=True)]


class BiLstm(nn.Module):
    """Two bidirectional LSTM layers over the words of a sentence.

    Dropout acts on the input, on the output and between the layers.

    Args:
        hidden: The width of the states.
        width: Number of units in each direction.
        dropout: The dropout rate.
    """

    def __init__(self, *, hidden: int, width: int, dropout: float) -> None:
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.lstm = nn.LSTM(hidden, width, LSTM_LAYERS, batch_first=True, dropout=dropout, bidirectional=True)
        self.width = 2 * width

    def forward(self, states: Tensor, mask: Tensor) -> Tensor:
        """Map states [r, k, d] to [r, k, 2 · units]. In each row of the mask [r, k], words come before padding."""
        # packing needs at least one step; rows without words do not use its result
        lengths = mask.sum(dim=1).clamp(min=1).cpu()
        packed = pack_padded_sequence(self.dropout(states), lengths, batch_first=True, enforce_sorted=False)
        y, _ = pad_packed_sequence(self.lstm(packed)[0], batch_first=True, total_length=states.shape[1])
        dropped: Tensor = self.dropout(y)
        return dropped


class Crf(nn.Module):
    """Linear-chain conditional random field (Lafferty, McCallum & Pereira 2001).

    p(tags | sentence) ∝ exp score(tags), where score(y) = start[y₁] + Σᵢ emissions[i, yᵢ] + Σᵢ transitions[yᵢ, yᵢ₊₁] +
    end[yₙ]. Emissions are [r, k, c] with k ≥ 1. In each row of the mask [r, k], words come before padding. A sentence
    without words has one empty path with score 0. Sums use logsumexp, so float32 does not overflow.

    Args:
        tags: Number c of tags.
    """

    def __init__(self, tags: int) -> None:
        super().__init__()
        self.start = nn.Parameter(torch.empty(tags).uniform_(-0.1, 0.1))
        self.end = nn.Parameter(torch.empty(tags).uniform_(-0.1, 0.1))
        self.transitions = nn.Parameter(torch.empty(tags, tags).uniform_(-0.1, 0.1))

    def log_partition(self, emissions: Tensor, mask: Tensor) -> Tensor:
        """Return log Σ exp score over all paths of each sentence, [r]. An emission of −inf forbids a tag."""
        alpha = self.start + emissions[:, 0]
        for place in range(1, emissions.shape[1]):
            further = torch.logsumexp(alpha[:, :, None] + self.transitions, dim=1) + emissions[:, place]
            alpha = torch.where(mask[:, place, None], further, alpha)
        total = torch.logsumexp(alpha + self.end, dim=1)
        return torch.where(mask[:, 0], total, torch.zeros_like(total))

    def score(self, emissions: Tensor, tags: Tensor, mask: Tensor) -> Tensor:
        """Return the score [r] of the path ``tags`` [r, k] of each sentence. Tags at padding are ignored."""
        path = tags.masked_fill(~mask, 0)
        own = emissions.gather(2, path[:, :, None])[:, :, 0]
        steps = self.transitions[path[:, :-1], path[:, 1:]]
        last = path.gather(1, (mask.sum(dim=1, keepdim=True) - 1).clamp(min=0))[:, 0]
        inner = own.masked_fill(~mask, 0.0).sum(dim=1) + steps.masked_fill(~mask[:, 1:], 0.0).sum(dim=1)
        ends = self.start[path[:, 0]] + self.end[last]
        return inner + ends.masked_fill(~mask[:, 0], 0.0)

    def log_likelihood(self, emissions: Tensor, tags: Tensor, mask: Tensor) -> Tensor:
        """Return log p of the tags [r, k] of each sentence in nats, [r].

        A negative tag (NO_LABEL) is unknown. The probability p is then the sum over all values of the unknown tags. A
        sentence without known tags has log-likelihood 0.
        """
        open_words = tags < 0
        if bool((open_words & mask).any()):
            gold = torch.arange(emissions.shape[2], device=tags.device) == tags[:, :, None]
            allowed = gold | open_words[:, :, None] | ~mask[:, :, None]
            numerator = self.log_partition(emissions.masked_fill(~allowed, -torch.inf), mask)
        else:
            numerator = self.score(emissions, tags, mask)
        free = (open_words | ~mask).all(dim=1)  # both sums are equal then, and rounding must not leave a gradient
        return (numerator - self.log_partition(emissions, mask)).masked_fill(free, 0.0)

    @torch.no_grad()
    def viterbi(self, emissions: Tensor, mask: Tensor) -> list[list[int]]:
        """Return the best path of each sentence, with a tag for each word.

        Ties go to the lowest tag, from the last word backwards.
        """
        rows, words, tags = emissions.shape
        alpha = self.start + emissions[:, 0]
        stay = torch.arange(tags, device=emissions.device).expand(rows, tags)
        back = []
        for place in range(1, words):
            best, previous = (alpha[:, :, None] + self.transitions).max(dim=1)
            there = mask[:, place, None]
            alpha = torch.where(there, best + emissions[:, place], alpha)
            back.append(torch.where(there, previous, stay))
        tag = (alpha + self.end).argmax(dim=1)
        path = [tag]
        for previous in reversed(back):
            tag = previous.gather(1, tag[:, None])[:, 0]
            path.append(tag)
        columns = torch.stack(path[::-1], dim=1).tolist()
        return [row[:length] for row, length in zip(columns, mask.sum(dim=1).tolist(), strict=True)]
