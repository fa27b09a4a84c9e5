"""The input of a probe: one or two models, two languages, and sentence pairs."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pretrain.adjust.vectors import Subword
from pretrain.model.language_model import LanguageModel
from probes.measures.settings import InputConfig
from probes.models.aligned import Aligned, read_aligned
from probes.models.pretrained import Pretrained, Reader, Role
from probes.states import LanguageSide, StateReader, reading
from synthlang.errors import InputError
from synthlang.parallel.prepare import PairData
from synthlang.progress import Report, silent
from synthlang.reading import Reading
from synthlang.store import Store
from synthlang.wording import enumerated

ROLES: tuple[Role, Role] = ("target", "source")  # left and right of the sentence pairs


@dataclass(frozen=True, eq=False)
class ProbeInput:
    """One or two models with the text that they are probed on.

    The source language has the role ``source`` and is on the right of the sentence pairs. The other language has the
    role ``target`` and is on the left.

    Attributes:
        pretrained: The models and the two languages.
        config: The settings.
        run: The folder of the model if it is a run of synthlang, else None.
        store: The store of the run or a temporary store, for word alignments of an aligner. With None, sentence pairs
            that need an aligner cannot be read.
        report: Receives the progress.
        text: Sentence pairs that have been read already (None: the settings name the pairs to read).
    """

    pretrained: Pretrained
    config: InputConfig
    run: Path | None = None
    store: Store | None = None
    report: Report = silent
    text: Aligned | None = None

    @property
    def same_model(self) -> bool:
        """True if one model reads both languages."""
        return self.pretrained.model is self.pretrained.target_model

    def body(self, role: Role) -> LanguageModel:
        """Return the model that reads the language ``role``."""
        return self.pretrained.target_model if role == "target" else self.pretrained.model

    def reader(self, role: Role) -> Reader:
        """Return the reader that tokenizes the language ``role``."""
        return self.pretrained.target if role == "target" else self.pretrained.source

    def name(self, role: Role) -> str:
        """Return the name of the language ``role`` in results."""
        return self.pretrained.language_name(role)

    @property
    def is_other(self) -> bool:
        """True if the other language differs from the source language, or a second model reads it."""
        source, target = self.pretrained.source.language, self.pretrained.target.language
        return self.pretrained.natural or target.fingerprint != source.fingerprint or not self.same_model

    @property
    def other_text(self) -> str | None:
        """Spec of the pretraining text in a natural other language, or None if it is not known."""
        if not self.pretrained.natural or self.pretrained.run is None or not self.same_model:
            return None
        specs = {language.name: language.spec for language in self.pretrained.run[1].languages}
        return specs.get(self.pretrained.target.tokenizer.name)

    @cached_property
    def aligned(self) -> Aligned:
        """The sentence pairs with their word alignments, which are read from the settings unless ``text`` has them.

        Raises:
            InputError: The pairs cannot be read (see `read_aligned`), or belong to several pairs of languages.
        """
        if self.text is not None:
            return self.text
        config = self.config
        texts = read_aligned(
            config.pairs, config.data, self.pretrained, config.seed, self.store, self.report, config.fits
        )
        if len(texts) > 1:
            told = f"has {len(texts)} sets of sentence pairs, but a probe reads one set"
            raise InputError(told, keys="pairs", hint="keep one of them", code="conflict")
        return texts[0]

    def check(self) -> None:
        """Check everything that the probes read, before the first probe runs.

        Raises:
            InputError: A package or a text is missing, sentence pairs cannot be read, no pair is left to measure on, or
                nearly all tokens of the pairs are unknown.
        """
        self.config.check_installed()
        self.config.check_text(self.pretrained.text, self.other_text, self.pretrained.natural)
        if any(settings.needs_links for settings in self.config.chosen().values()):
            _ = self.measured
        for role in ROLES if self.config.reads_sentences else ():
            self.reads(role).check(self.name(role), f"the tokenizer of {self.pretrained.name}")

    @property
    def data(self) -> PairData:
        """The token ids of the sentence pairs and their word alignments.

        Raises:
            InputError: The sentence pairs cannot be read (see `aligned`).
        """
        return self.aligned.data

    def reads(self, role: Role) -> Reading:
        """Return the numbers of words, tokens and unknown tokens of the sentence pairs in the language ``role``.

        Raises:
            InputError: The sentence pairs cannot be read (see `aligned`).
        """
        sentences = self.data.left if role == "target" else self.data.right
        return Reading.of(sentences, self.reader(role).specials.unk)

    @property
    def measured(self) -> NDArray[np.int64]:
        """The indices [n] of the sentence pairs to measure on.

        Raises:
            InputError: The sentence pairs cannot be read (see `aligned`), or none is left to measure on.
        """
        if not len(self.data.dev):
            data = self.config.data
            fewer, longer = ", reduce data.test" if data.test else "", ", raise data.length" if data.length else ""
            hint = f"increase data.dev{fewer}{longer}, or give more short sentence pairs with word alignments"
            raise InputError("no sentence pair is left to measure on", keys="data.dev", hint=hint, code="empty")
        return self.data.dev

    @property
    def fitted(self) -> NDArray[np.int64]:
        """The indices [n] of the sentence pairs to fit maps on. None of them is measured.

        Raises:
            InputError: The sentence pairs cannot be read (see `aligned`).
        """
        return self.data.train

    def layers(self, role: Role) -> tuple[int, ...]:
        """Return the numbers of the layers to read in the model of the language ``role``, from 0 for the embeddings.

        Raises:
            InputError: The model does not have one of the layers of the config, or the config names a layer twice.
        """
        return self.config.numbers(self.body(role).shape.layers)

    def check_sizes(self) -> None:
        """Check that a probe can compare vectors of the two models.

        Raises:
            InputError: The models differ in hidden size.
        """
        source, target = (self.body(role).shape for role in reversed(ROLES))
        if source.hidden != target.hidden:
            told = f"has the hidden size {target.hidden}, but the first model has {source.hidden}"
            hint = "choose two models with the same hidden size"
            compared = [name for name, settings in self.config.chosen().items() if settings.compares_vectors]
            if len(compared) < len(self.config.probes):
                hint += f", or remove the probe{'s' * (len(compared) > 1)} {enumerated(compared)}"
            raise InputError(told, keys="model2", hint=hint, code="conflict")

    def check_alike(self) -> None:
        """Check that a probe can compare vectors of the two models, layer by layer.

        Raises:
            InputError: The models differ in hidden size, or in number of layers if the config does not list layers.
        """
        self.check_sizes()
        source, target = (self.body(role).shape for role in reversed(ROLES))
        if self.config.layers is None and source.layers != target.layers:
            told = f"the two models have different numbers of layers: {source.layers} and {target.layers}"
            hint = "list layers that both models have, such as [-1]"
            raise InputError(told, keys="layers", hint=hint, code="conflict")

    def side(self, role: Role, subword: Subword | None = None, layers: tuple[int, ...] | None = None) -> LanguageSide:
        """Return the language ``role`` with its reader.

        ``subword`` and ``layers`` select the vectors that the reader returns (default: as in the config).

        Raises:
            InputError: The sentence pairs cannot be read, or the model does not have one of the layers of the config.
        """
        text, data = self.aligned.text, self.data
        corpus, sentences = (text.left, data.left) if role == "target" else (text.right, data.right)
        numbers = self.layers(role) if layers is None else layers
        reader = StateReader(self.body(role), self.reader(role).specials, numbers, subword or self.config.subword)
        return LanguageSide(self.name(role), corpus, sentences, reader)

    def reading(self) -> AbstractContextManager[None]:
        """Return a context in which both models are in evaluation mode, on a GPU if there is one.

        The models are restored afterwards (see ``probes.states.reading``).
        """
        return reading(map(self.body, ROLES))
