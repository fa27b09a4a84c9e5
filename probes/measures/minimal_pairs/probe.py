"""The probe ``minimal_pairs``: share of pairs in which a model prefers the grammatical sentence."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from probes.figures.bars import Bar, accuracy_bars
from probes.figures.drawing import Drawing
from probes.figures.lines import Series, lines_over
from probes.measures.minimal_pairs import MinimalPairsConfig
from probes.measures.minimal_pairs.items import read_items
from probes.measures.minimal_pairs.pairs import ScoredPairs, accuracy, around, by_name, has_marks, is_one_place, shared
from probes.measures.probe_input import ProbeInput
from probes.measures.result import ProbeResult, to_json, with_bounds
from probes.models.pretrained import Role
from probes.report.page import Table
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
    """Drop the pairs with a side that has no score, and add their number to ``counts``."""
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


Rows = Mapping[str, Sequence[Mapping[str, Any]]]
"""The surprisal by position, by the name of the language."""
EXAMPLES = 3


def tables(measured: Sequence[ScoredPairs], rows: Rows, difference: Interval | None) -> list[Table]:
    """Return tables of the accuracies, of the surprisal around the marked or first different word, and of examples.

    There is a table of surprisal for each language, and the examples are the first EXAMPLES pairs of each language.

    Args:
        measured: The scored pairs of each language.
        rows: The surprisal by position, by the name of the language.
        difference: The accuracy in the source language minus the accuracy in the other language, in points, or None if
            it is not known.
    """
    return [
        _accuracies(measured, difference),
        *(_around(pairs, rows[pairs.name]) for pairs in measured if rows[pairs.name]),
        _examples(measured),
    ]


def _accuracies(measured: Sequence[ScoredPairs], difference: Interval | None) -> Table:
    """Return a row for all pairs, for each phenomenon, and for each paradigm below its phenomenon."""
    groups: list[tuple[str, list[Interval | None]]] = [("all pairs", [accuracy(pairs.credits) for pairs in measured])]
    names = {name for pairs in measured for name in zip(pairs.phenomena, pairs.paradigms, strict=True)}
    phenomena = [by_name(pairs.credits, pairs.phenomena) for pairs in measured]
    paradigms = [by_name(pairs.credits, pairs.paradigms) for pairs in measured]
    for phenomenon in sorted({phenomenon for phenomenon, _ in names}):
        if phenomenon:
            groups.append((phenomenon, [found.get(phenomenon) for found in phenomena]))
        inside = sorted(paradigm for of, paradigm in names if paradigm and of == phenomenon)
        groups += [(f"· {name}", [found.get(name) for found in paradigms]) for name in inside]
    rows = [[name, *map(_cell, found)] for name, found in groups]
    title = "Accuracy in percent. Intervals are 95 % over pairs."
    if difference is not None:
        told = with_bounds(difference.mean, difference.low, difference.high)
        title += f" {measured[0].name} minus {measured[1].name}, on the pairs of both: {told} points."
    counts = [f"{pairs.name} ({len(pairs.batch):,} pairs)" for pairs in measured]
    return Table(title, ["phenomenon and paradigm", *counts], rows)


def _cell(found: Interval | None) -> str:
    return "–" if found is None else with_bounds(found.mean, found.low, found.high)


def _around(pairs: ScoredPairs, rows: Sequence[Mapping[str, Any]]) -> Table:
    word = _word(pairs)
    cells = [
        [
            word if row["position"] == 0 else f"{row['position']:+d}",
            f"{row['pairs']:,}",
            f"{row['good']:.2f}",
            f"{row['bad']:.2f}",
            with_bounds(*_rounded(row["difference"]), ".2f"),
        ]
        for row in rows
    ]
    header = ["position", "pairs", "grammatical", "ungrammatical", "difference"]
    return Table(f"Mean surprisal of words in bits around the {word}, {pairs.name}.", header, cells)


def _word(pairs: ScoredPairs) -> str:
    """Return the name of the word at position 0."""
    return "marked word" if pairs.marked else "first different word"


def _rounded(found: Interval) -> tuple[float, float | None, float | None]:
    """Return a mean and its bounds without the sign of a rounded 0."""
    low, high = (None if value is None else round(value, 2) + 0.0 for value in (found.low, found.high))
    return round(found.mean, 2) + 0.0, low, high


def _examples(measured: Sequence[ScoredPairs]) -> Table:
    rows = []
    for pairs in measured:
        sides = zip(pairs.batch.strings(0), pairs.batch.strings(1), pairs.scores.tolist(), strict=True)
        for good, bad, (high, low) in list(sides)[:EXAMPLES]:
            rows.append([pairs.name, good, bad, f"{high:.2f}", f"{low:.2f}"])
    header = ["language", "grammatical", "ungrammatical", "log p", "log p of the other"]
    return Table("The first pairs and their scores.", header, rows, texts=3)


def figures(measured: Sequence[ScoredPairs], rows: Rows) -> list[Drawing]:
    """Draw the accuracy and, if there are positions, the surprisal around the marked or first different word.

    The accuracy has a bar for each paradigm. Pairs without paradigms have a bar for each phenomenon, and pairs without
    phenomena a single bar. ``measured`` has the scored pairs of each language, and ``rows`` has the surprisal by
    position.
    """
    bars = []
    for pairs in measured:
        of = dict(zip(pairs.paradigms, pairs.phenomena, strict=True))
        found = by_name(pairs.credits, pairs.paradigms)
        if not found:
            of, found = {}, by_name(pairs.credits, pairs.phenomena) or {"all pairs": accuracy(pairs.credits)}
        bars += [Bar(of.get(name, ""), name, pairs.name, one, one.n) for name, one in found.items()]
    note = "Share of pairs in which the grammatical sentence has the higher score. Lines are 95 % intervals."
    label = "accuracy on minimal pairs (%)"
    drawn = [
        accuracy_bars("minimal-pairs", "Accuracy by phenomenon", sorted(bars, key=lambda bar: bar.group), note, label)
    ]
    lines = [
        Series(f"{name}, {told}", [row["position"] for row in of], [row[side] for row in of])
        for name, of in rows.items()
        for side, told in (("good", "grammatical"), ("bad", "ungrammatical"))
        if of
    ]
    if lines:
        word = _word(measured[0])
        note = (
            f"Mean surprisal of words. Position 0 is the {word}{'' if measured[0].marked else ' of the two sentences'}."
        )
        axes = (f"position after the {word}", "surprisal (bits)")
        drawn.append(lines_over("minimal-pairs-places", f"Surprisal around the {word}", lines, axes, note))
    return drawn


def pair_table(measured: Sequence[ScoredPairs]) -> pa.Table:
    """Return a table of the sentences of each pair, their scores, and the surprisal of the marked or different words.

    Each language has a row for each pair. Scores are log probabilities in nats, and surprisal is in bits. ``place`` is
    the index of the marked or first different word of the grammatical sentence, from 0, or null without such a word.
    ``good_surprisal`` and ``bad_surprisal`` are the surprisal of the marked or first different word of the two
    sentences, or NaN for a sentence without such a word.
    """
    rows = []
    for pairs in measured:
        texts = zip(pairs.batch.strings(0), pairs.batch.strings(1), pairs.scores.tolist(), strict=True)
        labels = zip(pairs.batch.ids, pairs.phenomena, pairs.paradigms, strict=True)
        for label, (good, bad, scores), places, sides in zip(labels, texts, pairs.places, pairs.sides(), strict=True):
            both = places or (None, None)
            bits = [
                math.nan if place is None or place >= len(of) else float(of[place])
                for place, (_, of) in zip(both, sides, strict=True)
            ]
            rows.append((pairs.name, *label, good, bad, *scores, both[0], *bits))
    names = ("language", "id", "phenomenon", "paradigm", "good", "bad", "good_log_probability", "bad_log_probability")
    kinds = [pa.string()] * 6 + [pa.float64()] * 2 + [pa.int64()] + [pa.float64()] * 2
    columns = (*names, "place", "good_surprisal", "bad_surprisal")
    found = zip(*rows, strict=True)
    return pa.table({name: pa.array(values, kind) for name, values, kind in zip(columns, found, kinds, strict=True)})


def summary(measured: Sequence[ScoredPairs]) -> str:
    """Describe the accuracy on the minimal pairs of each language in a sentence."""
    told = " and ".join(f"{accuracy(pairs.credits).mean:.1f} % of the pairs in {pairs.name}" for pairs in measured)
    return f"The grammatical sentence has the higher score in {told}."
