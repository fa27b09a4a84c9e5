"""The study in a paragraph of words, made from the numbers and no surer than they are."""

from __future__ import annotations

from collections.abc import Sequence

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


def p_value(correlation: RankCorrelation) -> str:
    """``p = .012`` in words that say whether it is exact."""
    assert correlation.p is not None
    value = f"p < {0.001}" if correlation.p < 0.001 else f"p = {correlation.p:.3f}"
    return value + (" (exact)" if correlation.exact else "")


def summary(study: Study, scores: Sequence[CellScore]) -> list[str]:
    """Sentences: what was run, who wins under each language, the correlation, the caveats."""
    sentences = [_what_was_run(study, scores)]
    if not scores:
        return [*sentences, "Nothing can be compared yet."]
    groups = grouped(conditions(study, scores), lambda c: (c.task, c.source, c.language))
    several_sources = len({source for _, source, _ in groups}) > 1
    several_tasks = len({task for task, _, _ in groups}) > 1
    for (task, source, language), rivals in groups.items():
        place = f"Under {language}" + (f" from {source}" if several_sources else "")
        sentences.append(place + (f" on {task}" if several_tasks else "") + f", {_comparison(rivals)}")
    for task, members in grouped(scores, lambda score: score.task).items():
        sentences.append(_correlation(f" on {task}" if several_tasks else "", correlate(members, "alignment_all")))
    single = [c for rivals in groups.values() for c in rivals if c.runs == 1]
    if single:
        every = (
            "Every condition rests"
            if len(single) == sum(map(len, groups.values()))
            else f"{len(single)} conditions rest"
        )
        sentences.append(
            f"{every} on one pretraining seed: those intervals cover fine-tuning seeds only, "
            "and another pretraining run may change the order."
        )
    return sentences


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


def _comparison(rivals: Sequence[Condition]) -> str:
    scored = [c for c in rivals if c.delta is not None]
    if len(scored) < 2:
        return (
            f"only {rivals[0].label} has a score: nothing to compare."
            if len(rivals) == 1
            else "too few scores to compare."
        )
    return f"{_smallest_delta(scored)}; {_highest_alignment(scored)}."


def _smallest_delta(scored: Sequence[Condition]) -> str:
    ranked = sorted(scored, key=lambda c: _mean(c.delta))
    best, second = ranked[0], ranked[1]
    assert best.delta and second.delta
    text = f"Δ is smallest for {best.label} ({number(best.delta.mean)} points; next {second.label}, {number(second.delta.mean)})"
    return text + _certainty(best.delta, second.delta)


def _highest_alignment(scored: Sequence[Condition]) -> str:
    ranked = sorted((c for c in scored if c.alignment is not None), key=lambda c: -_mean(c.alignment))
    if len(ranked) < 2:
        return "alignment was not measured for two of them"
    best, second = ranked[0], ranked[1]
    assert best.alignment and second.alignment
    text = f"alignment is highest for {best.label} ({number(best.alignment.mean)} %; next {second.label}, {number(second.alignment.mean)} %)"
    known = best.alignment.overlaps(second.alignment)
    return text + ("" if known is None else _certainty(best.alignment, second.alignment))


def _certainty(first: Interval, second: Interval) -> str:
    overlap = first.overlaps(second)
    if first.mean == second.mean:
        return ", a tie"
    if overlap is None:
        return (
            ", with one seed each and so without an interval"
            if first.n == second.n == 1
            else ", one of them without an interval"
        )
    return (
        ", but their 95 % intervals overlap: the order is not established"
        if overlap
        else ", and their 95 % intervals do not overlap"
    )


def _mean(interval: Interval | None) -> float:
    assert interval is not None
    return interval.mean


def _correlation(task: str, found: RankCorrelation) -> str:
    if found.rho is None:
        return f"Alignment and Δ{task} cannot be correlated ({found.reason})."
    interval = bounds(found.low, found.high, 2)
    text = f"Alignment and Δ{task} correlate with Spearman's ρ = {number(found.rho, 2)} over n = {found.n} cells ({p_value(found)}"
    text += f", bootstrap interval {interval})" if interval else ", too few for an interval)"
    return text + (", a hint at most with so few cells." if found.n < SMALL_N else ".")
