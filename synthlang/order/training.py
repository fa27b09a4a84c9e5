"""The nodes of a treebank as training data: distinct bags of items and how often each order was seen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from synthlang.corpus import Corpus, concatenate
from synthlang.errors import InputError
from synthlang.order.items import (
    BOS,
    CLASS_OF_HEAD,
    EOS,
    MOST_NAMES,
    SHORTEST,
    Item,
    NodeClass,
    can_name,
    full,
    padding,
    views,
)
from synthlang.order.nodes import Nodes, distinct_rows, find_nodes, heads_of, item_count
from synthlang.order.permutations import all_orders
from synthlang.sources.base import Source, check_split, require_columns
from synthlang.trees import Forest

Ints = NDArray[np.int64]
SHARE_OF_NGRAMS = 0.1


@dataclass(frozen=True)
class Bags:
    """The distinct bags of n items.

    types          [bags, n] the items, canonical; indices into ``names``
    bag order      [observations] which bag had which order of ``all_orders``
    count          [observations] how often
    """

    types: Ints
    bag: Ints
    order: Ints
    count: NDArray[np.float64]
    names: tuple[Item, ...]


def read_treebank(source: Source, splits: Sequence[str], name: str) -> Corpus:
    """All sentences of some splits of the source ``name``; InputError if one is not there or has no trees."""
    require_columns(source, ("upos", "head", "deprel"), name, "an order model")
    for split in splits:
        check_split(source, split, name)
    return concatenate([batch for split in splits for batch in source.batches(split)])


def nodes_of(corpus: Corpus, node: NodeClass, most_items: int) -> dict[int, Nodes]:
    """The nodes of a class with 2 … ``most_items`` items in projective sentences, by number of items."""
    forest = Forest.of(corpus)
    size = item_count(forest)
    wanted = heads_of(corpus, {u: c for u, c in CLASS_OF_HEAD.items() if c == node})
    wanted &= (size > 1) & (size <= most_items) & forest.is_projective[corpus.sentence_of_word]
    return find_nodes(corpus, forest, wanted)


def observed(nodes: Nodes) -> Ints:
    """[nodes] the order of the items in the text, as a row of ``all_orders``."""
    n = nodes.types.shape[1]
    place_value = n ** np.arange(n - 1, -1, -1, dtype=np.int64)
    known = all_orders(n).orders @ place_value  # sorted, as the orders are
    return np.asarray(np.searchsorted(known, np.argsort(nodes.source, axis=1) @ place_value), dtype=np.int64)


def bags_of(nodes: Nodes) -> Bags:
    """Merge nodes with the same items: the cost of a fit is that of distinct bags."""
    types, which = nodes.distinct()
    seen = np.stack([which, observed(nodes)], axis=1)
    rows, inverse = distinct_rows(seen, int(seen.max(initial=0)) + 1)
    count = np.bincount(inverse, minlength=len(rows)).astype(np.float64)
    return Bags(types, rows[:, 0], rows[:, 1], count, nodes.names)


def frequent_ngrams(bags: Iterable[Bags], share: float = SHARE_OF_NGRAMS) -> list[tuple[str, ...]]:
    """The most frequent ``share`` of the n-grams of names in the orders of the text; ties by name."""
    count: Counter[tuple[str, ...]] = Counter()
    for group in bags:
        n = group.types.shape[1]
        if n < SHORTEST:
            continue
        names = [full(item) if can_name(item) else "" for item in group.names]
        items = np.take_along_axis(group.types[group.bag], all_orders(n).orders[group.order], axis=1)
        for row, times in zip(items.tolist(), group.count.astype(int).tolist(), strict=True):
            for ngram in _ngrams([names[i] for i in row]):
                count[ngram] += times
    by_count = sorted(count, key=lambda ngram: (-count[ngram], ngram))
    by_count = [ngram for ngram in by_count if "" not in ngram and set(ngram) != {EOS}]
    return by_count[: int(np.ceil(share * len(by_count)))]


def _ngrams(names: list[str]) -> Iterable[tuple[str, ...]]:
    pads = padding(len(names))
    padded = [BOS] * pads + names + [EOS] * pads
    for length in range(SHORTEST, pads + 2):
        for end in range(pads, len(padded)):
            if end + 1 >= length:
                yield tuple(padded[end + 1 - length : end + 1])


def heads_in(node: NodeClass) -> str:
    """The tags of the heads of a class, for people."""
    return ", ".join(upos for upos, c in CLASS_OF_HEAD.items() if c == node)


def check_names(bags: Iterable[Bags], node: NodeClass, name: str) -> None:
    """InputError if the items have more names than a model can have."""
    items = {group.names[item] for group in bags for item in np.unique(group.types).tolist()}
    names = {view for item in items if can_name(item) for view in views(item)}
    if len(names) > MOST_NAMES:
        raise InputError(
            f"{name}: the items of nodes with a {heads_in(node)} head have {len(names)} different names; "
            f"a model can have {MOST_NAMES}"
        )
