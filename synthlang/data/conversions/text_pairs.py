"""Classified pairs of texts (NLI) from Parquet files to tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from synthlang.data.conversions.base import Given, SplitConverter, one_line, rows, written

HEADER = ("premise", "hypothesis", "label")


class ClassifiedPairs(SplitConverter):
    """Write a tab-separated file with premise, hypothesis and label for each split."""

    kind: Literal["nli"]
    """Pairs of texts with a class, from Parquet."""
    labels: tuple[str, ...] = ("entailment", "neutral", "contradiction")
    """The names of the classes 0, 1, …. Any other number is no gold label."""

    def run(self, given: Given, out: Path, names: Sequence[str]) -> dict[str, int]:
        del names
        counts: Counter[str] = Counter()
        for split, pattern in self.splits.items():
            with written(out / f"{split}.tsv") as handle:
                handle.write("\t".join(HEADER) + "\n")
                for premise, hypothesis, label in rows(given.matching(pattern), HEADER, given.report):
                    known = isinstance(label, int) and 0 <= label < len(self.labels)
                    counts["pairs without a gold label"] += not known
                    name = self.labels[label] if known else "-"
                    handle.write(f"{one_line(premise)}\t{one_line(hypothesis)}\t{name}\n")
        return +counts
