"""Word alignments: links between the words of sentence pairs, where they come from and what is kept of them."""

from __future__ import annotations

from synthlang.alignments.errors import AlignmentErrors, alignment_errors, read_gold
from synthlang.alignments.gold import gold_batches, gold_links
from synthlang.alignments.links import Links
from synthlang.alignments.parallel import ParallelText, count_pairs, read_joint, read_parallel
from synthlang.alignments.pharaoh import check_pharaoh, read_pharaoh, write_pharaoh
from synthlang.alignments.symmetrise import METHODS, Method, symmetrise

__all__ = [
    "METHODS",
    "AlignmentErrors",
    "Links",
    "Method",
    "ParallelText",
    "alignment_errors",
    "check_pharaoh",
    "count_pairs",
    "gold_batches",
    "gold_links",
    "read_gold",
    "read_joint",
    "read_parallel",
    "read_pharaoh",
    "symmetrise",
    "write_pharaoh",
]
