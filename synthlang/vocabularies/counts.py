"""Word counts of training splits, counted once for each store."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from synthlang.files import atomic_folder, read_json, write_json
from synthlang.fingerprint import fingerprint
from synthlang.sources.base import Source, word_counts
from synthlang.store import Store

FORMAT = 1
"""Increment when the same source has other counts, or the file is read differently."""


def stored_counts(source: Source, store: Store) -> Counter[str]:
    """Return the number of occurrences of each form in the training split, in the order of first occurrence.

    The words are counted if the store lacks the counts.

    Raises:
        InputError: The source lacks a training split, the split cannot be read, or the stored counts are damaged.
        DiskError: The counts cannot be stored.
    """

    def build(path: Path) -> None:
        counts = word_counts(source)
        with atomic_folder(path) as folder:
            write_json(folder / "counts.json", {"words": list(counts), "counts": list(counts.values())}, indent=None)

    name = fingerprint("word-counts", format=FORMAT, source=source.fingerprint)
    found = read_json(store.obtain("counts", name, build) / "counts.json")
    return Counter(dict(zip(found["words"], found["counts"], strict=True)))
