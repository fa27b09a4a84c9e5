"""The probe ``minimal_pairs``: share of pairs in which a model prefers the grammatical sentence."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from probes.measures.minimal_pairs import MinimalPairsConfig
from probes.measures.minimal_pairs.items import read_items
from probes.measures.minimal_pairs.pairs import ScoredPairs, accuracy, around, by_name, has_marks, is_one_place, shared
from probes.measures.minimal_pairs.show import figures, pair_table, summary, tables
from probes.measures.probe_input import ProbeInput
from probes.measures.result import ProbeResult, to_json
from probes.models.pretrained import Role
from probes.scoring import Floats, Scored, score
from probes.statistics import Interval
from probes.statistics.intervals import bootstrap_difference
from synthlang.errors import InputError
from synthlang.progress import Report, silent
from synthlang.rng import key_of
from synthlang.tasks.batch import TaskBatch
from synthlang.wording import plural


def minimal_pairs_probe(given: ProbeInput, report: Report = silent) -> ProbeResult:
    """Score minimal pairs in the source language and in the other language.

    Raises:
        InputError: Pairs are not known, cannot be read (see `read_items`) or cannot be scored (see `score`), no pair is
            left, or a log probability is NaN or infinite.
    """
    config = given.config.of(MinimalPairsConfig)
    batches, counts = read_items(given)
    found: dict[Role, ScoredPairs] = {}
    for role, batch in batches.items():
        name = given.name(role)
        scored = score(given.body(role), given.reader(role), batch.corpus, config.masking, report, name)
        marked = has_marks(batches["source"] if config.other is None else batch)
        found[role] = replace(_kept(name, batch, scored, counts), marked=marked)
    places = {role: _places(pairs) for role, pairs in found.items()}
    rows = {role: around(pairs, config.before, config.after) for role, pairs in found.items()}
    difference = _difference(found, given.config.seed) if len(found) > 1 and config.other is None else None
    values: dict[str, Any] = {
        "model": {role: "causal" if given.body(role).causal else "masked" for role in found},
        "languages": {role: {**values_of(pairs), "positions": rows[role]} for role, pairs in found.items()},
        "difference": difference,
        "several_places": places,
        "counts": {reason: count for reason, count in counts.items() if count},
    }
    notes = [
        f"{count:,} pairs of {found[role].name} differ in more than one place."
        for role, count in places.items()
        if count
    ]
    shown = list(found.values())
    named = {pairs.name: rows[role] for role, pairs in found.items()}
    files = {"minimal_pairs.parquet": pair_table(shown)}
    return ProbeResult(
        to_json(values), tables(shown, named, difference), figures(shown, named), notes, summary(shown), files
    )


def _kept(name: str, batch: TaskBatch, scored: Scored, counts: dict[str, int]) -> ScoredPairs:
    """Drop the pairs with a side that has no score, and add their number to ``counts``.

    Raises:
        InputError: No pair is left.
    """
    long = scored.too_long[batch.texts].any(axis=1)
    empty = ~long & (np.diff(scored.bounds)[batch.texts] == 0).any(axis=1)
    counts[f"{name}: pairs with more tokens than the model reads"] = int(long.sum())
    counts[f"{name}: pairs with a side without a token"] = int(empty.sum())
    if (long | empty).all():
        reason = (
            f"no minimal pair of {name} is left to score: of {plural(len(batch), 'pair')}, {int(long.sum()):,} with a "
            f"sentence of more tokens than the model reads, and {int(empty.sum()):,} with a sentence without a token"
        )
        hint = "give pairs of shorter sentences" if long.any() else "give other pairs"
        raise InputError(reason, keys="minimal_pairs", hint=hint, code="empty")
    if not (long | empty).any():
        return ScoredPairs(name, batch, scored)
    items = np.flatnonzero(~(long | empty)).astype(np.int64)
    return ScoredPairs(name, batch.take(items), scored.take(batch.sentences_of(items)))


def values_of(pairs: ScoredPairs) -> dict[str, Any]:
    """Return the number of pairs of a language and the accuracies in percent.

    ``mean_of_paradigms`` is the mean over paradigms, or None if no pair has one. ``phenomena`` and ``paradigms`` have
    an interval by name.
    """
    paradigms = by_name(pairs.credits, pairs.paradigms)
    return {
        "pairs": len(pairs.batch),
        "accuracy": accuracy(pairs.credits),
        "mean_of_paradigms": float(np.mean([one.mean for one in paradigms.values()])) if paradigms else None,
        "phenomena": by_name(pairs.credits, pairs.phenomena),
        "paradigms": paradigms,
    }


def _places(pairs: ScoredPairs) -> int:
    """Return the number of pairs whose sides differ in more than one place, such as after a word is moved."""
    return sum(not is_one_place(good, bad) for (good, _), (bad, _) in pairs.sides())


def _difference(found: dict[Role, ScoredPairs], seed: int) -> Interval | None:
    """Return the accuracy in the source language minus the accuracy in the derived language, in points.

    Only pairs of both languages count. The result is None if there is no such pair.
    """
    one, other = found["source"], found["target"]
    source, target = shared(one.batch, other.batch)
    if not len(source):
        return None
    first, second = (_stats(pairs.credits[rows]) for pairs, rows in ((one, source), (other, target)))
    key = key_of("minimal-pairs", seed)
    return bootstrap_difference(first, second, _percent, key, paired=True)


def _stats(credit: Floats) -> Floats:
    """Return the credit and the number of each pair, [1, pairs, 2]."""
    return np.stack([credit, np.ones_like(credit)], axis=1)[None]


def _percent(sums: Floats) -> Floats:
    found: Floats = 100 * sums[..., 0] / sums[..., 1]
    return found
