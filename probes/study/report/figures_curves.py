"""Curves of a pretraining run: losses, validation perplexity and alignment over steps."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter
from numpy.typing import NDArray

from probes.figures.drawing import COLOURS, INK, Figure, draw, shorten, slug

Records = Sequence[dict[str, float]]
Floats = NDArray[np.float64]

NOT_A_LOSS = {
    *("step", "lr", "tokens_per_second", "sentence_pairs_per_second", "tokens_seen", "alignment", "seconds", "epoch"),
    *("grad_norm", "memory"),
}
OF_ADJUSTMENT = ("pull", "hold")
"""The terms of an adjustment, of a word: squared distances, or distances (Cao et al. 2020, section 3.3)."""
DISTANCES = ("related", "unrelated")
"""What an adjustment measures on the way (Impact, section 5.4)."""
ALIGNMENT = ("alignment", "alignment_held_out")
POINTS = 300
"""Most points of one curve: more would be wider than the figure and fill the page with bytes."""
LOG_RATIO = 4.0
"""A positive curve that spans more than this factor is drawn on a log scale."""


def curve_figures(name: str, records: Records, number: int) -> list[Figure]:
    """Up to four small figures of one run; a kind of which nothing was logged is left out."""
    keys = dict.fromkeys(key for record in records for key in record)
    losses = [key for key in keys if key not in {*NOT_A_LOSS, *OF_ADJUSTMENT} and "/" not in key]
    if len(losses) == 2 and "loss" in losses:
        losses.remove("loss")  # the total of one loss is that loss
    positive = [key for key in losses if min(_curve(records, key)[1]) > 0]
    panels = (
        ("loss", "Losses", "loss (nats per masked token)", positive),
        (
            "signed-loss",
            "Losses that may be negative",
            "loss (unit of the objective)",
            [k for k in losses if k not in positive],
        ),
        (
            "adjustment",
            "Terms of the adjustment",
            "distance (as its loss has it)",
            [k for k in keys if k in OF_ADJUSTMENT],
        ),
        ("distances", "Distances of words", "mean L2 distance", [k for k in keys if k.split("/")[0] in DISTANCES]),
        ("perplexity", "Validation perplexity", "perplexity", [k for k in keys if k.startswith("validation/")]),
        ("alignment", "Alignment", "word-embedding alignment (%)", [k for k in keys if k.split("/")[0] in ALIGNMENT]),
    )
    return [
        _panel(f"{kind}-{slug(name, number)}", f"{name}: {title}", label, records, shown)
        for kind, title, label, shown in panels
        if shown
    ]


def _panel(file: str, title: str, label: str, records: Records, keys: Sequence[str]) -> Figure:
    curves = {key: _curve(records, key) for key in keys}
    values = np.concatenate([y for _, y in curves.values()])
    alignment = keys[0].split("/")[0] in ALIGNMENT
    log = not alignment and values.min() > 0 and values.max() > LOG_RATIO * values.min()

    def paint(canvas: Canvas) -> None:
        axes = canvas.subplots()
        for i, (key, curve) in enumerate(curves.items()):
            x, y = map(_thin, curve)
            name = shorten(key.removeprefix("validation/").replace("_", " "), 24)
            axes.plot(
                x, y, color=COLOURS[i % len(COLOURS)], label=name, marker="o" if len(x) < 30 else "", markersize=3
            )
        axes.set_xlabel("step")
        axes.set_ylabel(label + (", log scale" if log else ""))
        axes.grid(color=INK, alpha=0.12, linewidth=0.7)
        axes.xaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10], integer=True))
        axes.xaxis.set_major_formatter(FuncFormatter(_steps))
        if log:
            _log(axes)
        elif alignment:
            axes.set_ylim(0, max(5.0, 1.05 * float(values.max())))
        if len(curves) > 1 or not alignment:
            axes.legend(fontsize=8.5)

    ends = "; ".join(f"{key} from {y[0]:.3g} to {y[-1]:.3g}" for key, (_, y) in curves.items())
    thinned = max(len(x) for x, _ in curves.values()) > POINTS
    caption = title + (f" (means of equal blocks of steps, {POINTS} points)." if thinned else ".")
    return Figure(file, draw(3.7, 2.7, paint), f"{title} over steps: {ends}.", caption)


def _curve(records: Records, key: str) -> tuple[Floats, Floats]:
    """Steps and values of the lines that log ``key``."""
    pairs = np.array([(record["step"], record[key]) for record in records if key in record], dtype=np.float64)
    return pairs[:, 0], pairs[:, 1]


def _thin(values: Floats) -> Floats:
    """Means of at most POINTS blocks of nearly equal size."""
    if len(values) <= POINTS:
        return values
    return np.array([block.mean() for block in np.array_split(values, POINTS)])


def _steps(value: float, _position: int | None) -> str:
    """
    >>> _steps(12500, None), _steps(300, None)
    ('12.5k', '300')
    """
    return f"{value / 1000:g}k" if value >= 1000 else f"{value:g}"


def _log(axes: Axes) -> None:
    """A log axis with plain numbers (mathtext is off) at 1, 2 and 5."""
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())
