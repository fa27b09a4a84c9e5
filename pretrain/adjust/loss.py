"""The loss of an adjustment, L + λR, as one module that any training can add to its own loss."""

from __future__ import annotations

import copy
from collections.abc import Mapping

import torch
from torch import Tensor, nn

from pretrain.adjust.batches import WordPairs
from pretrain.adjust.config import LossConfig, Side
from pretrain.adjust.vectors import encoder_of, layer_numbers, word_vectors

PULL, HOLD = "pull", "hold"


class AlignmentLoss(nn.Module):
    """Sums of the two terms L and R of an adjustment for a batch of sentence pairs (Cao et al. 2020, section 3.3).

        pull   Σ ‖f(moving word) − f(other word)‖²   over aligned words and sentence tokens: L
        hold   Σ ‖f(word) − f⁰(word)‖²               over held words: R

    f is the encoder of ``model`` (ours or one of Hugging Face), and f⁰ is the encoder of ``frozen``, the original model
    (None: a copy of f). f⁰ is set to evaluation, and its weights no longer require gradients. The settings choose the
    tokens and sides, the layers to sum or to average, and the distance. In continual learning, the loss of a task is
    L_target + α · ``total(batch)`` ("The Impact of Cross-Lingual Adjustment", 2022, equation 2).

    Raises:
        InputError: The model lacks a layer that the settings name, or the settings name a layer twice.
    """

    def __init__(self, model: nn.Module, frozen: nn.Module | None, settings: LossConfig) -> None:
        super().__init__()
        if frozen is None:
            frozen = copy.deepcopy(encoder_of(model))
        self.settings = settings
        self.encoder = encoder_of(model)
        # In a tuple, so that its weights are not parameters of this module.
        self._frozen = (encoder_of(frozen).eval().requires_grad_(False),)
        self.layers = layer_numbers(settings.layers, self.encoder)

    @property
    def frozen(self) -> nn.Module:
        """The encoder of the original model, which stays on its device when this module is moved to another one."""
        return self._frozen[0]

    def forward(self, batch: WordPairs) -> dict[str, Tensor]:
        """Return the sums ``pull`` and ``hold`` of a batch, [] float32 each."""
        settings = self.settings
        now = {side: self._vectors(self.encoder, batch, side) for side in settings.current_sides}
        with torch.no_grad():
            before = {side: self._vectors(self.frozen, batch, side) for side in settings.frozen_sides}
        target = (now if settings.target == "current" else before)[settings.other]
        moving, other = (batch.pulled(side, settings) for side in (settings.moves, settings.other))
        pull = self._distances(now[settings.moves][:, moving], target[:, other])
        hold = pull.new_zeros(())
        for side in settings.held_sides:
            items = batch.held(side, settings)
            hold = hold + self._distances(now[side][:, items], before[side][:, items])
        return {PULL: pull, HOLD: hold}

    def counts(self, batch: WordPairs) -> dict[str, int]:
        """Return the number of pulled pairs (``pull``) and of held items (``hold``), without a forward pass."""
        settings = self.settings
        hold = sum(len(batch.held(side, settings)) for side in settings.held_sides)
        return {PULL: len(batch.pulled(settings.moves, settings)), HOLD: hold}

    def scales(self, counts: Mapping[str, int | float]) -> dict[str, float]:
        """Return the factor of each sum: 1 and λ, each divided by its count for the reduction ``mean``."""
        weights = {PULL: 1.0, HOLD: self.settings.hold}
        if self.settings.reduction == "sum":
            return weights
        return {name: weight / max(counts[name], 1) for name, weight in weights.items()}

    def total(self, batch: WordPairs) -> Tensor:
        """Return L + λR of one batch, [] float32."""
        sums, scales = self(batch), self.scales(self.counts(batch))
        total: Tensor = scales[PULL] * sums[PULL] + scales[HOLD] * sums[HOLD]
        return total

    def _vectors(self, encoder: nn.Module, batch: WordPairs, side: Side) -> Tensor:
        settings = self.settings
        vectors = word_vectors(encoder, batch.side(side), self.layers, settings.subword, settings.sentence_tokens)
        return vectors.mean(0, keepdim=True) if settings.layers_as == "mean" else vectors

    def _distances(self, one: Tensor, other: Tensor) -> Tensor:
        """Return the sum of the distances between paired vectors, [layers, items, d] each."""
        difference = one - other
        if self.settings.distance == "squared":
            return difference.square().sum()
        norms: Tensor = torch.linalg.vector_norm(difference, dim=-1)  # the gradient of the norm at 0 is 0
        return norms.sum()
