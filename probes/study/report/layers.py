"""What probes measured over layers (CKA, retrieval …) and over the steps of the pretraining: curves of conditions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from probes.figures.drawing import COLOURS, Drawing, Figure, slug
from probes.figures.lines import interval_series, over_layers, over_steps
from probes.report.numbers import Entry, plural
from probes.report.page import Block, Figures, Folded, Paragraph, Section, Table
from probes.statistics import Interval
from probes.study.labels import Layout, settings_of
from probes.study.report.budget import Budget
from probes.study.report.measures import Measure, over_models
from probes.study.report.ranges import interval_within

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
    """A measure of a probe: condition → place → its values, one a model (``over_models``)."""

    probe: str
    measure: str
    at: str
    lines: Mapping[str, Mapping[int, Sequence[float]]]

    @property
    def title(self) -> str:
        """Of the probe and its measure."""
        path = self.measure.removeprefix(f"{self.probe}.").replace("_", " ").replace(".", ", ")
        return f"{self.probe}: {path}{self.at}"

    def line(self, name: str) -> dict[int, Interval]:
        """The intervals of a condition, in order of the places."""
        return {place: interval_within(values, self.measure) for place, values in sorted(self.lines[name].items())}


def by_layer(measures: Sequence[Measure], held: Layout, budget: Budget, asked: Sequence[str] = ()) -> Section | None:
    """CKA, retrieval and whatever else probes measured at each layer; of several checkpoints the last.

    Measures that are ``asked`` for (claims read them) are drawn first.
    """
    last: dict[tuple[str, str, str], int] = {}
    known = [m for m in measures if m.layer is not None]
    for m in known:
        key = (m.cell, m.probe, m.measure)
        last[key] = max(last.get(key, -1), -1 if m.step is None else m.step)
    final = [m for m in known if (-1 if m.step is None else m.step) == last[m.cell, m.probe, m.measure]]
    note = f"Layer 0: the embeddings. {NOTE}"
    return _section("By layer", "layer", curves(final, held, "layer", asked), over_layers, note, budget)


def over_training(
    measures: Sequence[Measure], held: Layout, budget: Budget, asked: Sequence[str] = ()
) -> Section | None:
    """What probes measured at several checkpoints."""
    found = curves([m for m in measures if m.step is not None], held, "step", asked)
    return _section(
        "Over the steps of pretraining", "step", found, over_steps, f"A point is a checkpoint. {NOTE}", budget
    )


def curves(measures: Sequence[Measure], held: Layout, along: Along, asked: Sequence[str] = ()) -> list[Curve]:
    """The measures that have several places: those that are ``asked`` for in their order, then the telling ones."""
    rank = {measure: place for place, measure in enumerate(asked)}
    names: dict[str, str] = {}
    tree: dict[tuple[str, str, str], dict[str, dict[int, list[tuple[str, float]]]]] = {}
    for m in measures:
        if m.measure.rsplit(".", 1)[-1] in AUXILIARY:
            continue
        if m.cell not in names:
            names[m.cell] = held.whole(settings_of(m.labels, m.cell))
        at = f", layer {m.layer}" if along == "step" and m.layer is not None else ""
        place = m.layer if along == "layer" else m.step
        assert place is not None, "the caller chose those that have one"
        line = tree.setdefault((m.probe, m.measure, at), {}).setdefault(names[m.cell], {})
        line.setdefault(place, []).append((m.run, m.value))
    found = [(key, lines) for key, lines in tree.items() if len({x for line in lines.values() for x in line}) > 1]
    found.sort(
        key=lambda item: (
            rank.get(item[0][1], len(rank)),
            -sum(word in item[0][1].lower() or word in item[0][0].lower() for word in TELLING),
        )
    )
    return [
        Curve(*key, {name: {x: over_models(held) for x, held in line.items()} for name, line in lines.items()})
        for key, lines in found
    ]


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
    lines = [(name, curve.line(name)) for name in list(curve.lines)[: len(COLOURS)]]
    series = [interval_series(name, list(points), list(points.values())) for name, points in lines]
    name = f"{along}-{slug(curve.title, number)}"
    return draw(name, curve.title, series, " ".join(curve.measure.split(".")[-2:]).replace("_", " "), note).figure()


def _table(found: Sequence[Curve], along: Along) -> Table:
    body: list[list[Entry]] = [
        [f"{curve.probe}: {curve.measure}{curve.at}", name, str(place), interval]
        for curve in found
        for name in list(curve.lines)[:CONDITIONS]
        for place, interval in curve.line(name).items()
    ]
    header = ["Measure", "Condition", along.capitalize(), "Value"]
    caption = f"Measures by {along}, those of the figures. Means over the models of a condition, 95 % t intervals."
    return Table(caption, header, body, 3, f"by-{along}", 100, 3)
