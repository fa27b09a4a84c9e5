"""Means and differences over conditions and seeds, with Student's t.

A mean, and the **difference** of two quantities, is taken first over conditions, then over seeds. A condition is a
combination of labels on the axes that no side names. Only the conditions that all sides have are used, with equal
weights, and only the seeds that all of these conditions have. The notes of an estimate name what was left out. If
another study splits a condition by one more axis that no side names, the parts are left out beside the whole condition.

    paired by models    Both sides have two or more models with the same seeds. There is one difference per pretraining,
                        or per adjustment of a single pretraining, and n is their number. If fewer than two pretrainings
                        have models in common (one side is adjusted, the other is not) but both sides share two or more
                        pretrainings, each side is first averaged over its adjustments, per pretraining and fine-tuning
                        seed.
    paired by seeds     Both sides have one model of the same seeds. There is one difference per fine-tuning seed, and
                        the result does not generalise to another pretraining.
    not paired          All other cases, such as a given model against several adjustments of it. Welch's interval
                        compares the models of both sides, or the fine-tuning seeds of a side with one model. n is that
                        of the smaller side.

A **gap of gaps**, (left − right) − (subtracted from left − subtracted from right), is the difference of two paired
differences. Left is paired with right, or else each side with what is subtracted from it. If neither pairing is
possible, the gap is not run.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np
from scipy import special

from probes.claims.observed import Measured, ModelSeeds, Replicate, Replicates, Series
from probes.results.pooling import Condition, drop_shared_runs
from probes.statistics import Interval, mean_of, numbers_among
from synthlang.wording import first_few, plural

Unit = Literal["models", "adjustments", "fine-tuning seeds", "conditions"]
LEVEL = 0.95
DECIDED = 1 - LEVEL
"""Largest p value of a decided test."""
SAME = 1e-9
"""Largest standard error, in points, of values that are equal up to rounding."""
NAMED = 6
"""Most conditions or seeds that a text names."""
NOTHING = "nothing was measured of this"
UNPAIRED = "the sides are not paired"


@dataclass(frozen=True)
class Estimate:
    """A mean or a difference, with its standard error and degrees of freedom for Student's t.

    Attributes:
        mean: The mean or the difference, in the unit of the measure.
        n: The number of values.
        unit: The kind of values: one per model, adjustment, fine-tuning seed or condition.
        one_model: True if all replicates of a side come from one pretraining, so another one may give another result.
        standard_error: The standard error in the unit of the mean, or None if n < 2.
        degrees_of_freedom: The degrees of freedom of Student's t: n − 1, or Welch's number for an unpaired difference.
        notes: The conditions that were averaged and the data that were left out, in words.
    """

    mean: float
    n: int
    unit: Unit
    one_model: bool
    standard_error: float | None = None
    degrees_of_freedom: float = 0.0
    notes: tuple[str, ...] = ()

    @property
    def interval(self) -> Interval:
        """The 95 % interval. Its bounds are None if n < 2."""
        return self.interval_at(LEVEL)

    def interval_at(self, level: float) -> Interval:
        """Return the two-sided interval of ``level`` (0 to 1). Its bounds are None if n < 2.

        The interval is mean ± t((1 + level) / 2; f) · standard error, with f degrees of freedom of Student's t.
        """
        if self.standard_error is None:
            return Interval(self.mean, None, None, self.n, level)
        half = float(special.stdtrit(self.degrees_of_freedom, (1 + level) / 2)) * self.standard_error
        return Interval(self.mean, self.mean - half, self.mean + half, self.n, level)

    @property
    def p(self) -> float | None:
        """Two-sided p value of the hypothesis that the true value is 0, or None if the spread is not known."""
        return 2 * min(self.p_above(0.0), self.p_above(0.0, -1)) if self.has_spread else None

    @property
    def has_spread(self) -> bool:
        """True if the spread is known. A single replicate shows no spread, and neither do equal replicates."""
        return self.standard_error is not None and self.standard_error > SAME

    def p_above(self, bound: float, side: int = 1) -> float:
        """Return the one-sided p value for a true value above ``bound``, or below it if ``side`` is −1.

        With ``side`` 1, the value is P(T ≥ (mean − bound) / standard error), where T has Student's t distribution. With
        ``side`` −1, it is P(T ≤ (mean − bound) / standard error). The value is 1 if the spread is not known.
        """
        if self.standard_error is None or not self.has_spread:
            return 1.0
        return float(special.stdtr(self.degrees_of_freedom, side * (bound - self.mean) / self.standard_error))

    def text(self, digits: int = 1, level: float = LEVEL) -> str:
        """Return the estimate in words: ``3.1 (1.0 … 5.2), n = 3 models; over ner, pos``.

        Args:
            digits: Number of decimal places.
            level: Level of the interval (0 to 1), which the text names if it is not 95 %. The text has no interval if
                n < 2.
        """
        interval = self.interval_at(level)
        bounds = ""
        if interval.low is not None and interval.high is not None:
            of = "" if level == LEVEL else f"{100 * level:.0f} %: "
            bounds = f" ({of}{interval.low:.{digits}f} … {interval.high:.{digits}f})"
        notes = "".join(f"; {note}" for note in self.notes)
        return f"{self.mean:.{digits}f}{bounds}, n = {counted(self.n, self.unit)}{notes}"


class EstimateOrWhy(NamedTuple):
    """An estimate, or None and the reason."""

    ours: Estimate | None
    why: str = ""


class _Pairs(NamedTuple):
    """Paired replicates of two sides.

    Attributes:
        differences: left − right of each pair.
        alone: The replicates of either side that have no partner.
    """

    differences: Replicates
    alone: set[Replicate]


Unpaired = tuple[Estimate | None, set[Replicate]]
"""An estimate, and the replicates that are in no pair if the sides are paired."""


def counted(n: int, unit: str) -> str:
    """Return a number with its unit.

    >>> counted(3, "models"), counted(1, "fine-tuning seeds")
    ('3 models', '1 fine-tuning seed')
    """
    return plural(n, unit.removesuffix("s"))


def estimate(replicates: Replicates) -> Estimate | None:
    """Return the mean over models, or None if there are no values.

    If there is one pretraining, the mean is over its adjustments. If there is one model, the mean is over fine-tuning
    seeds. With n values of the sample standard deviation s, the standard error is s / √n.
    """
    if not replicates:
        return None
    numbers, unit = _values_and_unit(replicates)
    values, n, one_model = np.array(numbers), len(numbers), pretrainings(replicates) == 1
    standard_error = None if n < 2 else float(values.std(ddof=1)) / n**0.5
    return Estimate(float(values.mean()), n, unit, one_model, standard_error, n - 1.0)


def difference(left: Replicates, right: Replicates) -> Estimate | None:
    """Return left − right by the rules of this module, or None if a side is empty."""
    return _difference(left, right)[0] if left and right else None


def interaction(left: Replicates, off_left: Replicates, right: Replicates, off_right: Replicates) -> Estimate | None:
    """Return the gap of gaps (left − off_left) − (right − off_right).

    The result is None if a side is empty, or if the sides cannot be paired (see the docstring of the module).
    """
    sides = left, right, off_left, off_right
    return _gap(*sides)[0] if all(sides) else None


def _difference(left: Replicates, right: Replicates) -> Unpaired:
    """Return left − right of two non-empty sides, and the replicates without a partner."""
    paired = _pairs(left, right)
    if paired is None:
        return _unpaired_difference(left, right), set()
    return estimate(paired.differences), paired.alone


def _unpaired_difference(left: Replicates, right: Replicates) -> Estimate:
    """Return the unpaired difference left − right, with the standard error and degrees of freedom of Welch (1947)."""
    (a, of_a), (b, of_b) = _values_and_unit(left), _values_and_unit(right)
    firm: tuple[Unit, ...] = ("fine-tuning seeds", "adjustments", "models")
    n, unit = min((len(a), of_a), (len(b), of_b), key=lambda side: (side[0], firm.index(side[1])))
    mean, one_model = float(np.mean(a) - np.mean(b)), min(pretrainings(left), pretrainings(right)) == 1
    if n < 2:
        return Estimate(mean, n, unit, one_model, notes=(UNPAIRED,))
    parts = [float(np.var(side, ddof=1)) / len(side) for side in (a, b)]
    standard_error = sum(parts) ** 0.5
    if standard_error <= SAME:
        return Estimate(mean, n, unit, one_model, 0.0, n - 1.0, (UNPAIRED,))
    degrees_of_freedom = standard_error**4 / sum(
        part**2 / (len(side) - 1) for part, side in zip(parts, (a, b), strict=True)
    )
    return Estimate(mean, n, unit, one_model, standard_error, degrees_of_freedom, (UNPAIRED,))


def _gap(left: Replicates, right: Replicates, off_left: Replicates, off_right: Replicates) -> Unpaired:
    """Return (left − off_left) − (right − off_right), and the replicates without a partner.

    Left is paired with right, and off_left with off_right. If this is impossible, left is paired with off_left, and
    right with off_right. If neither is possible, the estimate is None.
    """
    for first, second in (((left, right), (off_left, off_right)), ((left, off_left), (right, off_right))):
        one, other = _pairs(*first), _pairs(*second)
        if one is not None and other is not None:
            ours, alone = _difference(one.differences, other.differences)
            return ours, alone | one.alone | other.alone
    return None, set()


def _pairs(left: Replicates, right: Replicates) -> _Pairs | None:
    """Pair two non-empty sides, or return None if they cannot be paired.

    If only one side is adjusted, the sides share no replicates. They are then paired by their common pretrainings.
    """
    as_they_are = _matched(left, right, lambda one: one)
    by_pretraining = _matched(left, right, lambda one: (ModelSeeds(one[0].pretraining, ""), one[1]))
    if pretrainings(as_they_are.differences) < 2 <= pretrainings(by_pretraining.differences):
        return by_pretraining
    models = [{model for model, _ in side} for side in (left, right, as_they_are.differences)]
    return as_they_are if len(models[2]) > 1 or models[0] == models[1] == models[2] else None


def pretrainings(replicates: Replicates) -> int:
    """Return the number of different pretrainings among the models of ``replicates``."""
    return len({model.pretraining for model, _ in replicates})


def _matched(left: Replicates, right: Replicates, name: Callable[[Replicate], Replicate]) -> _Pairs:
    """Average each side over the replicates of each ``name``, and pair the sides by name."""
    by_name: dict[Replicate, tuple[list[float], list[float]]] = {}
    for place, side in enumerate((left, right)):
        for replicate, value in side.items():
            by_name.setdefault(name(replicate), ([], []))[place].append(value)
    differences = {replicate: sum(a) / len(a) - sum(b) / len(b) for replicate, (a, b) in by_name.items() if a and b}
    alone = {replicate for replicate in left.keys() | right.keys() if name(replicate) not in differences}
    return _Pairs(differences, alone)


def common_conditions(sides: Iterable[Series]) -> list[Condition]:
    """Return the conditions that all sides have, in the order of the first side.

    A condition is left out if another condition has the same labels on fewer axes. Such a condition comes from a study
    with one more axis that no side names.
    """
    first, *others = sides
    shared = [condition for condition in first if all(condition in side for side in others)]
    return without_variations(shared, shared)


def without_variations(conditions: Sequence[Condition], of: Sequence[Condition]) -> list[Condition]:
    """Return the conditions, except conditions that have all labels of a condition in ``of`` and further axes."""
    sets, plain = {frozenset(axis for axis, _ in condition) for condition in of}, set(of)

    def varies(condition: Condition) -> bool:
        own = {axis for axis, _ in condition}
        return any(axes < own and tuple(one for one in condition if one[0] in axes) in plain for axes in sets)

    return [condition for condition in conditions if not varies(condition)]


def estimate_of(sides: Sequence[Series]) -> EstimateOrWhy:
    """Return the estimate over all conditions that one, two or four sides have in common, with each run once.

    The sides and the result are as in ``estimate_over``.
    """
    return estimate_over(*drop_shared_runs(sides, common_conditions(sides)))


def estimate_over(sides: Sequence[Series], conditions: Sequence[Condition]) -> EstimateOrWhy:
    """Return the mean of one side, the difference of two or the gap of four, over conditions that all sides have.

    Args:
        sides: One side, two sides (left, right), or four: left, right, and what is subtracted from each of them.
        conditions: The conditions. Every side must have all of them.

    Returns:
        The estimate, or None and the reason why there is none.
    """
    if not all(sides):
        return EstimateOrWhy(None, NOTHING)
    values, censored = _counted_censored(sides, conditions)
    if censored and censored == values:
        return EstimateOrWhy(None, "no curve reaches the threshold")
    every = without_variations(list(dict.fromkeys(condition for side in sides for condition in side)), conditions)
    dropped = [condition for condition in every if condition not in conditions]
    if not conditions:
        listed = " against ".join(named(list(side), every) for side in sides)
        return EstimateOrWhy(None, f"no condition is common to all sides: {listed}")
    means, missing, infinite = list[Replicates](), set[Replicate](), set[Replicate]()
    for side in sides:
        mean, absent, wrong = _averaged([side[condition] for condition in conditions])
        if not mean:
            seed = "no seed with numbers" if wrong else "no seed"
            return EstimateOrWhy(None, f"{seed} is in all conditions of one side: {named(conditions, every)}")
        means.append(mean)
        missing, infinite = missing | absent, infinite | wrong
    if len(means) == 1:
        ours, alone = estimate(means[0]), set[Replicate]()
    else:
        ours, alone = _gap(*means) if len(means) == 4 else _difference(*means)
    missing = (missing | alone) - infinite
    if ours is None:
        return EstimateOrWhy(None, "the sides have different models, so no difference can be paired")
    notes = list(ours.notes)
    notes += [f"over {named(conditions, every)}"] if len(every) > 1 else []
    notes += [f"left out, not measured on all sides: {named(dropped, every)}"] if dropped else []
    notes += [f"left out, not on both sides or in all conditions: {_seeds(missing)}"] if missing else []
    notes += [f"left out, not a number: {_seeds(infinite)}"] if infinite else []
    if censored:
        notes.append(
            f"{censored} of {plural(values, 'curve')} do not reach the threshold and count with their last step"
        )
    return EstimateOrWhy(replace(ours, notes=tuple(notes)) if notes else ours)


def _counted_censored(sides: Sequence[Series], conditions: Sequence[Condition]) -> tuple[int, int]:
    """Return the number of values of all sides, and how many of these are lower bounds of steps to a threshold."""
    parts = [part for side in sides for condition in conditions for part in side.get(condition, {}).values()]
    return sum(map(len, parts)), sum(len(part.censored) for part in parts if isinstance(part, Measured))


def _averaged(
    conditions: Sequence[Mapping[Condition, Replicates]],
) -> tuple[Replicates, set[Replicate], set[Replicate]]:
    """Return means by replicate, the replicates missing in some part, and the replicates that are not finite.

    Parts are averaged before conditions.
    """
    measured = [one for parts in conditions for one in parts.values()]
    every = dict.fromkeys(replicate for one in measured for replicate in one)
    infinite = {replicate for one in measured for replicate, value in one.items() if not math.isfinite(value)}
    shared = [one for one in every if one not in infinite and all(one in part for part in measured)]
    means = {
        one: sum(sum(part[one] for part in parts.values()) / len(parts) for parts in conditions) / len(conditions)
        for one in shared
    }
    return means, every.keys() - set(shared) - infinite, infinite


def over_models(values: Iterable[tuple[Hashable, Hashable, float | None]]) -> tuple[list[float], Unit]:
    """Return the values from which an interval is computed, and their unit.

    The values are means per pretraining. If there is one pretraining, they are means per adjustment. If there is one
    model, they are its values per fine-tuning seed. None, NaN and infinity do not count.

    Args:
        values: Pretraining, adjustment and value of each replicate.
    """
    rows = list(values)
    for place, unit in ((0, "models"), (1, "adjustments")):
        groups: dict[Hashable, list[float | None]] = {}
        for row in rows:
            groups.setdefault(row[place], []).append(row[2])
        if len(groups) > 1:
            means = map(mean_of, groups.values())
            return [mean for mean in means if mean is not None], unit  # type: ignore[return-value]
    return numbers_among(value for _, _, value in rows), "fine-tuning seeds"


def _values_and_unit(replicates: Replicates) -> tuple[list[float], Unit]:
    values, unit = over_models((*model, value) for (model, _), value in replicates.items())
    return values, unit if any(seed is not None for _, seed in replicates) or unit == "adjustments" else "models"


def named(conditions: Sequence[Condition], every: Sequence[Condition]) -> str:
    """Join the names of the first NAMED conditions, and count the others. Labels that ``every`` has are left out."""
    same = set.intersection(*(set(condition) for condition in every))
    names = [" ".join(label for axis, label in one if (axis, label) not in same) or "–" for one in conditions]
    return first_few(names, NAMED)


def _seeds(replicates: Iterable[Replicate]) -> str:
    """Name replicates by model, for example ``seeds 1, 2 of pretraining 0``."""
    models: dict[ModelSeeds, list[str]] = {}
    for model, seed in sorted(replicates, key=lambda one: (one[0], -1 if one[1] is None else one[1])):
        models.setdefault(model, []).extend([] if seed is None else [str(seed)])
    names = []
    for (pretraining, adjustment), seeds in models.items():
        of = f"{f'pretraining {pretraining}' if pretraining else ''} {adjustment}".strip() or "the model"
        names.append(f"{'seeds' if len(seeds) > 1 else 'seed'} {first_few(seeds, NAMED)} of {of}" if seeds else of)
    return first_few(names, NAMED, "; ")
