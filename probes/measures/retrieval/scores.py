"""Word retrieval: candidates, aligned word pairs, and the share of words that find their translation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.stats import rankdata

from pretrain.nearest import Direction, nearest
from pretrain.nearest_lists import Matrix
from probes.measures.retrieval import Pairs, RetrievalConfig, Variant
from probes.models.aligned import Aligned
from probes.states import words_of
from probes.statistics import wilson_interval
from synthlang.corpus import Corpus
from synthlang.parsing import open_engine
from synthlang.parsing.chunks import CHUNK, ParseCache, default_cache, parse_chunks
from synthlang.progress import Report, silent

Numbers = NDArray[np.int64]
Mask = NDArray[np.bool_]
Types = tuple[Numbers, Numbers]


@dataclass(frozen=True, eq=False)
class Items:
    """The candidates of both sides, and the aligned word pairs.

    Attributes:
        left: [n] indices of the candidates in the left corpus, ascending. Each candidate has a vector.
        right: [m] indices of the candidates in the right corpus, ascending.
        links: [q, 2] indices of the left and the right word of each pair.
        sets: For each set of pairs, the mask [q] of its members.
        lost: [q] the mask of pairs with a word that has no vector. Such pairs count as not found.
        counts: Number of words and pairs left out, by reason.
    """

    left: Numbers
    right: Numbers
    links: Numbers
    sets: Mapping[Pairs, Mask]
    lost: Mask
    counts: dict[str, int]


def items(
    text: Aligned,
    types: Types,
    measured: Numbers,
    fitted: Numbers,
    config: RetrievalConfig,
    variant: Variant,
    known: tuple[Mask, Mask] | None = None,
) -> Items:
    """Return the candidates and aligned word pairs of the sentence pairs ``measured``.

    Args:
        text: The sentence pairs.
        types: The type of every word of each corpus, [words] each. Equal spellings have the same number on both sides.
        measured: The indices of the measured sentence pairs.
        fitted: The indices of the fitted sentence pairs. Their aligned types count as seen.
        config: The settings.
        variant: ``context`` for every word, ``types`` for the first occurrence of each type.
        known: Masks of the words of each corpus with a vector (default: all words with a subword).
    """
    rows = np.sort(measured)
    links = np.stack(text.linked_words(rows), 1)
    counts = Counter[str]()
    sides = _candidates(text, rows, links, config, counts)
    if variant == "types":
        # the first word of each type
        sides = [
            words[np.sort(np.unique(of[words], return_index=True)[1])] for of, words in zip(types, sides, strict=True)
        ]
        there = np.isin(links[:, 0], sides[0]) & np.isin(links[:, 1], sides[1])
        counts["links of words whose type came before"] += int((~there).sum())
        links = links[there]
    sets = _sets(text, types, links, fitted, config, counts)
    lost = np.zeros(len(links), bool)
    for i, there in enumerate(known or ()):
        counts["words without a vector"] += int((~there[sides[i]]).sum())
        sides[i] = sides[i][there[sides[i]]]
        lost |= ~there[links[:, i]]
    counts["links of words without a vector"] += int(lost.sum())
    return Items(sides[0], sides[1], links, sets, lost, {reason: n for reason, n in counts.items() if n})


def _candidates(
    text: Aligned, rows: Numbers, links: Numbers, config: RetrievalConfig, counts: Counter[str]
) -> list[Numbers]:
    """Return the candidates of each side in the sentence pairs ``rows``, and count words without a subword."""
    sides = []
    for sentences, linked in zip((text.data.left, text.data.right), links.T, strict=True):
        words = words_of(sentences.offsets, rows)
        there = np.diff(sentences.word_offsets)[words] > 0
        counts["words without a subword"] += int((~there).sum())
        sides.append(np.unique(linked) if config.candidates == "aligned" else words[there])
    return sides


def _sets(
    text: Aligned, types: Types, links: Numbers, fitted: Numbers, config: RetrievalConfig, counts: Counter[str]
) -> dict[Pairs, Mask]:
    """Return a mask of the word alignments ``links`` [n, 2] in each set, and count the omitted alignments."""
    left, right = (of[links[:, i]] for i, of in enumerate(types))
    unlike, counted = np.ones(len(links), bool), np.ones(len(links), bool)
    if config.exact_matches == "drop":
        unlike = left != right
        counts["links of words written alike"] += int((~unlike).sum())
    if config.seen == "drop":
        seen = [of[words] for of, words in zip(types, text.linked_words(fitted), strict=True)]
        size = max(int(of.max(initial=0)) for of in types) + 1
        counted = ~np.isin(left * size + right, seen[0] * size + seen[1])
        counts["links of types that are linked in the fitted sentences"] += int((~counted & unlike).sum())
    return {"linked": np.ones(len(links), bool), "unlike": unlike, "counted": unlike & counted}


def frequency_ranks(types: Numbers, offsets: Numbers, rows: Numbers) -> NDArray[np.float64]:
    """Return the frequency rank of each type in the sentences at ``rows``, with 1 for the most frequent.

    Types with the same frequency have the mean of their ranks. Types that do not occur have rank 0.

    Args:
        types: [words] the type of each word of a corpus.
        offsets: [sentences + 1] the first word of each sentence of the corpus.
        rows: The indices of the sentences to count in.

    Returns:
        The rank of each type, [largest type + 1].
    """
    counts = np.bincount(types[words_of(offsets, rows)], minlength=int(types.max(initial=0)) + 1)
    return np.where(counts > 0, rankdata(-counts), 0.0)


SIMILARITIES = ("csls", "cosine")
UPOS = "upos"
CONJUNCTION = "CONJ"
GROUPS = {
    "lexical overlap": ("NUM", "PUNCT", "PROPN"),
    "closed class": ("DET", "ADP", CONJUNCTION, "PRON", "AUX"),
    "open class": ("NOUN", "ADV", "ADJ", "VERB"),
}
"""Groups of parts of speech in Cao et al. 2020, table 4. PART, SYM, INTJ and X belong to no group."""
ONE = {"CCONJ": CONJUNCTION, "SCONJ": CONJUNCTION}  # the paper has one tag for both

Accuracy = dict[str, Any]
Credits = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Retrieved:
    """Credit per word pair: 1 for a word that found one of its translations, 1/t in a t-way tie, else 0.

    Attributes:
        links: [q, 2] the rows of the left and the right word of each pair. A negative number marks a word without a
            row.
        credits: For each similarity, the credits [q] of the forward and the backward direction.
        zeros: Number of zero vectors on the left and on the right.
    """

    links: NDArray[np.int64]
    credits: dict[str, tuple[Credits, Credits]]
    zeros: tuple[int, int]

    def accuracy(self, chosen: NDArray[np.bool_], similarity: str) -> Accuracy | None:
        """Return the percentage (0 to 100) of words that find a translation, or None without a word pair.

        In the direction ``forward``, words of the source language are the queries. Each word is one query. The
        interval of the ``mean`` of both directions is Wilson's, with the smaller number of queries as sample size,
        because both directions of a pair are one draw. Words of one sentence are treated as independent.

        Args:
            chosen: [q] the mask of the pairs that count.
            similarity: "csls" or "cosine".

        Returns:
            The percentages of both directions and their ``mean`` with its interval ``low`` and ``high``, the number of
            pairs ``links``, and the number of queries of each direction ``asking``.
        """
        if not chosen.any():
            return None
        scores, asking = [], []
        for side, credit in zip((1, 0), self.credits[similarity], strict=True):
            first = np.unique(self.links[chosen, side], return_index=True)[1]
            scores.append(100 * float(credit[chosen][first].mean()))
            asking.append(len(first))
        mean = wilson_interval(sum(scores) / 200, min(asking))
        return {
            "forward": scores[0],
            "backward": scores[1],
            "mean": mean.mean,
            "low": mean.low,
            "high": mean.high,
            "links": int(chosen.sum()),
            "asking": {"forward": asking[0], "backward": asking[1]},
        }

    def of_links(self) -> Credits:
        """Return the mean credit of both directions under CSLS, [q]."""
        forward, backward = self.credits["csls"]
        return (forward + backward) / 2


def retrieve(
    left: Matrix,
    right: Matrix,
    links: NDArray[np.int64],
    k: int,
    report: Report = silent,
    lost: NDArray[np.bool_] | None = None,
) -> Retrieved:
    """Find the nearest neighbours of all words in both directions, and credit each word pair.

    The similarities are the cosine and CSLS (Conneau et al. 2018, see `nearest`).

    Args:
        left: [n, d] vectors of the words of the other language.
        right: [m, d] vectors of the words of the source language.
        links: [q, 2] rows of ``left`` and ``right``. A negative number marks a word without a row.
        k: Number of neighbours in the densities of CSLS.
        report: Receives the progress.
        lost: [q] the mask of pairs that have a word without a row (default: none). Their credit is 0.

    Raises:
        InputError: A vector has NaN or infinity, or ``k`` is less than 1.
    """
    there = np.ones(len(links), bool) if lost is None else ~lost
    found = nearest(right, left, torch.from_numpy(links[there, ::-1].copy()), k=k, report=report)

    def credits(way: Direction, similarity: str, asking: NDArray[np.int64]) -> Credits:
        """Return the credit of each query, summed over its pairs. In a t-way tie each pair counts 1/t."""
        credit = np.zeros(len(links))
        credit[there] = getattr(way, similarity).credit.cpu().numpy()
        _, word = np.unique(asking, return_inverse=True)
        return np.minimum(np.bincount(word, credit)[word], 1.0)

    both = {
        name: (credits(found.forward, name, links[:, 1]), credits(found.backward, name, links[:, 0]))
        for name in SIMILARITIES
    }
    return Retrieved(links, both, (found.backward.zeros, found.forward.zeros))


@dataclass(frozen=True)
class Tags:
    """Parts of speech of the words of a corpus.

    Attributes:
        codes: [words of the corpus] indices into ``names``, or −1 for unknown.
        names: The names of the tags, sorted.
        source: The origin of the tags: the text, or the version of the parser.
    """

    codes: NDArray[np.int64]
    names: tuple[str, ...]
    source: str


def tags_of(corpus: Corpus, rows: NDArray[np.int64], parser: str | None, report: Report = silent) -> Tags | None:
    """Return the tags of the sentences at ``rows``, from the column ``upos`` or from a parser.

    Without either, the result is None. A parser is used only if the corpus has no such column. Words of a sentence that
    the parser cannot parse have no tag, and the tags CCONJ and SCONJ become CONJ. Parses are stored in the default
    cache.

    Raises:
        InputError: The spec is not a parser, or the parser or its model is not installed. The error is also raised if
            the parser fails at every sentence of a chunk, or the cache cannot be read.
        DiskError: The cache cannot be written.
    """
    column, source = corpus.columns.get(UPOS), "the text"
    words = words_of(corpus.offsets, rows)
    found: list[str | None] = []
    if column is not None:
        found += column.take(words).values()
    elif parser is None:
        return None
    else:
        engine = open_engine(parser)
        source = engine.version
        chunks = [corpus.take(rows[start : start + CHUNK]) for start in range(0, len(rows), CHUNK)]
        texts = ([sentence.words for sentence in chunk] for chunk in chunks)
        parsed = parse_chunks(engine, "words", texts, ParseCache(default_cache()))
        for done, (chunk, (outcomes, _)) in enumerate(zip(chunks, parsed, strict=True), 1):
            for length, outcome in zip(chunk.lengths.tolist(), outcomes, strict=True):
                found += [None] * length if isinstance(outcome, str) else outcome[0][UPOS]
            report(f"parts of speech by {engine.name}", done, len(chunks), "")
    known = [ONE.get(tag, tag) if tag not in (None, "", "_") else None for tag in found]
    names = tuple(sorted({tag for tag in known if tag is not None}))
    number = {name: code for code, name in enumerate(names)}
    codes = np.full(int(corpus.offsets[-1]), -1, np.int64)
    codes[words] = [-1 if tag is None else number[tag] for tag in known]
    return Tags(codes, names, source)


def by_tag(retrieved: Retrieved, chosen: NDArray[np.bool_], tag: NDArray[np.int64], names: Sequence[str]) -> Any:
    """Return the accuracy under CSLS by part of speech and by groups of parts of speech.

    ``chosen`` [q] is the mask of the pairs that count. ``tag`` [q] has the index of the tag of each pair in ``names``,
    or −1 for a pair without a tag. In the result, the ``average`` of a group is the mean over its tags in percent, as
    in Cao et al. 2020, table 4. ``pooled`` is the accuracy over all words of the group. ``left_out`` counts the pairs
    whose tag is in no group, and the pairs without a tag.
    """
    groups: dict[str, Any] = {}
    seen = np.zeros(len(chosen), bool)
    for group, members in GROUPS.items():
        of_tag = {name: chosen & (tag == (names.index(name) if name in names else -2)) for name in members}
        tags = {name: retrieved.accuracy(links, "csls") for name, links in of_tag.items()}
        inside = np.logical_or.reduce(list(of_tag.values()))
        means = [value["mean"] for value in tags.values() if value is not None]
        average = sum(means) / len(means) if means else None
        groups[group] = {"average": average, "pooled": retrieved.accuracy(inside, "csls"), "tags": tags}
        seen |= inside
    codes, counts = np.unique(tag[chosen & ~seen], return_counts=True)
    rest = {names[code] if code >= 0 else "none": int(n) for code, n in zip(codes, counts, strict=True)}
    return {"groups": groups, "left_out": rest}
