"""How good links are: alignment error rate, precision and recall against a gold standard.

With A the links found, S the sure ones of the gold standard and P ⊇ S all of its links, sure or possible:

    AER = 1 − (|A ∩ S| + |A ∩ P|) / (|A| + |S|)     precision = |A ∩ P| / |A|     recall = |A ∩ S| / |S|

Och & Ney 2003, "A Systematic Comparison of Various Statistical Alignment Models", section 5; all sums go over
the sentence pairs before the division. F1 is the harmonic mean of these two (Jalili Sabet et al. 2020).
Where every gold link is sure, AER = 1 − F1. Whether a link that was *found* is marked as possible does not matter.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from synthlang.errors import InputError
from synthlang.parallel.links import Links, read_counted

COLUMNS = ("links", "sure", "links_sure", "links_possible")
"""What is summed over sentence pairs: |A|, |S|, |A ∩ S|, |A ∩ P|."""
Blank = Literal["wrong", "skip"]
BLANKS: tuple[Blank, ...] = get_args(Blank)
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Gold:
    """A gold standard: ``links`` of each sentence pair, and how many were left out since the text has no such word."""

    links: Links
    outside: int = 0

    @property
    def blank(self) -> NDArray[np.bool_]:
        """[pairs] whether a sentence pair has no gold link."""
        return np.asarray(np.diff(self.links.offsets) == 0, dtype=bool)


@dataclass(frozen=True)
class AlignmentErrors:
    """Scores of links.

    sums     [pairs, 4] int64, a row for each sentence pair that counts, columns as in COLUMNS
    skipped  sentence pairs left out since the gold standard says nothing of them
    """

    sums: NDArray[np.int64]
    skipped: int = 0

    @cached_property
    def scores(self) -> dict[str, float | None]:
        """``aer``, ``precision``, ``recall`` and ``f1``, each 0 … 1, None where it divides by nothing."""
        links, sure, in_sure, in_possible = self.sums.sum(axis=0).tolist()
        aer = 1 - (in_sure + in_possible) / (links + sure) if links + sure else None
        precision, recall = in_possible / links if links else None, in_sure / sure if sure else None
        f1 = None
        if precision is not None and recall is not None:
            f1 = 2 * precision * recall / (precision + recall) if precision + recall else 0.0
        return {"aer": aer, "precision": precision, "recall": recall, "f1": f1}

    def to_json(self) -> dict[str, Any]:
        """Scores and the sums they come from."""
        sums = dict(zip(COLUMNS, self.sums.sum(axis=0).tolist(), strict=True))
        return {**self.scores, **sums, "pairs": len(self.sums), "skipped": self.skipped}


def alignment_errors(found: Links, gold: Links, blank: Blank = "wrong") -> AlignmentErrors:
    """Scores of the links ``found`` of the same sentence pairs as ``gold``, both as left-right links.

    blank   for a sentence pair without any gold link: ``wrong`` counts the links found there as wrong, as the equation
            says and the scripts of the field do; ``skip`` takes such a pair as one that nobody annotated

    Raises InputError for other numbers of sentence pairs, and for a gold standard without a link.
    """
    if len(found) != len(gold):
        raise InputError(f"the links are of {len(found)} sentence pairs, the gold standard is of {len(gold)}")
    if not len(gold.left):
        raise InputError("the gold standard has no link")
    sure_of = dict(zip(_rows(gold), gold.sure.tolist(), strict=True))
    hits = [sure_of.get(link) for link in _rows(found)]
    possible, sure = (
        np.asarray([hit is not None for hit in hits], bool),
        np.asarray([hit is True for hit in hits], bool),
    )
    columns = (found.sentence, gold.sentence[gold.sure], found.sentence[sure], found.sentence[possible])
    sums = np.stack([np.bincount(rows, minlength=len(gold)) for rows in columns], axis=1)
    kept = np.diff(gold.offsets) > 0 if blank == "skip" else np.ones(len(gold), bool)
    return AlignmentErrors(sums[kept], int((~kept).sum()))


def _rows(links: Links) -> Iterator[tuple[int, int, int]]:
    return zip(links.sentence.tolist(), links.left.tolist(), links.right.tolist(), strict=True)


def error_rate(sums: NDArray[Any]) -> Floats:
    """AER of sums [..., 4] (COLUMNS) → [...]; NaN where there is neither a link nor a sure gold link.

    The form that a bootstrap over sentence pairs draws anew.
    """
    table = np.asarray(sums, np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        rate: Floats = 1 - (table[..., 2] + table[..., 3]) / (table[..., 0] + table[..., 1])
    return rate


def read_gold(
    path: Path, left: NDArray[np.int64], right: NDArray[np.int64], first: int | None = None, swapped: bool = False
) -> Gold:
    """A gold standard for a text whose sentences have ``left`` and ``right`` words [pairs].

    first     the number of the first word, 0 or 1; None: 0 if some link has a word 0
    swapped   the file's links are right-left

    Links to words that the text does not have are left out and counted. Raises InputError if the file is not of as
    many sentence pairs, if it cannot be told what it counts from, and if no link is left.
    """
    links = read_counted(path, first, "--gold-first")
    if len(links) != len(left):
        raise InputError(f"is of {len(links)} sentence pairs, but the text has {len(left)}", path)
    kept, outside = (links.swapped() if swapped else links).within(left, right)
    if not len(kept.left):
        raise InputError("has no link between words of the text", path)
    return Gold(kept, outside)
