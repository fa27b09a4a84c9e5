"""Where the vectors of the words that the probe ``retrieval`` compares come from, and the files that hold them.

a model's states                          as they are
rotation                                  the same after an orthogonal map of each layer: Cao et al. 2020, equation 1
static                                    a word's own vector beside those of its sentence: section 3.4 there
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from types import TracebackType
from typing import IO, Any

import numpy as np
import torch
from numpy.typing import NDArray

from pretrain.nearest_lists import Matrix
from probes.measures.maps.scores import Both
from probes.measures.maps.vectors import fit_read
from probes.measures.probe_input import ROLES, ProbeInput, Side, WordStates, word_states, words_of
from probes.measures.retrieval import RetrievalConfig, RotationSettings
from probes.rotation.fitted import NormalisedMap
from probes.states import translations
from probes.static.rotated import StaticText, linked_codes, static_pair, static_vectors
from probes.static.settings import LoadedVectors, TrainedVectors
from probes.static.vectors import StaticVectors, augmented
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


def source_of(given: ProbeInput, measured: NDArray[np.int64], report: Report = silent) -> Source:
    """What the settings ask for; maps are fitted here.

    InputError for two models whose states cannot be compared, and where no measured word has a static vector.
    """
    config = given.config.of(RetrievalConfig)
    if config.static is not None:
        return _static(given, config.static, measured, report)
    layers = _layers(given)
    sides = given.side("target"), given.side("source")
    maps: tuple[NormalisedMap, ...] | None = None
    facts = None
    if config.rotation is not None:
        rotation = config.rotation
        maps = fit_read(given, rotation.supervision, sides, rotation, report)
        numbers = [{"layer": layer[1], **held.to_json()} for layer, held in zip(layers, maps, strict=True)]
        facts = {**rotation.model_dump(include={"supervision", "normalise", "moves"}), "fit": numbers}

    def read(i: int) -> Iterator[WordStates]:
        batches = word_states(sides[i], measured, report, f"words of {sides[i].name} read")
        return batches if maps is None or config.rotation is None else _moved(batches, maps, config.rotation, sides[i])

    return Source(layers, given.body("source").shape.hidden, read, None, {"rotation": facts, "static": None})


def _layers(given: ProbeInput) -> list[Layer]:
    left, right = given.layers("target"), given.layers("source")
    if len(left) != len(right):
        raise InputError(
            f"retrieval: of the two models {len(left)} and {len(right)} layers are read; name those to compare (layers)"
        )
    widths = given.body("target").shape.hidden, given.body("source").shape.hidden
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
    given: ProbeInput, config: TrainedVectors | LoadedVectors, measured: NDArray[np.int64], report: Report
) -> Source:
    """Section 3.4: the other language's vectors are rotated onto the parent's by all links of the fitted sentences.

    The sentence is part of every vector: "during word retrieval, we concatenate each word vector with a vector
    representing its sentence", and both blocks of table 3 name the row "Aligned fastText + sentence". The words alone
    are ``pools: []``.
    """
    corpora = given.aligned.text.left, given.aligned.text.right
    text = _text(given, config, corpora, measured)
    held = static_vectors(given, config, text, report)
    pair = static_pair(held, config, text, "target", "retrieval.static")
    vectors = pair.left, pair.right
    left, right = (held.rows_of_column(corpus.form) >= 0 for held, corpus in zip(vectors, corpora, strict=True))
    for corpus, there, role in zip(corpora, (left, right), ROLES, strict=True):
        if not there[words_of(corpus.offsets, measured)].any():
            raise InputError(f"retrieval.static: no measured word of {given.name(role)} has a vector")

    def read(i: int) -> Iterator[WordStates]:
        return _words(vectors[i], corpora[i], measured, config)

    width = vectors[0].vectors.shape[1] * (1 + len(config.pools))
    facts = {"kind": config.kind, "pools": list(config.pools), **pair.facts}
    return Source([(0, 0)], width, read, (left, right), {"rotation": None, "static": facts})


def _text(
    given: ProbeInput,
    config: TrainedVectors | LoadedVectors,
    corpora: tuple[Corpus, Corpus],
    measured: NDArray[np.int64],
) -> StaticText:
    if config.supervision == "dictionary":
        found = translations(given.aligned, None)
        pairs = found[:, 0], found[:, 1]
    else:
        pairs = linked_codes(given, corpora)
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


LOADED = 1 << 29
"""Bytes: a layer of one side that is larger is mapped, not loaded."""


class WordVectors:
    """Float32 vectors [n, d] of words for each layer, in the folder for temporary files.

    The files have no name on POSIX systems, so nothing is left of them however the process ends. They take
    4 · layers · n · d bytes. Use as a context.
    """

    def __init__(self, layers: int, width: int, device: torch.device) -> None:
        self._files: list[IO[bytes]] = [tempfile.TemporaryFile(buffering=0) for _ in range(layers)]  # noqa: SIM115
        self._width, self._device = width, device
        self._words: list[NDArray[np.int64]] = []

    def __enter__(self) -> WordVectors:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, at: TracebackType | None) -> None:
        for file in self._files:
            file.close()

    def write(self, batches: Iterable[WordStates], words: NDArray[np.int64], name: str) -> None:
        """Keep the vectors of ``words`` (ascending) out of all; InputError for NaN, infinity and a full disk."""
        wanted = np.zeros(int(words.max(initial=-1)) + 2, bool)  # one place more, for words after the last one
        wanted[words] = True
        for batch in batches:
            number = batch.word.numpy()
            kept = wanted[np.minimum(number, len(wanted) - 1)]
            vectors = batch.vectors[:, torch.from_numpy(kept).to(batch.vectors.device)].float().cpu()
            if not bool(vectors.isfinite().all()):
                raise InputError(f"{name}: the states of its words hold NaN or infinity: the training run has diverged")
            self._words.append(number[kept])
            try:
                for file, layer in zip(self._files, vectors, strict=True):
                    rest = memoryview(layer.numpy().tobytes())
                    while rest:  # a disk that fills up takes a part first
                        rest = rest[file.write(rest) :]
            except OSError as error:
                raise InputError(
                    f"cannot keep the vectors of all words in {tempfile.gettempdir()}: {error.strerror}; choose "
                    "another folder by the variable TMPDIR, fewer layers, or fewer sentences (data.dev)"
                ) from error

    def rows(self, words: NDArray[np.int64]) -> NDArray[np.int64]:
        """In which row of a layer each of ``words`` is; all of them were kept."""
        held = np.concatenate([*self._words, np.zeros(0, np.int64)])
        order = np.argsort(held, kind="stable")
        found = order[np.searchsorted(held, words, sorter=order)]
        assert np.array_equal(held[found], words), "words that were kept"
        return found

    def layer(self, number: int) -> Matrix:
        """[n, d] of the layer at this place: a tensor on the device, or a memory map where that is large."""
        file, count = self._files[number], sum(map(len, self._words))
        if not count:
            return torch.zeros(0, self._width, device=self._device)
        shape, file_size = (count, self._width), 4 * count * self._width
        file.seek(0)
        if file_size > LOADED and self._device.type == "cpu":
            mapped: Matrix = np.memmap(file, np.float32, "r", shape=shape)
            return mapped
        return torch.from_numpy(np.fromfile(file, np.float32).reshape(shape)).to(self._device)
