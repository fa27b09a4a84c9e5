"""Predicted tags made legal BIO by the rule of Conneau et al. 2020, "Emerging Cross-lingual Structure"."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

INSIDE = ("B-", "I-")

Repair = Literal["none", "final-type"]


def repaired(tags: Sequence[str], repair: Repair = "final-type") -> list[str]:
    """The tags of a sentence, with each run of them made one legal mention of the type of its last tag.

    A run starts at B, or at an I after O or at the start, and goes on through every I whatever its type: so a
    standalone I-X becomes B-X, and B-X I-Y I-Z becomes B-Z I-Z I-Z (Conneau et al. 2020, section 3.2). Legal tags stay.

    >>> repaired(["I-LOC", "O", "B-PER", "I-ORG", "I-LOC", "B-PER"])
    ['B-LOC', 'O', 'B-LOC', 'I-LOC', 'I-LOC', 'B-PER']
    """
    result = list(tags)
    final: str | None = None  # type of the run that ends at a later word
    if repair == "none":
        return result
    for i in range(len(result) - 1, -1, -1):
        if result[i][:2] not in INSIDE:
            continue
        final = result[i][2:] if final is None else final
        starts = result[i][:2] == "B-" or i == 0 or result[i - 1][:2] not in INSIDE
        result[i] = f"{'B' if starts else 'I'}-{final}"
        final = None if starts else final
    return result
