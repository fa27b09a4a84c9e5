"""Distances of related and unrelated words, the conditions side by side, from the stages of the probes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from probes.figures.drawing import Figure, slug
from probes.figures.histograms import LABEL, NAMES, Panel, histogram_panels
from probes.measures.distances.separation import DISTANCES, Distance
from probes.report.numbers import first_few, plural
from probes.report.page import Block, Figures, Paragraph, Section
from probes.statistics import Interval
from probes.study.kinds import PROBES
from probes.study.labels import Layout, settings_of
from probes.study.report.data import Budget, Cell, Study
from probes.study.table import distinct
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


@dataclass(frozen=True)
class _Condition:
    """What is drawn of a condition: its settings, and the panels of each distance, of its first run."""

    settings: Mapping[str, str]
    panels: Panels


@dataclass
class _Found:
    """Probe and what is not compared → label → condition, a figure each; cells whose stages are not at hand; how many
    other runs these conditions have, and the conditions that were not looked at, by group."""

    groups: dict[tuple[str, str], dict[str, _Condition]] = field(default_factory=dict)
    gone: list[str] = field(default_factory=list)
    again: int = 0
    unread: dict[tuple[str, str], set[str]] = field(default_factory=dict)


def word_distances(study: Study, held: Layout, budget: Budget) -> Section | None:
    """Histograms of every condition, a figure for each language and distance; None where no probe has any."""
    measures = study.measures[study.measures["measure"].astype(str).str.startswith(MEASURES)]
    wanted = distinct(measures, "cell", "probe")
    if not wanted:
        return None
    found = _find(study, wanted, held)
    blocks = _drawn(found.groups, held, budget)
    told = []
    if found.again:
        told.append(f"Drawn is the first run of each condition; {plural(found.again, 'other')} in measures.csv.")
    if found.unread:
        told.append(_unread(found))
    if found.gone:
        told.append(f"{MISSING}: {first_few(found.gone, NAMED, '; ')}.")
    return Section("Distances of words", [*blocks, *(Paragraph(text, "note") for text in told)])


def _unread(found: _Found) -> str:
    """How many conditions were not looked at, and of which figures these are all there is."""
    count = plural(sum(map(len, found.unread.values())), "further condition")
    whole = [", ".join(filter(None, key)) for key in found.unread if not found.groups[key]]
    named = f"; without a figure: {first_few(whole, NAMED, '; ')}" if whole else ""
    return f"{count} not read, for want of room, and not among the rows left out of the figures{named}."


def _find(study: Study, wanted: Sequence[tuple[str, str]], held: Layout) -> _Found:
    """The conditions that (cell, probe) are of, each read once, of its first run that is at hand."""
    cells = {cell.name: cell for cell in study.cells}
    found, read = _Found(), 0
    for name, probe in wanted:
        if (cell := cells.get(name)) is None:
            continue
        settings = settings_of(cell.labels, cell.name)
        key = probe, held.without(settings, *held.compared)
        group = found.groups.setdefault(key, {})
        label = held.only(settings, held.compared) or held.alone
        if label in group:
            found.again += 1
        elif read == READ:
            found.unread.setdefault(key, set()).add(label)
        else:
            read += 1
            if (panels := _panels(cell, probe, label)) is None:
                found.gone.append(cell.name)
            else:
                group[label] = _Condition(settings, panels)
    return found


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


def _drawn(groups: Mapping[tuple[str, str], Mapping[str, _Condition]], held: Layout, budget: Budget) -> list[Block]:
    """A figure for each group and distance, as far as the budget goes."""
    known = {key: group for key, group in groups.items() if group}
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


def _figure(
    place: int, probe: str, under: str, group: Mapping[str, _Condition], distance: Distance, held: Layout
) -> Figure:
    what = NAMES[distance]
    of = ", ".join(part for part in (probe, under) if part)
    title = f"{what[0].upper()}{what[1:]} distance of related and unrelated words" + (f", {of}" if of else "")
    rows = _rows(group, held, distance)
    left = len(rows) - ROWS
    figure = histogram_panels(f"histograms-{slug(of or what, place)}", title, distance, rows[:ROWS]).figure()
    return replace(figure, caption=f"{figure.caption} {plural(left, 'further row')} left out.") if left > 0 else figure


def _rows(group: Mapping[str, _Condition], held: Layout, distance: Distance) -> Sequence[Sequence[Panel | None]]:
    """A column for each label of the main axis, if there are few, and a row for each of the rest."""
    mains = dict.fromkeys(held.name(one.settings) for one in group.values())
    rest = [axis for axis in held.compared if axis != held.main]
    if held.main not in held.compared or not 1 < len(mains) <= max(LABEL) or not rest:
        return [[one.panels[distance]] for one in group.values()]
    table: dict[str, dict[str, Panel]] = {}
    for one in group.values():
        table.setdefault(held.only(one.settings, rest), {})[held.name(one.settings)] = one.panels[distance]
    return [[row.get(main) for main in mains] for row in table.values()]
