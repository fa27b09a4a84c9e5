"""What maps are measured on, the same for all layers: words in context, links, sentence files."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from pretrain.adjust.text import SENTENCE_TOKENS, Sentences, encode
from probes.measure.maps_config import SentenceFiles
from probes.measure.subject import Side, Subject
from synthlang.alignments.parallel import read_parallel
from synthlang.corpus import Corpus
from synthlang.errors import InputError
from synthlang.files import user_path

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


def linked_pairs(subject: Subject, words: tuple[Occurrences, Occurrences]) -> NDArray[np.int64]:
    """[links, 2] places of the parent's and the other language's word of each measured link among ``words``."""
    links = subject.data.links.take(subject.measured)
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


def read_sentence_files(subject: Subject, files: SentenceFiles) -> SentencePairs:
    """Two files of parallel lines, without pairs that are empty or too long, which are counted.

    InputError if no pair is left.
    """
    text = read_parallel(user_path(files.left), user_path(files.right), files.words)
    readers = subject.pretrained.target, subject.pretrained.source

    def encoded(*corpora: Corpus) -> tuple[Sentences, Sentences]:
        left, right = (
            encode(reader.tokenizer.tokenizer, corpus, "word", reader.member)
            for reader, corpus in zip(readers, corpora, strict=True)
        )
        return left, right

    lengths = np.stack([np.diff(sentences.bounds) for sentences in encoded(text.left, text.right)])
    most = subject.config.data.length or subject.pretrained.length
    empty, long = (lengths == 0).any(0), (lengths + SENTENCE_TOKENS > most).any(0)
    rows = np.flatnonzero(~empty & ~long)
    if not len(rows):
        raise InputError(f"maps.sentences: none of the {len(text)} pairs of lines can be read", user_path(files.left))
    left, right = text.left.take(rows), text.right.take(rows)
    counts = {"lines that are empty": int(empty.sum()), f"lines over {most} tokens": int((long & ~empty).sum())}
    return SentencePairs((left, right), encoded(left, right), counts)
