"""Maximum spanning arborescence with exactly one child of the root: the best dependency tree.

In the algorithm of Chu & Liu (1965) and Edmonds (1967), every word takes its best head. A cycle is contracted to one
node, and an arc into it is scored by its gain over the arc of the cycle that it replaces. This is repeated until no
cycle is left. NetworkX does not limit the children of the root and is far slower, and SciPy has undirected trees only.

A large penalty on the arcs of the root would lose digits of the scores, and one run for each child of the root would
cost a factor n. Here a score is a pair (level, score), and levels are compared first. The level is 1 for an arc of the
root and 0 for other arcs. The lowest sum of levels wins. The algorithm only compares, adds and subtracts, so it works
on such pairs. The result is the tree with the fewest children of the root, then the highest score.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from synthlang.errors import InputError

NEVER = 1 << 50  # level of a pair of nodes that is not an arc, far above any sum of levels
Heads = NDArray[np.int64]


def arborescences(scores: ArrayLike, lengths: ArrayLike) -> list[Heads]:
    """Return the tree with the highest sum of scores for each sentence.

    Time is O(n³) at worst, and O(n²) without a Python loop if the best heads already form a tree. Ties go to the lower
    head.

    Args:
        scores: [r, k, 1 + k] float, k ≥ 1, the score of word i + 1 (row i) with head j, where 0 is the root. The
            score of a word with itself is ignored.
        lengths: [r] number of words of each sentence.

    Returns:
        The head of each word [n], 0 for the root, for each sentence.

    Raises:
        InputError: A score is NaN or infinite.
    """
    table, sizes = np.array(scores, dtype=np.float64), np.asarray(lengths, dtype=np.int64)
    words = table.shape[1]
    assert table.shape[2] == words + 1 and sizes.shape == table.shape[:1], "scores are [rows, words, 1 + words]"
    here = np.arange(words) < sizes[:, None]
    columns = np.concatenate([np.ones((len(sizes), 1), bool), here], axis=1)
    real = here[:, :, None] & columns[:, None, :] & ~np.eye(words, words + 1, 1, dtype=bool)
    if not np.isfinite(table[real]).all():
        hint = "reduce fine_tune.learning_rate, and fine_tune.head_learning_rate if it is set"
        raise InputError("training of the parser diverged: arc scores are NaN or infinite", hint=hint, code="failed")
    table[~real] = -np.inf
    heads: Heads = table.argmax(axis=2)
    good = _is_tree(np.where(here, heads, 0), here)
    return [
        row[:size] if fine else _best_tree(cells[:size, : size + 1])
        for row, size, fine, cells in zip(heads, sizes, good, table, strict=True)
    ]


def _is_tree(heads: Heads, here: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return the mask [r] of sentences whose heads [r, k] form a tree with one child of the root."""
    above = np.concatenate([np.zeros((len(heads), 1), np.int64), heads], axis=1)
    for _ in range(int(heads.shape[1]).bit_length()):  # each step doubles the distance to the ancestor
        above = np.take_along_axis(above, above, axis=1)
    children = ((heads == 0) & here).sum(axis=1)
    found: NDArray[np.bool_] = (above == 0).all(axis=1) & ((children == 1) | ~here.any(axis=1))
    return found


def _best_tree(scores: NDArray[np.float64]) -> Heads:
    """Return the best tree of one sentence.

    In the tables ``level`` and ``score`` [m, m], rows are nodes and columns are heads. The root is 0, and a contracted
    cycle is the last node.
    """
    size = len(scores) + 1
    level, score = np.zeros((size, size), np.int64), np.zeros((size, size))
    level[:, 0], score[1:] = 1, scores
    np.fill_diagonal(level, NEVER)
    opened = []
    while True:
        best = np.zeros(len(level), np.int64)
        best[1:] = _first_best(level[1:], score[1:])
        cycle = _cycle(best)
        if not len(cycle):
            break
        outside = np.setdiff1d(np.arange(len(level)), cycle)
        # gain of an arc into the cycle over the arc of the cycle that it replaces
        gain_level = level[np.ix_(cycle, outside)] - level[cycle, best[cycle]][:, None]
        gain_score = score[np.ix_(cycle, outside)] - score[cycle, best[cycle]][:, None]
        entry = _first_best(gain_level.T, gain_score.T)  # [outside] node of the cycle where an arc from outside arrives
        leave = _first_best(level[np.ix_(outside, cycle)], score[np.ix_(outside, cycle)])  # node where an arc leaves
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
    return best[1:]


def _first_best(level: NDArray[np.int64], score: NDArray[np.float64]) -> Heads:
    """Return the best column [m] of each row: lowest level, then highest score, then lowest index."""
    lowest = level == level.min(axis=1, keepdims=True)
    found: Heads = np.where(lowest, score, -np.inf).argmax(axis=1)
    return found


def _cycle(best: Heads) -> Heads:
    """Return the nodes of a cycle in the heads [m], or none if all nodes reach the root."""
    above = best
    for _ in range(len(best).bit_length()):  # each step doubles the distance to the ancestor
        above = above[above]
    if not above.any():
        return np.zeros(0, np.int64)
    nodes = [int(above[above > 0][0])]
    while int(best[nodes[-1]]) != nodes[0]:
        nodes.append(int(best[nodes[-1]]))
    return np.array(nodes)
