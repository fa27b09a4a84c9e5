"""Continual learning: the alignment loss beside that of a task (The Impact of Cross-Lingual Adjustment, equation 2)."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from pretrain.adjust.batches import PairBatches
from pretrain.adjust.loss import AlignmentLoss
from pretrain.model.encoder import MaskedLM
from probes.models.aligned import Aligned
from probes.models.pretrained import Pretrained
from probes.transfer.config import ContinualConfig
from synthlang.errors import InputError
from synthlang.rng import key_of


class Continual:
    """α · (L + λR) of ``config.rows`` sentence pairs a step (Impact, equation 2): a function of (seed, step).

    The alignment loss stands beside that of a task, so that fine-tuning does not forget the alignment. ``body`` is the
    model that is fine-tuned, ``before`` f⁰ of R: the original model, where ``body`` is an adjusted one (equation 1);
    None: a copy of the body as it is now, so make it before the first step. Dropout is on if the body's is, and is a
    function of (seed, step) too. The loss has no gradient for parameters that are frozen. ``texts`` are the sentence
    pairs (``read_aligned``).

    Raises InputError for a layer that the model does not have, and for a model that cannot read both languages.
    """

    def __init__(
        self,
        config: ContinualConfig,
        pretrained: Pretrained,
        body: MaskedLM,
        seed: int,
        texts: Sequence[Aligned],
        before: MaskedLM | None = None,
    ) -> None:
        if pretrained.source.specials != pretrained.target.specials:
            reason = "one model has to read both languages, and their special tokens differ"
            raise InputError(reason, keys="continual", code="conflict")
        self.config, self.body, self.seed = config, body, seed
        self._align = AlignmentLoss(body, before, config.loss)
        self.batches = PairBatches([text.data for text in texts], pretrained.source.specials, config.rows, 1, seed)

    def loss(self, step: int) -> Tensor:
        """Return the loss of a step, a scalar on the body's device."""
        device = self.body.norm.weight.device
        self._align.frozen.to(device)  # the body may have moved since
        self.body.seed_dropout(key_of("continual-dropout", self.seed, step))
        return self.config.alpha * self._align.total(self.batches.batch(step).to(device))
