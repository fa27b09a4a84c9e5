"""Span F1 of BIO tags.

strict    a mention is B-X and the I-X right after it; an I that continues no mention of its type is no mention
          (seqeval with mode="strict" and scheme=IOB2)
lenient   such an I starts a mention, as in CoNLL's scorer (seqeval's default)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from probes.transfer.metrics.items import Codes, f1, percent, words_of
from probes.transfer.metrics.metric import Floats, Metric
from probes.transfer.metrics.repair import Repair, repaired

SPAN_F1 = "span_f1"


def span_metrics(repair: Repair = "none", lenient: bool = False) -> dict[str, Metric]:
    """Span F1, precision and recall; predictions are repaired first if ``repair`` says so, gold tags never."""

    def stats(gold: Sequence[Any], predictions: Sequence[Any]) -> Floats:
        return span_counts(gold, [repaired(tags, repair) for tags in predictions], lenient)

    return {
        SPAN_F1: Metric(SPAN_F1, stats, f1),
        "span_precision": Metric("span_precision", stats, lambda sums: percent(sums[..., 0], sums[..., 2])),
        "span_recall": Metric("span_recall", stats, lambda sums: percent(sums[..., 0], sums[..., 1])),
    }


def mentions_of(tags: Sequence[str], lenient: bool = False) -> list[tuple[int, int, str]]:
    """The mentions of one sentence: (first word, word after the last, type).

    >>> mentions_of(["B-PER", "I-PER", "I-LOC", "B-LOC"])
    [(0, 2, 'PER'), (3, 4, 'LOC')]
    """
    kinds = _kinds(tags)
    ends = _ends(tags, np.zeros(len(tags), np.int64), kinds, lenient)
    return [(i, int(ends[i]), tags[i][2:]) for i in np.flatnonzero(ends >= 0).tolist()]


def span_counts(gold: Sequence[Any], predictions: Sequence[Any], lenient: bool = False) -> Floats:
    """[items, 3]: mentions that are right (the same words and type), gold mentions, predicted mentions."""
    words = words_of(gold, predictions)
    kinds = _kinds([*words.gold, *words.predicted])
    sides = []
    for tags in (words.gold, words.predicted):
        ends = _ends(tags, words.item, kinds, lenient)
        # at its first word a mention is told by its end and its type
        sides.append(np.where(ends < 0, -1, ends * (len(kinds) + 1) + _kind_codes(tags, kinds)))
    right, said = sides
    return words.sums((right == said) & (right >= 0), right >= 0, said >= 0)


def _kinds(tags: Sequence[str]) -> list[str]:
    return sorted({tag[2:] for tag in set(tags) if tag[:2] in ("B-", "I-")})


def _kind_codes(tags: Sequence[str], kinds: Sequence[str]) -> Codes:
    """[words] the type of each tag; −1 outside."""
    number = {f"{letter}-{kind}": i for i, kind in enumerate(kinds) for letter in "BI"}
    return np.fromiter((number.get(tag, -1) for tag in tags), np.int64)


def _ends(tags: Sequence[str], item: Codes, kinds: Sequence[str], lenient: bool) -> Codes:
    """[words] at the first word of a mention the row after its last one; −1 elsewhere."""
    kind = _kind_codes(tags, kinds)
    begins = np.fromiter((tag[:2] == "B-" for tag in tags), bool)
    # a run of words of one type, none of them a B but the first, is a mention if it starts with B (lenient: with any)
    goes_on = np.zeros(len(kind), bool)
    goes_on[1:] = (kind[1:] == kind[:-1]) & (item[1:] == item[:-1]) & ~begins[1:]
    starts = np.flatnonzero(~goes_on)
    after = np.append(starts[1:], len(kind))
    mention = kind[starts] >= 0 if lenient else begins[starts]
    ends = np.full(len(kind), -1, np.int64)
    ends[starts[mention]] = after[mention]
    return ends
