"""Related and unrelated pairs of words in a stream of linked words: x_i with y_i, and x_i with a word y_j elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from synthlang.errors import InputError
from synthlang.rng import key_of, uniform

BLOCK = 2048
"""Links among which unrelated words are drawn; at most twice as many are held."""


@dataclass(frozen=True, eq=False)
class Linked:
    """Vectors of both words of n links, at some layers.

    left, right   [layers, n, d]
    sentence      [n] which sentence pair a link is of: the same number wherever the pair comes again in the stream
    word          [n] the type of the right word, or None: with it, a pair of the words of two links of one type is
                  not taken as unrelated ("the" is the translation of the article of every other sentence too)
    """

    left: Tensor
    right: Tensor
    sentence: Tensor
    word: Tensor | None = None

    def __post_init__(self) -> None:
        assert self.left.ndim == 3 and self.left.shape == self.right.shape, (self.left.shape, self.right.shape)
        assert self.sentence.shape == self.left.shape[1:2], self.sentence.shape
        assert self.word is None or self.word.shape == self.sentence.shape, self.word.shape

    def __len__(self) -> int:
        return len(self.sentence)

    def take(self, at: Tensor | slice) -> Linked:
        """Some of the links, in this order."""
        word = None if self.word is None else self.word[at]
        return Linked(self.left[:, at], self.right[:, at], self.sentence[at], word)

    @staticmethod
    def joined(parts: Sequence[Linked]) -> Linked:
        """One after another, on the CPU."""
        if len(parts) == 1:
            return parts[0].on_cpu()
        words = [part.word for part in parts if part.word is not None]
        assert len(words) in (0, len(parts)), "some batches have word types, others not"
        left, right = (torch.cat([getattr(part.on_cpu(), side) for part in parts], 1) for side in ("left", "right"))
        sentence = torch.cat([part.sentence for part in parts]).cpu()
        return Linked(left, right, sentence, torch.cat(words).cpu() if words else None)

    def on_cpu(self) -> Linked:
        """The same in main memory."""
        word = None if self.word is None else self.word.cpu()
        return Linked(self.left.cpu(), self.right.cpu(), self.sentence.cpu(), word)

    def checked(self) -> Linked:
        """The same as float32 in main memory; InputError for NaN and infinity."""
        left, right = (side.detach().float() for side in (self.left, self.right))
        finite = (left.isfinite() & right.isfinite()).flatten(1).all(1)
        if not bool(finite.all()):
            layer = int((~finite).nonzero()[0, 0])
            raise InputError(
                f"word vectors of layer {layer} of those read hold NaN or infinity: the model has diverged or is "
                "damaged"
            )
        return Linked(left, right, self.sentence, self.word).on_cpu()


@dataclass(frozen=True, eq=False)
class PairBlock:
    """Links, which are the related pairs, and unrelated pairs among them.

    query, other   [m] the links whose left and right word an unrelated pair has
    same_word      how many drawn pairs were left out, being of one type of word
    """

    linked: Linked
    query: Tensor
    other: Tensor
    same_word: int


def pair_blocks(batches: Iterable[Linked], seed: int, block: int = BLOCK) -> Iterator[PairBlock]:
    """Cut a stream of links into blocks, and give each left word an unrelated right word of its block.

    The draw is uniform over the links of the block that are of other sentence pairs (Impact of Cross-Lingual
    Adjustment, section 5.4: words of unpaired sentences), a function of the seed and of the number of the link in the
    stream; so two models that read the same links have the same pairs, however the links come in batches. Memory is
    that of 2 · ``block`` links and a batch. Vectors become float32 on the CPU. InputError for NaN and infinity, for
    vectors that are all zero at a layer, and where no two sentence pairs are in the stream.
    """
    assert block >= 1, block
    key, number, apart, seen = key_of("unrelated-words", seed), 0, 0, None
    for linked in _regrouped(batches, block):
        query, other = unrelated(linked.sentence.numpy(), key, number)
        apart, drawn = apart + len(query), len(query)
        if linked.word is not None:
            differs = linked.word.numpy()[query] != linked.word.numpy()[other]
            query, other = query[differs], other[differs]
        some = ((linked.left != 0).any(-1) | (linked.right != 0).any(-1)).any(-1)
        seen = some if seen is None else seen | some
        number += len(linked)
        yield PairBlock(linked, torch.from_numpy(query), torch.from_numpy(other), drawn - len(query))
    if seen is None:
        raise InputError("there are no linked words to measure distances of; align the two languages' text first")
    if not bool(seen.all()):
        raise InputError(f"all word vectors of layer {int((~seen).nonzero()[0, 0])} of those read are zero")
    if not apart:
        raise InputError("all linked words are of one sentence pair; unrelated words need at least two of them")


def unrelated(sentence: NDArray[np.int64], key: int, number: int = 0) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """For each of n links another one of another sentence, drawn uniformly: [m] links, [m] the drawn ones.

    ``sentence`` [n]; ``number`` counts the links before these. m is n, less the links that have no other sentence.
    """
    _, own, counts = np.unique(sentence, return_inverse=True, return_counts=True)
    order = np.argsort(sentence, kind="stable")
    start, size = (np.cumsum(counts) - counts)[own], counts[own]
    room = len(sentence) - size
    draw = uniform(key, number + np.arange(len(sentence)))[: len(sentence)]
    picked = np.floor(draw * room).astype(np.int64)
    picked += np.where(picked >= start, size, 0)  # the links of the own sentence are stepped over
    query = np.flatnonzero(room > 0)
    return query, order[picked[query]]


def _regrouped(batches: Iterable[Linked], block: int) -> Iterator[Linked]:
    """The same links, ``block`` at a time; the last time up to twice as many, so that no block is nearly empty."""
    waiting: list[Linked] = []
    for batch in batches:
        if not len(batch):
            continue
        waiting.append(batch.checked())
        if sum(map(len, waiting)) >= 2 * block:
            joined, at = Linked.joined(waiting), 0
            while len(joined) - at >= 2 * block:
                yield joined.take(slice(at, at + block))
                at += block
            waiting = [joined.take(slice(at, None))]
    if waiting:
        yield Linked.joined(waiting)
