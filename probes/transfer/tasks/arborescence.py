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

import numpy as np
from numpy.typing import ArrayLike, NDArray

from synthlang.errors import InputError

NEVER = 1 << 50  # level of what is no arc; sums of levels stay far below
Heads = NDArray[np.int64]


def arborescences(scores: ArrayLike, lengths: ArrayLike) -> list[Heads]:
    """For each sentence [n] the head of each word, 0 for the root: the tree with the highest sum of scores.

    scores   [r, k, 1 + k] float, k ≥ 1: of word i + 1 (row i) under head j, where 0 is the root; −inf: forbidden. A
             word under itself is always forbidden, whatever its score
    lengths  [r] words of each sentence; what is beyond is not read

    O(n³) at worst, O(n²) and no loop where the best heads are a tree already. Among equal heads the first one is tried
    first; the result is a function of the scores. InputError for NaN or +inf, and where every tree has a forbidden arc.
    """
    table, sizes = np.array(scores, dtype=np.float64), np.asarray(lengths, dtype=np.int64)
    words = table.shape[1]
    assert table.shape[2] == words + 1 and sizes.shape == table.shape[:1], "scores are [rows, words, 1 + words]"
    table[:, np.arange(words), np.arange(words) + 1] = -np.inf
    here = np.arange(words) < sizes[:, None]
    columns = np.concatenate([np.ones((len(sizes), 1), bool), here], axis=1)
    real = here[:, :, None] & columns[:, None, :]
    if np.isnan(table[real]).any() or np.isposinf(table[real]).any():
        hint = "lower its learning rate"
        raise InputError("arc scores are NaN: the training of the parser diverged", hint=hint, code="failed")
    table[~real] = -np.inf
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


def _best_tree(scores: NDArray[np.float64]) -> Heads:
    """Of one sentence: take the best heads, contract a cycle of them to a node, and so on; then open the cycles again.

    level, score [m, m] are those of node i under node j, where 0 is the root; a contracted cycle is the last node.
    """
    level, score = _tables(scores)
    opened = []
    while True:
        best = np.zeros(len(level), np.int64)
        best[1:] = _first_best(level[1:], score[1:])
        cycle = _cycle(best)
        if not len(cycle):
            break
        outside = np.setdiff1d(np.arange(len(level)), cycle)
        # what an arc into the cycle gains against the cycle's own, which it replaces
        gain_level = level[np.ix_(cycle, outside)] - level[cycle, best[cycle]][:, None]
        gain_score = score[np.ix_(cycle, outside)] - score[cycle, best[cycle]][:, None]
        entry = _first_best(gain_level.T, gain_score.T)  # [outside] where in the cycle an arc from there arrives
        leave = _first_best(level[np.ix_(outside, cycle)], score[np.ix_(outside, cycle)])  # and one to there begins
        opened.append((best, cycle, outside, entry, leave))
        level, score = (
            np.block([
                [table[np.ix_(outside, outside)], table[outside, cycle[leave]][:, None]],
                [gain[entry, np.arange(len(outside))], np.full(1, table[0, 0])],
            ])
            for table, gain in ((level, gain_level), (score, gain_score))
        )  # fmt: skip
    for before, cycle, outside, entry, leave in reversed(opened):
        above, entered_from = best[:-1], best[-1]
        heads = before.copy()
        heads[outside] = np.where(above == len(outside), cycle[leave], np.append(outside, 0)[above])
        heads[cycle[entry[entered_from]]] = outside[entered_from]
        best = heads
    if np.isneginf(scores[np.arange(len(scores)), best[1:]]).any() or (best[1:] == 0).sum() != 1:
        reason = "no tree with one root avoids the arcs with score −inf"
        raise InputError(reason, hint="allow more arcs", code="range")
    return best[1:]


def _tables(scores: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Levels and scores [n + 1, n + 1] of scores [n, n + 1]."""
    size = len(scores) + 1
    level, score = np.full((size, size), NEVER), np.zeros((size, size))
    forbidden = np.isneginf(scores)
    level[1:] = np.where(forbidden, size + 1, 0)
    level[1:, 0] += 1
    np.fill_diagonal(level, NEVER)
    score[1:] = np.where(forbidden, 0.0, scores)
    return level, score


def _first_best(level: NDArray[np.int64], score: NDArray[np.float64]) -> Heads:
    """[m] the first of the best columns of each row: those of the lowest level with the highest score."""
    lowest = level == level.min(axis=1, keepdims=True)
    found: Heads = np.where(lowest, score, -np.inf).argmax(axis=1)
    return found


def _cycle(best: Heads) -> Heads:
    """Return the nodes of a cycle of heads [m], none if all nodes reach the root."""
    above = best
    for _ in range(len(best).bit_length()):  # each time twice as far up
        above = above[above]
    if not above.any():
        return np.zeros(0, np.int64)
    nodes = [int(above[above > 0][0])]
    while int(best[nodes[-1]]) != nodes[0]:
        nodes.append(int(best[nodes[-1]]))
    return np.array(nodes)
