"""Differences between conditions that differ in one axis, paired by seeds, with p values corrected by Holm.

Models of the same pretraining seed start from the same weights and read the same batches, so conditions are compared
pair by pair (see claims/estimates.py). Models that have not learned are in no pair.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace

from probes.claims.estimates import DECIDED, UNPAIRED, Estimate, counted, difference
from probes.claims.observed import Replicates, is_after, labels_and_seeds, model_seeds
from probes.report.data import Study
from probes.report.numbers import Entry, first_few, number, plural
from probes.report.page import Paragraph, Section, Table
from probes.report.printed import SHOWN
from probes.report.scores import Condition, ScoreTable, grouped
from probes.results.labels import axes_that_set
from probes.results.measures import range_of
from probes.statistics import corrected

LOWER, HIGHER, UNDECIDED, UNTESTED = "lower", "higher", "undecided", "not tested"
MOST = 200
"""Largest number of rows of the table on the page."""
NAMED = 6
"""Largest number of settings that a sentence names."""
CAPTION = (
    "Differences in points, with 95 % intervals, between conditions that differ in one axis. A negative difference in "
    "Δ means a smaller loss in transfer. Models with the same seeds are paired, and p is from a paired t-test"
)
WELCH = " (from Welch's test where no seeds are shared)"
HOLM = ". The p values are corrected for {} by Holm's method."
ONE = (
    "Where n counts fine-tuning seeds, both conditions rest on one pretraining each. The test then covers fine-tuning "
    "only; another pretraining seed may give another result."
)


@dataclass(frozen=True)
class Difference:
    """A score of the condition ``name`` minus that of the condition ``base``, under the same other labels ``group``.

    Attributes:
        p: Corrected for all differences of the study; None where there is one pair, or all pairs are equal.
    """

    group: str
    name: str
    base: str
    task: str
    measure: str
    ours: Estimate
    p: float | None = None

    @property
    def outcome(self) -> str:
        """Whether the score is lower or higher, as far as this is decided."""
        if self.p is None:
            return UNTESTED
        if self.p > DECIDED:
            return UNDECIDED
        return HIGHER if self.ours.mean > 0 else LOWER


def differences(study: Study, scores: ScoreTable) -> list[Difference]:
    """Compare each label of each axis with the first one that was scored, on each task."""
    later = axes_that_set(study.config, is_after)
    layout, found = scores.layout, list[Difference]()
    for axes in compared_axes(scores):
        groups = [(layout.without(c.labels, *axes), c.task) for c in scores.conditions]
        pairs = zip(groups, scores.conditions, strict=True)
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
    known = corrected([one.ours.p for one in found])
    return [replace(one, p=p) for one, p in zip(found, known, strict=True)]


def compared_axes(scores: ScoreTable) -> list[tuple[str, ...]]:
    """Return the axes whose labels are compared while the others are fixed, the main axis first.

    Axes that always change together, so that no two conditions differ in only one of them, count as one.
    """
    layout = scores.layout

    def has_rivals(axis: str) -> bool:
        groups = grouped(scores.conditions, lambda c: layout.without(c.labels, axis)).values()
        return any(len({c.labels.get(axis) for c in rivals}) > 1 for rivals in groups)

    return [(axis,) for axis in layout.compared if has_rivals(axis)] or [layout.compared]


def replicates(condition: Condition, column: str, later: Iterable[str]) -> Replicates:
    """Return the values of a column by the seeds of models and of fine-tuning."""
    found = Replicates()
    for row in condition.rows:
        value = row.values.get(column)
        if value is not None and math.isfinite(value):
            _, first, rest = labels_and_seeds(row.labels, "", frozenset(later))
            found[model_seeds(row.pretrain_seed, first, rest), row.seed] = value
    return found


def shown_p(p: float | None) -> str:
    """Return a p value as text.

    >>> shown_p(0.04567), shown_p(0.0002), shown_p(None)
    ('.046', '< .001', '–')
    """
    if p is None:
        return "–"
    return "< .001" if p < 0.001 else "1" if p >= 0.9995 else number(p, 3).removeprefix("0")


def differences_section(found: Sequence[Difference]) -> Section | None:
    """Return the table of all differences; None where nothing can be compared."""
    if not found:
        return None
    under, measures = any(one.group for one in found), {SHOWN[one.measure] for one in found}
    body: list[list[Entry]] = []
    for one in found:
        shown = replace(one.ours.interval, within=range_of("delta"))
        n = f"{plural(one.ours.n, 'pair')}\nof {one.ours.unit}"
        if UNPAIRED in one.ours.notes:
            n = f"{counted(one.ours.n, one.ours.unit)}\nnot paired"
        score = [SHOWN[one.measure]] if len(measures) > 1 else []
        body.append(
            [
                f"{one.name} − {one.base}",
                *([one.group or "–"] if under else []),
                one.task,
                *score,
                shown,
                shown_p(one.p),
                n,
            ]
        )
    what = [] if len(measures) > 1 else [f"Difference\nin {measures.pop()}"]
    header = ["Compared", *(["Under"] if under else []), "Task", *(what or ["Score", "Difference"]), "p", "n"]
    tests = sum(one.p is not None for one in found)
    told = CAPTION + (WELCH if any(UNPAIRED in one.ours.notes for one in found) else "")
    told += HOLM.format(plural(tests, "test")) if tests > 1 else "."
    blocks = [Table(told, header, body, len(header) - 3, "differences", MOST)]
    notes = [Paragraph(ONE, "note")] if any(one.ours.unit == "fine-tuning seeds" for one in found) else []
    return Section("Differences between conditions", [*blocks, *notes])


def in_words(found: Sequence[Difference]) -> list[str]:
    """Return a line for each pair of labels: in how many settings the first one is lower, higher or undecided."""
    lines = []
    for (name, base, measure), of in _by(found, lambda one: (one.name, one.base, one.measure)):
        outcomes = {word: [one for one in of if one.outcome == word] for word in (LOWER, HIGHER, UNDECIDED, UNTESTED)}
        decided = [(word, outcomes[word]) for word in (LOWER, HIGHER) if outcomes[word]]
        told = [f"{word} in {len(those)} ({_places(those)})" for word, those in decided]
        told += [f"not shown to differ in {len(outcomes[UNDECIDED])}"] if outcomes[UNDECIDED] else []
        told += [f"too few models for a test in {len(outcomes[UNTESTED])}"] if outcomes[UNTESTED] else []
        what = f"{name} against {base}, {SHOWN[measure]} in {plural(len(of), 'comparison')}"
        lines.append(f"{what}: {', '.join(told)}.")
    return lines


def _places(found: Sequence[Difference]) -> str:
    """Name the settings and the tasks."""
    groups = [
        f"{group}: {', '.join(one.task for one in of)}" if group else ", ".join(one.task for one in of)
        for (group,), of in _by(found, lambda one: (one.group,))
    ]
    return first_few(groups, NAMED, "; ")


def _by(
    found: Sequence[Difference], key: Callable[[Difference], tuple[Hashable, ...]]
) -> Iterable[tuple[tuple[str, ...], list[Difference]]]:
    return grouped(found, key).items()
