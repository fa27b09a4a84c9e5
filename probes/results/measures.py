"""Measures of pretrainings, alignments and probes: their places in results, and their declarations by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from pretrain.config import PretrainConfig
from pretrain.folder import READINGS, named_steps, read_metrics, selected_row
from probes.measures.table import PROBES
from probes.measures.words import ALIGNMENT as ALIGNMENT_TREE
from probes.results.declared import ANY, AT_LEAST_ZERO, COEFFICIENT, SHARE, Measure, Range, Tree, Value, find, values_in
from probes.results.scores import ALIGNMENTS, DIGITS, PERPLEXITY_MEASURE, score_measure
from probes.statistics import Interval, mean_interval
from probes.study.config import OF_RUNS

ALIGNMENT, PRETRAIN = OF_RUNS
"""Names used like those of probes, for measures of the alignment and of the pretraining of a run."""
PERPLEXITIES = f"{PRETRAIN}.perplexity."
"""Prefix of the names of perplexities, before the name of a language."""
ALIGNMENT_MEASURES = {name: f"{ALIGNMENT}.scores.{words}.cosine.{way}" for name, (words, way) in ALIGNMENTS.items()}
"""Name of an alignment among the scores of a task → measure with the same value, which does not need a task."""
OF_PARENT = ("perplexity", f"{PERPLEXITIES}parent")
"""The perplexity of the source language: its name among the scores of a task, and its name as a measure."""
TOGETHER = "cka_against_retrieval"
"""Key in probes.json of the correlation of two probes over layers."""

PER_WORD = Measure("tokens per word", "words of the training text", AT_LEAST_ZERO)
UNKNOWN = Measure("share", "tokens of the training text", SHARE)
TOKENS_PER_WORD = f"{PRETRAIN}.tokens_per_word.other"
"""Measure of the tokens per word in the second language of a run."""

TREE: Tree = {
    **{name: settings.measures for name, settings in PROBES.items()},
    ALIGNMENT: ALIGNMENT_TREE,
    PRETRAIN: {
        "perplexity": {
            "parent": PERPLEXITY_MEASURE,
            "other": PERPLEXITY_MEASURE,
            "languages": {ANY: PERPLEXITY_MEASURE},
        },
        "tokens_per_word": {"parent": PER_WORD, "other": PER_WORD, "languages": {ANY: PER_WORD}},
        "unknown_tokens": {"parent": UNKNOWN, "other": UNKNOWN, "languages": {ANY: UNKNOWN}},
    },
    TOGETHER: {
        "blocks": Measure("blocks", "layers"),
        "clusters": Measure("layers", "layers"),
        "r": Measure("correlation", "layers", COEFFICIENT),
        "p": Measure("probability", "layers", SHARE),
    },
}
"""The declarations of all measures, by the first part of their names."""


def probe_values(record: Mapping[str, Any]) -> Iterator[Value]:
    """Yield the finite numbers of the declared measures in the content of a probes.json.

    The name of a measure is its path below ``probes``, such as ``words.scores.all.cosine.mean``. The names of the
    correlation of two probes begin with TOGETHER. A list over layers or steps gives one value for each entry. A band of
    frequency adds its ranks to the path (``words.bands.101-1000.scores…``). The name of the probed model, which differs
    from cell to cell, is replaced by ``model``.
    """
    results = {**record.get("probes", {}), TOGETHER: record.get(TOGETHER) or {}}
    return values_in(results, TREE, record.get("model"))


def alignment_values(result: Mapping[str, Any]) -> Iterator[Value]:
    """Yield the measures in the result of an alignment stage, such as ``alignment.scores.all.cosine.mean``.

    Values that are NaN or infinite are left out.
    """
    return values_in({ALIGNMENT: result}, TREE)


def perplexity_values(found: Mapping[str, float]) -> Iterator[Value]:
    """Yield perplexities, by the names of `perplexities`, as measures such as ``pretrain.perplexity.parent``."""
    return (Value(PERPLEXITIES + name, None, None, value, PERPLEXITY_MEASURE) for name, value in found.items())


def logged_perplexities(run: Path, config: PretrainConfig) -> Iterator[Value]:
    """Yield the perplexities that a run logged at the steps that ``checkpoints.at`` and ``checkpoints.archive`` name.

    The last step is included. There are no values if the config names no step before it. The names are those of
    `perplexity_values`, and the values are rounded to DIGITS decimal places.
    """
    named = named_steps(config.checkpoints, config.steps)
    rows = {row["step"]: row for row in read_metrics(run / "metrics.jsonl")} if len(named) > 1 else {}
    for step in (step for step in named if step in rows):
        for called, name in _called(config):
            if (value := rows[step].get(f"validation/{name}")) is not None:
                yield Value(PERPLEXITIES + called, None, step, round(float(value), DIGITS), PERPLEXITY_MEASURE)


def perplexities(run: Path, config: PretrainConfig) -> dict[str, float]:
    """Return the perplexity of each language on the dev set, from the log of the run at its selected checkpoint.

    The perplexity of an encoder is over masked tokens, and the perplexity of a decoder is over all tokens. The
    languages have the same names in all cells: ``parent`` and ``other`` for the first and the second one. If a run has
    more than two languages, each except the first also has the name ``languages.NAME``. The result is empty if the run
    did not measure perplexity, or if its log ends before the last step.

    Args:
        run: The folder of the run.
        config: The settings of the run.
    """
    selected = selected_row(run, config)
    keys = [(called, f"validation/{name}") for called, name in _called(config)]
    return {called: float(selected[key]) for called, key in keys if key in selected}


def reading_values(done: Mapping[str, Any], config: PretrainConfig) -> Iterator[Value]:
    """Yield the tokens per word and the share (0 to 1) of unknown tokens of each language in the done.json of a run.

    The languages are named as in `perplexities`.
    """
    readings = done.get(READINGS, {})
    for called, name in _called(config):
        for measure, declared in (("tokens_per_word", PER_WORD), ("unknown_tokens", UNKNOWN)):
            if (value := readings.get(name, {}).get(measure)) is not None:
                yield Value(f"{PRETRAIN}.{measure}.{called}", None, None, float(value), declared)


def _called(config: PretrainConfig) -> list[tuple[str, str]]:
    """Return pairs of names of the languages of a run: the name in measures, and the name in the run."""
    names = [language.name for language in config.all_languages]
    others = names[1:] if len(names) > 2 else []
    return [*zip(("parent", "other"), names, strict=False), *((f"languages.{name}", name) for name in others)]


@cache
def measure_of(name: str) -> Measure | None:
    """Return the declaration of a score of a task or of a measure, or None for an undeclared name."""
    return score_measure(name) or find(name, TREE)


def range_of(name: str) -> Range | None:
    """Return the least and the greatest possible value of a score or a measure, or None if they are not known.

    >>> range_of("delta"), range_of("words.scores.all.csls.mean"), range_of("distances.changes.x.l2.related.mean")
    ((-100.0, 100.0), (0.0, 100.0), None)
    """
    measure = measure_of(name)
    return None if measure is None else measure.within


def interval_within(values: Sequence[float], name: str) -> Interval:
    """Return the 95 % t interval of some values [n], with the range of the score or measure ``name``.

    The interval is that of ``mean_interval``. Without a known range, ``within`` is None.

    Raises:
        InputError: There are no values, or NaN or infinity is among them.
    """
    return replace(mean_interval(values), within=range_of(name))
