"""Which words are sought among which, and which pairs of them should find each other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from probes.measures.retrieval import Pairs, RetrievalConfig, Variant
from probes.states import words_of
from synthlang.corpus import Corpus
from synthlang.parallel.prepare import PairData, shared_codes

Numbers = NDArray[np.int64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class LinkedWords:
    """Sentence pairs with links, as the words of each side see them."""

    left: Corpus
    right: Corpus
    data: PairData

    @cached_property
    def types(self) -> tuple[Numbers, Numbers]:
        """[words of the corpus] of each side one number for one way of writing, the same on both sides."""
        return shared_codes(self.left, self.right)

    def links(self, rows: Numbers) -> tuple[Numbers, Numbers]:
        """[q] left and [q] right words of the links of the sentence pairs at ``rows``, numbered through each corpus."""
        links = self.data.links.take(rows)
        sentence = rows[links.sentence]
        return self.left.offsets[sentence] + links.left, self.right.offsets[sentence] + links.right


@dataclass(frozen=True, eq=False)
class Items:
    """The candidates of both sides, and the links between them.

    left, right   [n], [m] words of each corpus, ascending; all of them have a vector
    links         [q, 2] a left and a right word
    sets          name → [q] whether a link belongs to the set
    lost          [q] whether a word of the link has no vector, so that it counts as not found
    counts        how many words and links were left out, by reason
    """

    left: Numbers
    right: Numbers
    links: Numbers
    sets: Mapping[Pairs, Mask]
    lost: Mask
    counts: dict[str, int]


def items(
    text: LinkedWords,
    measured: Numbers,
    fitted: Numbers,
    config: RetrievalConfig,
    variant: Variant,
    known: tuple[Mask, Mask] | None = None,
) -> Items:
    """Candidates and links of the sentence pairs ``measured``; what was seen is what the ``fitted`` link.

    ``known`` [words] of each corpus: which have a vector; none: all that have a subword.
    """
    rows = np.sort(measured)
    links = np.stack(text.links(rows), 1)
    counts: dict[str, int] = {}

    def count(reason: str, dropped: Mask) -> None:
        if dropped.any():
            counts[reason] = counts.get(reason, 0) + int(dropped.sum())

    sides = []
    for sentences, linked in zip((text.data.left, text.data.right), links.T, strict=True):
        words = words_of(sentences.offsets, rows)
        there = np.diff(sentences.word_offsets)[words] > 0
        count("words without a subword", ~there)
        sides.append(np.unique(linked) if config.candidates == "aligned" else words[there])
    if variant == "types":
        # the first word of each type
        sides = [
            words[np.sort(np.unique(types[words], return_index=True)[1])]
            for types, words in zip(text.types, sides, strict=True)
        ]
        there = np.isin(links[:, 0], sides[0]) & np.isin(links[:, 1], sides[1])
        count("links of words whose type came before", ~there)
        links = links[there]
    left, right = (types[links[:, i]] for i, types in enumerate(text.types))
    unlike, counted = np.ones(len(links), bool), np.ones(len(links), bool)
    if config.exact_matches == "drop":
        unlike = left != right
        count("links of words written alike", ~unlike)
    if config.seen == "drop":
        seen = [types[words] for types, words in zip(text.types, text.links(fitted), strict=True)]
        size = max(int(types.max(initial=0)) for types in text.types) + 1
        counted = ~np.isin(left * size + right, seen[0] * size + seen[1])
        count("links of types that are linked in the fitted sentences", ~counted & unlike)
    sets: dict[Pairs, Mask] = {"linked": np.ones(len(links), bool), "unlike": unlike, "counted": unlike & counted}
    lost = np.zeros(len(links), bool)
    for i, there in enumerate(known or ()):
        count("words without a vector", ~there[sides[i]])
        sides[i] = sides[i][there[sides[i]]]
        lost |= ~there[links[:, i]]
    count("links of words without a vector", lost)
    return Items(sides[0], sides[1], links, sets, lost, counts)


def frequency_ranks(types: Numbers, offsets: Numbers, rows: Numbers) -> NDArray[np.float64]:
    """[number of types] the rank of each type by how often it is in the sentences at ``rows``: 1 for the most frequent.

    Types that are equally frequent share the mean of their ranks; those that are not there have rank 0.
    """
    counts = np.bincount(types[words_of(offsets, rows)], minlength=int(types.max(initial=0)) + 1)
    amounts, of_type, sizes = np.unique(counts, return_inverse=True, return_counts=True)
    last = np.cumsum(sizes[::-1])[::-1]  # of the types that are as frequent: the last one's rank
    ranks = (last - (sizes - 1) / 2)[of_type]
    return np.where(amounts[of_type] > 0, ranks, 0.0)
