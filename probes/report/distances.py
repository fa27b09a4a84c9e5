"""Section on distances of related and unrelated words: histograms of all conditions, from the stages of the probes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from probes.figures.drawing import Figure, slug
from probes.figures.histograms import LABEL, NAMES, Distance, Panel, histogram_panels
from probes.report.data import FigureBudget
from probes.report.numbers import first_few, plural
from probes.report.page import Block, Paragraph, Section
from probes.report.scores import Material, figure_blocks
from probes.results.labels import Layout, settings_of
from probes.results.read import distinct
from probes.stages.base import PROBES
from probes.statistics import Interval
from synthlang.errors import InputError
from synthlang.files import read_json

FIGURES = 8
"""Largest number of figures."""
READ = 100
"""Largest number of results of probes that are read."""
ROWS = 8
"""Largest number of rows of panels of a figure."""
NAMED = 3
"""Largest number of cells that a note names."""
MEASURES = "distances."
"""Start of the names of the measures of the probe."""
MISSING = "There is no histogram where the stage of the probe is missing or cannot be read"


class _Condition(NamedTuple):
    """Settings of a condition, and the panel of each distance, from its first run."""

    settings: Mapping[str, str]
    panels: Mapping[Distance, Panel]


ConditionGroup = dict[str, _Condition]
"""Label → condition, for one probe and one label of the axes that are not compared."""


def word_distances(material: Material) -> Section | None:
    """Return histograms of every condition, a figure for each language and distance.

    Each condition is read once, from its first run that is at hand.

    Returns:
        None where no probe measured distances.
    """
    study, layout = material.study, material.layout
    measures = study.measures[study.measures["measure"].astype(str).str.startswith(MEASURES)]
    if measures.empty:
        return None
    cells = {cell.name: cell for cell in study.cells}
    groups: dict[tuple[str, str], ConditionGroup] = {}
    unread: dict[tuple[str, str], set[str]] = {}
    missing, read, repeats = list[str](), 0, 0
    for name, probe in distinct(measures, "cell", "probe"):
        if (cell := cells.get(name)) is None:
            continue
        settings = settings_of(cell.labels, name)
        key = probe, layout.without(settings, *layout.compared)
        group = groups.setdefault(key, {})
        label = layout.only(settings, layout.compared) or layout.alone
        if label in group:
            repeats += 1
        elif read == READ:
            unread.setdefault(key, set()).add(label)
        else:
            read += 1
            if panels := _panels(cell.stage(f"probe {probe}"), label):
                group[label] = _Condition(settings, panels)
            else:
                missing.append(name)
    told = []
    if repeats:
        told.append(f"The first run of each condition is drawn; measures.csv has {plural(repeats, 'other')}.")
    if unread:
        count = plural(sum(map(len, unread.values())), "further condition")
        whole = first_few([", ".join(filter(None, key)) for key in unread if not groups[key]], NAMED, "; ")
        named = f"; without a figure: {whole}" if whole else ""
        told.append(f"{count} not read and not drawn: there are too many{named}.")
    if missing:
        told.append(f"{MISSING}: {first_few(missing, NAMED, '; ')}.")
    notes = [Paragraph(note, "note") for note in told]
    return Section("Distances of words", [*_drawn(groups, layout, material.budget), *notes])


def _panels(folder: Path | None, label: str) -> Mapping[Distance, Panel] | None:
    """Return the panels of the model that was probed; None where the stage is missing or of another version."""
    if folder is None:
        return None
    try:
        record = read_json(folder / PROBES)["probes"]["distances"]
        found = record["models"][record["model"]]
        layers = {layer["distance"]: layer for layer in found["layers"] if layer["layer"] == found["layer"]}
        return {distance: _panel(label, found["histograms"][distance], layers[distance]) for distance in NAMES}
    except (InputError, KeyError, TypeError, ValueError):
        return None


def _panel(label: str, counts: Mapping[str, Any], layer: Mapping[str, Any]) -> Panel:
    median, of_unrelated = (float(layer[kind]["quantiles"]["0.5"]) for kind in ("related", "unrelated"))
    edges, related, unrelated = (list(map(float, counts[key])) for key in ("edges", "related", "unrelated"))
    if not len(edges) - 1 == len(related) == len(unrelated) or not min(sum(related), sum(unrelated)) > 0:
        raise ValueError("bins and counts do not go together")
    return Panel(label, edges, related, unrelated, (median, of_unrelated), Interval(**layer["auc"]))


def _drawn(groups: Mapping[tuple[str, str], ConditionGroup], layout: Layout, budget: FigureBudget) -> list[Block]:
    """Draw a figure for each group and distance, as far as the budget allows."""
    known = {key: group for key, group in groups.items() if group}
    several = len({probe for probe, _ in known}) > 1
    wanted = [
        (", ".join(filter(None, (probe if several else "", under))), group.values(), distance)
        for (probe, under), group in known.items()
        for distance in NAMES
    ]
    draws = [partial(_figure, place, *one, layout) for place, one in enumerate(wanted, 1)]
    return figure_blocks(draws, budget, FIGURES)


def _figure(place: int, of: str, group: Iterable[_Condition], distance: Distance, layout: Layout) -> Figure:
    what = NAMES[distance]
    title = f"{what[0].upper()}{what[1:]} distance of related and unrelated words" + (f", {of}" if of else "")
    rows = _rows(list(group), layout, distance)
    left = len(rows) - ROWS
    figure = histogram_panels(f"histograms-{slug(of or what, place)}", title, distance, rows[:ROWS]).figure()
    return replace(figure, caption=f"{figure.caption} {plural(left, 'further row')} left out.") if left > 0 else figure


def _rows(group: Sequence[_Condition], layout: Layout, distance: Distance) -> Sequence[Sequence[Panel | None]]:
    """Arrange panels: a column for each label of the main axis if there are few, and a row for each of the rest."""
    mains = dict.fromkeys(layout.name(condition.settings) for condition in group)
    rest = [axis for axis in layout.compared if axis != layout.main]
    if layout.main not in layout.compared or not 1 < len(mains) <= max(LABEL) or not rest:
        return [[condition.panels[distance]] for condition in group]
    table: dict[str, dict[str, Panel]] = {}
    for condition in group:
        row = table.setdefault(layout.only(condition.settings, rest), {})
        row[layout.name(condition.settings)] = condition.panels[distance]
    return [[row.get(main) for main in mains] for row in table.values()]
