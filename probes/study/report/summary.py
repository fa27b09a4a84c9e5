"""The study in a paragraph of words, made from the numbers and no surer than they are; how alignment and transfer go
together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from probes.report.numbers import Entry, bounds, first_few, number, plural
from probes.report.page import Block, Paragraph, Table
from probes.statistics import Interval, mean_of
from probes.study.judged.correlated import RESAMPLED, Correlated, Pair, correlate_pairs
from probes.study.judged.observed import fingerprints_of
from probes.study.report.data import Study
from probes.study.report.scores import Condition, ScoreTable, grouped
from probes.study.report.training import PARENT, pretrained
from probes.study.table import FORWARD

SMALL_N = 20
"""Below so many conditions a rank correlation is called a hint."""
COMPARISONS, NAMED = 12, 8
"""Most groups that are compared in words, and most labels of an axis that are named."""


class Summary(NamedTuple):
    """``lead``: what was run, the correlations, the caveats. ``comparisons``: a line per group of conditions."""

    lead: str
    comparisons: Sequence[str]


def summary(study: Study, scores: ScoreTable) -> Summary:
    """What the study shows, and how sure it is."""
    lead, found, tasks = [_what_was_run(study, scores)], scores.conditions, scores.tasks
    if not found:
        return Summary(f"{lead[0]} {_best_perplexity(study, scores)}", ())
    correlated = {task: correlate(members, "alignment_all") for task, members in tasks.items()}
    for reason, alike in grouped(correlated, lambda task: correlated[task].found.reason or task).items():
        named, one = f" on {first_few(alike, NAMED)}" if len(tasks) > 1 else "", correlated[alike[0]]
        cannot = f"Alignment and Δ{named} cannot be correlated ({reason})."
        lead.append(cannot if one.found.r is None else _correlation(named, one))
    alone = sum(condition.pretrainings == 1 and bool(condition.first.pretrain) for condition in found)
    if alone:
        rest = "Every condition rests" if alone == len(found) else f"{alone} of {len(found)} conditions rest"
        made = any(condition.runs > 1 for condition in found if condition.pretrainings == 1)
        covers = "what was done to it since" if made else "fine-tuning seeds only, alignment has none"
        lead.append(
            f"{rest} on one pretraining seed: intervals of Δ there cover {covers}, "
            "and another pretraining run may change the order."
        )
    return Summary(" ".join(lead), _comparisons(scores))


def _best_perplexity(study: Study, scores: ScoreTable) -> str:
    """What can be said of a study without scores."""
    known = [one for one in pretrained(study) if PARENT in one.perplexities and not one.failed]
    ranked = [(one.perplexities[PARENT], scores.layout.full_name(one.labels)) for one in known]
    if len(ranked) < 2:
        return "Nothing can be compared yet."
    (first, name), (second, other), *_ = ranked
    text = f"The perplexity of the parent is lowest for {name} ({number(first.mean)}; next {other}, "
    return f"{text}{number(second.mean)}{_certainty(first, second)})."


def _what_was_run(study: Study, scores: ScoreTable) -> str:
    states = [f"{plural(study.count('done'), 'cell')} of {len(study.cells):,} done"]
    states += [f"{study.count(state):,} {state}" for state in ("failed", "pending") if study.count(state)]
    told = [", ".join(states)]
    if scores.cells:
        layout = scores.layout
        told += [f"{layout.titles[axis]}: {first_few(labels, NAMED)}" for axis, labels in layout.axes.items()]
        told += [f"all with {layout.all_fixed}"] if layout.fixed else []
        seeds = sorted({len(score.rows) for score in scores.cells})
        counts = " to ".join(map(str, dict.fromkeys((seeds[0], seeds[-1]))))
        several = "seed per cell" if seeds[-1] == 1 else "seeds per cell"
        told.append(f"scored on {first_few(list(scores.tasks), NAMED)} with {counts} fine-tuning {several}")
    return "; ".join(told) + "."


def _correlation(task: str, correlated: Correlated) -> str:
    found = correlated.found
    interval = bounds(found.low, found.high, 2)
    p = f"p = {number(found.p, 3)}" if found.p is None or found.p >= 0.001 else "p < 0.001"
    known = correlated.models is not None and correlated.models != found.clusters
    models = f" of {plural(correlated.models or 0, 'model')}" if known else ""
    return (
        f"Alignment and Δ{task} correlate with Spearman's ρ = {number(found.r, 2)} "
        f"over n = {correlated.conditions}{models} ({'exact ' if found.exact else ''}{p}"
        + (f", bootstrap interval {interval})" if interval else ", too few for an interval)")
        + (", a hint at most with so few." if found.clusters < SMALL_N else ".")
    )


def _comparisons(scores: ScoreTable) -> list[str]:
    """The labels of each axis compared, the others fixed: of the main one COMPARISONS groups, of others if all fit.

    Where axes go together, so that no two conditions differ in one only, they are compared as one.
    """
    layout, lines, left = scores.layout, list[str](), list[str]()

    def groups(axes: Sequence[str]) -> list[list[Condition]]:
        """Conditions that differ in these axes only."""
        return list(grouped(scores.conditions, lambda c: layout.without(c.labels, *axes)).values())

    def is_several(rivals: Sequence[Condition], axes: Sequence[str]) -> bool:
        return len({layout.only(c.labels, axes) for c in rivals}) > 1

    compared_axes: list[tuple[str, ...]] = [
        (axis,) for axis in layout.compared if any(is_several(rivals, (axis,)) for rivals in groups((axis,)))
    ]
    for axes in compared_axes or [layout.compared]:
        found = [rivals for rivals in groups(axes) if not lines or is_several(rivals, axes)]
        if lines and len(lines) + len(found) > COMPARISONS:
            left += [layout.titles[axis] for axis in axes]
            continue
        for rivals in found[:COMPARISONS]:
            said, group = _comparison(rivals, scores, axes), layout.without(rivals[0].labels, *axes)
            lines.append(f"Under {group}: {said}." if group else f"{said[0].upper()}{said[1:]}.")
        if len(found) > COMPARISONS:
            lines.append(f"{len(found) - COMPARISONS} further groups are compared in the tables below.")
    if left:
        lines.append(f"For {' and '.join(left)} see the tables below: too many groups for words.")
    return lines


def _comparison(rivals: Sequence[Condition], scores: ScoreTable, axes: Sequence[str]) -> str:
    """All conditions of one group: alignment once (it is the same for every task), Δ per task."""
    layout = scores.layout
    names = {layout.only(c.labels, axes) or layout.alone: c for c in rivals}
    if len(names) == 1:
        return f"only {next(iter(names))} has been scored, so there is nothing to compare"
    parts = [_highest_alignment(names)]
    for task, members in grouped(rivals, lambda c: c.task).items():
        of_task = {layout.only(c.labels, axes): c for c in members}
        parts.append(_smallest_delta(of_task, f" on {task}" if len(scores.tasks) > 1 else ""))
    return "; ".join(part for part in parts if part)


def _smallest_delta(members: Mapping[str, Condition], task: str) -> str:
    ranked = sorted(((c.delta, name) for name, c in members.items() if c.delta), key=lambda item: item[0].mean)
    if len(ranked) < 2:
        return f"Δ{task} was not measured for two conditions"
    (first, name), (second, other), *_ = ranked
    if _alike([interval for interval, _ in ranked]):
        return f"Δ{task} is {number(first.mean)} points for all of them, so there is no order"
    text = f"Δ{task} is smallest for {name} ({number(first.mean)} points; next {other}, {number(second.mean)}"
    return text + _certainty(first, second) + ")"


def _highest_alignment(members: Mapping[str, Condition]) -> str:
    known = [(c.alignment, c.runs, name) for name, c in members.items() if c.alignment]
    ranked = sorted(known, key=lambda item: -item[0].mean)
    if len(ranked) < 2:
        return ""
    (first, runs, name), (second, others, other), *_ = ranked
    if _alike([interval for interval, *_ in ranked]):
        return f"alignment is {number(first.mean)} % for all of them"
    text = f"alignment is highest for {name} ({number(first.mean)} %; next {other}, {number(second.mean)} %"
    told = _alike([first, second]) or min(runs, others) > 1
    return text + (_certainty(first, second) if told else "") + ")"


def _alike(ranked: Sequence[Interval]) -> bool:
    """Whether a reader sees one number."""
    return len({number(interval.mean) for interval in ranked}) == 1


def _certainty(first: Interval, second: Interval) -> str:
    overlap = first.overlaps(second)
    if _alike([first, second]):
        return "; a tie"
    if overlap is None:
        return "; without an interval for lack of seeds"
    return "; intervals overlap: the order is not established" if overlap else "; intervals apart"


def correlate(conditions: Sequence[Condition], which: str) -> Correlated:
    """Spearman correlation of an alignment column with Δ, a pair for each model of a condition, which is a cell."""
    pairs = list[Pair]()
    for place, condition in enumerate(conditions):
        for cell in grouped(condition.rows, lambda row: row.cell).values():
            x, y = (mean_of(row.values.get(column) for row in cell) for column in (which, "delta"))
            if x is not None and y is not None:
                known = {fingerprints_of(row.pretrain, row.adjust, row.pretrain_seed) for row in cell}
                pairs.append(Pair((str(place),), x, y, frozenset(model for model in known if model)))
    return correlate_pairs(pairs)


NAMES = {
    **{"alignment_all": "all types", "alignment_dictionary": "in dictionary", "alignment_held_out": "held out"},
    FORWARD: "all types, from the parent",
}


def correlations(tasks: Mapping[str, Sequence[Condition]]) -> list[Block]:
    """The table of correlations of each task and kind of alignment, and a warning."""
    body: list[list[Entry]] = []
    for task, members in tasks.items():
        for column, name in NAMES.items():
            if column == FORWARD and not any(member.interval(column) for member in members):
                continue  # results of versions that did not write it
            correlated = correlate(members, column)
            found = correlated.found
            p = "–" if found.p is None else f"{found.p:.4f}" + (" exact" if found.exact else "")
            why = found.reason or found.no_interval
            shown = name + (f"\n{why}" if why else "")
            n = correlated.conditions + (f"\n{correlated.pairs_of_models}" if found.n else "")
            body.append([task, shown, n, number(found.r, 2), bounds(found.low, found.high, 2) or "–", p])
    caption = (
        "Spearman correlation of alignment with Δ, a pair a model. ρ < 0: better aligned, smaller loss in transfer. "
        "Models of a condition (other seeds of pretraining) are one cluster, as are conditions that have the same "
        "measurement of a model, as where they differ in fine-tuning alone. p: two-sided permutation test; interval: "
        f"95 % bootstrap, both of conditions; of more than {RESAMPLED} conditions Student's t and Fisher's interval."
    )
    table = Table(caption, ["Task", "Alignment", "n", "ρ", "95 % interval", "p"], body, 2, "correlations")
    few = "the conditions are few, they" if max(map(len, tasks.values())) < SMALL_N else "the conditions"
    warning = (
        f"Read with care: {few} share languages and objectives and so are not independent, which makes p and interval "
        "look better than they are. A correlation over conditions does not show that alignment causes transfer; all "
        "types and in dictionary include pairs an objective was trained on."
    )
    return [table, Paragraph(warning, "note")]
