"""Continual learning: a task loss plus an alignment loss (The Impact of Cross-Lingual Adjustment, equation 2)."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from pretrain.adjust.batches import PairBatches, SinglePairBatches
from pretrain.adjust.loss import AlignmentLoss
from pretrain.model.language_model import LanguageModel
from probes.models.aligned import Aligned
from probes.models.pretrained import Pretrained
from probes.transfer.config import ContinualConfig
from synthlang.rng import key_of


class Continual:
    """The alignment loss α · (L + λR) of continual learning, on some pairs in each step.

    Source: The Impact of Cross-Lingual Adjustment, equation 2. `AlignmentLoss` has the terms L and R. A step has
    ``config.rows`` pairs of each pair of languages, which are sentence pairs or single word pairs (``config.sample``).
    The pairs and the dropout of a step depend only on (seed, step).

    Args:
        config: The settings, with the weight α.
        pretrained: The model and the two languages.
        body: The model that is fine-tuned.
        seed: The seed of the pairs and of the dropout.
        texts: The sentence pairs with word alignments.
        before: The model f⁰ in R, such as the original of an adjusted model (equation 1). The default is a copy of
            ``body``, so create this object before the first step.

    Raises:
        InputError: The model lacks a layer.
    """

    def __init__(
        self,
        config: ContinualConfig,
        pretrained: Pretrained,
        body: LanguageModel,
        seed: int,
        texts: Sequence[Aligned],
        before: LanguageModel | None = None,
    ) -> None:
        self.config, self.body, self.seed = config, body, seed
        self._align = AlignmentLoss(body, before, config.loss)
        data, special = [text.data for text in texts], pretrained.source.specials
        self.batches = (
            PairBatches(data, special, config.rows, 1, seed)
            if config.sample == "sentences"
            else SinglePairBatches(data, special, config.loss, config.rows, seed)
        )

    def loss(self, step: int) -> Tensor:
        """Return the loss α · (L + λR) of a step, a scalar on the device of the model."""
        device = self.body.norm.weight.device
        self._align.frozen.to(device)  # the model may have been moved to another device
        self.body.seed_dropout(key_of("continual-dropout", self.seed, step))
        return self.config.alpha * self._align.total(self.batches.batch(step).to(device))
