"""Heat maps: CKA layer by layer, or a measure over two settings. The input is plain data."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure as Canvas
from numpy.typing import ArrayLike

from probes.figures.drawing import Drawing, alternative, shorten
from probes.statistics import Floats

CELLS = 13
"""Maximum number of rows or columns of a map with numbers in its cells. In larger maps they would be too small."""
LINE = 8
"""Length of a line in the label of the colour bar, in letters for each row of the map."""


@dataclass(frozen=True)
class Setting:
    """An axis of a heat map: its name, and its labels in order."""

    name: str
    labels: Sequence[str]


def cka_map(name: str, title: str, values: ArrayLike, left: str, right: str) -> Drawing:
    """Draw CKA of each layer of one model with each layer of another as a heat map. Layer 0 is the embeddings.

    Args:
        name: Name of the file.
        title: Title of the figure.
        values: [L, R] CKA, 0 to 1, without NaN.
        left: Name of the model of the rows.
        right: Name of the model of the columns.
    """
    table = np.asarray(values, dtype=np.float64)
    assert table.ndim == 2 and table.size and np.isfinite(table).all(), table
    rows, columns = table.shape

    def paint(canvas: Canvas) -> None:
        _paint(canvas, table, (0.0, 1.0), _without_zero, "CKA (0 = unlike, 1 = alike)", square=True)
        axes = canvas.axes[0]
        axes.set_xlabel(f"layer: {shorten(right, 40)}")
        axes.set_ylabel(f"layer: {shorten(left, 40)}")
        for axis, size in ((axes.xaxis, columns), (axes.yaxis, rows)):
            every = list(range(0, size, 1 + (size - 1) // CELLS))
            axis.set_ticks([i + 0.5 for i in every], [str(i) for i in every])

    note = "Similarity of the representations of the same sentences, layer by layer. Layer 0 is the embeddings."
    best = np.unravel_index(int(table.argmax()), table.shape)
    alt = f"{title}. Largest CKA {table.max():.3f}, layer {best[0]} of {left} with layer {best[1]} of {right}."
    return Drawing(name, title, paint, note, alt, min(6.0, 0.75 + 3.4 * rows / columns))


def settings_map(
    name: str,
    title: str,
    values: ArrayLike,
    up: Setting,
    across: Setting,
    label: str,
    note: str,
    limits: tuple[float, float],
) -> Drawing:
    """Draw a measure over two settings as a heat map.

    Args:
        name: Name of the file.
        title: Title of the figure.
        values: [U, A] the measure. NaN leaves a cell empty.
        up: The setting on the vertical axis, with U labels.
        across: The setting on the horizontal axis, with A labels.
        label: Label of the colour bar.
        note: Text after the title in the caption.
        limits: The values of the first and the last colour.
    """
    table = np.asarray(values, dtype=np.float64)
    assert table.shape == (len(up.labels), len(across.labels)), table.shape

    def paint(canvas: Canvas) -> None:
        wrapped = textwrap.fill(
            label, LINE * len(up.labels), break_long_words=False
        )  # the colour bar is as high as the map
        _paint(canvas, table, limits, "{:.0f}".format, wrapped)
        axes = canvas.axes[0]
        for axis, setting in ((axes.xaxis, across), (axes.yaxis, up)):
            axis.set_label_text(setting.name)
            axis.set_ticks(
                [i + 0.5 for i in range(len(setting.labels))], [shorten(text, 10) for text in setting.labels]
            )

    places = np.ndenumerate(table)
    named = ((f"{up.name} {up.labels[i]}, {across.name} {across.labels[j]}", value) for (i, j), value in places)
    alt = alternative(f"Map: {title}", named)
    return Drawing(name, title, paint, note, alt, 1.0 + 0.42 * len(up.labels))


def _paint(
    canvas: Canvas,
    table: Floats,
    limits: tuple[float, float],
    write: Callable[[float], str],
    label: str,
    *,
    square: bool = False,
) -> None:
    """Draw a table as colours with its numbers, and a colour bar."""
    axes, (low, high) = canvas.subplots(), limits
    drawn = axes.pcolormesh(np.ma.masked_invalid(table), cmap="cividis", vmin=low, vmax=high)
    axes.set_aspect("equal" if square else "auto")
    axes.tick_params(length=0)
    if max(table.shape) <= CELLS:
        points = 8.0 if max(table.shape) <= 9 else 6.2
        for (i, j), value in np.ndenumerate(table):
            if np.isfinite(value):
                ink = "#ffffff" if value < (low + high) / 2 else "#000000"
                axes.text(j + 0.5, i + 0.5, write(value), ha="center", va="center", color=ink, fontsize=points)
    bar = canvas.colorbar(drawn, ax=axes, shrink=0.8 if square else 1.0, pad=0.02)
    bar.set_label(label)
    bar.outline.set_visible(False)


def _without_zero(value: float) -> str:
    return f"{value:.2f}".replace("0.", ".", 1) if 0 <= value < 0.995 else f"{value:.1f}"
