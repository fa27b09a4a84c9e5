"""Figures of lines: measures over layers, steps, doses or differences of rank, and the logs of runs.

The input is plain data, with intervals as bands. ``rank_series`` also computes accuracies in bins of items.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter, NullLocator
from numpy.typing import ArrayLike

from probes.figures.drawing import (
    COLOURS,
    INK,
    MARKERS,
    Drawing,
    Figure,
    alternative,
    draw,
    grid,
    legend_above,
    shorten,
    slug,
)
from probes.statistics import Floats, Interval, wilson_interval

HEADROOM = 1.05
STEP, LOG = "pretraining step", " (log scale)"
TICKS = 8
"""Maximum number of values on an axis for which each value has a tick."""
LOG_RATIO = 20.0
"""Ratio of the largest to the smallest positive dose from which the axis is logarithmic.

On a linear axis, small doses would coincide.
"""

NOT_A_LOSS = {
    *("step", "lr", "tokens_per_second", "sentence_pairs_per_second", "tokens_seen", "alignment", "seconds", "epoch"),
    *("grad_norm", "memory"),
}
OF_ADJUSTMENT = ("pull", "hold")
"""Terms of an adjustment, which are distances or squared distances per word (Cao et al. 2020, section 3.3)."""
DISTANCES = ("related", "unrelated")
"""Measures that are logged during an adjustment ("The Impact of Cross-Lingual Adjustment", section 5.4)."""
ALIGNMENT = ("alignment", "alignment_held_out")
CURVE_POINTS = 300
"""Maximum number of points of a curve. More points are not visible at the width of the figure, and enlarge the page."""
CURVE_LOG_RATIO = 4.0
"""Ratio of the largest to the smallest value of positive curves above which their axis is logarithmic."""
Records = Sequence[Mapping[str, float]]
"""Lines of the log of a run."""


@dataclass(frozen=True)
class Series:
    """A line: ``y`` [n] over ``x`` [n].

    Attributes:
        name: Name of the line in the legend.
        x: [n] the places on the horizontal axis.
        y: [n] the values.
        low: [n] lower bounds, or () if no bounds are known. A single missing bound is None.
        high: [n] upper bounds, in the same form.
        pair: True to draw the line dashed, in the colour of the line before it, and without an entry in the legend.
    """

    name: str
    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float | None] = ()
    high: Sequence[float | None] = ()
    pair: bool = False


def interval_series(name: str, x: Sequence[float], intervals: Sequence[Interval], *, pair: bool = False) -> Series:
    """Return a line of means over ``x`` with their intervals, clipped to the range of the measure.

    ``x`` and ``intervals`` have one entry for each point. ``pair`` is described in ``Series``.
    """
    low, high = [i.shown.low for i in intervals], [i.shown.high for i in intervals]
    return Series(name, x, [i.mean for i in intervals], low, high, pair)


def auc_by_layer(name: str, title: str, series: Sequence[Series]) -> Drawing:
    """Draw the AUC (0 to 1) of each model or distance over layers.

    The arguments are those of ``lines_over``.
    """
    low = min(0.5, *(y for line in series for y in line.y))
    note = (
        "AUC is the probability that a related pair of words is closer than an unrelated one. The dotted line is "
        "chance (0.5). Bands are 95 % intervals over sentences. Layer 0 is the embeddings."
    )
    return _lines(name, title, series, ("layer", "AUC of related against unrelated"), (low - 0.03, 1.02), note, 0.5)


def retrieval_by_layer(name: str, title: str, series: Sequence[Series]) -> Drawing:
    """Draw the retrieval accuracy (0 to 100) of each model, direction or method over layers.

    The arguments are those of ``lines_over``.
    """
    note = (
        "Accuracy is the share of words whose nearest word of the other language is the translation. Layer 0 is the "
        "embeddings. Bands are 95 % intervals, where given."
    )
    return _lines(name, title, series, ("layer", "retrieval accuracy (%)"), (0, None), note)


def emergence(name: str, title: str, series: Sequence[Series], label: str = "alignment (%)") -> Drawing:
    """Draw scores over the steps of pretraining, one line for each score.

    ``label`` is the label of the vertical axis. The other arguments are those of ``lines_over``.
    """
    note = "Each point is a checkpoint of the run. Where the line rises, the languages become aligned."
    return _lines(name, title, series, (STEP, label), (0, None), note)


def lines_over(
    name: str,
    title: str,
    series: Sequence[Series],
    axes: tuple[str, str],
    note: str,
    written: Mapping[float, str] | None = None,
    *,
    log_y: bool = False,
) -> Drawing:
    """Draw any measure over layers, steps or the numbers of an axis of a study, one line for each condition.

    Steps and numbers have a log scale if all are positive and the largest is at least LOG_RATIO times the smallest.

    Args:
        name: Name of the file.
        title: Title of the figure.
        series: The lines, at least one, each with at least one point.
        axes: Labels of the horizontal and of the vertical axis.
        note: Text after the title in the caption.
        written: Number on the horizontal axis → its label, for an axis of a study. None stands for layers or steps.
        log_y: True for a vertical axis on a log scale, if all values are above 0.
    """
    places = sorted({x for line in series for x in line.x})
    spans_much = places[0] > 0 and places[-1] >= LOG_RATIO * places[0]
    log = bool((written is not None or axes[0] == STEP) and spans_much)
    log_y = bool(log_y and min(y for line in series for y in line.y) > 0)
    ticks = None if written is None else {x: written.get(x, f"{x:g}") for x in places}
    return _lines(name, title, series, axes, _limits(series), note, ticks=ticks, log=log, log_y=log_y)


def _limits(series: Sequence[Series]) -> tuple[float, float]:
    """Return axis limits that contain 0 and all points and bounds.

    The upper limit is 1 for values of at most 1, and at least 5 for larger values, so that small differences are not
    magnified. If no value is positive, the upper limit is 0.
    """
    seen = [*(y for line in series for y in line.y), *(b for line in series for b in (*line.low, *line.high) if b)]
    low, high = min(seen), max(seen)
    top = 1.0 if high <= 1 else max(5.0, HEADROOM * high)
    return (min(0.0, HEADROOM * low), top) if high > 0 else (min(HEADROOM * low, -1e-9), 0.0)


def accuracy_by_rank(name: str, title: str, series: Sequence[Series], note: str) -> Drawing:
    """Draw accuracy (0 to 100) over the difference of frequency rank of a word and its translation.

    The lines are those of ``rank_series``. The other arguments are those of ``lines_over``.
    """
    axes = ("difference of frequency rank (log scale, from 1)", "retrieval accuracy (%)")
    return _lines(name, title, series, axes, (0, None), note, log=True)


def rank_series(name: str, difference: ArrayLike, correct: ArrayLike, bins: int) -> Series:
    """Return the accuracy in percent over |difference| of rank, in at most ``bins`` bins of equally many items.

    Items of equal difference share a bin. Bounds are Wilson's score interval (1927), which treats items as independent.
    The x value of a bin is its median difference, but at least 1, for a logarithmic axis.

    Args:
        name: The name of the line.
        difference: [n] the difference of rank of each item, n ≥ 1.
        correct: [n] the score of each item, from 0 to 1.
        bins: Maximum number of bins, at least 1.
    """
    size = np.abs(np.asarray(difference, dtype=np.float64))
    hits = np.asarray(correct, dtype=np.float64)
    assert size.ndim == 1 and size.shape == hits.shape and bins >= 1, (size.shape, hits.shape)
    edges = np.unique(np.quantile(size, np.arange(1, bins) / bins))
    number = np.unique(np.searchsorted(edges, size, side="left"), return_inverse=True)[1]
    counts = np.bincount(number)
    share = np.bincount(number, hits) / counts
    bounds = [wilson_interval(p, n) for p, n in zip(share.tolist(), counts.tolist(), strict=True)]
    x = [max(1.0, float(np.median(size[number == i]))) for i in range(len(counts))]
    return interval_series(name, x, bounds)


def _lines(
    name: str,
    title: str,
    series: Sequence[Series],
    labels: tuple[str, str],
    limits: tuple[float, float | None],
    note: str,
    chance: float | None = None,
    *,
    log: bool = False,
    log_y: bool = False,
    ticks: Mapping[float, str] | None = None,
) -> Drawing:
    kinds = np.cumsum([not line.pair for line in series]) - 1  # the number of the colour and marker of each line
    named = int(kinds[-1]) + 1

    def paint(canvas: Canvas) -> None:
        axes = canvas.subplots()
        if chance is not None:
            axes.axhline(chance, color=INK, linewidth=1, linestyle=":")
        for i, line in zip(kinds, series, strict=True):
            _line(axes, line, COLOURS[i % len(COLOURS)], MARKERS[i % len(MARKERS)])
        axes.set_xlabel(labels[0] + LOG * log)
        axes.set_ylabel(labels[1] + LOG * log_y)
        if log_y:
            _log_axis(axes)
        else:
            top = max(y for line in series for y in (*line.y, *line.high) if y is not None)
            axes.set_ylim(limits[0], limits[1] if limits[1] is not None else max(5.0, HEADROOM * top))
        _number_axis(axes, ticks or {}, steps=labels[0] == STEP, log=log)
        grid(axes, "both")
        if named > 1:
            legend_above(axes)

    ends = [(line.name, line.y[-1]) for line in series]
    if len(series) == 1:
        ends = [("at first", series[0].y[0]), ("at last", series[0].y[-1])]
    alt = alternative(f"Curves: {title}; at the end" if len(series) > 1 else f"Curve: {title}", ends, "{:.3g}")
    height = 2.9 + 0.2 * ((named + 1) // 2 if named > 1 else 0)
    return Drawing(name, title, paint, note, alt, height)


def _number_axis(axes: Axes, ticks: Mapping[float, str], *, steps: bool, log: bool) -> None:
    few = 0 < len(ticks) <= TICKS
    if log:
        axes.set_xscale("log")
    if few:
        axes.set_xticks(list(ticks), list(ticks.values()))
        axes.xaxis.set_minor_locator(NullLocator())
    elif not log and not ticks:
        axes.xaxis.set_major_locator(MaxNLocator(8 if not steps else 6, steps=[1, 2, 5, 10], integer=True))
    if steps or (log and not few):
        axes.xaxis.set_major_formatter(FuncFormatter(_steps))
    if steps and log:
        axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axes.xaxis.set_minor_formatter(NullFormatter())


def _log_axis(axes: Axes) -> None:
    """Set a logarithmic vertical axis, with plain numbers (mathtext is off) at 1, 2 and 5."""
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())


def _line(axes: Axes, line: Series, colour: str, marker: str) -> None:
    shown, name = marker if len(line.x) <= 40 else "", "_" if line.pair else shorten(line.name, 30)
    dashes = "--" if line.pair else "-"
    axes.plot(line.x, line.y, color=colour, label=name, marker=shown, markersize=4.5, linestyle=dashes)
    if line.low:
        low, high = (np.array([np.nan if b is None else b for b in side]) for side in (line.low, line.high))
        axes.fill_between(line.x, low, high, color=colour, alpha=0.18, linewidth=0)


def curve_figures(name: str, records: Records, number: int) -> list[Figure]:
    """Draw small figures of the log of a run, one for each group of logged quantities.

    The groups are losses, terms of an adjustment, distances of words, perplexity and alignment.

    Args:
        name: Name of the run, which precedes the titles.
        records: The lines of the log. Each maps the names of quantities, with ``step``, to numbers.
        number: A number that makes the file names unique.
    """
    keys = dict.fromkeys(key for record in records for key in record)
    losses = [key for key in keys if key not in {*NOT_A_LOSS, *OF_ADJUSTMENT} and "/" not in key]
    if len(losses) == 2 and "loss" in losses:
        losses.remove("loss")  # with a single term, the total equals the term
    positive = [key for key in losses if min(_curve(records, key)[1]) > 0]
    signed, terms = [k for k in losses if k not in positive], [k for k in keys if k in OF_ADJUSTMENT]
    distances, aligned = ([k for k in keys if k.split("/")[0] in kinds] for kinds in (DISTANCES, ALIGNMENT))
    panels = (
        ("loss", "Losses", "loss (nats per masked token)", positive),
        ("signed-loss", "Losses that may be negative", "loss (unit of the objective)", signed),
        ("adjustment", "Terms of the adjustment", "distance (as its loss has it)", terms),
        ("distances", "Distances of words", "mean L2 distance", distances),
        ("perplexity", "Validation perplexity", "perplexity", [k for k in keys if k.startswith("validation/")]),
        ("alignment", "Alignment", "word-embedding alignment (%)", aligned),
    )
    return [
        _panel(f"{kind}-{slug(name, number)}", f"{name}: {title}", label, {key: _curve(records, key) for key in shown})
        for kind, title, label, shown in panels
        if shown
    ]


def _panel(file: str, title: str, label: str, curves: Mapping[str, tuple[Floats, Floats]]) -> Figure:
    values = np.concatenate([y for _, y in curves.values()])
    alignment = next(iter(curves)).split("/")[0] in ALIGNMENT
    log = not alignment and values.min() > 0 and values.max() > CURVE_LOG_RATIO * values.min()

    def paint(canvas: Canvas) -> None:
        axes = canvas.subplots()
        for i, (key, curve) in enumerate(curves.items()):
            x, y = map(_thin, curve)
            name = shorten(key.removeprefix("validation/").replace("_", " "), 24)
            marker, colour = "o" if len(x) < 30 else "", COLOURS[i % len(COLOURS)]
            axes.plot(x, y, color=colour, label=name, marker=marker, markersize=3)
        axes.set_xlabel("step")
        axes.set_ylabel(label + (", log scale" if log else ""))
        grid(axes, "both")
        axes.xaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10], integer=True))
        axes.xaxis.set_major_formatter(FuncFormatter(_steps))
        if log:
            _log_axis(axes)
        elif alignment:
            axes.set_ylim(0, max(5.0, HEADROOM * float(values.max())))
        if len(curves) > 1 or not alignment:
            axes.legend(fontsize=8.5)

    ends = [(key, y[-1]) for key, (_, y) in curves.items()]
    alt = alternative(f"Curves: {title} over steps; at the end", ends, "{:.3g}")
    thinned = max(len(x) for x, _ in curves.values()) > CURVE_POINTS
    caption = title + (f" (means of equal blocks of steps, {CURVE_POINTS} points)." if thinned else ".")
    return Figure(file, draw(3.7, 2.7, paint), alt, caption)


def _curve(records: Records, key: str) -> tuple[Floats, Floats]:
    """Return the steps and the values of the records that have ``key``."""
    pairs = np.array([(record["step"], record[key]) for record in records if key in record], dtype=np.float64)
    return pairs[:, 0], pairs[:, 1]


def _thin(values: Floats) -> Floats:
    """Average the values in at most CURVE_POINTS blocks of nearly equal size."""
    if len(values) <= CURVE_POINTS:
        return values
    return np.array([block.mean() for block in np.array_split(values, CURVE_POINTS)])


def _steps(value: float, _position: int | None) -> str:
    """Return the label of a number of steps.

    >>> _steps(12500, None), _steps(300, None)
    ('12.5k', '300')
    """
    return f"{value / 1000:g}k" if value >= 1000 else f"{value:g}"
