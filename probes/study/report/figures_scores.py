"""Bars of Δ in groups of conditions, and alignment against Δ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.lines import Line2D
from matplotlib.text import Annotation
from matplotlib.transforms import Bbox

from probes.figures.drawing import INK, MARKERS, WIDTH, Figure, draw, grid, markers, shorten, slug
from probes.statistics import Interval
from probes.study.labels import Layout
from probes.study.report.scores import Condition, Scores, grouped

LABELLED = 16
"""With more points than this, labels would cover each other: colour and marker must do."""
BARS = 48
"""Most bars of one figure: more are taller than a page, and the table has their numbers."""
INTERVALS = 100
"""Of more points than this no intervals are drawn: they would be a hatching."""
NAMES = 7
"""Most names of a legend: as many as there are colours."""
TOLD = 40
"""Most values that the text alternative of a figure has."""


def metric_name(conditions: Sequence[Condition]) -> str:
    """The metric of a task in words: ``token_accuracy`` → token accuracy."""
    names = sorted({c.first.metric.replace("_", " ") for c in conditions if c.first.metric})
    return " / ".join(names) or "the score"


def delta_axis(conditions: Sequence[Condition]) -> str:
    """The label of an axis of Δ."""
    return f"Δ = SUP − ZS (points of {metric_name(conditions)})"


def delta_bars(
    task: str, conditions: Sequence[Condition], held: Layout, palette: Mapping[str, str], number: int
) -> Figure:
    """A bar per condition in groups: mean Δ, 95 % t interval, a dot per run or seed."""
    known = [c for c in conditions if c.delta is not None]
    groups = grouped(known[:BARS], lambda c: held.group(c.labels))
    rows = sum(map(len, groups.values()))

    def paint(canvas: Canvas) -> None:
        axes, y = canvas.subplots(), 0.0
        ticks: list[tuple[float, str]] = []
        headings: list[int] = []
        bars: list[tuple[float, Condition, str]] = []
        for group, members in groups.items():
            if group:
                headings.append(len(ticks))
                ticks.append((y, shorten(group, 60)))
            for c in members:
                y += 1
                name = held.name(c.labels)
                bars.append((y, c, palette[name]))
                ticks.append((y, shorten(name)))
            y += 1.4
        _bars(axes, bars)
        axes.set_yticks([at for at, _ in ticks], [label for _, label in ticks])
        for i in headings:
            axes.get_yticklabels()[i].set_fontweight("bold")
        axes.set_ylim(y - 0.7, -0.6)
        axes.axvline(0, color=INK, linewidth=0.7)
        axes.spines["left"].set_visible(False)
        axes.tick_params(axis="y", length=0)
        grid(axes, "x")
        axes.set_xlabel(delta_axis(known))

    svg = draw(WIDTH, 0.9 + 0.3 * (rows + 1.4 * len(groups)), paint)
    bars = [f"{c.label}: {c.delta.mean:.1f}" for c in known[:TOLD] if c.delta]
    alt = f"Bars of Δ on {task}. " + "; ".join(bars) + ("; …" if len(known) > TOLD else ".")
    caption = (
        f"{task}: Δ of each condition, lower is better. Bar: mean; line: 95 % t interval; dots: pretraining runs, or "
        "fine-tuning seeds where there is one run."
    )
    caption += f" The first {BARS} of {len(known):,} conditions." if len(known) > BARS else ""
    return Figure(f"delta-{slug(task, number)}", svg, alt, caption)


def _bars(axes: Axes, bars: Sequence[tuple[float, Condition, str]]) -> None:
    """All bars, then all intervals, then all dots: few artists, since each takes its time."""
    known = [(y, c.delta.shown, c, colour) for y, c, colour in bars if c.delta is not None]
    places, shades = [y for y, *_ in known], [colour for *_, colour in known]
    axes.barh(places, [delta.mean for _, delta, *_ in known], height=0.66, color=shades, alpha=0.75)
    lines = [(y - 0.1, d.low, d.high) for y, d, *_ in known if d.low is not None and d.high is not None]
    if lines:
        axes.hlines(*zip(*lines, strict=True), color=INK, linewidth=1.4)
    dots = [(value, y + 0.2) for y, _, c, _ in known for value in c.values("delta")]  # below, or they would hide lines
    x, at = zip(*dots, strict=True)
    axes.plot(x, at, linestyle="", marker="o", markersize=3.8, color="white", mec=INK, mew=0.8)


def alignment_scatter(
    task: str, scores: Sequence[Condition], found: Scores, palette: Mapping[str, str], number: int
) -> Figure | None:
    """A point per cell: alignment of all types against mean Δ; None without any point."""
    held = found.layout
    labels = [(score, score.labels) for score in scores]
    points = [
        (x, y, score, held.name(own), held.group(own))
        for score, own in labels
        if (x := score.mean("alignment_all")) is not None and (y := score.mean("delta")) is not None
    ]
    if not points:
        return None
    groups = list(dict.fromkeys(group for *_, group in points))
    shapes = markers(groups if len(groups) <= len(MARKERS) else ["" for _ in groups])
    few = len(points) <= LABELLED

    def paint(canvas: Canvas) -> None:
        axes = canvas.subplots()
        axes.axhline(0, color=INK, linewidth=0.7, alpha=0.4)
        for (name, group), members in grouped(points, lambda point: (point[3], point[4])).items():
            x, y = [p[0] for p in members], [p[1] for p in members]
            drawn = axes.plot(x, y, linestyle="", marker=shapes.get(group, "o"), color=palette[name], zorder=3)[0]
            drawn.set(markersize=7 if few else 5, markeredgecolor=INK, markeredgewidth=0.5)
        if len(points) <= INTERVALS:
            _intervals(axes, [(x, score.delta.shown, palette[name]) for x, _, score, name, _ in points if score.delta])
        grid(axes, "both")
        axes.margins(0.12)
        axes.set_xlabel("Word-embedding alignment, all types (%)")
        axes.set_ylabel(delta_axis([c for c in found.conditions if c.task == task]))
        _legend(canvas, {name: palette[name] for *_, name, _ in points}, shapes if len(shapes) > 1 else {})
        if few:
            _label(canvas, axes, [(x, s.delta.shown, shorten(s.first.cell, 26)) for x, _, s, *_ in points if s.delta])

    svg = draw(WIDTH, 3.9, paint)
    named = [f"{score.first.cell}: {x:.1f} %, Δ {y:.1f}" for x, y, score, *_ in points[:TOLD]]
    alt = f"Scatter of alignment against Δ on {task}. " + "; ".join(named) + ("; …" if len(points) > TOLD else ".")
    caption = f"{task}: a point per cell."
    caption += " Lines: 95 % t interval of Δ over fine-tuning seeds." if len(points) <= INTERVALS else ""
    return Figure(f"alignment-{slug(task, number)}", svg, alt, caption)


def _intervals(axes: Axes, of_points: Sequence[tuple[float, Interval, str]]) -> None:
    known = [(x, d.low, d.high, colour) for x, d, colour in of_points if d.low is not None and d.high is not None]
    if known:
        x, low, high, shades = zip(*known, strict=True)
        axes.vlines(x, low, high, colors=list(shades), linewidth=1, alpha=0.6)  # a tuple of two is (colour, alpha)


def _legend(canvas: Canvas, palette: Mapping[str, str], shapes: Mapping[str, str]) -> None:
    handles = [
        Line2D([], [], linestyle="", marker="o", color=c, label=shorten(o)) for o, c in list(palette.items())[:NAMES]
    ]
    handles += [
        Line2D([], [], linestyle="", marker=m, color="none", markeredgecolor=INK, label=shorten(group))
        for group, m in shapes.items()
    ]
    canvas.legend(handles=handles, loc="outside upper left", ncols=2, fontsize=8.5, handletextpad=0.3)


SIDES = [
    (dx, dy, {-1: "right", 0: "center", 1: "left"}[dx], {-1: "top", 0: "center", 1: "bottom"}[dy])
    for dx, dy in ((1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (-1, 1), (1, -1), (-1, -1))
]


def _label(canvas: Canvas, axes: Axes, points: Sequence[tuple[float, Interval, str]]) -> None:
    """Put each label on the side of its point where it covers least: points, intervals, labels, the frame."""
    canvas.draw_without_rendering()
    taken: list[Bbox] = []
    for x, delta, _ in points:
        at, y = axes.transData.transform((x, delta.mean))
        taken.append(Bbox.from_extents(at - 5, y - 5, at + 5, y + 5))
        if delta.low is not None and delta.high is not None:
            ends = axes.transData.transform([(x, delta.low), (x, delta.high)])
            taken.append(Bbox.from_extents(at - 1, ends[0][1], at + 1, ends[1][1]))
    for x, delta, text in points:
        best: tuple[int, Annotation, Bbox] | None = None
        for dx, dy, ha, va in SIDES:
            offset = (7 * dx, (4 if dx else 7) * dy)
            label = axes.annotate(
                text, (x, delta.mean), offset, textcoords="offset points", ha=ha, va=va, fontsize=8, in_layout=False
            )
            box = label.get_window_extent()
            inside = axes.bbox.x0 <= box.x0 and box.x1 <= axes.bbox.x1
            cost = sum(box.overlaps(other) for other in taken) + 3 * (not inside)
            loser = label if best is not None and cost >= best[0] else best[1] if best is not None else None
            if best is None or cost < best[0]:
                best = cost, label, box
            if loser is not None:
                loser.remove()
        assert best is not None
        taken.append(best[2])
