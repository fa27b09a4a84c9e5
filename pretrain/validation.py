"""Validation: perplexity of each language at fixed positions of its dev split, and word alignment."""

from __future__ import annotations

import math

import numpy as np
import torch

from pretrain.artifacts import Artifacts
from pretrain.build import dev_batches
from pretrain.config import PretrainConfig
from pretrain.model.language_model import LanguageModel
from pretrain.model.tensors import TensorBatch
from pretrain.word_pairs import credits_of, word_pairs
from synthlang.errors import InputError


class Validation:
    """Measurement of the perplexity of each language with a dev split, and of its alignment with the source language.

    Perplexity is exp(mean cross entropy in nats) over fixed rows, at masked words or, with a decoder, at all tokens.
    Alignment is the percentage of words whose nearest row is the row of their translation, as the mean of both
    directions, for all words and for words that are not in the dictionary.

    Raises:
        InputError: The best checkpoint is selected, but the source language has no dev split. A dev split does not fill
            one row, or has no sentence that fits into a row.
    """

    def __init__(self, config: PretrainConfig, artifacts: Artifacts) -> None:
        self.config = config
        self.every, self.at = config.validation.every, frozenset(config.checkpoints.steps_at(config.steps))
        on = bool(self.every)
        self.has_dictionary = artifacts.dictionary is not None
        self.names = [language.name for language in artifacts.languages]
        self.batches = {
            i: dev_batches(config, artifacts, i) for i, m in enumerate(artifacts.languages) if on and m.dev is not None
        }
        if config.checkpoints.select == "best" and 0 not in self.batches:
            first = artifacts.languages[0]
            reason = f"best needs a dev split of {first.name}, but {first.spec} has none"
            raise InputError(
                reason,
                keys="checkpoints.select",
                hint="set this key to last, or give a source with a dev split",
                code="missing",
            )
        aligned = range(1, len(self.names)) if on and config.validation.alignment else ()
        found = {i: word_pairs(artifacts, i) for i in aligned}
        self.pairs = {i: pairs for i, pairs in found.items() if pairs is not None}

    @property
    def deciding(self) -> str:
        """Log key of the perplexity of the source language, which selects the best checkpoint."""
        return f"validation/{self.names[0]}"

    def due(self, step: int) -> bool:
        """Return True if perplexity or alignment is to be measured after ``step`` steps."""
        on = bool(self.batches or self.pairs)
        return on and (step % self.every == 0 or step == self.config.steps or step in self.at)

    @torch.no_grad()
    def measure(self, model: LanguageModel) -> dict[str, float]:
        """Return the perplexity of each language, and its alignment in percent.

        The keys are ``validation/<language>``, ``alignment/<language>`` and ``alignment_held_out/<language>``. A
        language without a dev split or a labelled word has no perplexity, and a language without known translations has
        no alignment. Without a dictionary there is no ``alignment_held_out``. Perplexity is at most e^700.

        Raises:
            InputError: A word embedding has NaN or infinity.
        """
        was_training = model.training
        model.eval()
        result = {}
        for i in self.batches:
            perplexity = self._perplexity(model, i)
            if perplexity is not None:
                result[f"validation/{self.names[i]}"] = perplexity
        for i, pairs in self.pairs.items():
            scores = credits_of(model, pairs, i).scores(torch.from_numpy(pairs.in_dictionary))
            held_out = scores.held_out if self.has_dictionary else None  # without a dictionary it equals ``all``
            for key, subset in (("alignment", scores.all), ("alignment_held_out", held_out)):
                if subset is not None:
                    result[f"{key}/{self.names[i]}"] = round(subset.cosine.mean, 4)
        model.train(was_training)
        return result

    def _perplexity(self, model: LanguageModel, language: int) -> float | None:
        batches, size = self.batches[language], self.config.batch.rows
        device = next(model.parameters()).device
        rows = min(self.config.validation.rows, batches.sources[0].rows)
        total, count = 0.0, 0
        for first in range(0, rows, size):
            batch = batches.samples(np.arange(first, min(first + size, rows), dtype=np.int64))
            total += float(model(TensorBatch.of(batch, device)).sum())
            count += batch.targets
        return math.exp(min(total / count, 700.0)) if count else None
