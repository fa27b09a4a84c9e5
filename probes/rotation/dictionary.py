"""Translations between the rows of two vocabularies, and precision at k.

As in MUSE (Conneau et al. 2018, section 4.1), a query is a source word with at least one known translation, and any of
its translations is correct. Words outside the vocabularies are left out and counted. MUSE breaks ties by order. Here a
query gets its expected credit when ties are broken at random.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import hypergeom

from pretrain.nearest import TIE
from probes.models.aligned import Aligned
from synthlang.corpus import FORM, Column, Corpus
from synthlang.dictionary.word_dictionary import Pair, read_muse
from synthlang.errors import InputError
from synthlang.parallel.prepare import Sentences
from synthlang.wording import plural

OF_TEXT = "words of the sentence pairs"
SUITABLE = "a dictionary of the two languages with source words first, spelled as in the sentence pairs"


@dataclass(frozen=True, eq=False)
class TranslationSet:
    """Queries in the order of the dictionary, with their correct answers.

    The counts are:

        pairs            distinct pairs of the dictionary
        known            pairs whose words both have a row
        words            distinct source words of the dictionary
        unknown_source   source words without a row
        unknown_target   target words without a row
        unanswered       source words that have a row but no translation with a row

    Attributes:
        queries: [q] int64, the distinct rows of source words.
        offsets: [q + 1] int64. The answers of query i are offsets[i] … offsets[i + 1] − 1.
        answers: [n] int64, the rows of target words, distinct for each query.
        counts: The counts by name.
    """

    queries: NDArray[np.int64]
    offsets: NDArray[np.int64]
    answers: NDArray[np.int64]
    counts: Mapping[str, int]

    def pairs(self) -> NDArray[np.int64]:
        """Return the rows [n, 2] of the source and the target word of each known pair."""
        return np.stack([np.repeat(self.queries, np.diff(self.offsets)), self.answers], axis=1)

    def right(self, neighbours: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return the mask [q, k] of correct answers among ``neighbours`` [q, k].

        Row i of ``neighbours`` has the target rows nearest to query i, nearest first, and −1 for none.
        """
        assert neighbours.ndim == 2 and len(neighbours) == len(self.queries), (neighbours.shape, len(self.queries))
        size = int(max(self.answers.max(initial=0), neighbours.max(initial=0))) + 1
        query = np.arange(len(self.queries), dtype=np.int64)
        right = np.repeat(query, np.diff(self.offsets)) * size + self.answers
        return np.asarray(np.isin(query[:, None] * size + neighbours, right) & (neighbours >= 0))

    def earned(
        self, neighbours: NDArray[np.int64], scores: NDArray[np.floating[Any]], at: int, credit: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return the probability [q] that a correct answer is among the first ``at`` neighbours.

        The probability is over random orders of ties. If a correct answer is above the ties at the last place that
        counts, it is 1. Otherwise, with t candidates in these ties, r correct answers among them, and s places left for
        them, it is 1 − C(t − r, s) / C(t, s). Ties that continue beyond the end of the list are cut there, except for
        ties of the nearest neighbours.

        Args:
            neighbours: [q, k'] the nearest target rows, nearest first, and −1 for none.
            scores: [q, k'] the similarities of the neighbours.
            at: Number of neighbours that count, from 1 to k'.
            credit: [n] for each of ``pairs``, 1/t if its answer is one of t tied nearest neighbours
                (``pretrain.nearest``), else 0. The number t also counts ties beyond the list.
        """
        width = neighbours.shape[1]
        assert 1 <= at <= width, (at, width)
        right, known = self.right(neighbours), neighbours >= 0
        last = np.where(known[:, at - 1], scores[:, at - 1], -np.inf)[:, None]  # −∞ with fewer candidates
        above = known & (scores > last + TIE)
        tied = known & (scores <= last + TIE) & (scores >= last - TIE)
        found = _drawn(tied.sum(1), (tied & right).sum(1), at - above.sum(1))
        found[(above & right).any(1)] = 1.0
        query = np.repeat(np.arange(len(self.queries)), np.diff(self.offsets))
        most = np.zeros(len(self.queries))
        np.maximum.at(most, query, credit)
        nearest = np.round(1 / np.where(most > 0, most, 1.0)).astype(np.int64)
        many = nearest > width
        count = np.bincount(query, credit > 0, len(self.queries)).astype(np.int64)
        found[many] = _drawn(nearest[many], count[many], np.full(int(many.sum()), at))
        return found

    def precision(
        self,
        neighbours: NDArray[np.int64],
        scores: NDArray[np.floating[Any]],
        credit: NDArray[np.float64],
        candidates: int,
        at: Sequence[int] = (1, 5, 10),
    ) -> dict[str, float]:
        """Return ``{"p@1": percent, …}``, the mean over queries of `earned` for each k in ``at``.

        Args:
            neighbours: [q, k'] as in `earned`.
            scores: [q, k'] as in `earned`.
            credit: [n] as in `earned`.
            candidates: Number of target rows. If there are fewer than k, the lists must have all of them.
            at: Values of k.
        """
        width = neighbours.shape[1]
        assert width >= min(max(at), candidates), (width, at, candidates)
        return {f"p@{k}": 100.0 * float(self.earned(neighbours, scores, min(k, width), credit).mean()) for k in at}

    def to_json(self) -> dict[str, Any]:
        """Return the counts, the number of queries, and their percentage of the source words in the dictionary."""
        share = 100.0 * len(self.queries) / self.counts["words"]
        return {"queries": len(self.queries), "coverage": float(f"{share:.6g}"), **self.counts}


def _drawn(tied: NDArray[np.int64], right: NDArray[np.int64], drawn: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the hypergeometric probability [q] that ``drawn`` of ``tied`` items include one of ``right`` items."""
    chance: NDArray[np.float64] = np.asarray(1.0 - hypergeom.pmf(0, tied, right, np.minimum(drawn, tied)))
    return np.where(right > 0, chance, 0.0)


def translation_set(
    pairs: Iterable[Pair],
    source: Mapping[str, int],
    target: Mapping[str, int],
    path: Path | None = None,
    keys: str = "",
    to: str = "fit",
    what: str = OF_TEXT,
    hint: str = f"give {SUITABLE}",
) -> TranslationSet:
    """Look up the pairs of a dictionary in two vocabularies. Case matters.

    Args:
        pairs: The pairs of a source word and a target word.
        source: The row of each source word.
        target: The row of each target word.
        path: The file of the dictionary in errors, or None.
        keys: The key of the dictionary in errors, or "".
        to: The use of the pairs in errors: ``fit`` or ``measure``.
        what: Name of the words of both vocabularies in errors.
        hint: Hint of errors.

    Raises:
        InputError: No pair has both words in the vocabularies.
    """
    answers: dict[str, dict[int, None]] = {}
    distinct = dict.fromkeys(pairs)
    for word, translation in distinct:
        row = target.get(translation)
        known = answers.setdefault(word, {})
        if word in source and row is not None:
            known[row] = None
    queries = [word for word, rows in answers.items() if rows]
    if not queries:
        reason = f"of {plural(len(distinct), 'translation')} to {to} on, none has both words among the {what}"
        raise InputError(reason, path, keys=keys.split(".") if keys else (), hint=hint, code="empty")
    lengths = [len(answers[word]) for word in queries]
    flat = [row for word in queries for row in answers[word]]
    counts = {
        "pairs": len(distinct),
        "known": len(flat),
        "words": len(answers),
        "unknown_source": sum(word not in source for word in answers),
        "unknown_target": sum(word not in target for word in dict.fromkeys(t for _, t in distinct)),
        "unanswered": sum(word in source and not rows for word, rows in answers.items()),
    }
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    rows_of = np.array([source[word] for word in queries], np.int64)
    return TranslationSet(rows_of, offsets, np.array(flat, np.int64), counts)


def translations(text: Aligned, words: int | None) -> NDArray[np.int64]:
    """Pair each right word type with the left type that it is aligned with most often in the training sentences.

    Ties go to the lower code (Kulshreshtha et al. 2020, section 2.2.1).

    Args:
        text: The sentence pairs with word alignments.
        words: Maximum number of pairs of types (None: all).

    Returns:
        The codes [n, 2] int64 of the left and the right type, most frequent pairs first.
    """
    corpora = text.text.left, text.text.right
    linked = text.linked_words(text.data.train)
    left, right = (corpus.form.codes[at].astype(np.int64) for corpus, at in zip(corpora, linked, strict=True))
    size = int(left.max(initial=0)) + 1
    pairs, counts = np.unique(right * size + left, return_counts=True)
    of_right, of_left = pairs // size, pairs % size
    order = np.lexsort((of_left, -counts, of_right))
    _, first = np.unique(of_right[order], return_index=True)
    best = order[first]
    best = best[np.argsort(-counts[best], kind="stable")][:words]
    return np.stack([of_left[best], of_right[best]], axis=1)


def named_translations(text: Aligned, path: Path, words: int, lower: bool) -> tuple[NDArray[np.int64], int]:
    """Return the pairs of a MUSE file whose words occur in the training sentences.

    Args:
        text: The sentence pairs. The source language is on the right.
        path: The file, with source words first.
        words: Maximum number of pairs to return (Kulshreshtha et al. 2020, sections 2.2.1 and 4.1). Source words are in
            the order of the file, each with all of its translations.
        lower: True to lower-case the file, for a text from `lowered_text`.

    Returns:
        The codes [n, 2] of left and right types, and the number of pairs with a word outside the training sentences.

    Raises:
        InputError: The file cannot be read or is damaged, or none of its pairs occurs.
    """
    sides = (text.text.left, text.data.left), (text.text.right, text.data.right)
    (left, _), (right, _) = (types_in(corpus, sentences, text.data.train) for corpus, sentences in sides)
    pairs = in_small_letters(read_muse(path)) if lower else read_muse(path)
    indices = index_of(text.text.right, right), index_of(text.text.left, left)
    found = translation_set(pairs, *indices, path, "rotation.dictionary")
    rows = found.pairs()[:words]
    return np.stack([left[rows[:, 1]], right[rows[:, 0]]], axis=1), found.counts["pairs"] - found.counts["known"]


def lowered_text(text: Aligned) -> Aligned:
    """Return the text with lower-cased words. The token ids do not change."""
    return replace(text, text=replace(text.text, left=lowered(text.text.left), right=lowered(text.text.right)))


def in_small_letters(pairs: Iterable[Pair]) -> list[Pair]:
    """Return the distinct lower-cased pairs."""
    return list(dict.fromkeys((a.lower(), b.lower()) for a, b in pairs))


def lowered(corpus: Corpus) -> Corpus:
    """Return the corpus with lower-cased words. Words that become equal have one type."""
    small = Column.of([name.lower() for name in corpus.form.names or ()])
    column = Column(small.codes[corpus.form.codes], small.names)
    return replace(corpus, columns={**corpus.columns, FORM: column})


def types_in(
    corpus: Corpus, sentences: Sentences, rows: NDArray[np.int64], least: int = 1
) -> tuple[NDArray[np.int64], int]:
    """Return the frequent word types of the sentences at ``rows``, and the number of rarer types that occur.

    Words without a subword are not counted.

    Args:
        corpus: The words of all sentences.
        sentences: The token ids of the same sentences.
        rows: The indices of the sentences to count in.
        least: Minimum number of occurrences of a frequent type.

    Returns:
        The codes [types] of the frequent types, ascending, and the number of types with 1 to ``least`` − 1 occurrences.
    """
    inside = np.zeros(len(corpus), bool)
    inside[rows] = True
    words = np.repeat(inside, np.diff(corpus.offsets)) & (np.diff(sentences.word_offsets) > 0)
    counts = np.bincount(corpus.form.codes[words], minlength=len(corpus.form.names or ()))
    return np.flatnonzero(counts >= least), int(((counts > 0) & (counts < least)).sum())


def index_of(corpus: Corpus, types: NDArray[np.int64]) -> dict[str, int]:
    """Return a mapping from each word to its index in ``types`` (codes)."""
    names: Sequence[str] = corpus.form.names or ()
    return {names[code]: row for row, code in enumerate(types.tolist())}
