"""Section on measures over the steps of pretraining: curves, and their areas, final values and steps to thresholds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from probes.claims.estimates import over_models
from probes.figures.lines import STEP
from probes.report.data import Study
from probes.report.layers import CONDITIONS, MeasureCurve, curves_section
from probes.report.numbers import Entry, where_bounds
from probes.report.page import Section, Table
from probes.report.scores import Column, Material, by_rows
from probes.results.curves import CurveSummary, Summary, Threshold, summary
from probes.results.measures import interval_within
from probes.results.read import columns_of
from probes.statistics import Interval
from synthlang.config import parse

Thresholds = Mapping[str, Threshold]
"""Measure → threshold of the study."""
Models = dict[tuple[str, str], list[tuple[int, float]]]
"""Pretraining and cell of a model → its points: step and value."""
CAPTION = (
    "Summaries of the curves: means over the models of a condition{intervals}. A curve is linear over the logarithm of "
    "the step between two checkpoints. Area is its mean over log step, from the first to the last checkpoint, in the "
    "unit of the measure. Final is the value at the last checkpoint."
)
CENSORED = (
    " Steps is the step at which the curve first reaches the threshold. A model that does not reach it counts with its "
    "last step, so the mean is then a lower bound. Reached is the number of models that reach it."
)


def over_training(material: Material) -> Section | None:
    """Return the section on measures at several checkpoints, or None without such a measure.

    Raises:
        InputError: All values of a condition at a checkpoint are NaN or infinite.
    """
    thresholds = thresholds_of(material.study)
    return curves_section(
        "Over the steps of pretraining",
        "step",
        STEP,
        "Each point is a checkpoint.",
        material,
        thresholds,
        partial(summary_table, thresholds=thresholds),
    )


def thresholds_of(study: Study) -> dict[str, Threshold]:
    """Return the thresholds of a study, or of all studies of a joined report: measure → threshold."""
    configs = [study.config, *(part for part in study.config.values() if isinstance(part, Mapping))]
    named = (item for config in configs for item in (config.get("thresholds") or {}).items())
    return {measure: parse(Threshold, value) for measure, value in named}


def summary_table(curves: Sequence[MeasureCurve], thresholds: Thresholds) -> Table | None:
    """Return a table with a row for each curve and condition, or None if no curve can be summarised.

    Args:
        curves: The curves over steps.
        thresholds: Measure → threshold. If no curve has a threshold, the columns on thresholds are left out.
    """
    rows = [row for curve in curves for row in _rows(curve, thresholds.get(curve.measure))]
    if not rows:
        return None
    header = ["Measure", "Condition", "Models", "Area", "Final", "Threshold", "Steps", "Reached"]
    columns: list[Column] = list(zip(header, zip(*rows, strict=True), strict=True))
    has_thresholds = any(curve.measure in thresholds for curve in curves)
    if not has_thresholds:
        columns = columns[:5]
    title, body = by_rows(columns)
    caption = CAPTION.format(intervals=where_bounds((entry for row in body for entry in row), ", with 95 % intervals"))
    return Table(caption + (CENSORED if has_thresholds else ""), title, body, 2, "curves", CONDITIONS, 3)


def _rows(curve: MeasureCurve, threshold: Threshold | None) -> list[list[Entry]]:
    """Return a row of the table for each condition of a curve."""
    name, body = f"{curve.probe}: {curve.measure}{curve.at}", list[list[Entry]]()
    for condition, models in list(_points(curve).items())[:CONDITIONS]:
        area, final = (_interval(_summaries(models, which), curve.measure) for which in ("area", "final"))
        if area is not None:
            body.append([name, condition, len(models), area, final, *_to_threshold(models, threshold)])
    return body


def _points(curve: MeasureCurve) -> dict[str, Models]:
    """Return condition → models with their points."""
    found: dict[str, Models] = {}
    names = ("condition", "pretrain", "cell", "place", "value")
    for condition, pretrain, cell, step, value in zip(*columns_of(curve.rows, names), strict=True):
        found.setdefault(condition, {}).setdefault((pretrain, cell), []).append((step, value))
    return found


def _summaries(models: Models, which: CurveSummary) -> dict[tuple[str, str], Summary]:
    found = {model: summary(points, which) for model, points in models.items()}
    return {model: one for model, one in found.items() if one is not None}


def _interval(summaries: Mapping[tuple[str, str], Summary], measure: str = "") -> Interval | None:
    """Return the interval over models, in the range of a measure, or None without a finite value."""
    values, _ = over_models((*model, one.value) for model, one in summaries.items())
    return interval_within(values, measure) if values else None


def _to_threshold(models: Models, threshold: Threshold | None) -> list[Entry]:
    """Return the threshold, the interval of the steps to it, and the number of models that reach it."""
    if threshold is None:
        return [None, None, None]
    found = _summaries(models, threshold)
    reached = sum(not one.censored for one in found.values())
    steps: Entry = _interval(found) if reached else f"> {max(one.value for one in found.values()):,.0f}"
    return [str(threshold), steps, f"{reached} of {len(found)}"]
