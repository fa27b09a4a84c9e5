"""Linear-chain conditional random field (Lafferty, McCallum & Pereira 2001)."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Crf(nn.Module):
    """p(tags | sentence) ∝ exp score, where

    score(y) = start[y₁] + Σᵢ emissions[i, yᵢ] + Σᵢ transitions[yᵢ, yᵢ₊₁] + end[yₙ].

    Emissions are [r, k, c], the mask [r, k] has the words of each sentence first. A sentence without words has one
    (empty) path with score 0. Everything is a sum of logarithms (logsumexp), so float32 does not overflow.
    """

    def __init__(self, tags: int) -> None:
        super().__init__()
        self.start = nn.Parameter(torch.empty(tags).uniform_(-0.1, 0.1))
        self.end = nn.Parameter(torch.empty(tags).uniform_(-0.1, 0.1))
        self.transitions = nn.Parameter(torch.empty(tags, tags).uniform_(-0.1, 0.1))

    def log_partition(self, emissions: Tensor, mask: Tensor) -> Tensor:
        """[r] log Σ exp score over all paths; an emission of −inf forbids a tag there."""
        if not emissions.shape[1]:
            return emissions.sum(dim=(1, 2))
        alpha = self.start + emissions[:, 0]
        for place in range(1, emissions.shape[1]):
            further = torch.logsumexp(alpha[:, :, None] + self.transitions, dim=1) + emissions[:, place]
            alpha = torch.where(mask[:, place, None], further, alpha)
        total = torch.logsumexp(alpha + self.end, dim=1)
        return torch.where(mask[:, 0], total, torch.zeros_like(total))

    def score(self, emissions: Tensor, tags: Tensor, mask: Tensor) -> Tensor:
        """[r] the score of one path for each sentence; tags [r, k], anything where there is no word."""
        if not emissions.shape[1]:
            return emissions.sum(dim=(1, 2))
        path = tags.masked_fill(~mask, 0)
        own = emissions.gather(2, path[:, :, None])[:, :, 0]
        steps = self.transitions[path[:, :-1], path[:, 1:]]
        last = path.gather(1, (mask.sum(dim=1, keepdim=True) - 1).clamp(min=0))[:, 0]
        inner = own.masked_fill(~mask, 0.0).sum(dim=1) + steps.masked_fill(~mask[:, 1:], 0.0).sum(dim=1)
        ends = self.start[path[:, 0]] + self.end[last]
        return inner + ends.masked_fill(~mask[:, 0], 0.0)

    def log_likelihood(self, emissions: Tensor, tags: Tensor, mask: Tensor) -> Tensor:
        """[r] log p of the tags [r, k] of each sentence.

        A word whose tag is negative (NO_LABEL) may have any: the paths of all its tags are summed, as for a path that
        is only partly observed. A sentence without a tag has log-likelihood 0.
        """
        open_words = tags < 0
        if bool((open_words & mask).any()):
            gold = torch.arange(emissions.shape[2], device=tags.device) == tags[:, :, None]
            allowed = gold | open_words[:, :, None] | ~mask[:, :, None]
            numerator = self.log_partition(emissions.masked_fill(~allowed, -torch.inf), mask)
        else:
            numerator = self.score(emissions, tags, mask)
        free = (open_words | ~mask).all(dim=1)  # both sums are the same then: not even a rounded gradient is left
        return (numerator - self.log_partition(emissions, mask)).masked_fill(free, 0.0)

    @torch.no_grad()
    def viterbi(self, emissions: Tensor, mask: Tensor) -> list[list[int]]:
        """The best path of each sentence; of equal ones the one with the lowest last tag, then last but one, …"""
        rows, words, tags = emissions.shape
        if not words:
            return [[] for _ in range(rows)]
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
