"""Where the vectors of the words that the probe ``retrieval`` compares come from.

a model's states                          as they are
rotation                                  the same after an orthogonal map of each layer: Cao et al. 2020, equation 1
static                                    a word's own vector beside those of its sentence: section 3.4 there
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from probes.maps.fitted import NormalisedMap
from probes.measure.maps_scores import Both
from probes.measure.maps_vectors import fit_read
from probes.measure.retrieval_config import RotationSettings
from probes.measure.states import WordStates, word_states, words_of
from probes.measure.static_config import LoadedVectors, TrainedVectors
from probes.measure.static_pair import StaticText, linked_codes, static_pair, static_vectors
from probes.measure.subject import ROLES, Side, Subject
from probes.static.text import augmented
from probes.static.vectors import StaticVectors
from probes.transfer.word_vectors import translations
from synthlang.corpus import Corpus
from synthlang.errors import InputError
from synthlang.progress import Report, silent

Layer = tuple[int, int]
"""Numbers of a layer of the model of the left and of the right language."""
Known = tuple[NDArray[np.bool_], NDArray[np.bool_]]
"""[words of the left corpus], [words of the right corpus]: which have a vector."""


@dataclass(frozen=True, eq=False)
class Source:
    """What reads the measured sentences.

    layers   whose vectors there are; static vectors have the layer 0 only
    width    of a vector
    read     0 (left) or 1 (right) → vectors of the words of that side's sentences, batch by batch
    known    which words have a vector; None: all that the tokenizer leaves something of
    facts    for the result: {"rotation": …, "static": …}, None where there is none
    """

    layers: Sequence[Layer]
    width: int
    read: Callable[[int], Iterator[WordStates]]
    known: Known | None
    facts: dict[str, Any]


def source_of(subject: Subject, measured: NDArray[np.int64], report: Report = silent) -> Source:
    """What the settings ask for; maps are fitted here.

    InputError for two models whose states cannot be compared, and where no measured word has a static vector.
    """
    config = subject.config.retrieval
    if config.static is not None:
        return _static(subject, config.static, measured, report)
    layers = _layers(subject)
    sides = subject.side("target"), subject.side("source")
    maps: tuple[NormalisedMap, ...] | None = None
    facts = None
    if config.rotation is not None:
        rotation = config.rotation
        maps = fit_read(subject, rotation.supervision, sides, rotation, report)
        numbers = [{"layer": layer[1], **held.to_json()} for layer, held in zip(layers, maps, strict=True)]
        facts = {**rotation.model_dump(include={"supervision", "normalise", "moves"}), "fit": numbers}

    def read(i: int) -> Iterator[WordStates]:
        batches = word_states(sides[i], measured, report, f"words of {sides[i].name} read")
        return batches if maps is None or config.rotation is None else _moved(batches, maps, config.rotation, sides[i])

    return Source(layers, subject.body("source").shape.hidden, read, None, {"rotation": facts, "static": None})


def _layers(subject: Subject) -> list[Layer]:
    left, right = subject.layers("target"), subject.layers("source")
    if len(left) != len(right):
        raise InputError(
            f"retrieval: of the two models {len(left)} and {len(right)} layers are read; name those to compare (layers)"
        )
    widths = subject.body("target").shape.hidden, subject.body("source").shape.hidden
    if widths[0] != widths[1]:
        raise InputError(f"retrieval: vectors of {widths[0]} and of {widths[1]} numbers cannot be compared")
    return list(zip(left, right, strict=True))


def _moved(
    batches: Iterator[WordStates], maps: Sequence[NormalisedMap], rotation: RotationSettings, side: Side
) -> Iterator[WordStates]:
    """Vectors of one language, layer by layer normalised and, if it is the one that moves, rotated."""
    for batch in batches:
        layers = [
            Both(held, rotation.moves).of(side.role, rows) for held, rows in zip(maps, batch.vectors, strict=True)
        ]
        yield replace(batch, vectors=torch.stack(layers))


def _static(
    subject: Subject, config: TrainedVectors | LoadedVectors, measured: NDArray[np.int64], report: Report
) -> Source:
    """Section 3.4: the other language's vectors are rotated onto the parent's by all links of the fitted sentences.

    The sentence is part of every vector: "during word retrieval, we concatenate each word vector with a vector
    representing its sentence", and both blocks of table 3 name the row "Aligned fastText + sentence". The words alone
    are ``pools: []``.
    """
    corpora = subject.aligned.text.left, subject.aligned.text.right
    text = _text(subject, config, corpora, measured)
    held = static_vectors(subject, config, text, report)
    pair = static_pair(held, config, text, "target", "retrieval.static")
    vectors = pair.left, pair.right
    left, right = (held.rows_of_column(corpus.form) >= 0 for held, corpus in zip(vectors, corpora, strict=True))
    for corpus, there, role in zip(corpora, (left, right), ROLES, strict=True):
        if not there[words_of(corpus.offsets, measured)].any():
            raise InputError(f"retrieval.static: no measured word of {subject.name(role)} has a vector")

    def read(i: int) -> Iterator[WordStates]:
        return _words(vectors[i], corpora[i], measured, config)

    width = vectors[0].vectors.shape[1] * (1 + len(config.pools))
    facts = {"kind": config.kind, "pools": list(config.pools), **pair.facts}
    return Source([(0, 0)], width, read, (left, right), {"rotation": None, "static": facts})


def _text(
    subject: Subject,
    config: TrainedVectors | LoadedVectors,
    corpora: tuple[Corpus, Corpus],
    measured: NDArray[np.int64],
) -> StaticText:
    if config.supervision == "dictionary":
        found = translations(subject.aligned, None)
        pairs = found[:, 0], found[:, 1]
    else:
        pairs = linked_codes(subject, corpora)
    left, right = (
        np.unique(corpus.form.codes[words_of(corpus.offsets, measured)]).astype(np.int64) for corpus in corpora
    )
    return StaticText(corpora, (left, right), pairs)


def _words(
    held: StaticVectors, corpus: Corpus, measured: NDArray[np.int64], config: TrainedVectors | LoadedVectors
) -> Iterator[WordStates]:
    words, sentence = words_of(corpus.offsets, measured), np.repeat(measured, np.diff(corpus.offsets)[measured])
    start = 0
    for part in augmented(held, [corpus.take(measured)], config.pools):
        here = slice(start, start + len(part.vectors))
        yield WordStates(part.vectors[None], torch.from_numpy(words[here]), torch.from_numpy(sentence[here]))
        start = here.stop
