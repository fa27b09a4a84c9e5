"""Section of heat maps, which show a measure over two axes of numbers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
import pandas as pd

from probes.claims.estimates import over_models
from probes.figures.drawing import Figure, slug
from probes.figures.maps import Setting, settings_map
from probes.report.page import Figures, Section
from probes.report.scores import Material, delta_axis, grouped
from probes.results.labels import Layout, numbers_of, settings_of
from probes.results.measures import ALIGNMENT_MEASURES
from probes.results.read import columns_of, distinct, labels_of
from probes.statistics import mean_of

FIGURES = 8
"""Largest number of maps of a report."""
SHARE = 0.5
"""Smallest share of the cells of a map that must be known."""
ALIGNED = "Word-embedding alignment, all types (%)"
NOTE = "Each number is a mean over pretraining seeds."

Cells = dict[tuple[str, str], float]
"""(label of the vertical axis, label of the horizontal axis) → mean over models."""


def maps(material: Material) -> Section | None:
    """Return the section of heat maps over the last two axes of numbers, or None if fewer than two axes have numbers.

    For each combination of labels of the other axes there is a map of the alignment, and a map of Δ for each task, as
    far as the budget of figures allows. The section is also None if there is nothing to draw.
    """
    study, layout = material.study, material.layout
    numbers = {axis: numbers_of(labels) for axis, labels in layout.axes.items()}
    crossed = [axis for axis, known in numbers.items() if known and len(set(known.values())) > 1]
    if len(crossed) < 2:
        return None
    up, across = crossed[-2:]
    # the two names of one measure
    aligned = study.table["measure"].isin(["alignment_all", ALIGNMENT_MEASURES["alignment_all"]])
    wanted = [("Alignment", ALIGNED, aligned)]
    for task, conditions in material.tasks.items():
        of_task = (study.table["measure"] == "delta") & (study.table["task"] == task)
        wanted.append((f"{task}: Δ", delta_axis(conditions), of_task))
    found = [
        (f"{what}, {rest}" if rest else what, label, cells)
        for what, label, rows in wanted
        for rest, cells in _panels(study.table[rows], layout, up, across).items()
    ]
    draws = [
        partial(_figure, title, number, label, cells, layout, up, across)
        for number, (title, label, cells) in enumerate(found, 1)
    ]
    blocks = material.budget.draw(draws, FIGURES)
    return Section("Maps", blocks) if any(isinstance(block, Figures) for block in blocks) else None


def _panels(rows: pd.DataFrame, layout: Layout, up: str, across: str) -> dict[str, Cells]:
    """Return the cells of each map, by the labels of the other axes."""
    found: dict[str, Cells] = {}
    settings = {cell: settings_of(labels_of(text), cell) for cell, text in distinct(rows, "cell", "labels")}
    lines = zip(*columns_of(rows, ("pretrain", "cell", "value")), strict=True)
    for of in grouped(lines, lambda line: tuple(settings[line[1]].items())).values():
        labels, mean = settings[of[0][1]], mean_of(over_models(of)[0])
        if mean is not None and up in labels and across in labels:
            found.setdefault(layout.without(labels, up, across), {})[labels[up], labels[across]] = mean
    return {rest: cells for rest, cells in found.items() if _is_known(cells, layout, up, across)}


def _is_known(cells: Cells, layout: Layout, up: str, across: str) -> bool:
    """Return whether a map has several rows and columns, and a value in at least SHARE of its cells."""
    rows, columns = ({place[i] for place in cells} for i in (0, 1))
    whole = len(layout.axes[up]) * len(layout.axes[across])
    return len(rows) > 1 and len(columns) > 1 and len(cells) >= SHARE * whole


def _figure(title: str, number: int, label: str, cells: Cells, layout: Layout, up: str, across: str) -> Figure:
    """Draw one map.

    The colour scale is 0 to 100 for an alignment. For Δ it is the range of the values, extended to contain 0 and 1.
    """
    ordered = [_in_order(layout.axes[axis]) for axis in (up, across)]
    table = np.full([len(labels) for labels in ordered], np.nan)
    for place, value in cells.items():
        table[tuple(labels.index(label) for labels, label in zip(ordered, place, strict=True))] = value
    limits = (0.0, 100.0) if label == ALIGNED else (min(0.0, *cells.values()), max(1.0, *cells.values()))
    rows, columns = (Setting(layout.titles[axis], labels) for axis, labels in zip((up, across), ordered, strict=True))
    return settings_map(f"map-{slug(title, number)}", title, table, rows, columns, label, NOTE, limits).figure()


def _in_order(labels: Sequence[str]) -> list[str]:
    """Return the labels that are numbers, in ascending order."""
    numbers = numbers_of(labels) or {}
    return sorted(numbers, key=numbers.__getitem__)
