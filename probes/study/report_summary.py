"""The study in a paragraph of words, made from the numbers and no surer than they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from probes.statistics import Interval, RankCorrelation
from probes.study.report_data import Study
from probes.study.report_scores import CellScore, Condition, conditions, correlate, grouped

SMALL_N = 20
"""Below so many cells a rank correlation is called a hint."""


def number(value: float | None, digits: int = 1) -> str:
    """A number with a real minus sign, a dash for none.

    >>> number(-0.727, 2), number(None)
    ('−0.73', '–')
    """
    if value is None:
        return "–"
    text = f"{value:.{digits}f}"
    return (text.removeprefix("-") if float(text) == 0 else text).replace("-", "−")


def bounds(low: float | None, high: float | None, digits: int = 1) -> str:
    """``low to high``, empty without bounds."""
    return "" if low is None or high is None else f"{number(low, digits)} to {number(high, digits)}"


def plural(n: int, noun: str) -> str:
    """
    >>> plural(1, "cell"), plural(3, "cell")
    ('1 cell', '3 cells')
    """
    return f"{n} {noun}" + ("" if n == 1 else "s")


@dataclass(frozen=True)
class Summary:
    """``lead``: what was run, the correlations, the caveats. ``comparisons``: a line per language."""

    lead: str
    comparisons: tuple[str, ...]


def summary(study: Study, scores: Sequence[CellScore]) -> Summary:
    """What the study shows, and how sure it is."""
    lead = [_what_was_run(study, scores)]
    if not scores:
        return Summary(f"{lead[0]} Nothing can be compared yet.", ())
    found = conditions(study, scores)
    tasks = grouped(scores, lambda score: score.task)
    for task, members in tasks.items():
        lead.append(_correlation(f" on {task}" if len(tasks) > 1 else "", correlate(members, "alignment_all")))
    if any(condition.runs == 1 for condition in found):
        alone = sum(condition.runs == 1 for condition in found)
        rest = "Every condition rests" if alone == len(found) else f"{alone} of {len(found)} conditions rest"
        lead.append(
            f"{rest} on one pretraining seed: intervals of Δ there cover fine-tuning seeds only, alignment has none, "
            "and another pretraining run may change the order."
        )
    several = len({condition.source for condition in found}) > 1
    languages = grouped(found, lambda c: (c.source, c.language))
    return Summary(
        " ".join(lead),
        tuple(
            f"Under {language}{f' from {source}' if several else ''}: {_comparison(rivals, len(tasks) > 1)}."
            for (source, language), rivals in languages.items()
        ),
    )


def _what_was_run(study: Study, scores: Sequence[CellScore]) -> str:
    states = [f"{plural(study.count('done'), 'cell')} of {len(study.cells)} done"]
    states += [f"{study.count(state)} {state}" for state in ("failed", "pending") if study.count(state)]
    text = ", ".join(states)
    if scores:
        seeds = sorted({len(score.deltas) for score in scores})
        names = [dict.fromkeys(getattr(score, key) for score in scores) for key in ("objective", "language", "task")]
        text += f": {plural(len(names[0]), 'objective')} ({', '.join(names[0])}) and "
        text += f"{plural(len(names[1]), 'language')} ({', '.join(names[1])}), scored on {', '.join(names[2])}"
        text += f" with {' to '.join(map(str, dict.fromkeys((seeds[0], seeds[-1]))))} fine-tuning "
        text += "seed per cell" if seeds[-1] == 1 else "seeds per cell"
    return text + "."


def _comparison(rivals: Sequence[Condition], several_tasks: bool) -> str:
    """All conditions of one language: alignment once (it is the same for every task), Δ per task."""
    if len({c.label for c in rivals}) == 1:
        return f"only {rivals[0].label} has been scored, so there is nothing to compare"
    parts = [_highest_alignment(list({c.label: c for c in rivals}.values()))]
    for task, members in grouped(rivals, lambda c: c.task).items():
        parts.append(_smallest_delta(members, f" on {task}" if several_tasks else ""))
    return "; ".join(parts)


def _smallest_delta(members: Sequence[Condition], task: str) -> str:
    ranked = sorted((c for c in members if c.delta is not None), key=lambda c: _mean(c.delta))
    if len(ranked) < 2:
        return f"Δ{task} was not measured for two conditions"
    best, second = ranked[0], ranked[1]
    assert best.delta and second.delta
    text = f"Δ{task} is smallest for {best.label} ({number(best.delta.mean)} points; next {second.label}, "
    return text + f"{number(second.delta.mean)})" + _certainty(best.delta, second.delta, min(best.runs, second.runs))


def _highest_alignment(members: Sequence[Condition]) -> str:
    ranked = sorted((c for c in members if c.alignment is not None), key=lambda c: -_mean(c.alignment))
    if len(ranked) < 2:
        return "alignment was not measured for two conditions"
    best, second = ranked[0], ranked[1]
    assert best.alignment and second.alignment
    text = f"alignment is highest for {best.label} ({number(best.alignment.mean)} %; next {second.label}, "
    text += f"{number(second.alignment.mean)} %)"
    runs = min(best.runs, second.runs)
    return text + (_certainty(best.alignment, second.alignment, runs) if runs > 1 else "")


def _certainty(first: Interval, second: Interval, runs: int) -> str:
    overlap = first.overlaps(second)
    if first.mean == second.mean:
        return ", a tie"
    if overlap is None:
        return ", without an interval for lack of seeds"
    which = "95 % intervals over " + ("pretraining runs" if runs > 1 else "fine-tuning seeds")
    return (
        f", but their {which} overlap: the order is not established"
        if overlap
        else f", and their {which} do not overlap"
    )


def _mean(interval: Interval | None) -> float:
    assert interval is not None
    return interval.mean


def _correlation(task: str, found: RankCorrelation) -> str:
    if found.rho is None:
        return f"Alignment and Δ{task} cannot be correlated ({found.reason})."
    interval = bounds(found.low, found.high, 2)
    text = f"Alignment and Δ{task} correlate with Spearman's ρ = {number(found.rho, 2)} "
    p = "p < 0.001" if found.p is not None and found.p < 0.001 else f"p = {number(found.p, 3)}"
    text += f"over n = {found.n} cells ({'exact ' if found.exact else ''}{p}"
    text += f", bootstrap interval {interval})" if interval else ", too few for an interval)"
    return text + (", a hint at most with so few cells." if found.n < SMALL_N else ".")
