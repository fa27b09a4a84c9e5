"""Who goes with whom: every head word has preferences of its own over its dependents.

For a head h in a slot s and a word n of rank r among N:

    P(n | h, s)  ∝  (r + 4 + N/20)^−1 · exp(τ·⟨u_hs, v_n⟩) · [n fits the slot]

with random unit-variance vectors u, v (functions of the seed). Within a document words of
its topic are kept and others only now and then, so topics of unequal weight show as well.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from synthlang.rng import key_of, uniform

Draw = Callable[[], float]
DIMENSIONS = 8
SHARPNESS = 1.6  # τ: standard deviation of a log preference
OFF_TOPIC = 0.15  # how often a word of another topic is kept
TRIES = 6


class HasTopic(Protocol):
    """An entry with a topic (−1: any)."""

    @property
    def topic(self) -> int:
        """Its index."""
        ...


E = TypeVar("E", bound=HasTopic)


def _vectors(key: int, count: int) -> NDArray[np.float64]:
    """[count, DIMENSIONS], each number of variance 1 (uniform)."""
    return (uniform(key, np.arange(count)[:, None], np.arange(DIMENSIONS)) - 0.5) * 12**0.5


class Vocabulary(Generic[E]):
    """The words of one class in frequency order, drawn by the preferences of a head.

    ``fits(entry, limit)`` says whether a word fits a slot; a row of probabilities is made
    when a head is first met, 8 bytes a word.
    """

    def __init__(self, name: str, entries: Sequence[E], seed: int, fits: Callable[[E, str], bool]) -> None:
        self.entries = entries
        self._fits = fits
        self._seed = seed
        self._vectors = _vectors(key_of("mini-english", "words", name, seed), len(entries))
        self._log_frequency = -np.log(np.arange(len(entries)) + 4.0 + len(entries) / 20)
        self._rows: dict[tuple[str, str, str], array[float]] = {}

    def row(self, head: str, slot: str, limit: str) -> array[float]:
        """Cumulative probabilities [entries]; empty if nothing fits."""
        key = (head, slot, limit)
        found = self._rows.get(key)
        if found is None:
            found = self._rows[key] = self._make_row(head, slot, limit)
        return found

    def _make_row(self, head: str, slot: str, limit: str) -> array[float]:
        fitting = np.asarray([self._fits(entry, limit) for entry in self.entries], dtype=bool)
        if not fitting.any():
            return array("d")
        own = _vectors(key_of("mini-english", "head", head, slot, self._seed), 1)[0]
        score = self._log_frequency + SHARPNESS * (self._vectors @ own) / DIMENSIONS**0.5
        cumulative = np.cumsum(np.where(fitting, np.exp(score), 0.0))
        cumulative /= cumulative[-1]
        cumulative[np.flatnonzero(fitting)[-1] :] = 1.0
        return array("d", cumulative.tolist())

    def draw(self, draw: Draw, topic: int, head: str, slot: str, limit: str) -> E | None:
        """A word for a slot of a head, or None if none fits."""
        row = self.row(head, slot, limit)
        if not row:
            return None
        entry = self.entries[bisect_right(row, draw())]
        for _ in range(TRIES):
            if entry.topic in (topic, -1) or draw() < OFF_TOPIC:
                break
            entry = self.entries[bisect_right(row, draw())]
        return entry
