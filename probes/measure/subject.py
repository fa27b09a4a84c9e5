"""What is probed: one model or two, the two languages they read, and sentence pairs in both."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pretrain.adjust.text import PairData, Sentences
from pretrain.adjust.vectors import Subword
from pretrain.model.encoder import MaskedLM
from probes.measure.config import ProbeConfig
from probes.transfer.aligned_text import Aligned, read_aligned
from probes.transfer.batch import Role
from probes.transfer.model import Pretrained
from probes.transfer.word_vectors import SideReader, reading
from synthlang.corpus import Corpus
from synthlang.errors import InputError
from synthlang.progress import Report, silent
from synthlang.store import Store

ROLES: tuple[Role, Role] = ("target", "source")  # left and right of the sentence pairs


@dataclass(frozen=True, eq=False)
class Side:
    """One language of the sentence pairs: its words, its ids, and what reads them.

    corpus      the sentences as words
    sentences   the same as ids; row r of both sides are a pair
    """

    role: Role
    name: str
    corpus: Corpus
    sentences: Sentences
    reader: SideReader


@dataclass(frozen=True, eq=False)
class Subject:
    """A model with the text it is probed on. ``target`` (left) is the other language, ``source`` (right) the parent.

    run   the folder, if the model is a run of ours
    """

    pretrained: Pretrained
    config: ProbeConfig
    run: Path | None = None
    store: Store | None = None
    report: Report = silent

    @property
    def same_model(self) -> bool:
        """Whether one model reads both languages."""
        return self.pretrained.model is self.pretrained.target_model

    def body(self, role: Role) -> MaskedLM:
        """The model that reads a language."""
        return self.pretrained.target_model if role == "target" else self.pretrained.model

    def name(self, role: Role) -> str:
        """What a language is called."""
        return self.pretrained.language_name(role)

    @cached_property
    def aligned(self) -> Aligned:
        """The sentence pairs; InputError for what cannot be read, and for more than one pair of languages."""
        config = self.config
        texts = read_aligned(
            config.pairs, config.data, self.pretrained, config.seed, self.store, self.report, config.fits
        )
        if len(texts) > 1:
            raise InputError(f"pairs: name one pair of languages, not {len(texts)}")
        return texts[0]

    @property
    def data(self) -> PairData:
        """Their ids and links."""
        return self.aligned.data

    @property
    def measured(self) -> NDArray[np.int64]:
        """The sentence pairs that are measured on; InputError if there are none."""
        if not len(self.data.dev):
            raise InputError("data.dev: no sentence pair is left to measure on")
        return self.data.dev

    @property
    def fitted(self) -> NDArray[np.int64]:
        """The sentence pairs that maps may be fitted on, none of them measured; there are some if a probe ``fits``."""
        return self.data.train

    def layers(self, role: Role) -> tuple[int, ...]:
        """The numbers of the layers that are read of a model: 0 … N."""
        return self.config.numbers(self.body(role).shape.layers)

    def side(self, role: Role, subword: Subword | None = None, layers: tuple[int, ...] | None = None) -> Side:
        """One language, read at some layers (default: the config's)."""
        text, data = self.aligned.text, self.data
        corpus, sentences = (text.left, data.left) if role == "target" else (text.right, data.right)
        held = self.pretrained.target if role == "target" else self.pretrained.source
        numbers = self.layers(role) if layers is None else layers
        reader = SideReader(self.body(role), held.specials, numbers, subword or self.config.subword)
        return Side(role, self.name(role), corpus, sentences, reader)

    def reading(self) -> AbstractContextManager[None]:
        """Without gradients and dropout, on a GPU where there is one; the models are then as they were."""
        return reading(map(self.body, ROLES))
