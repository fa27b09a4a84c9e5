"""States of words of the sentence pairs, batch by batch: memory is that of a batch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pretrain.adjust.batches import side_words
from probes.distances.linked import Linked
from probes.measure.subject import Side, Subject
from probes.transfer.word_vectors import batches_by_length, link_batches
from synthlang.progress import Report, silent


@dataclass(frozen=True, eq=False)
class WordStates:
    """Vectors of the words of some sentences.

    vectors    [layers, n, d] float32, on the device of the model
    word       [n] int64 the number of each word among all words of the side's corpus
    sentence   [n] int64 its sentence: a row of the pairs
    """

    vectors: Tensor
    word: Tensor
    sentence: Tensor


def word_states(side: Side, rows: NDArray[np.int64], report: Report = silent, task: str = "") -> Iterator[WordStates]:
    """All words of the sentences at ``rows`` that the tokenizer leaves something of.

    The order of sentences is that of ``bounded_batches``: by length, not that of ``rows``.
    """
    sentences, offsets = side.sentences, side.corpus.offsets
    for at in batches_by_length(sentences, rows, report, task):
        counts = np.diff(offsets)[at]
        word = words_of(offsets, at)
        words = side_words([sentences], [at], np.zeros(len(word), bool), side.reader.specials)
        kept = words.stop > words.start
        vectors = side.reader.vectors(words)[:, kept.to(side.reader.body.norm.weight.device)]
        sentence = np.repeat(at, counts)
        yield WordStates(vectors, torch.from_numpy(word)[kept], torch.from_numpy(sentence)[kept])


def words_of(offsets: NDArray[np.int64], rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """The numbers of the words of the sentences at ``rows``, in their order; ``offsets`` are those of a corpus."""
    counts = np.diff(offsets)[rows]
    return np.repeat(offsets[rows] - np.cumsum(counts) + counts, counts) + np.arange(int(counts.sum()))


def linked_states(
    subject: Subject, left: Side, right: Side, rows: NDArray[np.int64], report: Report = silent, task: str = ""
) -> Iterator[Linked]:
    """Vectors of both words of every link of the pairs at ``rows``, their sentence and the type of the right word."""
    data, codes = subject.data, right.corpus.form.codes
    for at, of_left, of_right in link_batches(data, rows, left.reader, right.reader, report, task):
        links = data.links.take(at)
        sentence = at[links.sentence]
        word = codes[right.corpus.offsets[sentence] + links.right].astype(np.int64)
        yield Linked(of_left, of_right, torch.from_numpy(sentence), torch.from_numpy(word))
