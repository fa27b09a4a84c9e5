"""Lay out trees: compute the word order that follows from the side of every dependent.

Dependents that keep their side keep their order. A dependent that changes sides goes to the mirrored place, with as
many dependents between it and the head as before. At this place it is outside the lower layers and inside the higher
layers.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from synthlang.corpus import Column, Corpus
from synthlang.order.items import V1_TO_V2
from synthlang.rewrite import Rewrite
from synthlang.trees import Forest

Rows = NDArray[np.int64]
Flags = NDArray[np.bool_]
Keys = NDArray[np.float64]
BEFORE, AFTER = 0, 1
STEP = 0.05  # distance of a moved item to its new neighbour, where other neighbours are 1 apart
BY_LAYER, BY_CLOSENESS = 1e-3, 1e-7  # tie breakers of items that go to the same place

# A negation keeps its label here because it has a layer of its own.
VERSION_1 = {v1: v2 for v1, v2 in V1_TO_V2.items() if v1 != "neg"} | {"foreign": "flat"}
RELATIONS = frozenset(V1_TO_V2)
_VERSION_2 = (
    "acl advcl advmod amod appos aux case cc ccomp clf compound conj cop csubj dep det discourse dislocated expl fixed "
    "flat goeswith iobj list mark nmod nsubj nummod obj obl orphan parataxis punct reparandum root vocative xcomp"
)
_TAGS = "ADJ ADP ADV AUX CCONJ CONJ DET INTJ NOUN NUM PART PRON PROPN PUNCT SCONJ SYM VERB X"
RELATIONS |= frozenset(_VERSION_2.split())
TAGS = frozenset(_TAGS.split())
SUBJECTS, OBJECTS = ("nsubj", "csubj"), ("obj", "iobj")
COORDINATION = ("conj", "cc")
LOOSE = (*COORDINATION, "list", "parataxis", "discourse", "vocative", "dislocated", "reparandum", "orphan")
UNITS = ("fixed", "flat", "goeswith", "_")  # parts of one word or name; "_" is an inserted word
MARKERS = ("case", "mark")

# Layers around a head, innermost first. Nouns have adjective, numeral, demonstrative, genitive, relative clause
# (Greenberg 1963, universal 20, and its mirror image). Clauses have auxiliary, object, subject, adverbial, clause.
LAYERS = {
    **dict.fromkeys((*UNITS, "compound"), 0),
    **dict.fromkeys(("aux", "cop", "neg", "expl", "amod"), 1),
    **dict.fromkeys(("nummod", "obj", "iobj"), 2),
    **dict.fromkeys(("det", "nsubj", "csubj", "nmod:poss"), 3),
    **dict.fromkeys(("acl", "xcomp", "ccomp", "advcl"), 5),
    "appos": 6,
    **dict.fromkeys(LOOSE, 8),
}
OTHER_LAYER, INNER_MARKER, OUTER_MARKER, EDGE = 4, 7, 9, 10


def modern(label: str) -> str:
    """Return a label in the notation of UD version 2. An unknown label and ``neg`` are unchanged.

    >>> modern("nsubjpass"), modern("nmod:poss")
    ('nsubj:pass', 'nmod:poss')
    """
    return VERSION_1.get(label, label)


def base(label: str) -> str:
    """Return the universal relation of a label of either version, without its subtype.

    >>> base("nsubjpass"), base("acl:relcl")
    ('nsubj', 'acl')
    """
    return modern(label).partition(":")[0]


def layer(label: str) -> int:
    """Return the layer of a label, 0 for the innermost.

    ``Layout`` gives other layers to ``case``, ``mark`` and punctuation.
    """
    return LAYERS.get(modern(label), LAYERS.get(base(label), OTHER_LAYER))


def attach_inserted(corpus: Corpus) -> Corpus:
    """Return the corpus with a head for every word without a head (head −1).

    Such a word was inserted, or its head was left out. The new head is the nearest word that has a head and is to
    the left of the word and of all words below it. If there is none, the new head is the nearest word to the right that
    is in the tree of the root. The word therefore moves with its neighbour. The result is a tree, a projective tree
    stays projective, and no other head changes.
    """
    head = corpus.columns["head"].codes.astype(np.int64)
    if not (head < 0).any():
        return corpus
    rows = np.arange(len(head))
    start, end = (corpus.offsets[i:][: len(corpus)][corpus.sentence_of_word] for i in (0, 1))
    top = np.where((head > 0) & (head <= end - start), start + head - 1, rows)
    for _ in range(int(corpus.lengths.max()).bit_length()):
        top = top[top]
    first = np.full(len(rows), len(rows))
    np.minimum.at(first, top, rows)
    left = np.append(-1, np.maximum.accumulate(np.where(head >= 0, rows, -1)))[first]  # −1: none before the row
    right = np.minimum.accumulate(np.where(head[top] == 0, rows, len(rows))[::-1])[::-1]
    to = np.where(left >= start, left, np.where(right < end, right, -1))
    fixed = np.where((head < 0) & (to >= 0), to - start + 1, head)
    return replace(corpus, columns={**corpus.columns, "head": Column(fixed.astype(np.int32))})


def layout_forest(corpus: Corpus) -> Forest:
    """Return the trees with the final punctuation attached to the root, so that it can keep its place."""
    corpus = attach_inserted(corpus)
    forest = Forest.of(corpus)
    hung = hung_on_root(corpus, forest)
    return Forest.of(replace(corpus, columns={**corpus.columns, "head": Column(hung)})) if hung is not None else forest


def hung_on_root(corpus: Corpus, forest: Forest) -> NDArray[np.int32] | None:
    """Return the heads with the final punctuation attached to the root, [words], or None if nothing changes.

    Punctuation with dependents keeps its head.
    """
    final = final_punctuation(corpus) & (forest.size == 1) & (forest.depth > 1)
    if not final.any():
        return None
    head = corpus.columns["head"].codes
    roots = np.zeros(len(corpus), np.int32)
    at_root = np.flatnonzero((head == 0) & forest.is_tree[corpus.sentence_of_word])
    roots[corpus.sentence_of_word[at_root]] = corpus.position[at_root] + 1
    return np.where(final, roots[corpus.sentence_of_word], head).astype(np.int32)


def attached_anew(rewrite: Rewrite, corpus: Corpus, laid_out: Flags) -> Rewrite:
    """Return a rewrite with the final punctuation attached to the root where the order would not be projective.

    ``rewrite`` is the rewrite of ``corpus``. The punctuation keeps its place while its head moves. ``laid_out``
    [sentences] marks the sentences that were projective.
    """
    derived = rewrite.apply(corpus)
    whole = attach_inserted(derived)
    forest = Forest.of(whole)
    broken = laid_out & forest.is_tree & ~forest.is_projective
    hung = hung_on_root(whole, forest) if broken.any() else None
    if hung is None:
        return rewrite
    head = derived.columns["head"].codes
    anew = broken[derived.sentence_of_word] & (hung != whole.columns["head"].codes)
    return replace(rewrite, head=np.where(anew, hung, head).astype(np.int32))


def final_punctuation(corpus: Corpus) -> Flags:
    """Return whether each word and all words after it in its sentence are punctuation, [words]."""
    other = corpus.columns["upos"].lookup(lambda name: name != "PUNCT")
    last = np.full(len(corpus), -1, np.int64)
    np.maximum.at(last, corpus.sentence_of_word[other], np.flatnonzero(other))
    return np.arange(len(other)) > last[corpus.sentence_of_word]


class Layout:
    """The dependents of a batch as items with a head, a side, a place and a layer.

    Attributes:
        forest: The trees of the batch.
        items: Rows of the dependents, [m].
        head: Rows of their heads, [m].
        side: BEFORE or AFTER the head, in the source, [m].
        place: Rank by distance from the head among the items of the same head and side, from 1, [m].
        relation: Relation of each item to its head, [m].
        layer: Layer of each item (see LAYERS), [m].
        is_final: True for punctuation at the end of the sentence, after its head, [m].
    """

    def __init__(self, corpus: Corpus, forest: Forest) -> None:
        self.forest = forest
        self.items = np.flatnonzero(forest.parent >= 0)
        self.head = forest.parent[self.items]
        self.side = (self.items > self.head).astype(np.int64)
        self.place = self._places(self._slot(self.side), np.abs(self.items - self.head))
        self.relation = corpus.columns["deprel"].take(self.items)
        self.layer = self._layers(final_punctuation(corpus)[self.items])

    def _slot(self, side: Rows) -> Rows:
        """Return a number for each side of each head, [m]."""
        return self.head * 2 + side

    @staticmethod
    def _places(slot: Rows, distance: Rows) -> Rows:
        order = np.lexsort((distance, slot))
        starts = np.flatnonzero(np.diff(slot[order], prepend=-1))
        lengths = np.diff(np.append(starts, len(slot)))
        place = np.empty(len(slot), np.int64)
        place[order] = np.arange(len(slot)) - np.repeat(starts, lengths) + 1
        return place

    def is_base(self, *relations: str) -> Flags:
        """Return whether the relation, without its subtype, is one of ``relations``, [m]."""
        return self.relation.lookup(lambda name: base(name) in relations)

    def _layers(self, final: Flags) -> Rows:
        layers = self.relation.lookup(layer, np.int64)
        words = len(self.forest.parent)
        for marker in MARKERS:
            # A marker belongs to a whole coordination, unless a later conjunct has a marker ("to cats and to dogs").
            mine = self.is_base(marker)
            marked = np.zeros(words, bool)
            marked[self.head[mine]] = True
            conjunct = self.is_base(*COORDINATION) & marked[self.items]
            each = np.zeros(words, bool)
            each[self.head[conjunct]] = True
            layers[mine] = np.where(each[self.head[mine]], INNER_MARKER, OUTER_MARKER)
        # Punctuation beyond all other dependents encloses them. Any other punctuation keeps its place.
        punctuation = self.is_base("punct")
        last = np.zeros(2 * words, np.int64)
        slot = self._slot(self.side)
        np.maximum.at(last, slot[~punctuation], self.place[~punctuation])
        layers[punctuation] = np.where((self.place > last[slot])[punctuation], EDGE, 0)
        self.is_final = final & punctuation & (self.side == AFTER)
        return layers

    def keys(self, side: Rows) -> Keys:
        """Return sort keys of the items on their new sides ``side`` [m], [m]. A larger key is farther from the head.

        An item that keeps its side has the key ``place``. An item that moves gets the key ``place`` − 0.25, raised
        above the keys of lower layers and lowered below the keys of higher layers.
        """
        moved = side != self.side
        slot = self._slot(side)
        keys = self.place.astype(np.float64)
        inner = np.zeros(2 * len(self.forest.parent))
        for level in range(EDGE + 1):
            here = self.layer == level
            going = np.flatnonzero(here & moved)
            if len(going):
                outer = np.full(len(inner), np.inf)
                above = ~moved & (self.layer > level)
                np.minimum.at(outer, slot[above], keys[above])
                at = slot[going]
                wanted = np.maximum(self.place[going] - 0.25, inner[at] + STEP)
                keys[going] = np.minimum(wanted, outer[at] - 0.5)
                keys[going] += level * BY_LAYER + self.place[going] * BY_CLOSENESS
            np.maximum.at(inner, slot[here], keys[here])
        return keys

    def put_outside(self, keys: Keys, side: Rows, outer: Flags, inner: Flags) -> None:
        """Raise ``keys`` [m] in place so that ``outer`` items are outside ``inner`` items of the same head and side.

        ``side`` [m] has the new sides, and ``outer`` [m] and ``inner`` [m] flag the items.
        """
        slot = self._slot(side)
        reach = np.full(2 * len(self.forest.parent), -np.inf)
        np.maximum.at(reach, slot[inner], keys[inner])
        short = outer & (keys < reach[slot])
        keys[short] = reach[slot[short]] + STEP + self.place[short] * BY_CLOSENESS

    def order(self, keys: Keys, side: Rows) -> Rows:
        """Return for each output word the row of its source word, [words]. The final punctuation comes last.

        ``keys`` [m] are the sort keys and ``side`` [m] the new sides of the items.
        """
        rank = np.zeros(len(self.forest.parent))
        rank[self.items] = np.where(side == AFTER, keys, -keys)
        final = self.items[self.is_final & (self.forest.parent[self.head] < 0)]
        rank[final] = len(rank) + final
        return self.forest.linearise(rank, np.zeros(len(rank)))
