"""Section on distances: histograms for related and unrelated words, from the stages of the probe distances."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from probes.figures.drawing import Figure, slug
from probes.figures.histograms import LABEL, NAMES, Distance, Panel, histogram_panels
from probes.report.data import Cell
from probes.report.page import Block, Paragraph, Section
from probes.report.scores import Material, grouped
from probes.results.labels import Layout, settings_of
from probes.results.read import distinct
from probes.stages.base import PROBES
from probes.statistics import Interval
from synthlang.errors import InputError
from synthlang.files import read_json
from synthlang.wording import first_few, plural

FIGURES = 8
"""Largest number of figures."""
READ = 100
"""Largest number of conditions whose results of probes are read."""
ROWS = 8
"""Largest number of rows of panels of a figure."""
NAMED = 3
"""Largest number of cells that a note names."""
MEASURES = "distances."
"""Prefix of the names of the measures of the probe."""
FIRST = "Only the first run of each condition is drawn. measures.csv has all of them."
MISSING = "There is no histogram where the stage of the probe is missing or cannot be read"


class _Condition(NamedTuple):
    """A condition to draw.

    Attributes:
        probe: Name of the probe.
        under: Labels of the axes that are not compared.
        settings: Labels without seeds: axis → label.
        panels: Distance → panel.
    """

    probe: str
    under: str
    settings: Mapping[str, str]
    panels: Mapping[Distance, Panel]


def word_distances(material: Material) -> Section | None:
    """Return the section with histograms of the first READ conditions, or None if no probe measured distances.

    There is a figure for each distance and each combination of labels that are not compared, as far as the budget of
    figures allows. A condition is drawn from its first run whose results can be read.
    """
    study, layout = material.study, material.layout
    measures = study.table[study.table["measure"].astype(str).str.startswith(MEASURES)]
    if measures.empty:
        return None
    cells = {cell.name: cell for cell in study.cells}
    conditions: dict[tuple[str, str, str], list[Cell]] = {}
    for name, probe in distinct(measures, "cell", "probe"):
        if (cell := cells.get(name)) is not None:
            settings = settings_of(cell.labels, name)
            label = layout.only(settings, layout.compared) or layout.alone
            conditions.setdefault((probe, layout.without(settings, *layout.compared), label), []).append(cell)
    found, missing = list[_Condition](), list[str]()
    for (probe, under, label), of in list(conditions.items())[:READ]:
        for cell in of:
            if panels := _panels(cell.stage(f"probe {probe}"), label):
                found.append(_Condition(probe, under, settings_of(cell.labels, cell.name), panels))
                break
            missing.append(cell.name)
    left = len(conditions) - READ
    told = [FIRST] if any(len(of) > 1 for of in conditions.values()) else []
    told += [f"{plural(left, 'further condition')} not drawn, because there are too many."] if left > 0 else []
    told += [f"{MISSING}: {first_few(missing, NAMED, '; ')}."] if missing else []
    notes = [Paragraph(note, "note") for note in told]
    return Section("Distances of words", [*_drawn(found, material), *notes])


def _panels(folder: Path | None, label: str) -> Mapping[Distance, Panel] | None:
    """Return the panel of the probed model for each distance, or None if the stage of the probe cannot be read."""
    if folder is None:
        return None
    try:
        record = read_json(folder / PROBES)["probes"]["distances"]
        found = record["models"][record["model"]]
        layers = {layer["distance"]: layer for layer in found["layers"] if layer["layer"] == found["layer"]}
        return {distance: _panel(label, found["histograms"][distance], layers[distance]) for distance in NAMES}
    except (InputError, KeyError, TypeError):
        return None


def _panel(label: str, counts: Mapping[str, Any], layer: Mapping[str, Any]) -> Panel:
    median, of_unrelated = (float(layer[kind]["quantiles"]["0.5"]) for kind in ("related", "unrelated"))
    edges, related, unrelated = (list(map(float, counts[key])) for key in ("edges", "related", "unrelated"))
    return Panel(label, edges, related, unrelated, (median, of_unrelated), Interval(**layer["auc"]))


def _drawn(found: Sequence[_Condition], material: Material) -> list[Block]:
    """Draw a figure for each distance, probe and combination of labels that are not compared, within the budget."""
    several = len({one.probe for one in found}) > 1
    wanted = [
        (", ".join(filter(None, (probe if several else "", under))), group, distance)
        for (probe, under), group in grouped(found, lambda one: (one.probe, one.under)).items()
        for distance in NAMES
    ]
    draws = [partial(_figure, place, *one, material.layout) for place, one in enumerate(wanted, 1)]
    return material.budget.draw(draws, FIGURES)


def _figure(place: int, of: str, group: Sequence[_Condition], distance: Distance, layout: Layout) -> Figure:
    what = NAMES[distance]
    title = f"{what[0].upper()}{what[1:]} distance of related and unrelated words" + (f", {of}" if of else "")
    rows = _rows(group, layout, distance)
    left = len(rows) - ROWS
    figure = histogram_panels(f"histograms-{slug(of or what, place)}", title, distance, rows[:ROWS]).figure()
    return replace(figure, caption=f"{figure.caption} {plural(left, 'further row')} left out.") if left > 0 else figure


def _rows(group: Sequence[_Condition], layout: Layout, distance: Distance) -> Sequence[Sequence[Panel | None]]:
    """Arrange panels with a column for each label of the main axis if there are few, else in one column."""
    mains = dict.fromkeys(layout.name(condition.settings) for condition in group)
    rest = [axis for axis in layout.compared if axis != layout.main]
    if layout.main not in layout.compared or not 1 < len(mains) <= max(LABEL) or not rest:
        return [[condition.panels[distance]] for condition in group]
    table: dict[str, dict[str, Panel]] = {}
    for condition in group:
        row = table.setdefault(layout.only(condition.settings, rest), {})
        row[layout.name(condition.settings)] = condition.panels[distance]
    return [[row.get(main) for main in mains] for row in table.values()]
