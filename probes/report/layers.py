"""Sections on measures of probes: curves over layers or steps, words without context, and a table of other measures.

Curves over the steps of pretraining have a table of their areas, final values and steps to thresholds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain
from typing import Literal

import numpy as np
import pandas as pd

from probes.claims.estimates import over_models
from probes.figures.bars import RETRIEVAL, Bar, accuracy_bars
from probes.figures.drawing import COLOURS, Figure, slug
from probes.figures.lines import STEP
from probes.report.data import WITHOUT_CONTEXT, Study, titled
from probes.report.figures import Lines, curves
from probes.report.numbers import Entry, where_bounds
from probes.report.page import Block, Figures, Folded, Paragraph, Section, Table, figures_in
from probes.report.scores import CLIPPED, Material, conditions_of, intervals_over_models
from probes.results.curves import CurveSummary, Summary, Threshold, summary
from probes.results.measures import interval_within, measure_of
from probes.results.read import columns_of
from probes.statistics import Interval
from synthlang.config import parse
from synthlang.wording import plural

Along = Literal["layer", "step"]
Models = dict[tuple[str, str], list[tuple[int, float]]]
"""Pretraining and cell of a model → its points: step and value."""
SECTIONS: Mapping[Along, tuple[str, str, str]] = {
    "layer": ("By layer", "layer", "Layer 0 is the embeddings."),
    "step": ("Over the steps of pretraining", STEP, "Each point is a checkpoint."),
}
"""Heading of the section, label of the horizontal axis, and text after the titles in captions."""
ROLES = ("source", "target")
"""Parts of the names of measures that name a language."""
CONDITIONS = 100
"""Largest number of conditions in the table of a measure. measures.csv has all of them."""
MOST = 6
"""Largest number of figures over layers, and over steps."""
NOTE = "Bands are 95 % intervals over pretraining seeds or adjustments of one pretraining. One model has no band."
WORDS_ROWS, BARS = 100, 24
"""Largest number of conditions of a table, and of a figure, of words without context."""
WORDS_NOTE = (
    "The bars show how often the nearest word is a translation (P@1 under CSLS, %, the mean of both directions) for "
    "words that are one subword in both languages: by embeddings before and after a rotation, and by static vectors."
)
WORDS_LINES = (
    " Lines are 95 % intervals over pretraining seeds or adjustments of one pretraining. One model has no line."
)
CAPTION = (
    "Summaries of the curves: means over the models of a condition{intervals}. A curve is linear over the logarithm of "
    "the step between two checkpoints. Area is its mean over log step, from the first to the last checkpoint, in the "
    "unit of the measure. Final is the value at the last checkpoint."
)
CENSORED = (
    " Steps is the step at which the curve first reaches the threshold. A model that does not reach it counts with its "
    "last step, so the mean is then a lower bound. Reached is the number of models that reach it."
)


@dataclass(frozen=True)
class MeasureCurve:
    """A measure of a probe at several layers or steps.

    Attributes:
        probe: Name of the probe.
        measure: Name of the measure.
        at: Text with the layer of a curve over steps, which ends the title, or "".
        rows: The measurements, with the columns condition and place.
    """

    probe: str
    measure: str
    at: str
    rows: pd.DataFrame

    @cached_property
    def lines(self) -> Lines:
        """Condition → layer or step → interval over models, in ascending order of layers or steps."""
        lines: dict[str, dict[float, Interval]] = {}
        for (name, place, _), interval in intervals_over_models(self.rows, ["condition", "place"]).items():
            lines.setdefault(name, {})[place] = interval
        return {name: dict(sorted(line.items())) for name, line in lines.items()}

    def figure(self, number: int, along: Along) -> Figure:
        """Draw the lines of the first conditions, one for each colour.

        Args:
            number: A number that makes the file name unique.
            along: ``layer`` or ``step``.
        """
        title = f"{self.probe}: {_title(self.probe, self.measure)}{self.at}"
        _, label, note = SECTIONS[along]
        axes = label, " ".join(self.measure.split(".")[-2:]).replace("_", " ")
        declared = measure_of(self.measure)
        log_y = declared is not None and declared.unit == "perplexity"
        return curves(f"{along}-{slug(title, number)}", title, self.lines, axes, note, NOTE, log_y=log_y)


def _title(probe: str, measure: str) -> str:
    """Return the declared title of a measure, or its path in the results of the probe."""
    declared = measure_of(measure)
    path = measure.removeprefix(f"{probe}.")
    if declared is None or not declared.title:
        return path.replace("_", " ").replace(".", ", ")
    language = next((part for part in path.split(".") if part in ROLES), "")
    return declared.title + (f", {language}" if language else "")


def by_layer(material: Material) -> Section | None:
    """Return the section on measures at several layers of the last checkpoint, or None without such a measure."""
    return _curves_section("layer", material, {})


def over_training(material: Material) -> Section | None:
    """Return the section on measures at several checkpoints, or None without such a measure."""
    return _curves_section("step", material, thresholds_of(material.study))


def measure_curves(material: Material, along: Along, first: Iterable[str] = ()) -> list[MeasureCurve]:
    """Return a curve for each measure and position that has values at several layers or steps.

    Curves over layers use the last step that was measured. The measures of claims come first, in the order of the
    claims, then the measures ``first``, then the main measures of the probes.
    """
    table = material.study.table
    rows = table[table[along].notna()]
    if along == "layer":
        steps = rows["step"].fillna(-1)
        keys = [rows[name] for name in ("cell", "probe", "measure")]
        rows = rows[steps == steps.groupby(keys, observed=True).transform("max")].assign(at="")
    else:
        layers = rows["layer"].map(lambda layer: f", layer {layer}", na_action="ignore")
        rows = rows.assign(at=layers.astype(object).fillna(""))
    rows = rows.assign(condition=conditions_of(rows, material.layout), place=rows[along])
    found = [
        MeasureCurve(str(probe), str(measure), str(at), part)
        for (probe, measure, at), part in rows.groupby(["probe", "measure", "at"], sort=False, observed=True)
        if part.loc[np.isfinite(part["value"]), "place"].nunique() > 1
    ]
    rank = {measure: place for place, measure in enumerate(dict.fromkeys((*material.claimed, *first)))}

    def order(curve: MeasureCurve) -> tuple[int, bool]:
        declared = measure_of(curve.measure)
        return rank.get(curve.measure, len(rank)), not (declared and declared.main)

    return sorted(found, key=order)


def _curves_section(along: Along, material: Material, thresholds: Mapping[str, Threshold]) -> Section | None:
    """Return the section on measures at several layers or steps, or None without such a measure.

    The measures of ``thresholds`` are drawn after those of claims, and before all others.
    """
    found = measure_curves(material, along, thresholds)
    if not found:
        return None
    draws = [partial(curve.figure, number, along) for number, curve in enumerate(found, 1)]
    blocks = material.budget.draw(draws, MOST)
    drawn = found[: len(figures_in(blocks))]
    if any(len(curve.lines) > len(COLOURS) for curve in drawn):
        blocks.append(Paragraph(f"Figures have the first {len(COLOURS)} conditions.", "note"))
    if along == "step" and (summaries := _summary_table(drawn, thresholds)) is not None:
        blocks.append(summaries)
    body: list[list[Entry]] = [
        [f"{curve.probe}: {curve.measure}{curve.at}", name, str(place), interval]
        for curve in drawn
        for name, points in list(curve.lines.items())[:CONDITIONS]
        for place, interval in points.items()
    ]
    if body:
        header = ["Measure", "Condition", along.capitalize(), "Value"]
        caption = f"The measures of the figures by {along}: means over the models of a condition"
        caption += f"{where_bounds(chain(*body), ', with 95 % intervals')}."
        table = Table(caption, header, body, 3, f"by-{along}", 100, 3)
        blocks.append(Folded(f"Numbers by {along}", [table]))
    return Section(SECTIONS[along][0], blocks)


def thresholds_of(study: Study) -> dict[str, Threshold]:
    """Return the thresholds of a study, or of all studies of a joined report: measure → threshold."""
    named = (item for config in study.configs for item in (config.get("thresholds") or {}).items())
    return {measure: parse(Threshold, value) for measure, value in named}


def _summary_table(curves: Sequence[MeasureCurve], thresholds: Mapping[str, Threshold]) -> Table | None:
    """Return a table with a row for each curve and condition, or None if no curve can be summarised.

    If no curve has a threshold, the columns on thresholds are left out.
    """
    rows = [row for curve in curves for row in _summary_rows(curve, thresholds.get(curve.measure))]
    if not rows:
        return None
    header = ["Measure", "Condition", "Models", "Area", "Final", "Threshold", "Steps", "Reached"]
    caption = CAPTION.format(intervals=where_bounds(chain(*rows), ", with 95 % intervals"))
    if any(curve.measure in thresholds for curve in curves):
        caption += CENSORED
    else:
        header, rows = header[:5], [row[:5] for row in rows]
    return Table(caption, header, rows, 2, "curves", CONDITIONS, 3)


def _summary_rows(curve: MeasureCurve, threshold: Threshold | None) -> list[list[Entry]]:
    """Return a row of the table for each condition of a curve."""
    name, body = f"{curve.probe}: {curve.measure}{curve.at}", list[list[Entry]]()
    for condition, models in list(_points(curve).items())[:CONDITIONS]:
        area, final = (_interval_of(_summaries(models, which), curve.measure) for which in ("area", "final"))
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


def _interval_of(summaries: Mapping[tuple[str, str], Summary], measure: str = "") -> Interval | None:
    """Return the interval over models, in the range of a measure, or None without a finite value."""
    values, _ = over_models((*model, one.value) for model, one in summaries.items())
    return interval_within(values, measure) if values else None


def _to_threshold(models: Models, threshold: Threshold | None) -> list[Entry]:
    """Return the threshold, the interval of the steps to it, and the number of models that reach it."""
    if threshold is None:
        return [None, None, None]
    found = _summaries(models, threshold)
    reached = sum(not one.censored for one in found.values())
    steps: Entry = _interval_of(found) if reached else f"> {max(one.value for one in found.values()):,.0f}"
    return [str(threshold), steps, f"{reached} of {len(found)}"]


def words_alone(material: Material) -> Section | None:
    """Return the section on words without context, or None if no probe measured such words.

    Each probe has a table of all conditions and, as far as the budget of figures allows, a figure of the first BARS
    conditions.
    """
    found: dict[str, dict[str, dict[str, Interval]]] = {}
    for (probe, condition, measure), interval in _by_condition(material, list(WITHOUT_CONTEXT)).items():
        found.setdefault(probe, {}).setdefault(condition, {})[measure] = interval
    blocks: list[Block] = []
    for number, (probe, conditions) in enumerate(found.items(), 1):
        name, title = f"words-alone-{slug(probe, number)}", f"Words of one subword, {probe}"
        if material.budget.take():
            blocks.append(Figures([_words_figure(name, title, conditions)]))
        if len(conditions) > BARS:
            blocks.append(Paragraph(f"{plural(len(conditions) - BARS, 'further condition')} not drawn.", "note"))
        kinds = [measure for measure in WITHOUT_CONTEXT if any(measure in of for of in conditions.values())]
        body: list[list[Entry]] = [[condition, *map(of.get, kinds)] for condition, of in conditions.items()]
        header = ["condition", *(WITHOUT_CONTEXT[measure].replace(", ", "\n", 1) for measure in kinds)]
        caption = f"{title} (P@1, %): mean{where_bounds(chain(*body), ', 95 % t interval below')}. {CLIPPED}"
        blocks.append(Table(caption, header, body, 1, name, WORDS_ROWS))
    return Section("Words without context", blocks) if blocks else None


def measures_alone(material: Material) -> Section | None:
    """Return the section with a table of measures that have a title but no layer or step, or None if there are none.

    Measures of words without context are in the section of ``words_alone``.
    """
    names = [name for name in titled(material.study.table) if name not in WITHOUT_CONTEXT]
    body: list[list[Entry]] = [
        [f"{probe}: {measure}", _title(probe, measure), condition, interval]
        for (probe, condition, measure), interval in _by_condition(material, names).items()
    ]
    if not body:
        return None
    caption = "Measures of probes: means over the models of a condition"
    caption += f"{where_bounds(chain(*body), ', with 95 % intervals')}."
    table = Table(caption, ["Measure", "Title", "Condition", "Value"], body, 3, "measures-alone", CONDITIONS, 3)
    return Section("Measures of probes", [table])


def _by_condition(material: Material, names: Sequence[str]) -> dict[tuple[str, str, str], Interval]:
    """Return intervals over models by (probe, condition, measure), without values at layers or steps."""
    rows = material.study.table
    rows = rows[rows["measure"].isin(names) & rows["layer"].isna() & rows["step"].isna()]
    rows = rows.assign(condition=conditions_of(rows, material.layout))
    return intervals_over_models(rows, ["probe", "condition"])


def _words_figure(name: str, title: str, conditions: Mapping[str, Mapping[str, Interval]]) -> Figure:
    bars = [
        Bar("", condition, kind, of[measure].shown)
        for condition, of in list(conditions.items())[:BARS]
        for measure, kind in WITHOUT_CONTEXT.items()
        if measure in of
    ]
    note = WORDS_NOTE + where_bounds((bar.accuracy for bar in bars), WORDS_LINES)
    return accuracy_bars(name, title, bars, note, RETRIEVAL).figure()
