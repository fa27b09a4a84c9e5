"""Maximum spanning arborescence with exactly one child of the root: the best dependency tree.

Chu & Liu (1965), Edmonds (1967): every word takes its best head; a cycle becomes one node, whose incoming arcs cost
what they lose against the cycle's own; and so on until there is none. NetworkX has the algorithm without the limit
on the root (and in Python objects, far slower), SciPy has undirected trees only.

Exactly one child: the usual ways are a large penalty on the root's arcs, which rounds the scores away, or one run for
each child, which costs a factor n. Here a score is a pair (level, score) that is compared level first: an arc of the
root has level 1, a forbidden one n + 2, others 0, and the lowest sum of levels wins. The algorithm only compares,
adds and subtracts, so it is right for pairs as for numbers: it finds a tree with the fewest forbidden arcs, then the
fewest children of the root, then the highest score. Levels are integers, so this "penalty" is exact; scores are
rounded as float64 sums are.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from synthlang.errors import InputError

NEVER = 1 << 50  # level of what is no arc; sums of levels stay far below
Heads = NDArray[np.int64]


def arborescence(scores: ArrayLike) -> Heads:
    """[n] the head of each word, 0 for the root: the tree with the highest sum of scores.

    scores  [n, n + 1] float: of word i + 1 (row i) under head j, where 0 is the root; −inf: forbidden. A word under
            itself is always forbidden, whatever its score

    O(n³) at worst, O(n²) and no loop where the best heads are a tree already. Among equal heads the first one is tried
    first; the result is a function of the scores. InputError for NaN or +inf, and where every tree has a forbidden arc.
    """
    table = np.asarray(scores, dtype=np.float64)
    assert table.ndim == 2, "scores are [n, n + 1]"
    return arborescences(table[None], np.array([len(table)]))[0]


def arborescences(scores: ArrayLike, lengths: ArrayLike) -> list[Heads]:
    """The same for each sentence of a batch: scores [r, k, 1 + k], lengths [r]; what is beyond a length is not read."""
    table, sizes = np.array(scores, dtype=np.float64), np.asarray(lengths, dtype=np.int64)
    words = table.shape[1]
    assert table.shape[2] == words + 1 and sizes.shape == table.shape[:1], "scores are [rows, words, 1 + words]"
    table[:, np.arange(words), np.arange(words) + 1] = -np.inf
    here = np.arange(words) < sizes[:, None]
    columns = np.concatenate([np.ones((len(sizes), 1), bool), here], axis=1)
    real = here[:, :, None] & columns[:, None, :]
    if np.isnan(table[real]).any() or np.isposinf(table[real]).any():
        raise InputError("arc scores are not numbers: the training of the parser diverged, lower its learning rate")
    table[~real] = -np.inf
    if not words:
        return [np.zeros(0, np.int64) for _ in sizes]
    heads: Heads = table.argmax(axis=2)
    finite = np.isfinite(np.take_along_axis(table, heads[:, :, None], axis=2)[:, :, 0]) | ~here
    good = _is_tree(np.where(here, heads, 0), here) & finite.all(axis=1)
    return [
        row[:size] if fine else _best_tree(cells[:size, : size + 1])
        for row, size, fine, cells in zip(heads, sizes, good, table, strict=True)
    ]


def _is_tree(heads: Heads, here: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """[r] whether the words of each sentence [r, k] all reach the root, which has one child (or no word)."""
    above = np.concatenate([np.zeros((len(heads), 1), np.int64), heads], axis=1)
    for _ in range(int(heads.shape[1]).bit_length()):  # each time twice as far up
        above = np.take_along_axis(above, above, axis=1)
    children = ((heads == 0) & here).sum(axis=1)
    found: NDArray[np.bool_] = (above == 0).all(axis=1) & ((children == 1) | ~here.any(axis=1))
    return found


@dataclass
class _Graph:
    """Arcs between the nodes that are left; a contracted cycle lives on as one of its nodes.

    level, score  [m, m] of node i under node j, lower levels and then higher scores are better
    dependent, head  [m, m] the two words of that arc, since a node may stand for many
    best          [m] the head that each node takes
    """

    level: NDArray[np.int64]
    score: NDArray[np.float64]
    dependent: Heads
    head: Heads
    best: Heads

    @staticmethod
    def of(scores: NDArray[np.float64]) -> _Graph:
        """All arcs of a sentence, scores [n, n + 1]."""
        size = len(scores) + 1
        level, score = np.zeros((size, size), np.int64), np.zeros((size, size))
        forbidden = np.isneginf(scores)
        level[1:] = np.where(forbidden, size + 1, 0)
        level[1:, 0] += 1
        np.fill_diagonal(level, NEVER)
        level[0] = NEVER
        score[1:] = np.where(forbidden, 0.0, scores)
        best = np.zeros(size, np.int64)
        best[1:] = _first_best(level[1:], score[1:])
        dependent, head = np.indices((size, size))
        return _Graph(level, score, dependent, head, best)

    def contract(self, cycle: Heads) -> None:
        """Makes the nodes of a cycle one node, the first of them."""
        node, everyone = cycle[0], np.arange(len(self.best))
        taken = self.best[cycle]
        level = self.level[cycle] - self.level[cycle, taken][:, None]  # what an arc from outside loses
        score = self.score[cycle] - self.score[cycle, taken][:, None]
        entry = _first_best(level.T, score.T)
        exits = cycle[_first_best(self.level[:, cycle], self.score[:, cycle])]
        incoming = level[entry, everyone], score[entry, everyone], *self._words(cycle[entry], everyone)
        outgoing = self.level[everyone, exits], self.score[everyone, exits], *self._words(everyone, exits)
        tables = self.level, self.score, self.dependent, self.head
        for table, row, column in zip(tables, incoming, outgoing, strict=True):
            table[node], table[:, node] = row, column
        self.level[node, cycle] = NEVER
        self.level[cycle[1:]] = NEVER
        self.level[:, cycle[1:]] = NEVER
        self.level[0] = NEVER
        self.best[np.isin(self.best, cycle)] = node
        self.best[node] = _first_best(self.level[node][None], self.score[node][None])[0]

    def _words(self, rows: Heads, columns: Heads) -> tuple[Heads, Heads]:
        return self.dependent[rows, columns], self.head[rows, columns]


def _first_best(level: NDArray[np.int64], score: NDArray[np.float64]) -> Heads:
    """[m] the first of the best columns of each row: those of the lowest level with the highest score."""
    lowest = level == level.min(axis=1, keepdims=True)
    found: Heads = np.where(lowest, score, -np.inf).argmax(axis=1)
    return found


def _best_tree(scores: NDArray[np.float64]) -> Heads:
    """The algorithm: walk up from each node, contract the cycles that the walk runs into, then open them again."""
    graph, size = _Graph.of(scores), len(scores) + 1
    within = np.arange(size)  # of each word the node that stands for it
    state = np.zeros(size, np.int64)  # 0 not seen, 1 on the path, 2 reaches the root
    state[0] = 2
    opened: list[tuple[NDArray[np.bool_], list[tuple[int, int]], NDArray[np.int64]]] = []
    for start in range(1, size):
        path: list[int] = []
        node = int(within[start])
        while state[node] != 2:
            if state[node] == 0:
                state[node] = 1
                path.append(node)
                node = int(graph.best[node])
                continue
            at = path.index(node)
            cycle = np.array(path[at:])
            arcs = [(int(graph.dependent[i, graph.best[i]]), int(graph.head[i, graph.best[i]])) for i in cycle]
            opened.append((np.isin(within, cycle), arcs, within.copy()))
            graph.contract(cycle)
            within[np.isin(within, cycle)] = node
            node, path = int(graph.best[node]), path[: at + 1]
        state[path] = 2
    heads = np.full(size, -1, np.int64)
    for node in np.unique(within[1:]):
        arc = node, graph.best[node]
        heads[graph.dependent[arc]] = graph.head[arc]
    for inside, arcs, before in reversed(opened):
        entered = before[np.flatnonzero(inside & (heads >= 0))]
        for dependent, head in arcs:
            if before[dependent] not in entered:
                heads[dependent] = head
    if np.isneginf(scores[np.arange(size - 1), heads[1:]]).any() or (heads[1:] == 0).sum() != 1:
        raise InputError("no tree with one root avoids the arcs with score −inf: allow more of them")
    return heads[1:]
