"""States of words and sentences of the sentence pairs, batch by batch: memory is that of a batch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pretrain.adjust.batches import side_words
from pretrain.adjust.vectors import layer_states
from probes.distances.linked import Linked
from probes.measure.subject import Side, Subject
from probes.transfer.batching import bounded_batches
from probes.transfer.word_vectors import link_batches
from synthlang.progress import Report, silent

AROUND = 2  # sentence tokens of a row


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
    for at in _batches(side, rows, report, task):
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


def sentence_states(
    side: Side, rows: NDArray[np.int64], first: bool = False, report: Report = silent, task: str = ""
) -> Iterator[tuple[Tensor, NDArray[np.int64]]]:
    """([layers, n, d] float32, the n rows): the mean of a sentence's tokens without those around it; with ``first`` the
    state of the token before it (``<s>``). A sentence without a token has the mean 0."""
    body = side.reader.body
    device = body.norm.weight.device
    for at in _batches(side, rows, report, task):
        count = int(np.diff(side.corpus.offsets)[at].sum())
        words = side_words([side.sentences], [at], np.zeros(count, bool), side.reader.specials).to(device)
        states = layer_states(body, words, side.reader.layers)
        if first:
            yield states[:, :, 0], at
            continue
        inside = words.mask.clone()
        inside[:, 0] = 0
        inside[torch.arange(len(at), device=device), words.mask.sum(1) - 1] = 0
        weights = inside / inside.sum(1, keepdim=True).clamp(min=1)
        yield torch.einsum("lrwd,rw->lrd", states, weights.to(states.dtype)), at


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


def _batches(side: Side, rows: NDArray[np.int64], report: Report, task: str) -> Iterator[NDArray[np.int64]]:
    """``rows`` in batches of sentences of like length."""
    batches = bounded_batches(_lengths(side)[rows])
    for done, chosen in enumerate(batches, 1):
        yield rows[chosen]
        report(task, done, len(batches), "")


def _lengths(side: Side) -> NDArray[np.int64]:
    return np.diff(side.sentences.bounds) + AROUND
