"""Distances of related and unrelated words, the conditions side by side, from the stages of the probes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from probes.distances.separation import DISTANCES, Distance
from probes.figures.histograms import LABEL, Panel, histogram_panels
from probes.report.blocks import Block, Figures, Paragraph, Section
from probes.report.figure import Figure, slug
from probes.report.numbers import first_few, plural
from probes.statistics import Interval
from probes.study.kinds import PROBES
from probes.study.labels import Layout, settings_of
from probes.study.report.budget import Budget
from probes.study.report.data import Cell, Study
from synthlang.errors import InputError
from synthlang.files import read_json

FIGURES = 8
"""Most figures of histograms."""
READ = 100
"""Most results of probes that are read for them."""
ROWS = 8
"""Most rows of panels of a figure."""
NAMED = 3
"""Most cells that are named in a note."""
MEASURES = "distances."
"""What the measures of the probe start with."""
MEDIAN = "0.5"
MISSING = "Without a histogram, since the stage of the probe is not here or cannot be read"

Panels = Mapping[Distance, Panel]


@dataclass
class _Group:
    """The conditions of one figure: label → its settings and the panels of each distance, of its first run."""

    settings: dict[str, Mapping[str, str]] = field(default_factory=dict)
    panels: dict[str, Panels] = field(default_factory=dict)


def word_distances(study: Study, held: Layout, budget: Budget) -> Section | None:
    """Histograms of every condition, a figure for each language and distance; None where no probe has any."""
    wanted = dict.fromkeys((m.cell, m.probe) for m in study.measures if m.measure.startswith(MEASURES))
    if not wanted:
        return None
    cells = {cell.name: cell for cell in study.cells}
    groups: dict[tuple[str, str], _Group] = {}
    gone: list[str] = []
    again = read = 0
    for name, probe in wanted:
        if (cell := cells.get(name)) is None:
            continue
        settings = settings_of(cell.labels, cell.name)
        group = groups.setdefault((probe, held.without(settings, *held.compared)), _Group())
        label = held.only(settings, held.compared) or held.alone
        if label in group.panels:
            again += 1
        elif read < READ:
            read += 1
            panels = _panels(cell, probe, label)
            if panels is None:
                gone.append(cell.name)
            else:
                group.settings[label], group.panels[label] = settings, panels
    blocks = _drawn(groups, held, budget)
    told = [f"Drawn is the first run of each condition; {plural(again, 'other')} in measures.csv."] if again else []
    if gone:
        told.append(f"{MISSING}: {first_few(gone, NAMED, '; ')}.")
    return Section("Distances of words", [*blocks, *(Paragraph(text, "note") for text in told)])


def _panels(cell: Cell, probe: str, label: str) -> Panels | None:
    """Of the model that was probed; None where the stage is not at hand, or not as this version writes it."""
    folder = cell.stage(f"probe {probe}")
    if folder is None:
        return None
    try:
        found = _record(folder)
        layers = {held["distance"]: held for held in found["layers"] if held["layer"] == found["layer"]}
        return {distance: _panel(label, found["histograms"][distance], layers[distance]) for distance in DISTANCES}
    except (InputError, KeyError, TypeError, ValueError):
        return None


def _record(folder: Path) -> Any:
    found = read_json(folder / PROBES)["probes"]["distances"]
    return found["models"][found["model"]]


def _panel(label: str, counts: Mapping[str, Any], layer: Mapping[str, Any]) -> Panel:
    medians = tuple(float(layer[kind]["quantiles"][MEDIAN]) for kind in ("related", "unrelated"))
    edges, related, unrelated = (list(map(float, counts[key])) for key in ("edges", "related", "unrelated"))
    if not len(edges) - 1 == len(related) == len(unrelated) or not min(sum(related), sum(unrelated)) > 0:
        raise ValueError("bins and counts do not go together")
    return Panel(label, edges, related, unrelated, (medians[0], medians[1]), Interval(**layer["auc"]))


def _drawn(groups: Mapping[tuple[str, str], _Group], held: Layout, budget: Budget) -> list[Block]:
    """A figure for each group and distance, as far as the budget goes."""
    known = {key: group for key, group in groups.items() if group.panels}
    several = len({probe for probe, _ in known}) > 1
    wanted = [(key, group, distance) for key, group in known.items() for distance in DISTANCES]
    given = budget.take(len(wanted), FIGURES)
    figures = [
        _figure(place, probe if several else "", under, group, distance, held)
        for place, ((probe, under), group, distance) in enumerate(wanted[:given], 1)
    ]
    blocks: list[Block] = [Figures(figures)] if figures else []
    if left := len(wanted) - given:
        blocks.append(Paragraph(f"{plural(left, 'further figure')} of distances left out here.", "note"))
    return blocks


def _figure(place: int, probe: str, under: str, group: _Group, distance: Distance, held: Layout) -> Figure:
    what = "L2" if distance == "l2" else distance
    of = ", ".join(part for part in (probe, under) if part)
    title = f"{what[0].upper()}{what[1:]} distance of related and unrelated words" + (f", {of}" if of else "")
    rows = _rows(group, held, distance)
    left = len(rows) - ROWS
    figure = histogram_panels(f"histograms-{slug(of or what, place)}", title, distance, rows[:ROWS]).figure()
    return replace(figure, caption=f"{figure.caption} {plural(left, 'further row')} left out.") if left > 0 else figure


def _rows(group: _Group, held: Layout, distance: Distance) -> Sequence[Sequence[Panel | None]]:
    """A column for each label of the main axis, if there are few, and a row for each of the rest."""
    mains = dict.fromkeys(held.name(settings) for settings in group.settings.values())
    rest = [axis for axis in held.compared if axis != held.main]
    if held.main not in held.compared or not 1 < len(mains) < max(LABEL) + 1 or not rest:
        return [[panels[distance]] for panels in group.panels.values()]
    table: dict[str, dict[str, Panel]] = {}
    for label, settings in group.settings.items():
        table.setdefault(held.only(settings, rest), {})[held.name(settings)] = group.panels[label][distance]
    return [[row.get(main) for main in mains] for row in table.values()]
