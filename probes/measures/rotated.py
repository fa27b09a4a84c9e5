"""Maps of layers, and static word vectors in one space, for the probes ``maps`` and ``retrieval``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from probes.measures.probe_input import ProbeInput
from probes.models.pretrained import Role
from probes.rotation.fitted import Batches, MapFitter, NormalisedMap, fit_layers
from probes.rotation.normalise import Normaliser
from probes.rotation.settings import FitSettings
from probes.states import LanguageSide, linked_vectors, sentence_pairs
from probes.static.settings import LoadedVectors, TrainedVectors
from probes.static.training import train_vectors
from probes.static.vectors import StaticVectors, read_vec
from synthlang.corpus import Corpus
from synthlang.errors import InputError
from synthlang.files import user_path
from synthlang.progress import Report

ROWS = 8192  # word pairs that are looked up at once

Codes = NDArray[np.int64]
Sides = tuple[LanguageSide, LanguageSide]
"""The other language (left, role target) and the source language (right, role source)."""


@dataclass(frozen=True, eq=False)
class MovingMap:
    """A map that moves the vectors of one language into the space of the other language.

    Attributes:
        map: The map, or None to leave vectors unchanged.
        moves: The role of the language that is moved.
    """

    map: NormalisedMap | None
    moves: Role

    def of(self, role: Role, rows: Tensor) -> Tensor:
        """Map vectors ``rows`` […, d] of the language ``role`` to the space in which both languages are compared."""
        if self.map is None:
            return rows
        return self.map.apply(rows) if role == self.moves else self.map.apply_right(rows)

    def apply(self, vectors: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        """Map vectors [n, d] of (other language, source language) and return them in the reverse order."""
        left, right = vectors
        return self.of("source", right), self.of("target", left)


def fit_read(
    given: ProbeInput, supervision: Literal["parallel", "sentences"], sides: Sides, config: FitSettings, report: Report
) -> tuple[NormalisedMap, ...]:
    """Fit a map for each layer on the fitted sentence pairs of ``given``.

    Memory holds layers · d² numbers and one batch.

    Args:
        given: The input of the probe.
        supervision: The vectors to fit on: aligned words in context (``parallel``), or means of ``sentences``.
        sides: The other language and the source language, with the layers to read.
        config: The language that moves, the normalisation, and the maximum number of aligned words.
        report: Receives the progress.

    Raises:
        InputError: The sentence pairs cannot be read, or the maps cannot be fitted (see `fit_layers`).
    """
    readers = sides[0].reader, sides[1].reader
    if supervision == "parallel":
        batches = linked_vectors(given.data, *readers, config.words, given.config.seed, report)
    else:
        batches = sentence_pairs(given.data, *readers, np.sort(given.fitted), report=report)
    return fit_moving(batches, sides, config)


def fit_moving(pairs: Batches, sides: Sides, config: FitSettings) -> tuple[NormalisedMap, ...]:
    """Fit a map for each layer on given vectors, from the language that moves to the other language.

    Args:
        pairs: Batches of paired vectors of the other and of the source language, [layers, n, d] each.
        sides: The other language and the source language.
        config: The language that moves, and the normalisation.

    Raises:
        InputError: The maps cannot be fitted (see `fit_layers`).
    """
    moved = pairs if config.moves == "target" else ((y, x) for x, y in pairs)
    reader = sides[0].reader
    return fit_layers(moved, len(reader.layers), reader.body.shape.hidden, config.normalise, config.rounds)


@dataclass(frozen=True, eq=False)
class Static:
    """Static word vectors of two languages, with word pairs to fit a rotation on.

    In each pair of attributes, the other language comes before the source language.

    Attributes:
        config: The settings of the vectors.
        name: The key of these settings, for errors.
        corpora: The sentences of each language. Their column of words defines the codes.
        pairs: [n], [n] codes of words that are translations of each other.
        vectors: The vectors of each language, before any rotation.
    """

    config: TrainedVectors | LoadedVectors
    name: str
    corpora: tuple[Corpus, Corpus]
    pairs: tuple[Codes, Codes]
    vectors: tuple[StaticVectors, StaticVectors]

    @property
    def more(self) -> str:
        """The hint of an error for words without a vector."""
        if isinstance(self.config, TrainedVectors):
            return "reduce vectors.min_count, or give more sentence pairs"
        return "check that left is a file of the other language, and right a file of the source language"

    def rotated(self, moves: Role) -> tuple[StaticVectors, StaticVectors, dict[str, Any]]:
        """Return the vectors of both languages in one space, and the numbers of the fitted rotation for JSON.

        Each language is normalised separately. Then the language ``moves`` is rotated onto the other language (Cao et
        al. 2020, section 3.4). Zero vectors are left out. The other language comes before the source language.

        Args:
            moves: The role of the language to rotate.

        Raises:
            InputError: No word pair has vectors on both sides, each word pair has a zero vector, the vectors have
                different sizes, a vector is not finite, or the vectors of a language cannot be normalised (see
                `fit_normaliser`).
        """
        looked_up = zip(self.vectors, self.corpora, self.pairs, strict=True)
        rows = np.stack([one.rows_of(corpus.form.names or ())[codes] for one, corpus, codes in looked_up])
        known = (rows >= 0).all(0)
        if not known.any():
            told = "the rotation cannot be fitted, because no word pair has a vector in both languages"
            raise InputError(told, keys=self.name, hint=self.more, code="empty")
        order = (0, 1) if moves == "target" else (1, 0)
        x, y = (self.vectors[i] for i in order)
        at = torch.from_numpy(rows[:, known])
        try:
            fitter = MapFitter(*(Normaliser.fit(one.vectors, self.config.normalise) for one in (x, y)))
            for of_x, of_y in zip(torch.split(at[order[0]], ROWS), torch.split(at[order[1]], ROWS), strict=True):
                fitter.update(x.vectors[of_x], y.vectors[of_y])
            fitted = fitter.fit()
        except InputError as error:
            raise error.inside(*self.name.split(".")) from error
        facts = {
            "vectors": {"left": dict(self.vectors[0].facts), "right": dict(self.vectors[1].facts)},
            "fit": fitted.to_json(),
            "counts": {"pairs of words without a vector": int((~known).sum())},
        }
        moved, other = x.mapped(fitted.apply).without_zeros(), y.mapped(fitted.apply_right).without_zeros()
        return (moved, other, facts) if moves == "target" else (other, moved, facts)


def read_static(
    given: ProbeInput,
    config: TrainedVectors | LoadedVectors,
    name: str,
    corpora: tuple[Corpus, Corpus],
    wanted: Sequence[Codes],
    pairs: tuple[Codes, Codes],
    report: Report,
) -> Static:
    """Read or train the static vectors of both languages.

    Args:
        given: The input of the probe. Its sentence pairs determine the sentences to train on.
        config: The settings of the vectors.
        name: The key of these settings, for errors.
        corpora: The sentences of the other language and of the source language.
        wanted: Codes of the measured words of each side. fastText also makes vectors for words among them that do not
            occur in the sentences to train on.
        pairs: Codes [n], [n] of translations.
        report: Receives the progress.

    Raises:
        InputError: gensim is not installed, the training fails (see `train_vectors`), a file cannot be read or is
            malformed (see `read_vec`), or the sentence pairs cannot be read.
    """
    found = []
    for i, (corpus, codes) in enumerate(zip(corpora, wanted, strict=True)):
        names = corpus.form.names or ()
        if isinstance(config, LoadedVectors):
            side: Literal["left", "right"] = "left" if not i else "right"
            try:
                vectors = read_vec(user_path(getattr(config, side)), config.words, report)
            except InputError as error:
                raise error.inside(*name.split("."), side) from error
            found.append(vectors.with_small_letters(names) if config.lower else vectors)
            continue
        rows = given.fitted if config.text == "fitted" else np.arange(i, int(given.measured.min()), 2)
        also = [names[code] for code in codes.tolist()] if config.vectors.kind == "fasttext" else ()
        try:
            found.append(train_vectors(config.vectors, corpus.take(rows), also, report))
        except InputError as error:
            raise error.inside(*name.split("."), "vectors") from error
    return Static(config, name, corpora, pairs, (found[0], found[1]))


def linked_codes(given: ProbeInput, corpora: tuple[Corpus, Corpus]) -> tuple[Codes, Codes]:
    """Return the codes of the left and the right word of every word alignment in the fitted sentence pairs.

    Both arrays are [n] int64. The codes are indices into the names of the word column of the left and of the right
    corpus in ``corpora``.

    Raises:
        InputError: The sentence pairs cannot be read.
    """
    words = given.aligned.linked_words(given.fitted)
    left, right = (corpus.form.codes[at].astype(np.int64) for corpus, at in zip(corpora, words, strict=True))
    return left, right
