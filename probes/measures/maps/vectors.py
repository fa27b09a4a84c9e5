"""What maps are measured on: words in context, links and sentence files, and their vectors at some layers."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from probes.measures.maps import SentenceFiles
from probes.measures.maps.dictionary import Dictionary
from probes.measures.probe_input import ProbeInput
from probes.measures.rotated import Sides
from probes.states import LanguageSide, anchors, sentence_means, word_states, words_of
from synthlang.corpus import Corpus
from synthlang.errors import InputError
from synthlang.files import user_path
from synthlang.parallel.prepare import SENTENCE_TOKENS, Sentences, encode
from synthlang.parallel.text import read_parallel
from synthlang.progress import Report

AT_ONCE = 1 << 30  # bytes of vectors that are kept at once; with more, layers are read a few at a time
Rows = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Occurrences:
    """The words of some sentences: ``rows`` [s] of the text, ``first`` [s + 1] the number of the first word of each
    among them, ``number`` [words] that of each among all words of the text."""

    rows: Rows
    first: Rows
    number: Rows

    @staticmethod
    def of(corpus: Corpus, rows: Rows) -> Occurrences:
        """Those of the sentences at ``rows``, in that order."""
        first = np.concatenate([[0], np.cumsum(np.diff(corpus.offsets)[rows])]).astype(np.int64)
        return Occurrences(rows, first, words_of(corpus.offsets, rows))


def linked_pairs(given: ProbeInput, words: tuple[Occurrences, Occurrences]) -> Rows:
    """[links, 2] places of the parent's and the other language's word of each measured link among ``words``."""
    links = given.data.links.take(given.measured)
    right, left = words[1].first[links.sentence] + links.right, words[0].first[links.sentence] + links.left
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


@dataclass(frozen=True, eq=False)
class LayerVectors:
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


def layer_groups(count: int, each: int, most: int = AT_ONCE) -> list[range]:
    """``count`` layers cut into groups of at most ``most`` bytes, or of one layer; ``each`` is the bytes of one.

    >>> layer_groups(5, 10, 20)
    [range(0, 2), range(2, 4), range(4, 5)]
    """
    size = max(1, most // max(each, 1))
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
    fitted: Rows,
    words: tuple[Occurrences, Occurrences],
    report: Report,
) -> LayerVectors:
    """What is measured on; ``files`` are sides of the same readers and layers."""

    def of_sentences(side: LanguageSide, rows: Rows) -> Tensor:
        return sentence_means(side.sentences, side.reader, rows, False, report, f"sentences, {side.name}")

    types, occurrences, sentences = [], [], []
    for side, corpus, codes, measured in zip(sides, dictionary.corpora, dictionary.types, words, strict=True):
        types.append(anchors(corpus, side.sentences, fitted, codes, side.reader, report))
        occurrences.append(_of_words(side, measured, report))
        sentences.append(of_sentences(side, measured.rows))
    of_files = [of_sentences(side, np.arange(len(side.corpus), dtype=np.int64)) for side in files or ()]
    return LayerVectors(
        (types[0], types[1]),
        (occurrences[0], occurrences[1]),
        (sentences[0], sentences[1]),
        (of_files[0], of_files[1]) if of_files else None,
    )


def _of_words(side: LanguageSide, words: Occurrences, report: Report) -> Tensor:
    """[layers, words, d] in the order of ``words``; zeros for a word that the tokenizer leaves nothing of."""
    order = np.argsort(words.number, kind="stable")
    ordered = words.number[order]
    found = torch.zeros(len(side.reader.layers), len(order), side.reader.body.shape.hidden)
    for batch in word_states(side, words.rows, report, f"words in context, {side.name}"):
        places = order[np.searchsorted(ordered, batch.word.numpy())]
        found[:, torch.from_numpy(places)] = batch.vectors.cpu()
    return found
