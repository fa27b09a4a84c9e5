"""Which word types a transform changes: by a hash of the form, by frequency, by a list of words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from synthlang.errors import InputError
from synthlang.files import read_lines
from synthlang.rng import key_of, uniform_of_keys


def type_hashes(key: int, forms: Sequence[str]) -> NDArray[np.float64]:
    """A number in [0, 1) for each form, the same in every text: it is chosen by shares that are larger."""
    return uniform_of_keys([key_of("type", key, form) for form in forms])


def read_types(path: Path) -> frozenset[str]:
    """The words of a list: one a line, or the first column of a table with tabs. InputError with the line."""
    words = set()
    for number, line in read_lines(path):
        word = line.split("\t")[0].strip()
        if word and word.split() != [word]:
            raise InputError(f"{word!r} is not one word; one a line, or the first column of a table", path, number)
        if not word and line.strip():
            raise InputError("the first column is empty", path, number)
        words.add(word)
    words.discard("")
    if not words:
        raise InputError("holds no word", path)
    return frozenset(words)


def most_frequent(counts: Mapping[str, int], candidates: Iterable[str], share: float, by_token: bool) -> frozenset[str]:
    """The most frequent candidates, equal counts in the order of the form.

    By type ``round(share · candidates)`` of them; by token as many as it takes to reach ``share`` of
    the candidates' running words (the rule of ``DictionarySpec``).
    """
    ordered = sorted(candidates, key=lambda form: (-counts.get(form, 0), form))
    if not by_token:
        return frozenset(ordered[: round(share * len(ordered))])
    return frozenset(_until(ordered, counts, share))


def hash_limit(counts: Mapping[str, int], candidates: Iterable[str], share: float, key: int) -> float:
    """The hash below which types are chosen so that they make up ``share`` of the candidates' running words."""
    forms = sorted(candidates)
    hashes = type_hashes(key, forms)
    rank = np.argsort(hashes, kind="stable")
    chosen = _until([forms[i] for i in rank.tolist()], counts, share)
    return float(hashes[rank[len(chosen)]]) if len(chosen) < len(forms) else 1.0


def _until(ordered: list[str], counts: Mapping[str, int], share: float) -> list[str]:
    """The first types, one after another while the share of running words is not reached."""
    running = [counts.get(form, 0) for form in ordered]
    before = accumulate(running[:-1], initial=0)
    wanted = share * sum(running)
    return [form for form, words in zip(ordered, before, strict=False) if words < wanted]
