"""The translations of any token of a run, looked up for many tokens at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from synthlang.dictionary.pairs import IdDictionary


@dataclass(frozen=True, eq=False)
class Synonyms:
    """What a dictionary says in both directions: the entry of a token is all its translations, side by side.

    A token is (member, id), since with a joint vocabulary two languages have the same ids.

    first, amount     [members, ids] int32: where the entry of a token begins in ``ids``, and how long it is
    ids, languages    [2 · pairs] int64: the translations, and their members
    """

    first: NDArray[np.int32]
    amount: NDArray[np.int32]
    ids: NDArray[np.int64]
    languages: NDArray[np.int64]

    @staticmethod
    def of(dictionary: IdDictionary, members: int, size: int) -> Synonyms:
        """The index of a dictionary over ``size`` ids."""
        pairs, languages = (np.concatenate([a, a[:, ::-1]]) for a in (dictionary.pairs, dictionary.languages))
        tokens = languages[:, 0] * size + pairs[:, 0]
        # by token, then by translation: the order of the file does not matter
        order = np.lexsort((pairs[:, 1], languages[:, 1], tokens))
        amount = np.bincount(tokens, minlength=members * size)
        first = np.cumsum(amount) - amount
        shape = (members, size)
        tables = (first.astype(np.int32).reshape(shape), amount.astype(np.int32).reshape(shape))
        return Synonyms(*tables, pairs[order, 1], languages[order, 1])

    def draw(
        self, languages: NDArray[np.int64], ids: NDArray[np.int64], random: NDArray[np.float64]
    ) -> tuple[NDArray[np.bool_], NDArray[np.int64], NDArray[np.int64]]:
        """One translation of each token, uniformly among those of its entry by ``random`` in [0, 1).

        Arrays of one shape: whether there is an entry, the translation's id and its member; without an
        entry the token itself.
        """
        amount = self.amount[languages, ids].astype(np.int64)
        place = self.first[languages, ids] + np.minimum((random * amount).astype(np.int64), amount - 1)
        known = amount > 0
        place = np.where(known, place, 0)
        return known, np.where(known, self.ids[place], ids), np.where(known, self.languages[place], languages)
