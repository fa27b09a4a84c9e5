"""States of the same sentences, or of linked words, read by two sides, in one order and batch by batch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from probes.measure.cka_config import Pooling
from probes.measure.states import word_states
from probes.measure.subject import Side
from probes.transfer.batch import bounded_batches
from probes.transfer.sentence_vectors import sentence_states
from probes.transfer.word_vectors import row_lengths
from synthlang.alignments import Links
from synthlang.progress import Report, silent

Rows = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Pairing:
    """What is compared with what: the sentences at ``rows`` of both sides, or their words at ``links``.

    links   of all sentences of both sides; only words that the tokenizers leave something of
    """

    left: Side
    right: Side
    rows: Rows
    links: Links


def paired_states(
    pairing: Pairing, pooling: Pooling, report: Report = silent, task: str = ""
) -> Iterator[tuple[Tensor, Tensor]]:
    """([L, n, d], [R, n, d′]) float32: item i of both is the same sentence, or a word and the one it is linked to.

    Every sentence once, in batches of like length, the longest first; memory is that of a batch.
    """
    left, right, rows = pairing.left, pairing.right, pairing.rows
    batches = bounded_batches(np.maximum(row_lengths(left.sentences)[rows], row_lengths(right.sentences)[rows]))
    for done, chosen in enumerate(batches, 1):
        at = rows[chosen]
        if pooling == "words":
            yield _words(pairing, at)
        else:
            first = pooling == "first"
            yield _sentences(left, at, first), _sentences(right, at, first)
        report(task, done, len(batches), "")


def _sentences(side: Side, at: Rows, first: bool) -> Tensor:
    """The sentences at ``at``, which are distinct, in the order of their numbers."""
    parts, order = zip(*sentence_states(side.sentences, side.reader, at, first), strict=True)
    return torch.cat(parts, dim=1)[:, torch.from_numpy(np.argsort(np.concatenate(order)))]


def _words(pairing: Pairing, at: Rows) -> tuple[Tensor, Tensor]:
    links = pairing.links.take(at)
    sentence = at[links.sentence]
    left = pairing.left.corpus.offsets[sentence] + links.left
    right = pairing.right.corpus.offsets[sentence] + links.right
    return _words_at(pairing.left, at, left), _words_at(pairing.right, at, right)


def _words_at(side: Side, at: Rows, numbers: Rows) -> Tensor:
    """[layers, n, d] of the words that have these numbers [n] in the side's corpus, all of the sentences at ``at``."""
    parts = list(word_states(side, at))
    word = torch.cat([part.word for part in parts]).numpy()
    order = np.argsort(word)
    place = np.searchsorted(word[order], numbers)
    assert np.array_equal(word[order][place], numbers), "a linked word that the tokenizer leaves nothing of"
    return torch.cat([part.vectors for part in parts], dim=1)[:, torch.from_numpy(order[place])]
