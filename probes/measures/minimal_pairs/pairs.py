"""Pure functions on scored minimal pairs: accuracy, the marked or first different word, and surprisal around it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from probes.scoring import Floats, Scored
from probes.statistics import Interval, mean_interval, wilson_interval
from synthlang.tasks.batch import TaskBatch
from synthlang.tasks.minimal import MARK

Words = Sequence[str]


@dataclass(frozen=True, eq=False)
class ScoredPairs:
    """The pairs of a language with the scores of both sides.

    Attributes:
        name: Name of the language.
        batch: The pairs, all of which have scores.
        scored: The scores of the sentences of ``batch``.
        marked: True if position 0 is the marked word. Otherwise it is the first word in which the sides differ.
    """

    name: str
    batch: TaskBatch
    scored: Scored
    marked: bool = False

    @property
    def scores(self) -> Floats:
        """Log probability of the grammatical and of the ungrammatical sentence in nats, [pairs, 2]."""
        found: Floats = self.scored.sentences[self.batch.texts]  # a text is a sentence
        return found

    @property
    def credits(self) -> Floats:
        """Credit of each pair, [pairs]: 1 if the grammatical sentence has the higher score, 0.5 for a tie, else 0."""
        good, bad = self.scores.T
        found: Floats = (good > bad) + 0.5 * (good == bad)
        return found

    @property
    def phenomena(self) -> list[str]:
        """The phenomenon of each pair, or "", [pairs]."""
        label = self.batch.label
        return [""] * len(self.batch) if label is None else [str(name) for name in label.values()]

    @property
    def paradigms(self) -> list[str]:
        """The paradigm of each pair, or "", [pairs]."""
        return list(self.batch.extra["paradigm"])

    def sides(self) -> Iterator[tuple[tuple[Words, Floats], tuple[Words, Floats]]]:
        """Yield the words and their surprisal −log₂ p in bits, for both sides of each pair."""
        corpus, bits = self.batch.corpus, -self.scored.words / math.log(2)
        words, offsets = corpus.form.values(), corpus.offsets.tolist()
        for good, bad in self.batch.texts.tolist():
            of_good, of_bad = (slice(offsets[text], offsets[text + 1]) for text in (good, bad))
            yield (words[of_good], bits[of_good]), (words[of_bad], bits[of_bad])

    @cached_property
    def places(self) -> list[tuple[int, int] | None]:
        """The index of position 0 in both sides of each pair, or None if a side has lost its marked word.

        If a derived sentence has several copies of the marked word, the first copy counts.
        """
        if not self.marked:
            return [(place, place) for place in (place_of(good, bad) for (good, _), (bad, _) in self.sides())]
        corpus = self.batch.corpus
        rows = _marked_words(self.batch)[::-1]  # of repeated indices the last assignment counts
        first = np.full(len(corpus), -1, np.int64)
        sentences = corpus.sentence_of_word[rows]
        first[sentences] = rows - corpus.offsets[sentences]
        return [None if min(both) < 0 else (both[0], both[1]) for both in first[self.batch.texts].tolist()]


def has_marks(batch: TaskBatch) -> bool:
    """Return whether a word of the pairs is marked."""
    return MARK in batch.corpus.columns and len(_marked_words(batch)) > 0


def _marked_words(batch: TaskBatch) -> NDArray[np.int64]:
    return np.flatnonzero(batch.corpus.columns[MARK].codes == 1).astype(np.int64)


def accuracy(credit: Floats) -> Interval:
    """Return the mean of ``credit`` [n] (0 to 1, n ≥ 1) in percent, with Wilson's 95 % interval (1927)."""
    return wilson_interval(float(credit.mean()), len(credit))


def by_name(credit: Floats, names: Sequence[str]) -> dict[str, Interval]:
    """Return the accuracy of the pairs of each name, sorted by name. Pairs with an empty name are left out.

    ``credit`` [n] has the credit and ``names`` [n] the name of each pair.
    """
    of = np.asarray(names)
    return {name: accuracy(credit[of == name]) for name in sorted({*names}) if name}


def place_of(good: Words, bad: Words) -> int:
    """Return the index of the first word in which two different sentences differ.

    If one sentence begins with the other sentence, the index is the length of the shorter sentence.

    >>> place_of(["she", "saw", "him"], ["she", "saw", "he"])
    2
    """
    same = (one == other for one, other in zip(good, bad, strict=False))
    return next((number for number, equal in enumerate(same) if not equal), min(len(good), len(bad)))


def is_one_place(good: Words, bad: Words) -> bool:
    """Return whether two sentences differ in one place.

    The difference is another word, an additional word on one side, or two neighbours in the other order.

    >>> is_one_place(["she", "saw", "him"], ["she", "him", "saw"]), is_one_place(["a", "b", "c"], ["c", "b", "a"])
    (True, False)
    """
    start = place_of(good, bad)
    if len(good) == len(bad):
        rest = start + 1
        if good[rest:] == bad[rest:]:
            return True
        swapped = [good[rest], good[start]] == list(bad[start : start + 2])
        return swapped and good[start + 2 :] == bad[start + 2 :]
    longer, shorter = (good, bad) if len(good) > len(bad) else (bad, good)
    return len(longer) - len(shorter) == 1 and longer[start + 1 :] == shorter[start:]


def around(pairs: ScoredPairs, before: int, after: int) -> list[dict[str, Any]]:
    """Return the mean surprisal in bits of the words around the marked or first different word, by position.

    Position 0 is the word at ``pairs.places``. The positions go from −``before`` to ``after``. Each position is
    measured over the pairs in which both sides have a word at this position.

    Returns:
        A mapping for each position, in ascending order, with the keys ``position``, ``pairs``, ``good``, ``bad`` and
        ``difference`` (bad − good, an Interval).

    Raises:
        InputError: A log probability is NaN or infinite.
    """
    found: dict[int, list[tuple[float, float]]] = {}
    for places, ((_, of_good), (_, of_bad)) in zip(pairs.places, pairs.sides(), strict=True):
        if places is None:
            continue
        one, other = places
        for position in range(-min(before, one, other), after + 1):
            if one + position < len(of_good) and other + position < len(of_bad):
                found.setdefault(position, []).append((of_good[one + position], of_bad[other + position]))
    rows = []
    for position, values in sorted(found.items()):
        both = np.asarray(values)
        row: dict[str, Any] = {"position": position, "pairs": len(both)}
        row |= {"good": float(both[:, 0].mean()), "bad": float(both[:, 1].mean())}
        rows.append({**row, "difference": mean_interval(both[:, 1] - both[:, 0])})
    return rows


def shared(one: TaskBatch, other: TaskBatch) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Match the pairs of two languages by their ids.

    Returns:
        The rows [n] in ``one`` and the rows [n] in ``other`` of the n pairs that both have, in the order of ``one``.
    """
    rows = {name: row for row, name in enumerate(other.ids)}
    found = [(row, rows[name]) for row, name in enumerate(one.ids) if name in rows]
    both = np.asarray(found, np.int64).reshape(-1, 2)
    return both[:, 0], both[:, 1]
