"""Results of a study as sentences, and the correlation of alignment with transfer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from probes.claims.correlation import RESAMPLED, Correlated, Pair, correlate_pairs
from probes.claims.observed import fingerprints_of
from probes.claims.spec import Claim
from probes.claims.verdicts import WORDS
from probes.report.judged import KINDS, Comparisons, PoolVerdict
from probes.report.numbers import Badge, Entry, bounds, number
from probes.report.page import Block, Paragraph, Table
from probes.report.scores import Condition, Material, grouped
from probes.results.scores import FORWARD
from probes.statistics import mean_of
from synthlang.wording import first_few, plural

SMALL_N = 20
"""Number of conditions below which a report calls a rank correlation a hint."""
NAMED = 8
"""Largest number of labels, tasks or claims that a sentence lists."""


def what_was_run(material: Material) -> str:
    """Return a sentence with the numbers of cells by state, the axes that vary, the tasks and the number of seeds."""
    study = material.study
    done = study.count("done")
    states = [
        f"{plural(done, 'cell')}"
        if done == len(study.cells)
        else f"{done:,} of {plural(len(study.cells), 'cell')} done"
    ]
    states += [f"{study.count(state):,} {state}" for state in ("failed", "pending") if study.count(state)]
    told = [", ".join(states)]
    if material.cells:
        layout = material.layout
        told += [f"{layout.titles[axis]}: {first_few(labels, NAMED)}" for axis, labels in layout.axes.items()]
        told += [f"all with {layout.all_fixed}"] if layout.fixed else []
        seeds = sorted({len(score.rows) for score in material.cells})
        counts = " to ".join(map(str, dict.fromkeys((seeds[0], seeds[-1]))))
        several = "seed per cell" if seeds[-1] == 1 else "seeds per cell"
        told.append(f"scored on {first_few(list(material.tasks), NAMED)} with {counts} fine-tuning {several}")
    return "; ".join(told) + "."


def claims_in_words(comparisons: Comparisons) -> list[tuple[Badge, Sequence[str]]]:
    """Return the badge of each verdict with its claims, in the order of WORDS. Claims that were not run are left out.

    A claim with several comparisons has the number of comparisons that hold, unless the claim replicates.
    """
    judged = [(claim.claim, one) for claim in comparisons.claims for one in claim.judged]
    several = len({one.pool for _, one in judged}) > 1
    found = list[tuple[Badge, Sequence[str]]]()
    for word in WORDS:
        if of := [_told(claim, one, several) for claim, one in judged if one.verdict == word and one.was_run]:
            found.append((Badge(f"{word.capitalize()} ({len(of)})", KINDS.get(word, "open")), of))
    return found


def _told(claim: Claim, judged: PoolVerdict, several: bool) -> str:
    """Return a claim and its pool, and the number of comparisons that hold unless the claim replicates."""
    held, run = judged.outcomes.count("holds"), len(judged.outcomes)
    notes = [f"{held} of {run} hold"] if run > 1 and judged.verdict != "replicates" else []
    notes += [judged.pool] if several and judged.pool else []
    return claim.claim + (f" ({', '.join(notes)})" if notes else "")


def verdicts_in_words(comparisons: Comparisons) -> str:
    """Return a sentence with the numbers of claims that replicate, do not replicate and are inconclusive.

    If no claim was run, the sentence is about printed numbers instead. The text is "" if nothing was tested.
    """
    verdicts = [one.verdict for claim in comparisons.claims for one in claim.judged]
    what = "claim"
    if all(verdict == "not run" for verdict in verdicts):
        verdicts = [one.verdict for _, lines in comparisons.tables for line in lines for one in line.judged]
        what = "printed number"
    tested = [verdict for verdict in verdicts if verdict not in ("not run", "not yet judged")]
    if not tested:
        return ""
    agree, differ = (sum(KINDS.get(verdict) == kind for verdict in tested) for kind in ("good", "bad"))
    if len(tested) == 1:
        return f"The one {what} that could be tested {'is ' * (tested[0] == 'inconclusive')}{tested[0]}."
    replicates = f"{agree} {'replicates' if agree == 1 else 'replicate'}"
    contradicted = f"{differ} {'does' if differ == 1 else 'do'} not"
    left = len(tested) - agree - differ
    counts = f"{replicates}, {contradicted} and {left} {'is' if left == 1 else 'are'} inconclusive"
    return f"Of {plural(len(tested), what)} that could be tested, {counts}."


def correlations_in_words(material: Material) -> list[str]:
    """Return lines with the correlation of alignment and Δ on each task, or the reasons why there is none."""
    correlated = {task: correlate(members, "alignment_all") for task, members in material.tasks.items()}
    known = {task: one for task, one in correlated.items() if one.found.r is not None}
    lines = []
    if known:
        named = len(material.tasks) > 1
        told = "; ".join(_correlation(f"{task}: " if named else "", one) for task, one in known.items())
        few = min(one.found.clusters for one in known.values()) < SMALL_N
        hint = " With so few conditions this is a hint at most." if few else ""
        lines.append(f"Alignment against Δ, Spearman's ρ: {told}.{hint}")
    rest = [task for task in correlated if task not in known]
    for reason, alike in grouped(rest, lambda task: correlated[task].found.reason or "").items():
        on = f" on {first_few(alike, NAMED)}" if len(material.tasks) > 1 else ""
        lines.append(f"Alignment and Δ{on} cannot be correlated: {reason}.")
    return lines


def caveat(material: Material) -> str:
    """Return a warning about conditions with only one pretraining seed, or "" without such conditions."""
    found = material.conditions
    alone = sum(condition.pretrainings == 1 and bool(condition.first.pretrain) for condition in found)
    if not alone:
        return ""
    rest = "Every condition rests" if alone == len(found) else f"{alone} of {len(found)} conditions rest"
    made = any(condition.runs > 1 for condition in found if condition.pretrainings == 1)
    covers = "what was done to the model after pretraining" if made else "fine-tuning seeds only"
    return (
        f"{rest} on one pretraining seed. Intervals there cover {covers}, and another pretraining seed may change the "
        "order."
    )


def _correlation(task: str, correlated: Correlated) -> str:
    found = correlated.found
    interval = bounds(found.low, found.high, 2)
    p = f"p = {number(found.p, 3)}" if found.p is None or found.p >= 0.001 else "p < 0.001"
    known = correlated.models is not None and correlated.models != found.clusters
    models = f" of {plural(correlated.models or 0, 'model')}" if known else ""
    return (
        f"{task}ρ = {number(found.r, 2)} over n = {correlated.conditions}{models} ({'exact ' if found.exact else ''}{p}"
        + (f", bootstrap interval {interval})" if interval else ", too few for an interval)")
    )


def correlate(conditions: Sequence[Condition], which: str) -> Correlated:
    """Correlate an alignment with Δ by Spearman's ρ.

    There is a pair for each cell of a condition, because each cell has a different model. Both numbers of a pair are
    means over the fine-tuning seeds of the cell. A cell that lacks one of the two numbers is left out. The test and the
    interval are those of ``correlate_pairs``.

    Args:
        conditions: The conditions of one task.
        which: The name of the alignment among the scores, such as ``alignment_all``.
    """
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
    FORWARD: "all types, from the source",
}


def correlations(tasks: Mapping[str, Sequence[Condition]]) -> list[Block]:
    """Return a table of correlations of alignment with Δ, and a warning.

    The table has a row for each task and each alignment of NAMES. ``tasks`` maps at least one task to its conditions.
    """
    body: list[list[Entry]] = []
    for task, members in tasks.items():
        for column, name in NAMES.items():
            if column == FORWARD and not any(member.interval(column) for member in members):
                continue  # earlier versions did not write this column
            correlated = correlate(members, column)
            found = correlated.found
            p = "–" if found.p is None else f"{found.p:.4f}" + (" exact" if found.exact else "")
            why = found.reason or found.no_interval
            shown = name + (f"\n{why}" if why else "")
            n = correlated.conditions + (f"\n{correlated.pairs_of_models}" if found.n else "")
            body.append([task, shown, n, number(found.r, 2), bounds(found.low, found.high, 2) or "–", p])
    caption = (
        "Spearman correlation of alignment with Δ. ρ < 0: the better the alignment, the smaller the loss in transfer. "
        "Models of a condition, which differ in the seed of pretraining, form one cluster. So do conditions with the "
        "same measurement of a model, for instance if they differ only in fine-tuning. p is from a two-sided "
        "permutation test and the 95 % interval from a bootstrap, both over conditions. For more than "
        f"{RESAMPLED} conditions they are from Student's t and Fisher's transformation."
    )
    table = Table(caption, ["Task", "Alignment", "n", "ρ", "95 % interval", "p"], body, 2, "correlations")
    few = "the conditions are few and" if max(map(len, tasks.values())) < SMALL_N else "the conditions"
    warning = (
        f"Read with care: {few} share languages and objectives, so they are not independent, and p and the "
        "interval look more certain than they are. A correlation does not show that alignment causes transfer. "
        "The alignments of all types and of types in the dictionary include pairs that some objectives are trained on."
    )
    return [table, Paragraph(warning, "note")]
