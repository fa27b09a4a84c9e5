"""Minimal pairs (BLiMP) from Parquet files to tables."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from synthlang.data.conversions.base import Given, SplitConverter, one_line, rows, written

COLUMNS = ("sentence_good", "sentence_bad", "linguistics_term", "UID", "pair_id")


class MinimalPairs(SplitConverter):
    """Write a tab-separated file with both sentences, phenomenon, paradigm and id for each split."""

    kind: Literal["minimal"]
    """Minimal pairs with the columns of BLiMP, from Parquet."""

    def run(self, given: Given, out: Path, names: Sequence[str]) -> dict[str, int]:
        del names
        for split, pattern in self.splits.items():
            with written(out / f"{split}.tsv") as handle:
                handle.write("\t".join(COLUMNS) + "\n")
                for values in rows(given.matching(pattern), COLUMNS, given.report):
                    handle.write("\t".join(map(one_line, values)) + "\n")
        return {}
