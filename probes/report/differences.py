"""Differences between conditions, with p values corrected by Holm's method.

A study names its comparisons under ``compare``. Without this key, the labels of an axis are compared with the first
label that has scores, while all other axes are fixed. Axes of languages are compared only if no other axis varies. If
no two conditions differ in only one axis, whole combinations of labels are compared.

Models of the same pretraining seed start from the same weights and read the same batches, so conditions are paired by
seeds. Conditions without common seeds are compared by Welch's test (see claims/estimates.py). Excluded runs are left
out.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from probes.claims.estimates import DECIDED, UNPAIRED, Estimate, counted, difference, interaction
from probes.claims.observed import Replicates, is_after, labels_and_seeds, model_seeds
from probes.report.data import Study
from probes.report.numbers import bounds, number, shown_p, where_bounds
from probes.report.page import Paragraph, Section, Table
from probes.report.printed import SHOWN
from probes.report.scores import Column, Condition, Material, by_rows, grouped
from probes.results.labels import Layout, axes_that_set
from probes.results.measures import range_of
from probes.statistics import corrected
from probes.study.compare import Comparison, comparisons
from synthlang.wording import first_few, plural

LOWER, HIGHER, UNDECIDED, UNTESTED = "lower", "higher", "undecided", "not tested"
MOST = 200
"""Largest number of rows of the table on the page."""
NAMED = 6
"""Largest number of settings that a sentence names."""
CAPTION = (
    "Differences in points{intervals} between conditions{which}. A negative difference in "
    "Δ means a smaller loss in transfer. Models with the same seeds are paired, and p is from a paired t-test"
)
BY_AXIS, CHOSEN = " that differ in one axis", " that the study compares"
INTERACTION = " An interaction is a difference of two differences."
WELCH = " (from Welch's test where no seeds are shared)"
HOLM = ". The p values are corrected for {} by Holm's method."
ONE = (
    "Where n counts fine-tuning seeds, both conditions rest on one pretraining each. The test then covers fine-tuning "
    "only, and another pretraining seed may give another result."
)


@dataclass(frozen=True)
class Difference:
    """A difference of one score between two conditions: ``name`` minus ``base``.

    Attributes:
        group: Labels that both conditions share.
        name: Labels of the first condition that differ from those of the second.
        base: Labels of the second condition that differ from those of the first.
        task: The task of the score.
        measure: Name of the score: ``delta`` or ``zs``.
        ours: The difference with its interval and n.
        p: The p value, corrected for all differences of the study. It is None if the spread is not known, as for a
            single pair or the same difference in all pairs.
        chosen: True if the study names the comparison.
        is_interaction: True if ``name`` and ``base`` are differences themselves.
    """

    group: str
    name: str
    base: str
    task: str
    measure: str
    ours: Estimate
    p: float | None = None
    chosen: bool = False
    is_interaction: bool = False

    @property
    def compared(self) -> str:
        """Text of the two compared conditions, or of the two differences of an interaction."""
        return f"({self.name}) − ({self.base})" if self.is_interaction else f"{self.name} − {self.base}"

    @property
    def outcome(self) -> str:
        """Result of the test: LOWER, HIGHER, UNDECIDED or UNTESTED."""
        if self.p is None:
            return UNTESTED
        if self.p > DECIDED:
            return UNDECIDED
        return HIGHER if self.ours.mean > 0 else LOWER


def differences(material: Material) -> list[Difference]:
    """Return the differences that the study names, on each task, or else the differences of compared axes.

    The p values are corrected together by Holm's method.
    """
    chosen = chosen_comparisons(material.study)
    found = _chosen_differences(material, chosen) if chosen else _differences_by_axis(material)
    known = corrected([one.ours.p for one in found])
    return [replace(one, p=p) for one, p in zip(found, known, strict=True)]


def chosen_comparisons(study: Study) -> list[Comparison]:
    """Return the comparisons that a study names, or that the studies of a joined report name."""
    return [one for config in study.configs for one in comparisons(config.get("compare") or ())]


def _chosen_differences(material: Material, chosen: Sequence[Comparison]) -> list[Difference]:
    """Compare the conditions of each comparison under every combination of the other labels."""
    later, found = axes_that_set(material.study.config, is_after), list[Difference]()
    for comparison, members in ((one, members) for one in chosen for members in material.tasks.values()):
        for sides in comparison.matched(members, lambda condition: condition.labels):
            measure = next((name for name in SHOWN if all(side.values(name) for side in sides)), None)
            if measure is not None:
                values = [replicates(side, measure, later) for side in sides]
                ours = interaction(*values) if comparison.is_interaction else difference(*values)
                found += [] if ours is None else [_chosen(comparison, material.layout, sides, measure, ours)]
    return found


def _chosen(
    comparison: Comparison, layout: Layout, sides: Sequence[Condition], measure: str, ours: Estimate
) -> Difference:
    """Return the difference of a comparison with the names of its sides."""
    varied, outer = comparison.between(0, 1), comparison.between(0, 2) if comparison.is_interaction else []
    names = [layout.only(side.labels, varied) for side in sides]
    if comparison.is_interaction:
        inner = " − ".join(names[:2])
        names = [f"{inner} under {layout.only(side.labels, outer)}" for side in (sides[0], sides[2])]
    group, (name, base, *_) = layout.without(sides[0].labels, *varied, *outer), names
    is_interaction = comparison.is_interaction
    return Difference(group, name, base, sides[0].task, measure, ours, chosen=True, is_interaction=is_interaction)


def _differences_by_axis(material: Material) -> list[Difference]:
    """Compare each label of each axis with the first label that has scores."""
    later = axes_that_set(material.study.config, is_after)
    layout, found = material.layout, list[Difference]()
    for axes in compared_axes(material):
        groups = [(layout.without(c.labels, *axes), c.task) for c in material.conditions]
        pairs = zip(groups, material.conditions, strict=True)
        for rivals in ([c for _, c in of] for of in grouped(pairs, lambda pair: pair[0]).values()):
            measure = next((name for name in SHOWN if all(c.values(name) for c in rivals)), None)
            if measure is None or len(rivals) < 2:
                continue
            first, *others = (replicates(c, measure, later) for c in rivals)
            names = [layout.only(c.labels, axes) or layout.alone for c in rivals]
            group = layout.without(rivals[0].labels, *axes)
            for name, other in zip(names[1:], others, strict=True):
                if (ours := difference(other, first)) is not None:
                    found.append(Difference(group, name, names[0], rivals[0].task, measure, ours))
    return found


def compared_axes(material: Material) -> list[tuple[str, ...]]:
    """Return groups of axes whose labels are compared while all other axes are fixed, the main axis first.

    Each group is one axis. If no two conditions differ in only one axis, all compared axes form one group.
    """
    layout = material.layout

    def has_rivals(axis: str) -> bool:
        groups = grouped(material.conditions, lambda c: layout.without(c.labels, axis)).values()
        return any(len({c.labels.get(axis) for c in rivals}) > 1 for rivals in groups)

    return [(axis,) for axis in layout.compared if has_rivals(axis)] or [layout.compared]


def replicates(condition: Condition, column: str, later: Iterable[str]) -> Replicates:
    """Return the finite values of a score by the seeds of models and of fine-tuning.

    Args:
        condition: The condition.
        column: The name of the score, such as ``zs``.
        later: Named axes of seeds that the pretraining does not depend on.
    """
    found = Replicates()
    for row in condition.rows:
        value = row.values.get(column)
        if value is not None and math.isfinite(value):
            _, first, rest = labels_and_seeds(row.labels, "", frozenset(later))
            found[model_seeds(row.pretrain_seed, first, rest), row.seed] = value
    return found


def differences_section(found: Sequence[Difference]) -> Section | None:
    """Return the section with a table of the differences ``found``, or None if there are none."""
    if not found:
        return None
    scores = [SHOWN[one.measure] for one in found]
    columns: list[Column] = [("Compared", [one.compared for one in found])]
    columns += [("Under", [one.group or "–" for one in found])] if any(one.group for one in found) else []
    columns.append(("Task", [one.task for one in found]))
    several = len(set(scores)) > 1
    columns += [("Score", scores)] if several else []
    texts = len(columns)
    intervals = [replace(one.ours.interval, within=range_of("delta")) for one in found]
    columns.append(("Difference" if several else f"Difference\nin {scores[0]}", intervals))
    columns += [("p", [shown_p(one.p) for one in found]), ("n", [_over(one.ours) for one in found])]
    tests = sum(one.p is not None for one in found)
    which = CHOSEN if found[0].chosen else BY_AXIS
    told = CAPTION.format(intervals=where_bounds(intervals, ", with 95 % intervals,"), which=which)
    told += WELCH if any(UNPAIRED in one.ours.notes for one in found) else ""
    told += HOLM.format(plural(tests, "test")) if tests > 1 else "."
    told += INTERACTION if any(one.is_interaction for one in found) else ""
    table = Table(told, *by_rows(columns), texts, "differences", MOST)
    notes = [Paragraph(ONE, "note")] if any(one.ours.unit == "fine-tuning seeds" for one in found) else []
    return Section("Differences between conditions", [table, *notes])


def _over(ours: Estimate) -> str:
    if UNPAIRED in ours.notes:
        return f"{counted(ours.n, ours.unit)}\nnot paired"
    return f"{plural(ours.n, 'pair')}\nof {ours.unit}"


def in_words(found: Sequence[Difference]) -> list[str]:
    """Return a line for each comparison that the study names, or else for each pair of labels and each score.

    A line for a pair of labels counts the differences by outcome. It names settings in which the first label is lower
    or higher, and the differences that cannot be tested.

    Args:
        found: The differences.
    """
    lines = [_in_numbers(one) for one in found if one.chosen]
    if lines:
        return lines
    for (name, base, measure), of in grouped(found, lambda one: (one.name, one.base, one.measure)).items():
        outcomes = grouped(of, lambda one: one.outcome)
        told = [
            f"{word} in {len(outcomes[word])} ({_places(outcomes[word])})"
            for word in (LOWER, HIGHER)
            if word in outcomes
        ]
        told += [f"not shown to differ in {len(outcomes[UNDECIDED])}"] if UNDECIDED in outcomes else []
        if UNTESTED in outcomes:
            untested = [f"{_where(one)} {number(one.ours.mean)}, n = {one.ours.n}" for one in outcomes[UNTESTED]]
            told.append(f"no test is possible in {len(untested)} ({first_few(untested, NAMED, '; ')})")
        what = f"{name} against {base}, {SHOWN[measure]} in {plural(len(of), 'comparison')}"
        lines.append(f"{what}: {', '.join(told)}.")
    return lines


def unmade_in_words(material: Material) -> list[str]:
    """Return a line with the number of comparisons of the study that have no result, if there are any."""
    chosen = chosen_comparisons(material.study)
    left = sum(not _chosen_differences(material, [one]) for one in chosen)
    reason = "because conditions have no scores, or no models in common"
    return [f"{left} of {plural(len(chosen), 'comparison')} of the study could not be made, {reason}."] if left else []


def _in_numbers(one: Difference) -> str:
    """Return a comparison with its difference, interval, p value and number of pairs."""
    interval = replace(one.ours.interval, within=range_of("delta")).shown
    limits = bounds(interval.low, interval.high)
    told = f"{SHOWN[one.measure]} {number(one.ours.mean)}" + (f" ({limits})" if limits else "")
    test = "no test is possible" if one.p is None else f"p = {shown_p(one.p)}".replace("= <", "<")
    pairs = _over(one.ours).replace("\n", " ")
    return f"{one.name} against {one.base} ({_where(one)}): {told}, {test}, n = {pairs}."


def _where(one: Difference) -> str:
    return f"{one.group}: {one.task}" if one.group else one.task


def _places(found: Sequence[Difference]) -> str:
    groups = grouped(found, lambda one: one.group)
    tasks = {group: ", ".join(one.task for one in of) for group, of in groups.items()}
    return first_few([f"{group}: {named}" if group else named for group, named in tasks.items()], NAMED, "; ")
