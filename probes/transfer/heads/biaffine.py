"""Deep biaffine dependency parser (Dozat & Manning 2017) with trees that have exactly one root."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from probes.transfer.arborescence import arborescences
from probes.transfer.batch import NO_LABEL, Batch
from probes.transfer.config import HeadConfig
from probes.transfer.heads.head import Head
from probes.transfer.heads.precision import full_precision, mean_loss

SLOPE = 0.1  # of the leaky ReLU, as in Dozat & Manning's code


class Mlp(nn.Module):
    """One layer: linear, leaky ReLU, dropout."""

    def __init__(self, hidden: int, width: int, dropout: float) -> None:
        super().__init__()
        self.linear, self.active, self.dropout = nn.Linear(hidden, width), nn.LeakyReLU(SLOPE), nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        """[..., hidden] → [..., width]."""
        y: Tensor = self.dropout(self.active(self.linear(x)))
        return y


def with_one(x: Tensor) -> Tensor:
    """[..., d] → [..., d + 1]: a constant 1, so that a bilinear form has linear terms and a bias."""
    return torch.cat([x, x.new_ones(*x.shape[:-1], 1)], dim=-1)


class ParserHead(Head):
    """Arc scores s[i, j] = dᵢᵀ U hⱼ + bᵀ hⱼ (their equation 6) and relation scores [dᵢ; 1]ᵀ Uᵣ [hⱼ; 1] (equation 3).

    The root is the state of ``<s>``. Bilinear weights start at 0, all heads equally likely. With ``root_relation``
    (its number) an arc from the root is decoded with it and no other arc is; None: each arc has its best relation.
    """

    def __init__(self, *, hidden: int, relations: int, config: HeadConfig, root_relation: int | None = None) -> None:
        super().__init__()
        self.relations, self.root_relation = relations, root_relation
        self.arc_dependent = Mlp(hidden, config.arc, config.dropout)
        self.arc_head = Mlp(hidden, config.arc, config.dropout)
        self.relation_dependent = Mlp(hidden, config.relation, config.dropout)
        self.relation_head = Mlp(hidden, config.relation, config.dropout)
        self.arc = nn.Parameter(torch.zeros(config.arc + 1, config.arc))
        self.relation = nn.Parameter(torch.zeros(relations, config.relation + 1, config.relation + 1))

    def arcs(self, states: Tensor, mask: Tensor) -> Tensor:
        """[r, k, 1 + k] float32: the score of each word under the root and each word; −inf under itself and padding."""
        with full_precision(states):
            x = states.float()
            dependents, heads = with_one(self.arc_dependent(x[:, 1:])), self.arc_head(x)
            scores: Tensor = dependents @ self.arc @ heads.transpose(1, 2)
        words = mask.shape[1]
        itself = torch.eye(words, dtype=torch.bool, device=mask.device)
        never = itself[None] | ~mask[:, None, :]
        return scores.masked_fill(nn.functional.pad(never, (1, 0)), -torch.inf)

    def labels(self, states: Tensor, heads: Tensor) -> Tensor:
        """[r, k, relations] float32: the score of each relation between each word and its head [r, k]."""
        with full_precision(states):
            x = states.float()
            dependents, above = with_one(self.relation_dependent(x[:, 1:])), with_one(self.relation_head(x))
            above = above.gather(1, heads[:, :, None].expand(-1, -1, above.shape[2]))
            y: Tensor = torch.einsum("rkd,cde,rke->rkc", dependents, self.relation, above)
            return y

    def loss(self, states: Tensor, batch: Batch) -> Tensor:
        """Cross entropy of the heads, mean over the words with one, and of the relations at these gold heads, mean
        over the words that have a head and a relation. A gold head must be a word of the row or 0."""
        heads = batch.targets["heads"].masked_fill(~batch.mask, NO_LABEL)
        relations = batch.targets["relations"].masked_fill(heads < 0, NO_LABEL)
        heads = heads.masked_fill(heads < 0, NO_LABEL)
        arcs = mean_loss(self.arcs(states, batch.mask), heads)
        return arcs + mean_loss(self.labels(states, heads.clamp(min=0)), relations)

    @torch.no_grad()
    def decode(self, states: Tensor, batch: Batch) -> list[list[tuple[int, int]]]:
        """For each word that is there (head, relation) of the best tree with one root, then the best relations."""
        lengths = batch.mask.sum(dim=1)
        scores = self.arcs(states, batch.mask).double().cpu().numpy()
        trees = [torch.from_numpy(tree) for tree in arborescences(scores, lengths.cpu().numpy())]
        if not batch.mask.shape[1]:
            return [[] for _ in trees]
        heads = nn.utils.rnn.pad_sequence([*trees, torch.zeros(batch.mask.shape[1], dtype=torch.int64)], True)[:-1]
        labels = self.labels(states, heads.to(states.device))
        if self.root_relation is not None:
            of_root = torch.arange(self.relations, device=labels.device) == self.root_relation
            labels = labels.masked_fill((heads.to(labels.device) == 0)[:, :, None] != of_root, -torch.inf)
        best = labels.argmax(dim=2).tolist()
        return [list(zip(tree.tolist(), row, strict=False)) for tree, row in zip(trees, best, strict=True)]
