"""Sections on measures of probes: curves over layers and over the steps of pretraining, and words without context."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Literal

import pandas as pd

from probes.figures.bars import Bar, retrieval_bars
from probes.figures.drawing import COLOURS, Drawing, Figure, slug
from probes.figures.lines import interval_series, over_layers, over_steps
from probes.report.data import WITHOUT_CONTEXT, FigureBudget, Study, titled
from probes.report.numbers import Entry, plural
from probes.report.page import Block, Figures, Folded, Paragraph, Section, Table
from probes.report.scores import CLIPPED, Material, conditions_of, figure_blocks, intervals_over_models
from probes.results.labels import Layout
from probes.results.measures import measure_of
from probes.statistics import Interval

Along = Literal["layer", "step"]
TELLING = ("cka", "debiased", "same_layer", "accuracy", "cosine", "csls", "auc", "mean", "all")
"""Words in the name of a measure that is drawn first: scores come before counts."""
AUXILIARY = {"n", "low", "high", "level", "std", "layer", "step", "items", "left_layer"}
"""Last words in the names of measures that are no results by themselves."""
CONDITIONS = 100
"""Largest number of conditions in the table of a measure; measures.csv has all."""
MOST = 6
"""Largest number of figures over layers, and over steps."""
NOTE = "Bands are 95 % intervals over pretraining seeds or over adjustments of one pretraining; one model has none."
WORDS_ROWS, BARS = 100, 24
"""Largest number of conditions of a table, and of a figure, of words without context."""
WORDS_NOTE = (
    "The bars show how often the nearest word is a translation (P@1 under CSLS, %, the mean of both directions) for "
    "words that are one subword in both languages: by embeddings before and after a rotation, and by static vectors. "
    "Lines are 95 % intervals over pretraining seeds or over adjustments of one pretraining; one model has none."
)


@dataclass(frozen=True)
class Curve:
    """A measure of a probe; its rows have the columns condition and place."""

    probe: str
    measure: str
    at: str
    rows: pd.DataFrame

    @cached_property
    def lines(self) -> dict[str, dict[int, Interval]]:
        """Condition → place → the interval over its models, ordered by place."""
        lines: dict[str, dict[int, Interval]] = {}
        for (name, place, _), interval in intervals_over_models(self.rows, ["condition", "place"]).items():
            lines.setdefault(name, {})[place] = interval
        return {name: dict(sorted(line.items())) for name, line in lines.items()}

    def figure(self, along: Along, number: int, draw: Callable[..., Drawing], note: str) -> Figure:
        """Draw the lines of the first conditions."""
        title = f"{self.probe}: {_title(self.probe, self.measure)}{self.at}"
        lines = list(self.lines.items())[: len(COLOURS)]
        series = [interval_series(name, list(points), list(points.values())) for name, points in lines]
        label = " ".join(self.measure.split(".")[-2:]).replace("_", " ")
        return draw(f"{along}-{slug(title, number)}", title, series, label, note).figure()


def _title(probe: str, measure: str) -> str:
    """Return the declared title of a measure, or its path in the results of the probe."""
    declared = measure_of(measure)
    path = measure.removeprefix(f"{probe}.")
    return (declared.title if declared else "") or path.replace("_", " ").replace(".", ", ")


def by_layer(material: Material) -> Section | None:
    """Return the section on measures at each layer, such as CKA and retrieval; of several checkpoints the last.

    Measures that claims read (``claimed``) are drawn first.
    """
    measures = material.study.measures
    known = measures[measures["layer"].notna()]
    steps = known["step"].fillna(-1)
    keys = [known[name] for name in ("cell", "probe", "measure")]
    final = known[steps == steps.groupby(keys, observed=True).transform("max")]
    note = f"Layer 0 is the embeddings. {NOTE}"
    found = curves(final, material.layout, "layer", material.claimed)
    return _section("By layer", "layer", found, over_layers, note, material.budget)


def over_training(material: Material) -> Section | None:
    """Return the section on measures at several checkpoints."""
    measures = material.study.measures
    found = curves(measures[measures["step"].notna()], material.layout, "step", material.claimed)
    note = f"Each point is a checkpoint. {NOTE}"
    return _section("Over the steps of pretraining", "step", found, over_steps, note, material.budget)


def curves(measures: pd.DataFrame, layout: Layout, along: Along, claimed: Sequence[str] = ()) -> list[Curve]:
    """Return the measures that have values at several places.

    The measures that claims read come first, in the order of ``claimed``, then those with telling names.
    """
    auxiliary = measures["measure"].map(lambda name: name.rsplit(".", 1)[-1] in AUXILIARY).astype(bool)
    rows = measures[~auxiliary]
    at = rows["layer"].map(lambda layer: f", layer {layer}", na_action="ignore").astype(object).fillna("")
    rows = rows.assign(condition=conditions_of(rows, layout), place=rows[along], at="" if along == "layer" else at)
    parts = rows.groupby(["probe", "measure", "at"], sort=False, observed=True)
    found = [
        Curve(str(probe), str(measure), str(place), part)
        for (probe, measure, place), part in parts
        if part["place"].nunique() > 1
    ]
    rank = {measure: place for place, measure in enumerate(claimed)}

    def order(curve: Curve) -> tuple[int, int]:
        telling = sum(word in curve.measure.lower() or word in curve.probe.lower() for word in TELLING)
        return rank.get(curve.measure, len(rank)), -telling

    return sorted(found, key=order)


def _section(
    heading: str, along: Along, found: Sequence[Curve], draw: Callable[..., Drawing], note: str, budget: FigureBudget
) -> Section | None:
    if not found:
        return None
    draws = [partial(curve.figure, along, number, draw, note) for number, curve in enumerate(found, 1)]
    blocks = figure_blocks(draws, budget, MOST)
    drawn = found[: sum(len(block.figures) for block in blocks if isinstance(block, Figures))]
    if any(len(curve.lines) > len(COLOURS) for curve in drawn):
        blocks.append(Paragraph(f"Figures have the first {len(COLOURS)} conditions.", "note"))
    body: list[list[Entry]] = [
        [f"{curve.probe}: {curve.measure}{curve.at}", name, str(place), interval]
        for curve in drawn
        for name, points in list(curve.lines.items())[:CONDITIONS]
        for place, interval in points.items()
    ]
    if body:
        header = ["Measure", "Condition", along.capitalize(), "Value"]
        caption = f"The measures of the figures by {along}: means over the models of a condition, with 95 % intervals."
        table = Table(caption, header, body, 3, f"by-{along}", 100, 3)
        blocks.append(Folded(f"Numbers by {along}", [table]))
    return Section(heading, blocks)


def words_alone(material: Material) -> Section | None:
    """Return a figure and a table for each probe of rows of the embedding matrix; None where there is none."""
    measures = material.study.measures
    rows = measures[measures["measure"].isin(list(WITHOUT_CONTEXT))]
    rows = rows.assign(condition=conditions_of(rows, material.layout))
    found: dict[str, dict[str, dict[str, Interval]]] = {}
    for (probe, condition, measure), interval in intervals_over_models(rows, ["probe", "condition"]).items():
        found.setdefault(probe, {}).setdefault(condition, {})[measure] = interval
    blocks: list[Block] = []
    for number, (probe, conditions) in enumerate(found.items(), 1):
        name, title = f"words-alone-{slug(probe, number)}", f"Words of one subword, {probe}"
        if material.budget.take(1, 1):
            blocks.append(Figures([_words_figure(name, title, conditions)]))
        if len(conditions) > BARS:
            blocks.append(Paragraph(f"{plural(len(conditions) - BARS, 'further condition')} not drawn.", "note"))
        kinds = [measure for measure in WITHOUT_CONTEXT if any(measure in of for of in conditions.values())]
        body: list[list[Entry]] = [[condition, *map(of.get, kinds)] for condition, of in conditions.items()]
        header = ["condition", *(WITHOUT_CONTEXT[measure].replace(", ", "\n", 1) for measure in kinds)]
        caption = f"{title} (P@1, %): mean, 95 % t interval below. {CLIPPED}"
        blocks.append(Table(caption, header, body, 1, name, WORDS_ROWS))
    return Section("Words without context", blocks) if blocks else None


def measures_alone(study: Study, layout: Layout) -> Section | None:
    """Return a table of the measures without a layer or a step whose declarations have a title, or None without any."""
    names = [name for name in titled(study.measures) if name not in WITHOUT_CONTEXT]
    rows = study.measures[study.measures["measure"].isin(names)]
    rows = rows[rows["layer"].isna() & rows["step"].isna()]
    if rows.empty:
        return None
    rows = rows.assign(condition=conditions_of(rows, layout))
    body: list[list[Entry]] = [
        [f"{probe}: {measure}", _title(probe, measure), condition, interval]
        for (probe, condition, measure), interval in intervals_over_models(rows, ["probe", "condition"]).items()
    ]
    caption = "Measures of probes: means over the models of a condition, 95 % intervals."
    table = Table(caption, ["Measure", "Title", "Condition", "Value"], body, 3, "measures-alone", CONDITIONS, 3)
    return Section("Measures of probes", [table])


def _words_figure(name: str, title: str, conditions: Mapping[str, Mapping[str, Interval]]) -> Figure:
    bars = [
        Bar("", condition, kind, of[measure].shown)
        for condition, of in list(conditions.items())[:BARS]
        for measure, kind in WITHOUT_CONTEXT.items()
        if measure in of
    ]
    return retrieval_bars(name, title, bars, WORDS_NOTE).figure()
