"""Which pairs of ids a dictionary of a run can hold: copies of tokens, or the words of a file that are one token.

A pair counts only if each of its ids occurs in the training text of its language: a row that is never trained has
nothing to be aligned with, and of a partially transliterated language most ids occur in one form only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from synthlang.dictionary.ids import id_pairs
from synthlang.dictionary.words import WordDictionary, read_words
from synthlang.errors import InputError
from synthlang.files import user_path
from synthlang.muse import read_muse

if TYPE_CHECKING:
    from synthlang.vocabularies import IdSpace

Counts = NDArray[np.int64]


@dataclass(frozen=True)
class IdCandidates:
    """Pairs [n, 2] of an id of the first member and one of ``member``; reason → those that are none."""

    member: int
    pairs: NDArray[np.int64]
    left_out: dict[str, int]


def word_files(path: str | Mapping[str, str] | None, names: Sequence[str]) -> dict[int, WordDictionary]:
    """The words of each member that has a file, by its number; ``names`` are those of all members.

    InputError for a file that is not there, and for several languages but one file.
    """
    if path is None:
        return {}
    if isinstance(path, str):
        if len(names) != 2:
            files = ", ".join(f"{name}: FILE" for name in names[1:])
            raise InputError(f"dictionary.path: one file pairs two languages; here name it as {{{files}}}", path)
        path = {names[1]: path}
    unknown = [name for name in path if name not in names[1:]]
    if unknown:
        known = ", ".join(names[1:])
        raise InputError(f"dictionary.path: {unknown[0]!r} is no language beside the first; there is {known}")
    return {names.index(name): _words(user_path(file)) for name, file in path.items()}


def _words(path: Path) -> WordDictionary:
    if path.is_dir():
        return read_words(path)[0]
    if not path.is_file():
        raise InputError("dictionary.path: no such file; name a MUSE file or the folder of a dictionary", path)
    return WordDictionary.of(read_muse(path))


def all_candidates(
    id_space: IdSpace, counts: Sequence[Counts], words: Mapping[int, WordDictionary], own_rows: bool = False
) -> list[IdCandidates]:
    """Of each member but the first that has any: from its file if there are files, else from copies.

    ``counts`` say for each member how often each id occurs in its training text; with ``own_rows`` (separate
    embeddings) an id is a copy of itself.
    """
    found = []
    for member in range(1, len(id_space.members)):
        pairs, left_out = id_space.counterparts(member, own_rows), dict[str, int]()
        if words:
            pairs, left_out = _from_words(id_space, member, words.get(member))
        if pairs is not None:
            found.append(_occurring(id_space, counts, member, pairs, left_out))
    return found


def _from_words(
    id_space: IdSpace, member: int, words: WordDictionary | None
) -> tuple[NDArray[np.int64] | None, dict[str, int]]:
    if words is None:
        return None, {}
    source, target = id_space.members[0].tokenizer, id_space.members[member].tokenizer
    pairs, counts = id_pairs(words, source, target, specials=id_space.specials.all)
    return pairs, {reason: n for reason, n in counts.items() if reason != "pairs" and n}


def _occurring(
    id_space: IdSpace, counts: Sequence[Counts], member: int, pairs: NDArray[np.int64], left_out: dict[str, int]
) -> IdCandidates:
    sides = occurs(counts[0], pairs[:, 0]), occurs(counts[member], pairs[:, 1])
    names = id_space.members[0].name, id_space.members[member].name
    missing = {f"not in the text of {names[0]}": ~sides[0], f"not in the text of {names[1]}": sides[0] & ~sides[1]}
    reasons = {reason: int(rows.sum()) for reason, rows in missing.items() if rows.any()}
    return IdCandidates(member, pairs[sides[0] & sides[1]], left_out | reasons)


def occurs(counts: Counts, ids: NDArray[np.int64]) -> NDArray[np.bool_]:
    """[n] whether each id occurs; ``counts`` may end before the last id of the space."""
    return np.append(counts, 0)[np.minimum(ids, len(counts))] > 0
