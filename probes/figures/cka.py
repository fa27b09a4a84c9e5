"""Figures of CKA. Plain data in; nothing here computes a result."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure as Canvas
from numpy.typing import ArrayLike

from probes.figures.drawing import Drawing, shorten
from synthlang.errors import InputError

CELLS = 13
"""A map with more rows or columns has no numbers in its cells: they would not be read."""


def cka_map(name: str, title: str, values: ArrayLike, left: str, right: str) -> Drawing:
    """CKA [L, R] of each layer of ``left`` against each of ``right``; layers count from 0, the embeddings."""
    table = np.asarray(values, dtype=np.float64)
    assert table.ndim == 2, table.shape
    if not table.size or not np.isfinite(table).all():
        raise InputError("CKA to draw holds NaN or infinity, or no layer")
    rows, columns = table.shape

    def paint(canvas: Canvas) -> None:
        axes = canvas.subplots()
        drawn = axes.pcolormesh(table, cmap="cividis", vmin=0, vmax=1)
        axes.set_aspect("equal")
        axes.set_xlabel(f"layer: {shorten(right, 40)}")
        axes.set_ylabel(f"layer: {shorten(left, 40)}")
        for axis, size in ((axes.xaxis, columns), (axes.yaxis, rows)):
            every = list(range(0, size, 1 + (size - 1) // CELLS))
            axis.set_ticks([i + 0.5 for i in every], [str(i) for i in every])
        axes.tick_params(length=0)
        if max(rows, columns) <= CELLS:
            points = 8.0 if max(rows, columns) <= 9 else 6.2
            for (i, j), value in np.ndenumerate(table):
                ink = "#ffffff" if value < 0.5 else "#000000"
                text = f"{value:.2f}".replace("0.", ".", 1) if 0 <= value < 0.995 else f"{value:.1f}"
                axes.text(j + 0.5, i + 0.5, text, ha="center", va="center", color=ink, fontsize=points)
        bar = canvas.colorbar(drawn, ax=axes, shrink=0.8, pad=0.02)
        bar.set_label("CKA (0 = unlike, 1 = alike)")
        bar.outline.set_visible(False)

    note = "How alike the representations of the same sentences are, layer by layer. Layer 0: the embeddings."
    best = np.unravel_index(int(table.argmax()), table.shape)
    alt = f"{title}. Largest CKA {table.max():.3f}, layer {best[0]} of {left} with layer {best[1]} of {right}."
    return Drawing(name, title, paint, note, alt, min(6.0, 0.75 + 3.4 * rows / columns))
