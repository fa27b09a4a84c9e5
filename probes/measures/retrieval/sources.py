"""The word vectors that the probe ``retrieval`` compares, and their files.

There are three sources of vectors (Cao et al. 2020): the states of a model, its states after an orthogonal map of each
layer (equation 1), and static vectors with the vector of the sentence appended (section 3.4).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from pretrain.nearest_lists import Matrix
from probes.layer_cache import LayerCache
from probes.measures.probe_input import ROLES, ProbeInput
from probes.measures.retrieval import RetrievalConfig
from probes.measures.rotated import MovingMap, fit_read, linked_codes, read_static
from probes.rotation.dictionary import translations
from probes.states import WordStates, word_states, words_of
from probes.static.settings import LoadedVectors, TrainedVectors
from probes.static.vectors import augmented
from synthlang.errors import InputError
from synthlang.progress import Report, silent

STATIC = "retrieval.static"
"""The key of the settings of static vectors."""
Layer = tuple[int, int]
"""A layer of the model of the left language, and the layer of the model of the right language to compare it with."""
Known = tuple[NDArray[np.bool_], NDArray[np.bool_]]
"""Masks [words of the left corpus] and [words of the right corpus] of the words with a vector."""


@dataclass(frozen=True, eq=False)
class Source:
    """A source of vectors for the words of the measured sentences.

    Attributes:
        layers: The pairs of layers that have vectors. Static vectors have the pair (0, 0) only.
        width: Number of dimensions of a vector.
        read: A function from the side (0 left, 1 right) to the word vectors of that side, batch by batch.
        known: Masks of the words with a vector, or None if all words with a token have a vector.
        facts: The values of the keys ``rotation`` and ``static`` in probes.json. Each is None if it is not used.
    """

    layers: Sequence[Layer]
    width: int
    read: Callable[[int], Iterator[WordStates]]
    known: Known | None
    facts: dict[str, Any]

    @property
    def last(self) -> int:
        """The index in ``layers`` of the layer with the highest number."""
        return max(range(len(self.layers)), key=lambda i: self.layers[i])


def source_of(given: ProbeInput, measured: NDArray[np.int64], report: Report = silent) -> Source:
    """Return the source of vectors that the settings select. Maps are fitted here.

    ``measured`` [n] has the indices of the measured sentence pairs, ascending.

    Raises:
        InputError: The sentence pairs cannot be read, a model lacks a layer, the models differ in hidden size or in the
            number of layers that are read, or a map cannot be fitted (see `fit_layers`). The error is also raised if
            static vectors cannot be read, trained or rotated, or if no measured word of a language has a static vector.
    """
    config = given.config.of(RetrievalConfig)
    if config.static is not None:
        return _static(given, config.static, measured, report)
    given.check_alike()
    layers = list(zip(given.layers("target"), given.layers("source"), strict=True))
    sides = given.side("target"), given.side("source")
    rotation, facts = config.rotation, None
    maps = [MovingMap(None, "target") for _ in layers]
    if rotation is not None:
        fitted = fit_read(given, rotation.supervision, sides, rotation, report)
        maps = [MovingMap(one, rotation.moves) for one in fitted]
        numbers = [{"layer": layer[1], **one.to_json()} for layer, one in zip(layers, fitted, strict=True)]
        facts = {**rotation.model_dump(include={"supervision", "normalise", "moves"}), "fit": numbers}

    def read(i: int) -> Iterator[WordStates]:
        for batch in word_states(sides[i], measured, report, f"words of {sides[i].name} read"):
            moved = [one.of(ROLES[i], rows) for one, rows in zip(maps, batch.vectors, strict=True)]
            yield batch if rotation is None else replace(batch, vectors=torch.stack(moved))

    return Source(layers, given.body("source").shape.hidden, read, None, {"rotation": facts, "static": None})


def _static(
    given: ProbeInput, config: TrainedVectors | LoadedVectors, measured: NDArray[np.int64], report: Report
) -> Source:
    """Return static vectors, with the other language rotated onto the source language (section 3.4).

    The rotation is fitted on a dictionary, or on all word alignments of the fitted sentences. As in the paper, the
    vector of the sentence is appended to every word vector ("during word retrieval, we concatenate each word vector
    with a vector representing its sentence"). With ``pools: []``, nothing is appended.
    """
    corpora = given.aligned.text.left, given.aligned.text.right
    words = [words_of(corpus.offsets, measured) for corpus in corpora]
    wanted = [np.unique(corpus.form.codes[at]).astype(np.int64) for corpus, at in zip(corpora, words, strict=True)]
    if config.supervision == "dictionary":
        found = translations(given.aligned, None)
        pairs = found[:, 0], found[:, 1]
    else:
        pairs = linked_codes(given, corpora)
    static = read_static(given, config, STATIC, corpora, wanted, pairs, report)
    *vectors, facts = static.rotated("target")
    known = [one.rows_of_column(corpus.form) >= 0 for one, corpus in zip(vectors, corpora, strict=True)]
    for there, at, role in zip(known, words, ROLES, strict=True):
        if not there[at].any():
            told = f"no measured word of {given.name(role)} has a vector"
            raise InputError(told, keys=STATIC, hint=static.more, code="empty")

    def read(i: int) -> Iterator[WordStates]:
        start = 0
        for rows in augmented(vectors[i], corpora[i].take(measured), config.pools):
            yield WordStates(rows[None], torch.from_numpy(words[i][start : start + len(rows)]))
            start += len(rows)

    width = vectors[0].vectors.shape[1] * (1 + len(config.pools))
    facts = {"kind": config.kind, "pools": list(config.pools), **facts}
    return Source([(0, 0)], width, read, (known[0], known[1]), {"rotation": None, "static": facts})


class WordVectors:
    """Word vectors of each layer in temporary files, 4 · layers · n · d bytes in all.

    Args:
        layers: Number of layers.
        width: Number of dimensions d of a vector.
        device: The device for the vectors of a layer.
    """

    def __init__(self, layers: int, width: int, device: torch.device) -> None:
        self._files, self._device = LayerCache(layers, width), device
        self._words = np.zeros(0, np.int64)

    def write(self, batches: Iterable[WordStates], words: NDArray[np.int64], name: str) -> None:
        """Store the vectors of ``words`` from all batches, as float32.

        Args:
            batches: Vectors of words in their sentences, for each layer.
            words: The indices of the words to store. Other words of the batches are skipped.
            name: The name of the language in errors.

        Raises:
            InputError: A vector contains NaN or infinity, or the disk is full.
        """
        wanted = np.zeros(int(words.max(initial=-1)) + 2, bool)  # the last entry is for all words after the last one
        wanted[words] = True
        written = [self._words]
        for batch in batches:
            number = batch.word.numpy()
            kept = wanted[np.minimum(number, len(wanted) - 1)]
            vectors = batch.vectors[:, torch.from_numpy(kept).to(batch.vectors.device)].float().cpu()
            if not bool(vectors.isfinite().all()):
                told = f"word vectors of {name} contain NaN or infinity"
                hint = "use an earlier checkpoint, or another model"
                raise InputError(told, keys="retrieval", hint=hint, code="damaged")
            self._files.write(vectors)
            written.append(number[kept])
        self._words = np.concatenate(written)

    def rows(self, words: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the row [n] of each of ``words`` [n] in a layer. All words must have been stored."""
        order = np.argsort(self._words, kind="stable")
        found = order[np.searchsorted(self._words, words, sorter=order)]
        assert np.array_equal(self._words[found], words), "all words must have been stored"
        return found

    def layer(self, number: int) -> Matrix:
        """Return the layer at the index ``number``, [n, d] float32.

        The layer is a tensor on the device. A large layer on the CPU is a memory map.
        """
        return self._files.layer(number, self._device)
