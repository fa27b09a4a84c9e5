"""The nodes of a batch that an order model can order, grouped by their number of items.

    word 1 he  2 saw  3 the  4 cat        node saw: items he, saw, cat
    canonical order of its items: the head, then the dependents by (tag, arc) and position:
        saw, cat (NOUN, obj), he (PRON, nsubj)

The canonical order depends on the node alone. Nodes with the same items therefore share one table of probabilities, and
a random number selects the same order in every batch.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from synthlang.corpus import Corpus
from synthlang.order.items import CLASS_OF_HEAD, Item, NodeClass, head_item
from synthlang.trees import Forest

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Nodes:
    """Nodes with the same number n of items.

    Attributes:
        rows: The word (row of the batch) of each item, in canonical order from the head on, [nodes, n].
        types: The item, as an index into ``names``, [nodes, n].
        source: The place of each item in source order, [nodes, n].
        names: The items by number.
    """

    rows: Ints
    types: Ints
    source: Ints
    names: tuple[Item, ...]

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def head(self) -> Ints:
        """Row in the batch of the head of each node, [nodes]."""
        return self.rows[:, 0]

    def distinct(self) -> tuple[Ints, Ints]:
        """Return the sorted distinct rows of ``types``, [bags, n], and the index of the row of each node, [nodes]."""
        types, count = self.types, len(self.names)
        n = types.shape[1]
        if count**n >= 2**63:
            rows, which = np.unique(types, axis=0, return_inverse=True)
            return rows, which.reshape(-1)
        packed = types @ (count ** np.arange(n - 1, -1, -1, dtype=np.int64))
        _, first, which = np.unique(packed, return_index=True, return_inverse=True)
        return types[first], which


def item_count(forest: Forest, glued: Flags | None = None) -> Ints:
    """Return the number of items of each word's node, [words].

    The items are the word and its dependents. ``glued`` [words] marks words that are not items.
    """
    parent = forest.parent if glued is None else forest.parent[~glued]
    return 1 + np.bincount(parent[parent >= 0], minlength=len(forest.parent)).astype(np.int64)


def heads_of(corpus: Corpus, *classes: NodeClass) -> Flags:
    """Return whether each word heads a node of one of the classes, [words]."""
    return corpus.columns["upos"].lookup(lambda name: CLASS_OF_HEAD.get(name) in classes)


def find_nodes(corpus: Corpus, forest: Forest, wanted: Flags, glued: Flags | None = None) -> dict[int, Nodes]:
    """Return the nodes with the heads ``wanted`` [words], by number of items. Dependents in ``glued`` are left out.

    Args:
        corpus: The batch, with the columns ``upos`` and ``deprel``.
        forest: The trees of the batch.
        wanted: Flags of the heads of the nodes, [words].
        glued: Flags of words that are not items, [words] (None: all words are items).
    """
    types, own, names = _item_types(corpus)
    dependents = np.flatnonzero((forest.parent >= 0) & (True if glued is None else ~glued))
    dependents = dependents[wanted[forest.parent[dependents]]]
    heads = np.flatnonzero(wanted)
    node = np.concatenate([forest.parent[dependents], heads])
    row = np.concatenate([dependents, heads])
    order = np.lexsort((row, node))
    row = row[order]
    count = item_count(forest, glued)[heads]
    starts = np.cumsum(count) - count
    groups = {}
    for n in np.unique(count).tolist():
        chosen = np.flatnonzero(count == n)
        rows = row[starts[chosen][:, None] + np.arange(n)]
        kinds = np.where(rows == heads[chosen][:, None], -1, types[rows])
        source = np.argsort(kinds, axis=1, kind="stable").astype(np.int64)
        rows = np.take_along_axis(rows, source, axis=1)
        kinds = types[rows]
        kinds[:, 0] = own[rows[:, 0]]
        groups[n] = Nodes(rows, kinds, source, names)
    return groups


def _item_types(corpus: Corpus) -> tuple[Ints, Ints, tuple[Item, ...]]:
    """Return indices of each word as a dependent and as a head, [words] each, and the sorted items."""
    upos, deprel = corpus.columns["upos"], corpus.columns["deprel"]
    assert upos.names is not None and deprel.names is not None
    arcs = len(deprel.names)
    pairs, which = np.unique(upos.codes.astype(np.int64) * arcs + deprel.codes, return_inverse=True)
    items = [(upos.names[pair // arcs], deprel.names[pair % arcs]) for pair in pairs.tolist()]
    heads = [head_item(name) for name in upos.names]
    names = tuple(sorted({*items, *heads}))
    index = {item: number for number, item in enumerate(names)}
    dependent = np.asarray([index[item] for item in items], np.int64)[which]
    return dependent, np.asarray([index[item] for item in heads], np.int64)[upos.codes], names


def nodes_of(corpus: Corpus, node: NodeClass, most_items: int) -> dict[int, Nodes]:
    """Return the nodes of a class with 2 … ``most_items`` items in projective sentences, by number of items."""
    forest = Forest.of(corpus)
    size = item_count(forest)
    wanted = heads_of(corpus, node) & (size > 1) & (size <= most_items)
    return find_nodes(corpus, forest, wanted & forest.is_projective[corpus.sentence_of_word])
