"""A dictionary laid over two vocabularies: which rows are right translations of which, and precision at k.

As in MUSE (Conneau et al. 2018, section 4.1): a query is a source word with at least one known translation, any of its
translations is right, and words that a vocabulary lacks are left out; here they are counted. Where targets are equally
near, MUSE takes those that come first; here a query earns what it would in expectation with ties broken at random.
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


@dataclass(frozen=True, eq=False)
class TranslationSet:
    """Queries in the order of the dictionary, and the right answers of each.

    queries    [q] int64 rows of source words, each once
    offsets    [q + 1] int64: the answers of query i are offsets[i] … offsets[i + 1] − 1
    answers    [n] int64 rows of target words, each once for a query
    counts     ``pairs`` of the dictionary, each once; ``known``: both words have a row; ``unknown_source`` and
               ``unknown_target``: distinct words without one; ``words``: distinct source words; ``unanswered``: source
               words that are known but none of whose translations is
    """

    queries: NDArray[np.int64]
    offsets: NDArray[np.int64]
    answers: NDArray[np.int64]
    counts: Mapping[str, int]

    def pairs(self) -> NDArray[np.int64]:
        """[n, 2] rows of the known pairs, source and target: what a map is fitted on."""
        return np.stack([np.repeat(self.queries, np.diff(self.offsets)), self.answers], axis=1)

    def right(self, neighbours: NDArray[np.int64]) -> NDArray[np.bool_]:
        """[q, k] whether each of ``neighbours`` [q, k] is a right answer.

        Row i has the target rows nearest to query i, the nearest first; −1 stands for none.
        """
        assert neighbours.ndim == 2 and len(neighbours) == len(self.queries), (neighbours.shape, len(self.queries))
        size = int(max(self.answers.max(initial=0), neighbours.max(initial=0))) + 1
        query = np.arange(len(self.queries), dtype=np.int64)
        right = np.repeat(query, np.diff(self.offsets)) * size + self.answers
        return np.asarray(np.isin(query[:, None] * size + neighbours, right) & (neighbours >= 0))

    def earned(
        self, neighbours: NDArray[np.int64], scores: NDArray[np.floating[Any]], at: int, credit: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """[q] how probably a right answer is among the first ``at`` of ``neighbours`` [q, k'], ties broken at random.

        ``scores`` [q, k'] are theirs. ``credit`` [n], for each of ``pairs``, is 1/t where the answer is one of the t
        nearest, tied ones (``pretrain.nearest``): it knows of ties that are too many to be listed. Ties further down
        that reach over the end of the list are cut there.
        """
        width = neighbours.shape[1]
        assert 1 <= at <= width, (at, width)
        right, known = self.right(neighbours), neighbours >= 0
        last = np.where(known[:, at - 1], scores[:, at - 1], -np.inf)[:, None]  # −∞: fewer candidates than that
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
        """``{"p@1": percent, …}`` of what queries earn with their first k ``neighbours`` (see ``earned``).

        Of fewer ``candidates`` than k all are listed.
        """
        width = neighbours.shape[1]
        assert width >= min(max(at), candidates), (width, at, candidates)
        return {f"p@{k}": 100.0 * float(self.earned(neighbours, scores, min(k, width), credit).mean()) for k in at}

    def to_json(self) -> dict[str, Any]:
        """Return the counts, with the number of queries and their share of the dictionary's words in percent."""
        share = 100.0 * len(self.queries) / self.counts["words"]
        return {"queries": len(self.queries), "coverage": float(f"{share:.6g}"), **self.counts}


def _drawn(tied: NDArray[np.int64], right: NDArray[np.int64], drawn: NDArray[np.int64]) -> NDArray[np.float64]:
    """[q] how probably a right one is among ``drawn`` of ``tied`` ones, of which ``right`` are right."""
    chance: NDArray[np.float64] = np.asarray(1.0 - hypergeom.pmf(0, tied, right, np.minimum(drawn, tied)))
    return np.where(right > 0, chance, 0.0)


def translation_set(
    pairs: Iterable[Pair],
    source: Mapping[str, int],
    target: Mapping[str, int],
    key: str = "the dictionary",
    path: Path | None = None,
) -> TranslationSet:
    """Lay a dictionary (``read_muse``) over two vocabularies word → row (``StaticVectors.index``).

    Words are compared as they are: for a dictionary in small letters give vocabularies in small letters. Raises
    InputError, which calls the pairs those of ``key`` and names the file ``path``, if no pair has both words, or there
    are no pairs.
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
        reason = f"none of the {len(distinct):,} pairs of {key} has both words in the vocabularies"
        hint = "check its languages, its direction, and whether it is in lower case where the text is not"
        raise InputError(reason, path, hint=hint, code="empty")
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
    """[n, 2] codes of a left and a right word type: each right type with the left one that it has most links to.

    Of the links of the training sentences; of equals the first in the table of words. At most ``words`` (none:
    all), those with the most links first (Kulshreshtha et al. 2020, section 2.2.1).
    """
    data = text.data
    links = data.links.take(data.train)
    sentence = data.train[links.sentence]
    left = text.text.left.form.codes[data.left.offsets[sentence] + links.left].astype(np.int64)
    right = text.text.right.form.codes[data.right.offsets[sentence] + links.right].astype(np.int64)
    size = int(left.max(initial=0)) + 1
    pairs, counts = np.unique(right * size + left, return_counts=True)
    of_right, of_left = pairs // size, pairs % size
    order = np.lexsort((of_left, -counts, of_right))
    _, first = np.unique(of_right[order], return_index=True)
    best = order[first]
    best = best[np.argsort(-counts[best], kind="stable")][:words]
    return np.stack([of_left[best], of_right[best]], axis=1)


def named_translations(text: Aligned, path: Path, words: int, lower: bool) -> tuple[NDArray[np.int64], int]:
    """Return the codes [n, 2] of left and right types that a MUSE file pairs and the training sentences hold.

    The file pairs words of the source language (right) with words of the other language. At most ``words`` pairs are
    taken: those of the words that come first in the file (Kulshreshtha et al. 2020, sections 2.2.1 and 4.1). The second
    value counts the pairs with a word that is not in the training sentences. With ``lower`` the file is in lower case,
    as
    ``lowered_text`` is.

    Raises:
        InputError: The file is damaged, or none of its pairs occurs.
    """
    sides = (text.text.left, text.data.left), (text.text.right, text.data.right)
    (left, _), (right, _) = (types_in(corpus, sentences, text.data.train) for corpus, sentences in sides)
    pairs = in_small_letters(read_muse(path)) if lower else read_muse(path)
    indices = index_of(text.text.right, right), index_of(text.text.left, left)
    found = translation_set(pairs, *indices, "rotation.dictionary", path)
    rows = found.pairs()[:words]
    return np.stack([left[rows[:, 1]], right[rows[:, 0]]], axis=1), found.counts["pairs"] - found.counts["known"]


def lowered_text(text: Aligned) -> Aligned:
    """With words in small letters, those that are then alike being one type; what is read of them stays."""
    return replace(text, text=replace(text.text, left=lowered(text.text.left), right=lowered(text.text.right)))


def in_small_letters(pairs: Iterable[Pair]) -> list[Pair]:
    """Each once."""
    return list(dict.fromkeys((a.lower(), b.lower()) for a, b in pairs))


def lowered(corpus: Corpus) -> Corpus:
    """In small letters, words that are then alike being one type."""
    small = Column.of([name.lower() for name in corpus.form.names or ()])
    column = Column(small.codes[corpus.form.codes], small.names)
    return replace(corpus, columns={**corpus.columns, FORM: column})


def types_in(
    corpus: Corpus, sentences: Sentences, rows: NDArray[np.int64], least: int = 1
) -> tuple[NDArray[np.int64], int]:
    """Return the codes of the types that occur often enough in the sentences at ``rows`` and have a subword.

    The second value counts the types that occur less often.
    """
    inside = np.zeros(len(corpus), bool)
    inside[rows] = True
    words = np.repeat(inside, np.diff(corpus.offsets)) & (np.diff(sentences.word_offsets) > 0)
    counts = np.bincount(corpus.form.codes[words], minlength=len(corpus.form.names or ()))
    return np.flatnonzero(counts >= least), int(((counts > 0) & (counts < least)).sum())


def index_of(corpus: Corpus, types: NDArray[np.int64]) -> dict[str, int]:
    """Word → its place among ``types`` (codes)."""
    names: Sequence[str] = corpus.form.names or ()
    return {names[code]: row for row, code in enumerate(types.tolist())}
