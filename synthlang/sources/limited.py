"""The option ``?limit=N`` of every source: only the first N sentences of each split."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from synthlang.corpus import Corpus
from synthlang.errors import InputError
from synthlang.files import user_path
from synthlang.fingerprint import fingerprint
from synthlang.sources.base import Source, size_of, with_columns
from synthlang.sources.splits import ONCE

LIMIT = "limit"


class LimitedSource:
    """Source of the first ``limit`` sentences of each split of another source.

    Attributes that this class does not define, such as ``remarks``, are those of the other source.

    Args:
        source: The other source.
        limit: Largest number of sentences of a split, at least 1.
    """

    def __init__(self, source: Source, limit: int) -> None:
        self._source, self._limit = source, limit

    def __getattr__(self, name: str) -> Any:
        return getattr(self._source, name)

    @property
    def fingerprint(self) -> str:
        return fingerprint("limited", source=self._source.fingerprint, limit=self._limit)

    @property
    def splits(self) -> tuple[str, ...]:
        return self._source.splits

    @property
    def columns(self) -> tuple[str, ...]:
        return self._source.columns

    def with_morphology(self, names: Sequence[str]) -> LimitedSource:
        return LimitedSource(with_columns(self._source, names), self._limit)

    def size(self, split: str) -> int | None:
        whole = size_of(self._source, split)
        return None if whole is None else min(whole, self._limit)

    def batches(self, split: str) -> Iterator[Corpus]:
        left = self._limit
        for batch in self._source.batches(split):
            yield batch if len(batch) <= left else batch.take(np.arange(left))
            left -= len(batch)
            if left <= 0:
                return


def without_limit(spec: str) -> tuple[str, int | None]:
    """Split ``SCHEME:PATH?limit=N&more`` into the spec without the limit, and the limit or None.

    >>> without_limit("conllu:a.conllu?feats&limit=20"), without_limit("text:a.txt")
    (('conllu:a.conllu?feats', 20), ('text:a.txt', None))

    Raises:
        InputError: The limit is not a whole number from 1 with at most 12 digits, or is given twice, or the user in a
            path ``~USER`` does not exist.
    """
    plain, _, query = spec.rpartition("?")
    parts = query.split("&")
    values = [part.partition("=")[2] for part in parts if part.partition("=")[0] == LIMIT]
    if not plain or not values or user_path(spec.partition(":")[2]).exists():
        return spec, None
    if len(values) > 1:
        raise InputError("the option occurs more than once", plain, keys=LIMIT, hint=ONCE, code="duplicate")
    if not re.fullmatch("[1-9][0-9]{0,11}", values[0]):
        reason = f"must be a number of sentences, from 1 to 999,999,999,999, not {values[0]!r}"
        raise InputError(reason, plain, keys=LIMIT, hint=f"write for example {LIMIT}=1000", code="range")
    rest = [part for part in parts if part.partition("=")[0] != LIMIT]
    return plain + (f"?{'&'.join(rest)}" if rest else ""), int(values[0])
