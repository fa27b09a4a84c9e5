"""Figures of distances of words and of CKA. Plain data in; nothing here computes a result."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure as Canvas
from numpy.typing import ArrayLike

from probes.distances.compare import BINS, histograms
from probes.distances.separation import Separation
from probes.figures.drawing import Drawing
from probes.figures.lines import grid
from probes.report.figure import COLOURS, shorten
from probes.statistics import Interval
from synthlang.errors import InputError

UNITS = {"l2": "L2 distance (units of the vectors)", "cosine": "cosine distance (1 − cos)"}
RELATED, UNRELATED = COLOURS[0], COLOURS[5]
CELLS = 13
"""A map with more rows or columns has no numbers in its cells: they would not be read."""


def distance_histograms(name: str, title: str, found: Sequence[tuple[str, Separation]], bins: int = BINS) -> Drawing:
    """A panel for each model (before, after …), one under another with common bins: related and unrelated words."""
    if not found:
        raise InputError("no distances to draw")
    counted = histograms([one for _, one in found], bins)

    def paint(canvas: Canvas) -> None:
        panels = canvas.subplots(len(found), sharex=True, sharey=True, squeeze=False)[:, 0]
        for axes, (label, one), counts in zip(panels, found, counted, strict=True):
            kinds = (("related", counts.related, RELATED), ("unrelated", counts.unrelated, UNRELATED))
            for kind, amounts, colour in kinds:
                share = 100 * amounts / amounts.sum()
                axes.stairs(share, counts.edges, fill=True, color=colour, alpha=0.3)
                axes.stairs(share, counts.edges, color=colour, linewidth=1.4, label=kind)
                axes.axvline(float(np.median(getattr(one, kind))), color=colour, linewidth=1, linestyle="--")
            axes.set_title(f"{shorten(label, 40)}: AUC {_interval(one.auc)}", loc="left", fontsize=9)
            grid(axes, "y")
        panels[0].set_ylim(bottom=0)  # once all is drawn, since it ends the scaling; the axes are shared
        panels[-1].set_xlabel(UNITS[found[0][1].distance])
        canvas.supylabel("pairs of words in a bin (%)", fontsize=9.5)
        panels[0].legend(fontsize=8.5)

    note = (
        "Related: words that are linked as translations. Unrelated: words of two different sentences. Dashed: medians. "
        "AUC: how probably a related pair is closer than an unrelated one (0.5 = mixed up, 1 = apart), "
        f"in brackets its {100 * found[0][1].level:g} % interval over sentences."
    )
    alt = f"{title}. " + "; ".join(f"{label}: AUC {_interval(one.auc)}" for label, one in found) + "."
    return Drawing(name, title, paint, note, alt, 0.7 + 1.45 * len(found))


def _interval(interval: Interval, digits: int = 3) -> str:
    bounds = "" if interval.low is None else f" [{interval.low:.{digits}f}, {interval.high:.{digits}f}]"
    return f"{interval.mean:.{digits}f}{bounds}"


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
