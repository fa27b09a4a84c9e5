"""The weighted sum of terms that a run minimises."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

import torch
from torch import Tensor

from pretrain.data.batch import IGNORE, Batch, RowGroup
from pretrain.model.language_model import LanguageModel
from pretrain.model.tensors import TensorBatch
from pretrain.objectives.table import NAMES, TERMS
from pretrain.objectives.term import OwnLoss

Number = TypeVar("Number", float, Tensor)
Corpus = frozenset[int]
"""The languages of a corpus: one, or two for sentence pairs."""


@dataclass(frozen=True)
class Part:
    """A loss that is summed and logged.

    Attributes:
        term: The term, whose own loss or labelled positions are summed.
        corpus: The corpus to which the labelled positions are limited, or None for all rows.
    """

    term: str
    corpus: Corpus | None = None

    def rows(self, groups: tuple[RowGroup, ...]) -> list[slice]:
        """Return the ranges of the rows of the corpus in a batch with these ``groups``."""
        found = [g for g in groups if frozenset(language for _, _, language in g.spans) == self.corpus]
        return [slice(group.start, group.stop) for group in found]


class Objective:
    """The weighted sum L of the losses of all terms t in use.

        L = Σ w_t · (sum of term t) / (labelled positions of the step) + Σ w_t · (own loss of t) / (count of this loss)

    Sums over labelled positions are Σ −log p(label). All terms share one divisor, so that all positions have the same
    weight. Counts are known before the forward pass, so each micro-batch is divided by the counts of the whole step,
    over all micro-batches and processes.

    With ``corpora`` the first sum is divided in each corpus by the labelled positions of its rows, and L has the sum of
    these means (ALIGN-MLM, section 3: L(C₁) + L(C₂), and for XLM + L(C₁₋₂)). Losses are then logged for each corpus, as
    ``mlm/en``.

    Args:
        weights: Weights of the terms in use.
        own: Losses of the terms that are not sums over labelled positions.
        corpora: The languages of the rows of each corpus, by name.
        is_causal: True for a decoder. Its gradients of logits are computed for a block of positions at a time.
    """

    def __init__(
        self,
        weights: Mapping[str, float],
        own: Mapping[str, OwnLoss],
        corpora: Mapping[str, Corpus] | None = None,
        is_causal: bool = False,
    ) -> None:
        self.is_causal = is_causal
        assert weights.keys() <= {*NAMES}, "known terms"
        assert own.keys() == {t.name for t in TERMS if t.name in weights and not t.masked}, "their own losses"
        # Rows of one term may have positions of another term, which count even without a weight. In the rows of a
        # decoder this is clm, which has a weight.
        beside = () if is_causal else [term.beside for term in TERMS if term.name in weights]
        on = {*weights}.union(*beside)
        terms = tuple(name for name in NAMES if name in on)
        self.weights = {name: weights.get(name, 0.0) for name in terms}
        self.own = own
        self.parts = {
            name: Part(term, corpus)
            for term in terms
            for name, corpus in (
                [(term, None)]
                if corpora is None or term in own
                else [(f"{term}/{corpus}", languages) for corpus, languages in corpora.items()]
            )
        }
        self.names = tuple(self.parts)

    def counts(self, batch: Batch) -> dict[str, int]:
        """Return the number of summands of each loss of the batch, by the name of the loss in the log."""
        labelled = batch.labels != IGNORE

        def count(part: Part) -> int:
            if part.term in self.own:
                return self.own[part.term].count(batch)
            mine = labelled & (batch.terms == NAMES.index(part.term))
            return int(mine.sum()) if part.corpus is None else sum(int(mine[r].sum()) for r in part.rows(batch.groups))

        return {name: count(part) for name, part in self.parts.items()}

    def sums(
        self, model: LanguageModel, batch: TensorBatch, scales: Mapping[str, Tensor] | None = None
    ) -> dict[str, Tensor]:
        """Return the sum of each loss, [] each, in nats for labelled positions.

        ``scales`` are the factors by which the sums are multiplied afterwards, up to a common factor. A decoder needs
        them to save memory, and an encoder does not use them.
        """
        weights = None if scales is None or not self.is_causal else self._weights(batch, scales)
        losses = model(batch, weights) if self.names != (*self.own,) else None
        sums = {}
        for name, part in self.parts.items():
            if part.term in self.own:
                sums[name] = self.own[part.term].sum(model, batch)
            elif losses is not None:
                mine = torch.where(batch.terms == NAMES.index(part.term), losses, 0.0)
                if part.corpus is not None:  # a micro-batch may have no row of the corpus
                    mine = torch.cat([mine[:0], *(mine[rows] for rows in part.rows(batch.groups))])
                sums[name] = mine.sum()
        return sums

    def _weights(self, batch: TensorBatch, scales: Mapping[str, Tensor]) -> Tensor:
        """Return the factor of the loss of each position, [rows, k] float32."""
        weights = torch.zeros(batch.labels.shape, device=batch.labels.device)
        for name, part in self.parts.items():
            if part.term not in self.own:
                mine = batch.terms == NAMES.index(part.term)
                for rows in [slice(None)] if part.corpus is None else part.rows(batch.groups):
                    weights[rows] = torch.where(mine[rows], scales[name], weights[rows])
        return weights

    def scales(self, counts: Mapping[str, Number]) -> dict[str, Number]:
        """Return the factor of each sum: the weight of its term, divided by the count of the whole step.

        Sums over labelled positions have one count for all terms, or for all terms of a corpus. A count of 0 is
        replaced by 1.
        """
        scales = {}
        for name, part in self.parts.items():
            pool = [counts[name]]
            if part.term not in self.own:  # all terms of the same rows are divided by one count
                of_rows = [n for n, p in self.parts.items() if p.term not in self.own and p.corpus == part.corpus]
                pool = [counts[n] for n in of_rows]
            scales[name] = self.weights[part.term] / _at_least_one(sum(pool[1:], pool[0]))
        return scales


def _at_least_one(count: Number) -> Number:
    """Replace a count of 0 with 1, so that a step without a labelled position has the loss 0."""
    return count.clamp(min=1) if isinstance(count, Tensor) else max(count, 1)
