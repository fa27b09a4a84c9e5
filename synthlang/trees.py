"""Dependency trees of a batch as arrays: checks, projectivity, and linearisation in a new order.

    word    1 the  2 cat  3 saw  4 her        head   2 3 0 3
    nodes   saw has the items (cat, saw, her), cat has (the, cat)

An order of the items of every node gives an order of the words, because a dependent represents its whole subtree. All
syntactic transforms move words in this way (Wang & Eisner 2016, section 4).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from synthlang.corpus import Corpus

Rows = NDArray[np.int64]


@dataclass(frozen=True)
class Forest:
    """The trees of a batch. A row is the index of a word in the batch.

    Attributes:
        parent: Row of each word's head, [words]. It is −1 at a root, and for all words of a sentence that is not a
            tree.
        depth: Number of edges up to the root, [words]. It is 0 for all words of a sentence that is not a tree.
        is_tree: True for sentences with one root, heads inside the sentence and no cycle, [sentences]. A sentence
            without words is a tree.
        offsets: Start of each sentence, [sentences + 1], as in the corpus.
    """

    parent: Rows
    depth: Rows
    is_tree: NDArray[np.bool_]
    offsets: Rows

    @staticmethod
    def of(corpus: Corpus) -> Forest:
        """Read the trees of a batch from its column ``head`` (1-based, 0 = root). Sentences need not be trees."""
        sentence, lengths = corpus.sentence_of_word, corpus.lengths
        head = corpus.columns["head"].codes.astype(np.int64)
        legal = (head >= 0) & (head <= lengths[sentence])
        roots = np.bincount(sentence, weights=head == 0, minlength=len(corpus))
        bad = np.bincount(sentence, weights=~legal, minlength=len(corpus)) > 0
        bad |= (roots != 1) & (lengths > 0)
        parent = np.where(bad[sentence] | (head == 0), -1, corpus.offsets[:-1][sentence] + head - 1)
        depth = np.zeros(len(parent), np.int64)
        active = np.flatnonzero(parent >= 0)
        above = parent[active]
        for _ in range(int(lengths.max(initial=0))):
            if not len(active):
                break
            depth[active] += 1
            above = parent[above]
            active, above = active[above >= 0], above[above >= 0]
        bad[sentence[active]] = True  # the walk up from these words did not end
        parent[bad[sentence]] = -1
        depth[bad[sentence]] = 0
        return Forest(parent, depth, ~bad, corpus.offsets)

    @cached_property
    def levels(self) -> list[Rows]:
        """The rows of the words at each depth from 0 on, in ascending order."""
        order = np.argsort(self.depth, kind="stable").astype(np.int64)
        return np.split(order, np.cumsum(np.bincount(self.depth))[:-1]) if len(order) else []

    @cached_property
    def size(self) -> Rows:
        """Number of words in the subtree of each word, itself included, [words]."""
        size = np.ones(len(self.parent), np.int64)
        for rows in reversed(self.levels[1:]):
            np.add.at(size, self.parent[rows], size[rows])
        return size

    @cached_property
    def is_projective(self) -> NDArray[np.bool_]:
        """True for sentences that are a tree in which every subtree is contiguous, [sentences]."""
        rows = np.arange(len(self.parent), dtype=np.int64)
        first, last = rows.copy(), rows.copy()
        for level in reversed(self.levels[1:]):
            np.minimum.at(first, self.parent[level], first[level])
            np.maximum.at(last, self.parent[level], last[level])
        sentence = np.repeat(np.arange(len(self.is_tree)), np.diff(self.offsets))
        has_gap = np.bincount(sentence, weights=last - first + 1 != self.size, minlength=len(self.is_tree)) > 0
        return self.is_tree & ~has_gap

    def linearise(self, rank: NDArray[np.float64], own_rank: NDArray[np.float64]) -> Rows:
        """Sort the items of every node by rank, and return the row of the word at each output position, [words].

        The items of a node are its dependents, with ``rank`` [words], and the head itself, with ``own_rank`` [words].
        Equal ranks keep the order of the rows. If both ranks are the rows, a projective sentence keeps its order. A
        sentence that is not a tree always keeps its order.
        """
        words = len(self.parent)
        rows = np.arange(words, dtype=np.int64)
        dependents = np.flatnonzero(self.parent >= 0)
        node = np.concatenate([self.parent[dependents], rows])
        ranks = np.concatenate([rank[dependents], own_rank])
        size = np.concatenate([self.size[dependents], np.ones(words, np.int64)])
        order = np.lexsort((np.concatenate([dependents, rows]), ranks, node))
        before = np.cumsum(size[order]) - size[order]
        starts = np.flatnonzero(np.diff(node[order], prepend=-1))
        offset = np.empty(len(node), np.int64)
        # Every node has its own item, so the nodes in order are all rows.
        offset[order] = before - before[starts][node[order]]
        begin = np.repeat(self.offsets[:-1], np.diff(self.offsets))
        within = np.zeros(words, np.int64)
        within[dependents] = offset[: len(dependents)]
        for level in self.levels[1:]:
            begin[level] = begin[self.parent[level]] + within[level]
        place = begin + offset[len(dependents) :]
        is_tree = np.repeat(self.is_tree, np.diff(self.offsets))
        index = np.empty(words, np.int64)
        index[np.where(is_tree, place, rows)] = rows
        return index
