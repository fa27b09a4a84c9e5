"""Histograms of the distances of related and unrelated words, drawn from plain data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from probes.figures.drawing import COLOURS, Drawing, alternative, grid, shorten
from probes.statistics import Interval

Distance = Literal["l2", "cosine"]
NAMES: Mapping[Distance, str] = {"l2": "L2", "cosine": "cosine"}
UNITS = {"l2": "L2 distance (units of the vectors)", "cosine": "cosine distance (1 − cos)"}
RELATED, UNRELATED = COLOURS[0], COLOURS[5]
LABEL = {1: 40, 2: 30, 3: 20}
"""Maximum number of characters of a label, by the number of columns of panels."""
NOTE = (
    "Related words are aligned as translations. Unrelated words are from two different sentences. The area of each "
    "colour is 1. Dashed lines are medians. AUC is the probability that a related pair is closer than an unrelated one "
    "(0.5 = mixed, 1 = separate), with its {level:g} % interval over sentences in brackets."
)


@dataclass(frozen=True)
class Panel:
    """The histograms of one model.

    Attributes:
        label: The name of the panel.
        edges: [bins + 1] the edges of the bins.
        related: [bins] the number of related pairs.
        unrelated: [bins] the number of unrelated pairs.
        medians: The median distances of related and of unrelated pairs.
        auc: The AUC (0 to 1) with its interval.
    """

    label: str
    edges: Sequence[float]
    related: Sequence[float]
    unrelated: Sequence[float]
    medians: tuple[float, float]
    auc: Interval


def histogram_panels(name: str, title: str, distance: Distance, rows: Sequence[Sequence[Panel | None]]) -> Drawing:
    """Draw the distances of related and unrelated words as histograms, in rows of panels with common axes.

    Densities are drawn, so the bins of panels may differ. None in place of a panel leaves the place empty.

    Args:
        name: Name of the file.
        title: Title of the figure.
        distance: ``l2`` or ``cosine``. The choice sets the label of the horizontal axis.
        rows: The panels of each row. All rows have the same length of at most three, and one panel must not be None.
    """
    columns, known = len(rows[0]), [panel for row in rows for panel in row if panel is not None]
    assert known and all(len(row) == columns for row in rows), "at least one panel, in rows of equal length"
    assert columns in LABEL, "at most three columns"

    def paint(canvas: Canvas) -> None:
        places = canvas.subplots(len(rows), columns, sharex=True, sharey=True, squeeze=False)
        drawn = []
        for panel, axes in zip((panel for row in rows for panel in row), places.flat, strict=True):
            if panel is None:
                axes.set_axis_off()
            else:
                _paint(axes, panel, columns)
                drawn.append(axes)
        for column in range(columns):  # tick labels below the last panel, since the lowest place may be empty
            _lowest(list(places[:, column]), [row[column] for row in rows]).tick_params(labelbottom=True)
        drawn[0].set_ylim(bottom=0)  # after all drawing, because it ends automatic scaling of the shared axes
        canvas.supxlabel(UNITS[distance], fontsize=9.5)
        canvas.supylabel("density of pairs of words", fontsize=9.5)
        drawn[0].legend(fontsize=8.5 if columns == 1 else 7)

    alt = alternative(f"Histograms: {title}; AUC", ((panel.label, panel.auc.mean) for panel in known), "{:.3f}")
    height = 0.7 + (1.45 if columns == 1 else 1.6) * len(rows)
    return Drawing(name, title, paint, NOTE.format(level=100 * known[0].auc.level), alt, height)


def _lowest(places: Sequence[Axes], panels: Sequence[Panel | None]) -> Axes:
    """Return the lowest axes of a column that have a panel, or the last axes of an empty column."""
    return next((axes for axes, panel in zip(places[::-1], panels[::-1], strict=True) if panel), places[-1])


def _paint(axes: Axes, panel: Panel, columns: int) -> None:
    kinds = (("related", panel.related, RELATED), ("unrelated", panel.unrelated, UNRELATED))
    for (kind, counts, colour), median in zip(kinds, panel.medians, strict=True):
        density = np.asarray(counts) / (np.sum(counts) * np.diff(panel.edges))
        axes.stairs(density, panel.edges, fill=True, color=colour, alpha=0.3)
        axes.stairs(density, panel.edges, color=colour, linewidth=1.4, label=kind)
        axes.axvline(median, color=colour, linewidth=1, linestyle="--")
    label, auc = shorten(panel.label, LABEL[columns]), f"AUC {_interval(panel.auc)}"
    text = f"{label}: {auc}" if columns == 1 else f"{label}\n{auc}"
    axes.set_title(text, loc="left", fontsize=9 if columns == 1 else 7)
    axes.tick_params(labelsize=8)
    grid(axes, "y")


def _interval(interval: Interval) -> str:
    bounds = "" if interval.low is None else f" [{interval.low:.3f}, {interval.high:.3f}]"
    return f"{interval.mean:.3f}{bounds}"
