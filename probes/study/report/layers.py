"""What probes measured, the conditions side by side: over layers, over the steps of pretraining, and of words alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import pandas as pd

from probes.figures.bars import Bar, retrieval_bars
from probes.figures.drawing import COLOURS, Drawing, Figure, slug
from probes.figures.lines import interval_series, over_layers, over_steps
from probes.report.numbers import Entry, plural
from probes.report.page import Block, Figures, Folded, Paragraph, Section, Table
from probes.statistics import Interval
from probes.study.labels import Layout
from probes.study.report.data import WITHOUT_CONTEXT, Budget, Study
from probes.study.report.scores import CLIPPED, conditions_of, intervals_over_models

Along = Literal["layer", "step"]
Draw = Callable[..., Drawing]

TELLING = ("cka", "debiased", "same_layer", "accuracy", "cosine", "csls", "auc", "mean", "all")
"""Words in the path of a measure that is drawn first: scores come before counts."""
AUXILIARY = {"n", "low", "high", "level", "std", "layer", "step", "items", "left_layer"}
"""Last words of the path of what is no result of its own."""
CONDITIONS = 100
"""Most conditions of the table of a measure; measures.csv has them all."""
MOST = 6
"""Most figures of measures over layers, and over steps."""
NOTE = "Bands: 95 % t intervals over the pretrainings of a condition, or the adjustments of one; one model has none."


@dataclass(frozen=True)
class Curve:
    """A measure of a probe: rows with the columns condition and place."""

    probe: str
    measure: str
    at: str
    rows: pd.DataFrame

    @property
    def title(self) -> str:
        """Of the probe and its measure."""
        path = self.measure.removeprefix(f"{self.probe}.").replace("_", " ").replace(".", ", ")
        return f"{self.probe}: {path}{self.at}"

    @cached_property
    def lines(self) -> dict[str, dict[int, Interval]]:
        """Condition → place → the interval over its models, in order of the places."""
        lines: dict[str, dict[int, Interval]] = {}
        for (name, place, _), interval in intervals_over_models(self.rows, ["condition", "place"]).items():
            lines.setdefault(name, {})[place] = interval
        return {name: dict(sorted(line.items())) for name, line in lines.items()}


def by_layer(study: Study, held: Layout, budget: Budget, asked: Sequence[str] = ()) -> Section | None:
    """CKA, retrieval and whatever else probes measured at each layer; of several checkpoints the last.

    Measures that are ``asked`` for (claims read them) are drawn first.
    """
    known = study.measures[study.measures["layer"].notna()]
    steps = known["step"].fillna(-1)
    keys = [known[name] for name in ("cell", "probe", "measure")]
    final = known[steps == steps.groupby(keys, observed=True).transform("max")]
    note = f"Layer 0: the embeddings. {NOTE}"
    return _section("By layer", "layer", curves(final, held, "layer", asked), over_layers, note, budget)


def over_training(study: Study, held: Layout, budget: Budget, asked: Sequence[str] = ()) -> Section | None:
    """What probes measured at several checkpoints."""
    found = curves(study.measures[study.measures["step"].notna()], held, "step", asked)
    note = f"A point is a checkpoint. {NOTE}"
    return _section("Over the steps of pretraining", "step", found, over_steps, note, budget)


def curves(measures: pd.DataFrame, held: Layout, along: Along, asked: Sequence[str] = ()) -> list[Curve]:
    """The measures that have several places: those that are ``asked`` for in their order, then the telling ones."""
    rank = {measure: place for place, measure in enumerate(asked)}
    auxiliary = measures["measure"].map(lambda name: name.rsplit(".", 1)[-1] in AUXILIARY).astype(bool)
    rows = measures[~auxiliary]
    at = rows["layer"].map(lambda layer: f", layer {layer}", na_action="ignore").astype(object).fillna("")
    rows = rows.assign(condition=conditions_of(rows, held), place=rows[along], at="" if along == "layer" else at)
    parts = rows.groupby(["probe", "measure", "at"], sort=False, observed=True)
    found = [
        Curve(str(probe), str(measure), str(place), part)
        for (probe, measure, place), part in parts
        if part["place"].nunique() > 1
    ]

    def order(curve: Curve) -> tuple[int, int]:
        telling = sum(word in curve.measure.lower() or word in curve.probe.lower() for word in TELLING)
        return rank.get(curve.measure, len(rank)), -telling

    return sorted(found, key=order)


def _section(
    heading: str, along: Along, found: Sequence[Curve], draw: Draw, note: str, budget: Budget
) -> Section | None:
    if not found:
        return None
    drawn = found[: budget.take(len(found), MOST)]
    figures = [_figure(curve, along, number, draw, note) for number, curve in enumerate(drawn, 1)]
    blocks: list[Block] = [Figures(figures)] if figures else []
    if len(found) > len(drawn):
        blocks.append(
            Paragraph(
                f"{plural(len(found) - len(drawn), 'further measure')} without a figure: see measures.csv.", "note"
            )
        )
    if any(len(curve.lines) > len(COLOURS) for curve in drawn):
        blocks.append(Paragraph(f"Figures have the first {len(COLOURS)} conditions.", "note"))
    if drawn:
        blocks.append(Folded(f"Numbers by {along}", [_table(drawn, along)]))
    return Section(heading, blocks)


def _figure(curve: Curve, along: Along, number: int, draw: Draw, note: str) -> Figure:
    lines = list(curve.lines.items())[: len(COLOURS)]
    series = [interval_series(name, list(points), list(points.values())) for name, points in lines]
    name = f"{along}-{slug(curve.title, number)}"
    return draw(name, curve.title, series, " ".join(curve.measure.split(".")[-2:]).replace("_", " "), note).figure()


def _table(found: Sequence[Curve], along: Along) -> Table:
    body: list[list[Entry]] = [
        [f"{curve.probe}: {curve.measure}{curve.at}", name, str(place), interval]
        for curve in found
        for name, points in list(curve.lines.items())[:CONDITIONS]
        for place, interval in points.items()
    ]
    header = ["Measure", "Condition", along.capitalize(), "Value"]
    caption = f"Measures by {along}, those of the figures. Means over the models of a condition, 95 % t intervals."
    return Table(caption, header, body, 3, f"by-{along}", 100, 3)


WORDS_ROWS, BARS = 100, 24
"""Most conditions of a table, and of a figure."""
WORDS_NOTE = (
    "How often the nearest word is a translation, both directions, under CSLS (P@1, %), of words that are one subword "
    "on both sides: rows of the embedding matrix before and after a rotation, and static vectors of the same words. "
    "Lines: 95 % t intervals over the pretrainings of a condition, or the adjustments of one; one model has none."
)

_Words = Mapping[str, Mapping[str, Interval]]
"""Condition → measure → its interval over models."""


def words_alone(study: Study, held: Layout, budget: Budget) -> Section | None:
    """A figure and a table for each probe that measured rows of the embedding matrix; None where none did."""
    blocks: list[Block] = []
    for number, (probe, conditions) in enumerate(_by_probe(study, held).items(), 1):
        title = f"Words of one subword, {probe}"
        if budget.take(1, 1):
            blocks.append(Figures([_words_figure(f"words-alone-{slug(probe, number)}", title, conditions)]))
        if len(conditions) > BARS:
            blocks.append(Paragraph(f"{plural(len(conditions) - BARS, 'further condition')} not drawn.", "note"))
        blocks.append(_words_table(title, conditions, f"words-alone-{slug(probe, number)}"))
    return Section("Words without context", blocks) if blocks else None


def _by_probe(study: Study, held: Layout) -> Mapping[str, _Words]:
    rows = study.measures[study.measures["measure"].isin(list(WITHOUT_CONTEXT))]
    rows = rows.assign(condition=conditions_of(rows, held))
    found: dict[str, dict[str, dict[str, Interval]]] = {}
    for (probe, condition, measure), interval in intervals_over_models(rows, ["probe", "condition"]).items():
        found.setdefault(probe, {}).setdefault(condition, {})[measure] = interval
    return found


def _words_figure(name: str, title: str, conditions: _Words) -> Figure:
    bars = [
        Bar("", condition, kind, of[measure].shown)
        for condition, of in list(conditions.items())[:BARS]
        for measure, kind in WITHOUT_CONTEXT.items()
        if measure in of
    ]
    return retrieval_bars(name, title, bars, WORDS_NOTE).figure()


def _words_table(title: str, conditions: _Words, name: str) -> Table:
    kinds = [measure for measure in WITHOUT_CONTEXT if any(measure in of for of in conditions.values())]
    rows: list[Sequence[Entry]] = [
        [condition, *(of.get(measure) for measure in kinds)] for condition, of in conditions.items()
    ]
    header = ["condition", *(WITHOUT_CONTEXT[measure].replace(", ", "\n", 1) for measure in kinds)]
    return Table(f"{title} (P@1, %): mean, 95 % t interval below. {CLIPPED}", header, rows, 1, name, WORDS_ROWS)
