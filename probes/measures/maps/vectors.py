"""What maps are fitted and measured on: vectors of words, occurrences and sentences at some layers, and links."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from probes.measures.maps import MapsConfig, SentenceFiles, Supervision
from probes.measures.maps.dictionary import Dictionary
from probes.measures.probe_input import ProbeInput, Side, word_states
from probes.rotation.fitted import Batches, NormalisedMap, fit_layers, passes_of, spooled
from probes.rotation.settings import FitSettings
from probes.states import anchors, linked_vectors, paired_means, sentence_means
from synthlang.corpus import Corpus
from synthlang.errors import InputError
from synthlang.files import user_path
from synthlang.parallel.prepare import SENTENCE_TOKENS, Sentences, encode
from synthlang.parallel.text import read_parallel
from synthlang.progress import Report

Sides = tuple[Side, Side]
"""The other language (left, role target) and the parent (right, role source)."""


@dataclass(frozen=True, eq=False)
class Occurrences:
    """The words of some sentences: ``rows`` [s] of the text, ``first`` [s + 1] the number of the first word of each
    among them, ``number`` [words] that of each among all words of the text."""

    rows: NDArray[np.int64]
    first: NDArray[np.int64]
    number: NDArray[np.int64]

    @staticmethod
    def of(corpus: Corpus, rows: NDArray[np.int64]) -> Occurrences:
        """Those of the sentences at ``rows``, in that order."""
        counts = np.diff(corpus.offsets)[rows]
        first = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        return Occurrences(rows, first, np.repeat(corpus.offsets[rows] - first[:-1], counts) + np.arange(first[-1]))


def linked_pairs(given: ProbeInput, words: tuple[Occurrences, Occurrences]) -> NDArray[np.int64]:
    """[links, 2] places of the parent's and the other language's word of each measured link among ``words``."""
    links = given.data.links.take(given.measured)
    sentence = links.sentence
    right, left = words[1].first[sentence] + links.right, words[0].first[sentence] + links.left
    return np.stack([right, left], axis=1).astype(np.int64)


@dataclass(frozen=True, eq=False)
class SentencePairs:
    """Parallel sentences of files, without links: of the other language and of the parent, as words and as ids."""

    corpora: tuple[Corpus, Corpus]
    sentences: tuple[Sentences, Sentences]
    counts: dict[str, int]

    def sides(self, like: Sides) -> Sides:
        """Read as these sides are."""
        left, right = (
            replace(side, corpus=corpus, sentences=sentences)
            for side, corpus, sentences in zip(like, self.corpora, self.sentences, strict=True)
        )
        return left, right


def read_sentence_files(given: ProbeInput, files: SentenceFiles) -> SentencePairs:
    """Two files of parallel lines, without pairs that are empty or too long, which are counted.

    InputError if no pair is left.
    """
    text = read_parallel(user_path(files.left), user_path(files.right), files.words)
    readers = given.pretrained.target, given.pretrained.source

    def encoded(*corpora: Corpus) -> tuple[Sentences, Sentences]:
        left, right = (
            encode(reader.tokenizer.tokenizer, corpus, "word", reader.number)
            for reader, corpus in zip(readers, corpora, strict=True)
        )
        return left, right

    lengths = np.stack([np.diff(sentences.bounds) for sentences in encoded(text.left, text.right)])
    most = given.config.data.length or given.pretrained.length
    empty, long = (lengths == 0).any(0), (lengths + SENTENCE_TOKENS > most).any(0)
    rows = np.flatnonzero(~empty & ~long)
    if not len(rows):
        raise InputError(f"maps.sentences: none of the {len(text)} pairs of lines can be read", user_path(files.left))
    left, right = text.left.take(rows), text.right.take(rows)
    counts = {"lines that are empty": int(empty.sum()), f"lines over {most} tokens": int((long & ~empty).sum())}
    return SentencePairs((left, right), encoded(left, right), counts)


HELD = 1 << 30  # bytes of vectors that are held at once; with more, layers are read a few at a time


@dataclass(frozen=True, eq=False)
class Vectors:
    """Of both languages (the other one, the parent), each [layers, n, d].

    types       float64, the mean of all occurrences of each type of the dictionary's candidates
    words       of the measured sentences
    sentences   the means of the measured sentences
    files       the means of further parallel sentences
    """

    types: tuple[Tensor, Tensor]
    words: tuple[Tensor, Tensor]
    sentences: tuple[Tensor, Tensor]
    files: tuple[Tensor, Tensor] | None


def layer_groups(count: int, each: int, held: int = HELD) -> list[range]:
    """``count`` layers cut into groups of at most ``held`` bytes, or of one layer; ``each`` is the bytes of one.

    >>> layer_groups(5, 10, 20)
    [range(0, 2), range(2, 4), range(4, 5)]
    """
    size = max(1, held // max(each, 1))
    return [range(first, min(first + size, count)) for first in range(0, count, size)]


def bytes_of_layer(
    width: int, dictionary: Dictionary, words: tuple[Occurrences, Occurrences], files: SentencePairs | None
) -> int:
    """About how much the vectors of one layer take, with the copies that are made of them."""
    types = sum(map(len, dictionary.types))
    sentences = sum(len(one.rows) for one in words) + (2 * len(files.corpora[0]) if files else 0)
    return width * (3 * 8 * types + 2 * 4 * (sum(len(one.number) for one in words) + sentences))


def read_vectors(
    sides: Sides,
    files: Sides | None,
    dictionary: Dictionary,
    fitted: NDArray[np.int64],
    words: tuple[Occurrences, Occurrences],
    report: Report,
) -> Vectors:
    """What is measured on; ``files`` are sides of the same readers and layers."""
    types = [
        anchors(corpus, side.sentences, fitted, codes, side.reader, report)
        for side, corpus, codes in zip(sides, dictionary.corpora, dictionary.types, strict=True)
    ]
    occurrences = [of_words(side, held, report) for side, held in zip(sides, words, strict=True)]
    sentences = [of_sentences(side, held.rows, report) for side, held in zip(sides, words, strict=True)]
    found = None
    if files is not None:
        rows = np.arange(len(files[0].corpus), dtype=np.int64)
        found = of_sentences(files[0], rows, report), of_sentences(files[1], rows, report)
    return Vectors((types[0], types[1]), (occurrences[0], occurrences[1]), (sentences[0], sentences[1]), found)


def of_words(side: Side, words: Occurrences, report: Report) -> Tensor:
    """[layers, words, d] in the order of ``words``; zeros for a word that the tokenizer leaves nothing of."""
    order = np.argsort(words.number, kind="stable")
    ordered = words.number[order]
    found = _empty(side, len(order))
    for batch in word_states(side, words.rows, report, f"words in context, {side.name}"):
        places = order[np.searchsorted(ordered, batch.word.numpy())]
        found[:, torch.from_numpy(places)] = batch.vectors.cpu()
    return found


def of_sentences(side: Side, rows: NDArray[np.int64], report: Report) -> Tensor:
    """[layers, rows, d]: the mean of each sentence, in the order of ``rows`` (which grow)."""
    return sentence_means(side.sentences, side.reader, rows, report, f"sentences, {side.name}")


def _empty(side: Side, count: int) -> Tensor:
    return torch.zeros(len(side.reader.layers), count, side.reader.body.shape.hidden)


def fit_maps(
    given: ProbeInput, supervision: Supervision, sides: Sides, vectors: Vectors, dictionary: Dictionary, report: Report
) -> tuple[NormalisedMap, ...]:
    """A map for each layer of ``sides``: from the language that moves to the other one."""
    config = given.config.of(MapsConfig)
    if supervision != "dictionary":
        return fit_read(given, supervision, sides, config, report)
    known = torch.from_numpy(dictionary.fitted.pairs()[: config.words])
    return _fitted(lambda: [(vectors.types[0][:, known[:, 1]], vectors.types[1][:, known[:, 0]])], sides, config)


def fit_read(
    given: ProbeInput, supervision: Literal["parallel", "sentences"], sides: Sides, config: FitSettings, report: Report
) -> tuple[NormalisedMap, ...]:
    """The same from what is read for it, batch by batch, of the sentence pairs that maps are fitted on: linked words
    in context, or means of sentences. Memory is that of 2 · layers · d² and a batch; see ``FitSettings.words``."""
    batches: Callable[[], Batches]
    readers = sides[0].reader, sides[1].reader
    if supervision == "parallel":
        batches = lambda: linked_vectors(given.data, *readers, config.words, given.config.seed, report)  # noqa: E731
    else:
        batches = lambda: paired_means(given.data, *readers, np.sort(given.fitted), report)  # noqa: E731
    once = passes_of(config.normalise) == 1
    return _fitted(batches if once else spooled(batches()), sides, config)


def _fitted(pairs: Callable[[], Batches], sides: Sides, config: FitSettings) -> tuple[NormalisedMap, ...]:
    moved = pairs if config.moves == "target" else lambda: ((y, x) for x, y in pairs())
    width = sides[0].reader.body.shape.hidden
    return fit_layers(moved, len(sides[0].reader.layers), width, config.normalise, config.rounds)
