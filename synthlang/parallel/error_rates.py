"""Quality of word alignments: alignment error rate, precision and recall against a gold standard.

A is the set of found alignments, S the sure gold alignments, and P ⊇ S all gold alignments, sure or possible:

    AER = 1 − (|A ∩ S| + |A ∩ P|) / (|A| + |S|)     precision = |A ∩ P| / |A|     recall = |A ∩ S| / |S|

(Och & Ney 2003, "A Systematic Comparison of Various Statistical Alignment Models", section 5). Sizes are summed over
the sentence pairs before the division. F1 is the harmonic mean of precision and recall (Jalili Sabet et al. 2020). If
every gold alignment is sure, AER = 1 − F1.
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
from synthlang.parallel.links import Links, check_sentences, read_counted
from synthlang.sources.base import nothing_in

COLUMNS = ("links", "sure", "links_sure", "links_possible")
"""The counts |A|, |S|, |A ∩ S| and |A ∩ P| of a sentence pair, or their sums over sentence pairs."""
Blank = Literal["wrong", "skip"]
BLANKS: tuple[Blank, ...] = get_args(Blank)
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Gold:
    """A gold standard of word alignments.

    Attributes:
        links: Sure and possible alignments of each sentence pair.
        outside: Number of alignments that were left out because the text has no such word.
    """

    links: Links
    outside: int = 0

    @property
    def blank(self) -> NDArray[np.bool_]:
        """True for sentence pairs without a gold alignment, [pairs]."""
        return np.asarray(np.diff(self.links.offsets) == 0, dtype=bool)


@dataclass(frozen=True)
class AlignmentErrors:
    """Counts and scores of word alignments against a gold standard.

    Attributes:
        sums: Counts of alignments in each scored sentence pair, with the columns COLUMNS, [pairs, 4] int64.
        skipped: Number of sentence pairs that were left out because they have no gold alignment.
    """

    sums: NDArray[np.int64]
    skipped: int = 0

    @cached_property
    def scores(self) -> dict[str, float | None]:
        """The scores ``aer``, ``precision``, ``recall`` and ``f1``, 0 to 1.

        The equations are at the top of the module. A score is None if its divisor is 0. F1 is None if precision or
        recall is None, and 0 if both are 0.
        """
        links, sure, in_sure, in_possible = self.sums.sum(axis=0).tolist()
        aer = 1 - (in_sure + in_possible) / (links + sure) if links + sure else None
        precision, recall = in_possible / links if links else None, in_sure / sure if sure else None
        f1 = None
        if precision is not None and recall is not None:
            f1 = 2 * precision * recall / (precision + recall) if precision + recall else 0.0
        return {"aer": aer, "precision": precision, "recall": recall, "f1": f1}

    def to_json(self) -> dict[str, Any]:
        """Return the scores, the sums of COLUMNS, and the numbers of scored (``pairs``) and of ``skipped`` pairs."""
        sums = dict(zip(COLUMNS, self.sums.sum(axis=0).tolist(), strict=True))
        return {**self.scores, **sums, "pairs": len(self.sums), "skipped": self.skipped}


def alignment_errors(found: Links, gold: Links, blank: Blank = "wrong") -> AlignmentErrors:
    """Compare word alignments with a gold standard of the same sentence pairs, by the equations of this module.

    Args:
        found: The alignments to score.
        gold: The gold standard, with left and right as in ``found``.
        blank: Treatment of a sentence pair without a gold alignment. ``wrong`` counts all alignments found there as
            wrong, as the equations and the usual scripts do. ``skip`` leaves the pair out as not annotated.
    """
    assert len(found) == len(gold), "both are of one text"
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
    """Return the alignment error rate, 0 to 1, for sums over sentence pairs (Och & Ney 2003, section 5).

    The equation is AER = 1 − (|A ∩ S| + |A ∩ P|) / (|A| + |S|).

    Args:
        sums: Sums with the columns COLUMNS, [..., 4].

    Returns:
        The rates, [...]. A rate is NaN if the divisor is 0.
    """
    table = np.asarray(sums, np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        rate: Floats = 1 - (table[..., 2] + table[..., 3]) / (table[..., 0] + table[..., 1])
    return rate


def read_gold(
    path: Path, left: NDArray[np.int64], right: NDArray[np.int64], first: int | None = None, swapped: bool = False
) -> Gold:
    """Read a gold standard. Alignments of words that the text does not have are left out and counted.

    Args:
        path: The Pharaoh file.
        left: Number of words of each left sentence, [pairs].
        right: Number of words of each right sentence, [pairs].
        first: Number of the first word, 0 or 1. With None, some word must have the number 0.
        swapped: True if the file has right-left pairs.

    Raises:
        InputError: The file cannot be read, is not a Pharaoh file or has another number of sentence pairs than the
            text, the number of the first word is unknown, or no alignment is left.
    """
    links = read_counted(path, first, "--gold-first")
    check_sentences(path, len(links), len(left))
    kept, outside = (links.swapped() if swapped else links).within(left, right)
    if not len(links.left):
        raise nothing_in("word alignment", path)
    if not len(kept.left):
        reason = "no alignment is between two words of the text"
        hint = (
            "use the gold standard of this text, with the right number of the first word (--gold-first) and order of "
            "the pairs (--gold-reversed)"
        )
        raise InputError(reason, path, hint=hint, code="empty")
    return Gold(kept, outside)
