"""Tables, figures and notes of the probe ``distances``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from rich.table import Table

from probes.figures.drawing import Drawing
from probes.figures.histograms import NAMES, Panel, histogram_panels
from probes.figures.lines import Series, auc_by_layer, interval_series
from probes.measures.distances import BINS, DistancesConfig
from probes.measures.distances.dimensions import Dominance
from probes.measures.distances.separation import DISTANCES, Change, Distance, Separation, histograms
from probes.measures.probe_input import ProbeInput
from probes.statistics import Interval
from synthlang.errors import InputError


@dataclass(frozen=True, eq=False)
class Measured:
    """What was found in a model. ``shown``: the layer of the histograms."""

    name: str
    separations: Sequence[Separation]
    dominance: Sequence[Dominance]
    shown: int

    def of(self, distance: Distance) -> list[Separation]:
        """By layer."""
        return [found for found in self.separations if found.distance == distance]

    def at(self, distance: Distance) -> Separation:
        """At the layer of the histograms."""
        return next(found for found in self.of(distance) if found.layer == self.shown)


def distance_histograms(name: str, title: str, found: Sequence[tuple[str, Separation]], bins: int = BINS) -> Drawing:
    """A panel for each model (before, after …), one under another with common bins."""
    if not found:
        raise InputError("no distances to draw")
    panels = [
        Panel(label, counts.edges.tolist(), counts.related.tolist(), counts.unrelated.tolist(), _medians(one), one.auc)
        for (label, one), counts in zip(found, histograms([one for _, one in found], bins), strict=True)
    ]
    return histogram_panels(name, title, found[0][1].distance, [[panel] for panel in panels])


def _medians(one: Separation) -> tuple[float, float]:
    return float(np.median(one.related)), float(np.median(one.unrelated))


def figures(measured: Sequence[Measured], bins: int) -> list[Drawing]:
    """Histograms of each distance, models one under another; the AUC by layer; the AUC without dimensions."""
    main = measured[-1]
    layers = ", ".join(dict.fromkeys(str(model.shown) for model in measured))
    drawings = [
        distance_histograms(
            f"distances-{distance}",
            f"{NAMES[distance]} distance of related and unrelated words, layer {layers}",
            [(model.name, model.at(distance)) for model in measured],
            bins,
        )
        for distance in DISTANCES
    ]
    if len(measured) == 1:
        lines = [_line(NAMES[distance], main.of(distance)) for distance in DISTANCES]
        drawings.append(auc_by_layer("distances-auc", "How far apart related and unrelated words are, by layer", lines))
    else:
        for distance in DISTANCES:
            lines = [_line(model.name, model.of(distance)) for model in measured]
            title = f"How far apart related and unrelated words are by {NAMES[distance]}, by layer"
            drawings.append(auc_by_layer(f"distances-auc-{distance}", title, lines))
    return drawings + _without(main)


def _line(name: str, found: Sequence[Separation]) -> Series:
    return interval_series(name, [one.layer for one in found], [one.auc for one in found])


def _without(main: Measured) -> list[Drawing]:
    """For each distance the AUC with all dimensions, and without the largest ones."""
    drawings = []
    for distance in DISTANCES:
        found = [one for one in main.dominance if one.distance == distance]
        if not found or not found[0].tops:
            continue
        x = [one.layer for one in found]
        lines = [interval_series("all dimensions", x, [one.auc for one in found])]
        for i, top in enumerate(found[0].tops):
            name = f"without the largest {top.count}" if top.count > 1 else "without the largest one"
            lines.append(interval_series(name, x, [one.tops[i].auc_without for one in found]))
        title = f"AUC of the {NAMES[distance]} distance without its largest dimensions, {main.name}"
        drawings.append(auc_by_layer(f"distances-dimensions-{distance}", title, lines))
    return drawings


def tables(measured: Sequence[Measured], changes: Mapping[str, Sequence[Change]]) -> list[Table]:
    """The probed model by layer; what changed against each other model; the largest dimensions."""
    main = measured[-1]
    found = [_layers_table(main)]
    if changes:
        found.append(_changes_table(measured, changes))
    if any(model.dominance and model.dominance[0].tops for model in measured):
        found.append(_dimensions_table(measured))
    return found


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title)
    for column in columns:
        table.add_column(column, justify="right")
    return table


def _layers_table(main: Measured) -> Table:
    table = _table(
        f"Distances of related and unrelated words, {main.name} (medians)",
        *("layer", "distance", "related", "unrelated", "AUC", f"{100 * main.separations[0].level:g} % interval"),
    )
    for one in main.separations:
        medians = (f"{np.median(values):.3f}" for values in (one.related, one.unrelated))
        table.add_row(str(one.layer), NAMES[one.distance], *medians, f"{one.auc.mean:.3f}", bounds(one.auc))
    return table


def _changes_table(measured: Sequence[Measured], changes: Mapping[str, Sequence[Change]]) -> Table:
    main = measured[-1]
    table = _table(
        f"From each model to {main.name}, layer {main.shown} (differences of means, paired intervals)",
        *("from", "distance", "AUC", "interval", "related", "interval", "unrelated", "interval"),
    )
    for name, held in changes.items():
        for change in held:
            if change.layer == main.shown:
                three = (change.auc, change.related, change.unrelated)
                cells = [cell for one in three for cell in (f"{one.mean:+.3f}", bounds(one, "+.3f"))]
                table.add_row(name, NAMES[change.distance], *cells)
    return table


def _dimensions_table(measured: Sequence[Measured]) -> Table:
    """A row for each count of dimensions, so that the table is no wider however many counts there are."""
    columns = ("model", "layer", "distance", "AUC", "largest", "share", "AUC without")
    table = _table("The largest dimensions over unrelated words", *columns)
    for model in measured:
        for one in model.dominance:
            if one.layer == model.shown:
                start = model.name, str(one.layer), NAMES[one.distance], f"{one.auc.mean:.3f}"
                for top in one.tops:
                    share, without = f"{100 * top.share:.1f} %", f"{top.auc_without.mean:.3f}"
                    table.add_row(*start, str(top.count), share, without)
    return table


def bounds(interval: Interval, form: str = ".3f") -> str:
    """An interval for a cell of a table."""
    return "–" if interval.low is None or interval.high is None else f"{interval.low:{form}} … {interval.high:{form}}"


def notes(given: ProbeInput, measured: Sequence[Measured]) -> list[str]:
    """What a reader of the numbers has to know."""
    said = [
        "Related words are the linked ones of the measured sentence pairs. Each left word has one unrelated right "
        "word, drawn from about two thousand linked words of other sentences, which are near in an order that is drawn "
        "by the seed."
    ]
    if not given.same_model:
        said.append(
            "Two models read the languages: distances between their vectors mean nothing unless they are mapped."
        )
    main = measured[-1]
    for model in measured[:-1]:
        if [one.layer for one in model.separations] != [one.layer for one in main.separations]:
            said.append(
                f"{model.name} has other layers than {main.name}: compared are layers {model.shown} and {main.shown}."
            )
    if len(measured) > 1:
        said.append(
            "All models read the same pairs. If one was adjusted on this text, they are held out from it only if its "
            "data.dev and data.test were those of this probe."
        )
    zero = {model.name: sum(one.zero for one in model.of("l2")) for model in measured}
    said += [
        f"{name}: {count} word vectors are zero; their cosine distance is taken as 1."
        for name, count in zero.items()
        if count
    ]
    tops = given.config.of(DistancesConfig).dimensions
    if tops and len(main.dominance[0].tops) < len(tops):
        said.append("The vectors have fewer dimensions than some of distances.dimensions, which are left out.")
    return said
