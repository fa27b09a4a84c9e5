"""A class for each word: linear, with a CRF, or with two BiLSTM layers and a CRF."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from probes.transfer.batch import NO_LABEL, Batch
from probes.transfer.config import HeadConfig
from probes.transfer.heads.bilstm import BiLstm
from probes.transfer.heads.crf import Crf
from probes.transfer.heads.head import Head
from probes.transfer.heads.precision import full_precision, mean_loss


class TagHead(Head):
    """``config.kind`` chooses; the words of each row come first in its mask.

    Words without a label, such as those whose gold tag does not occur in training, are left out of the loss of a
    linear head. Under a CRF a sentence needs a whole path, so all tags of such a word are summed over (Crf).
    """

    def __init__(self, *, hidden: int, classes: int, config: HeadConfig) -> None:
        super().__init__()
        self.lstm: BiLstm | None = None
        if config.kind == "bilstm_crf":
            self.lstm = BiLstm(hidden=hidden, width=config.hidden, dropout=config.dropout)
        self.dropout = nn.Dropout(0.0 if self.lstm else config.dropout)  # the BiLSTM has its own
        self.linear = nn.Linear(self.lstm.width if self.lstm else hidden, classes)
        self.crf = None if config.kind == "linear" else Crf(classes)

    def scores(self, states: Tensor, mask: Tensor) -> Tensor:
        """States [r, 1 + k, d] → [r, k, classes] float32, the emissions of the CRF if there is one."""
        with full_precision(states):
            words = states[:, 1:].float()
            if self.lstm is not None:
                words = self.lstm(words, mask)
            y: Tensor = self.linear(self.dropout(words))
            return y

    def loss(self, states: Tensor, batch: Batch) -> Tensor:
        """Cross entropy, or −log p of the paths, divided by the number of labelled words."""
        tags = batch.targets["tags"].masked_fill(~batch.mask, NO_LABEL)
        scores = self.scores(states, batch.mask)
        if self.crf is None:
            return mean_loss(scores, tags)
        with full_precision(states):
            total = self.crf.log_likelihood(scores, tags, batch.mask).sum()
            return -total / (tags != NO_LABEL).sum().clamp(min=1)

    @torch.no_grad()
    def decode(self, states: Tensor, batch: Batch) -> list[list[int]]:
        """A class for each word that is there: its best one, or those of the best path; the first of equals."""
        scores = self.scores(states, batch.mask)
        if self.crf is not None:
            with full_precision(states):
                return self.crf.viterbi(scores, batch.mask)
        best, here = scores.argmax(dim=2).tolist(), batch.mask.sum(dim=1).tolist()
        return [row[:count] for row, count in zip(best, here, strict=True)]
