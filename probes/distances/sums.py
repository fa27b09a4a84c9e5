"""Distances of a stream of linked words, gathered pair by pair: at every layer, of related and of unrelated words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import torch
from torch import Tensor

from probes.distances.linked import BLOCK, Linked, PairBlock, pair_blocks
from probes.distances.separation import DISTANCES, Distance, Separation, WordPairs
from probes.statistics.base import Floats
from synthlang.errors import InputError
from synthlang.progress import Report, silent

ROWS = 256  # pairs whose float64 copies are held at once


class DistanceSums:
    """Gathers the distances of a stream of blocks; ``kept`` [layers, d] says which dimensions count, None is all."""

    def __init__(self, distances: Sequence[Distance] = DISTANCES, kept: Tensor | None = None) -> None:
        self.distances, self.kept = tuple(distances), kept
        self._found: dict[tuple[int, Distance, bool], list[Tensor]] = {}
        self._zero: list[int] = []
        self._pairs: list[tuple[Tensor, Tensor, Tensor]] = []
        self.links = self._same_word = 0

    def add(self, block: PairBlock) -> None:
        """Measure the pairs of a block at every layer."""
        linked = block.linked
        self._zero = self._zero or [0] * len(linked.left)
        every = torch.arange(len(linked))
        for layer, (left, right) in enumerate(zip(linked.left, linked.right, strict=True)):
            if self.kept is not None:
                left, right = left[:, self.kept[layer]], right[:, self.kept[layer]]  # noqa: PLW2901
            self._zero[layer] += sum(int((side == 0).all(1).sum()) for side in (left, right))
            lengths = row_lengths(left), row_lengths(right)
            for related, one, other in ((True, every, every), (False, block.query, block.other)):
                for rows in zip(torch.split(one, ROWS), torch.split(other, ROWS), strict=True):
                    apart = row_lengths(left[rows[0]] - right[rows[1]])
                    for name in self.distances:
                        found = apart if name == "l2" else _cosine(apart, lengths[0][rows[0]], lengths[1][rows[1]])
                        # in float32 equal distances are equal whatever the order of their sums was
                        self._found.setdefault((layer, name, related), []).append(found.float())
        self._pairs.append((linked.sentence, block.query + self.links, block.other + self.links))
        self.links += len(linked)
        self._same_word += block.same_word

    def result(self, layers: Sequence[int] | None = None, level: float = 0.95) -> list[Separation]:
        """By layer, then by distance; ``layers`` are the numbers of the layers, 0 … without."""
        numbers = range(len(self._zero)) if layers is None else layers
        assert len(numbers) == len(self._zero), (layers, len(self._zero))
        sentence, query, other = (torch.cat(part).numpy().astype(np.int64) for part in zip(*self._pairs, strict=True))
        if not len(query):
            raise InputError("every unrelated pair that was drawn is of one word: the text has too few different words")
        codes = np.unique(sentence, return_inverse=True)[1].astype(np.int64)
        pairs = WordPairs(codes, query, other, self._same_word)

        def values(layer: int, name: Distance, related: bool) -> Floats:
            return torch.cat(self._found[layer, name, related]).numpy().astype(np.float64)

        return [
            Separation(number, name, values(i, name, True), values(i, name, False), pairs, self._zero[i], level)
            for i, number in enumerate(numbers)
            for name in self.distances
        ]


def row_lengths(rows: Tensor) -> Tensor:
    """[n] float64: the length of each of the rows [n, d]; a few rows at a time, so that they stay in the cache."""
    parts = [torch.linalg.vector_norm(part.double(), dim=-1) for part in torch.split(rows, ROWS)]
    return torch.cat(parts)


def _cosine(apart: Tensor, left: Tensor, right: Tensor) -> Tensor:
    """[n] 1 − cos of x and y by |x − y|, |x| and |y|: (|x − y|² − (|x| − |y|)²) / (2 |x| |y|), from 0 to 2.

    0 where x = y, but for no rounding; 1 for a zero vector.
    """
    twice = 2 * left * right
    found = (apart.square() - (left - right).square()) / twice.where(twice > 0, 1)
    return found.clamp(0, 2).where(twice > 0, 1.0)


def separations(
    batches: Iterable[Linked],
    seed: int,
    layers: Sequence[int] | None = None,
    *,
    distances: Sequence[Distance] = DISTANCES,
    block: int = BLOCK,
    level: float = 0.95,
    links: int = 0,
    report: Report = silent,
) -> list[Separation]:
    """Both distances at every layer of a stream of linked words; errors and the draw as in ``pair_blocks``.

    Vectors are read once and dropped; one number for each pair, distance and layer stays, which an exact AUC needs.
    ``links`` is how many are to come, for the report alone.
    """
    sums = DistanceSums(distances)
    for found in pair_blocks(batches, seed, block):
        sums.add(found)
        report("distances", sums.links, max(links, sums.links), "")
    return sums.result(layers, level)
