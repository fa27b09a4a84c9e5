"""Vectors of the sentences of aligned text: means over their tokens, or the state of the token before them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pretrain.adjust.batches import side_words
from pretrain.adjust.text import PairData, Sentences
from pretrain.adjust.vectors import layer_states
from probes.transfer.word_vectors import SideReader, batches_by_length
from synthlang.progress import Report, silent
from synthlang.rng import key_of, permutation

HELD = 2048  # sentence pairs whose vectors are put beside each other; each side is read in the order of its lengths


def sentence_states(
    sentences: Sentences,
    reader: SideReader,
    rows: NDArray[np.int64],
    first: bool = False,
    report: Report = silent,
    task: str = "",
) -> Iterator[tuple[Tensor, NDArray[np.int64]]]:
    """([layers, n, d] float32, the n rows): the mean of a sentence's tokens without those around it; with ``first`` the
    state of the token before it (``<s>``). A sentence without a token has the mean 0."""
    device = reader.body.norm.weight.device
    for at in batches_by_length(sentences, rows, report, task):
        count = int(np.diff(sentences.offsets)[at].sum())
        words = side_words([sentences], [at], np.zeros(count, bool), reader.specials).to(device)
        states = layer_states(reader.body, words, reader.layers)
        if first:
            yield states[:, :, 0], at
            continue
        inside = words.mask.clone()
        inside[:, 0] = 0
        inside[torch.arange(len(at), device=device), words.mask.sum(1) - 1] = 0
        weights = inside / inside.sum(1, keepdim=True).clamp(min=1)
        yield torch.einsum("lrwd,rw->lrd", states, weights.to(states.dtype)), at


def sentence_means(
    sentences: Sentences, reader: SideReader, rows: NDArray[np.int64], report: Report = silent, task: str = ""
) -> Tensor:
    """[layers, rows, d]: the mean of each sentence, in the order of ``rows`` (which grow)."""
    found = torch.zeros(len(reader.layers), len(rows), reader.body.shape.hidden)
    for means, at in sentence_states(sentences, reader, rows, report=report, task=task):
        found[:, torch.from_numpy(np.searchsorted(rows, at))] = means.float().cpu()
    return found


def paired_means(
    data: PairData, left: SideReader, right: SideReader, rows: NDArray[np.int64], report: Report = silent
) -> Iterator[tuple[Tensor, Tensor]]:
    """The means [layers, n, d] of both sides of the sentence pairs at ``rows`` (which grow), so many at a time."""
    for start in range(0, len(rows), HELD):
        part = rows[start : start + HELD]
        yield sentence_means(data.left, left, part), sentence_means(data.right, right, part)
        report("sentence vectors", min(start + HELD, len(rows)), len(rows), "")


def drawn_pairs(data: PairData, most: int, seed: int) -> NDArray[np.int64]:
    """At most so many of the training sentence pairs, drawn by the seed; ascending."""
    return np.sort(data.train[permutation(key_of("rotation-order", seed, data.name), len(data.train))][:most])
