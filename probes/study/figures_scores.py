"""Bars of Δ by language and objective, and alignment against Δ."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.lines import Line2D
from matplotlib.text import Annotation
from matplotlib.transforms import Bbox

from probes.report.figure import INK, Figure, draw, markers, shorten, slug
from probes.statistics import Interval
from probes.study.report_scores import CellScore, grouped

LABELLED = 16
"""With more points than this, labels would cover each other: colour and marker must do."""


def metric_name(scores: Sequence[CellScore]) -> str:
    """The metric of a task in words: ``token_accuracy`` → token accuracy."""
    names = sorted({score.metric.replace("_", " ") for score in scores if score.metric})
    return " / ".join(names) or "the score"


def language_name(score: CellScore, scores: Sequence[CellScore]) -> str:
    """The derived language, with its source where the study has several."""
    several = len({other.source for other in scores}) > 1
    return f"{score.source} → {score.language}" if several else score.language


def delta_axis(scores: Sequence[CellScore]) -> str:
    """The label of an axis of Δ."""
    return f"Δ = SUP − ZS (points of {metric_name(scores)})"


def delta_bars(task: str, scores: Sequence[CellScore], palette: dict[str, str], number: int) -> Figure:
    """A bar per cell, grouped by language: mean Δ, 95 % t interval, a dot per transfer seed."""
    groups = grouped((s for s in scores if s.delta is not None), lambda s: language_name(s, scores))
    rows = sum(map(len, groups.values()))
    unique = all(len({s.objective for s in group}) == len(group) for group in groups.values())

    def paint(canvas: Canvas) -> None:
        axes, y = canvas.subplots(), 0.0
        ticks: list[tuple[float, str]] = []
        headings: list[int] = []
        for language, group in groups.items():
            ticks.append((y, shorten(language, 60)))
            headings.append(len(ticks) - 1)
            for score in group:
                y += 1
                _bar(axes, y, score, palette[score.objective])
                ticks.append((y, shorten(score.objective if unique else score.cell)))
            y += 1.4
        axes.set_yticks([at for at, _ in ticks], [label for _, label in ticks])
        for i in headings:
            axes.get_yticklabels()[i].set_fontweight("bold")
        axes.set_ylim(y - 0.7, -0.6)
        axes.axvline(0, color=INK, linewidth=0.7)
        axes.spines["left"].set_visible(False)
        axes.tick_params(axis="y", length=0)
        axes.grid(axis="x", color=INK, alpha=0.12, linewidth=0.7)
        axes.set_axisbelow(True)
        axes.set_xlabel(delta_axis(scores))
        if not unique:
            handles = [
                Line2D([], [], color=palette[o], linewidth=6, label=shorten(o))
                for o in dict.fromkeys(s.objective for s in scores)
            ]
            canvas.legend(handles=handles, loc="outside upper left", ncols=3)

    svg = draw(5.4, 0.9 + 0.3 * (rows + 1.4 * len(groups)), paint)
    bars = [f"{s.language}, {s.objective}: {s.delta.mean:.1f}" for g in groups.values() for s in g if s.delta]
    alt = f"Bars of Δ on {task}. " + "; ".join(bars[:40]) + ("; …" if len(bars) > 40 else ".")
    caption = (
        f"{task}: Δ by language and objective, lower is better. Bar: mean over transfer seeds; "
        "line: 95 % t interval; dots: single seeds."
    )
    return Figure(f"delta-{slug(task, number)}", svg, alt, caption)


def _bar(axes: Axes, y: float, score: CellScore, colour: str) -> None:
    assert score.delta is not None
    axes.barh(y, score.delta.mean, height=0.66, color=colour, alpha=0.75)
    if score.delta.low is not None and score.delta.high is not None:
        axes.plot(
            [score.delta.low, score.delta.high], [y - 0.1, y - 0.1], color=INK, linewidth=1.4, solid_capstyle="butt"
        )
    dots = [y + 0.2] * len(score.deltas)  # below the interval, which they would hide
    axes.plot(score.deltas, dots, linestyle="", marker="o", markersize=3.8, color="white", mec=INK, mew=0.8)


def alignment_scatter(task: str, scores: Sequence[CellScore], palette: dict[str, str], number: int) -> Figure | None:
    """A point per cell: alignment of all types against mean Δ; None without any point."""
    points = [(s.alignment_all, s.delta.mean, s) for s in scores if s.delta is not None and s.alignment_all is not None]
    if not points:
        return None
    shapes = markers([language_name(s, scores) for s in scores])

    def paint(canvas: Canvas) -> None:
        axes = canvas.subplots()
        axes.axhline(0, color=INK, linewidth=0.7, alpha=0.4)
        for x, y, s in points:
            if s.delta is not None and s.delta.low is not None and s.delta.high is not None:
                axes.plot([x, x], [s.delta.low, s.delta.high], color=palette[s.objective], linewidth=1, alpha=0.6)
            marker = shapes[language_name(s, scores)]
            axes.plot(
                x, y, marker=marker, markersize=7, color=palette[s.objective], markeredgecolor=INK, markeredgewidth=0.5
            )
        axes.grid(color=INK, alpha=0.12, linewidth=0.7)
        axes.set_axisbelow(True)
        axes.margins(0.12)
        axes.set_xlabel("Word-embedding alignment, all types (%)")
        axes.set_ylabel(delta_axis(scores))
        _legend(
            canvas,
            palette,
            shapes,
            {s.objective for _, _, s in points},
            {language_name(s, scores) for _, _, s in points},
        )
        if len(points) <= LABELLED:
            _label(canvas, axes, [(x, s.delta, shorten(s.cell, 26)) for x, _, s in points if s.delta])

    svg = draw(5.4, 4.1, paint)
    named = [f"{s.cell}: {x:.1f} %, Δ {y:.1f}" for x, y, s in points]
    alt = f"Scatter of alignment against Δ on {task}. " + "; ".join(named[:40]) + ("; …" if len(named) > 40 else ".")
    caption = f"{task}: a point per cell. Lines: 95 % t interval of Δ over transfer seeds."
    return Figure(f"alignment-{slug(task, number)}", svg, alt, caption)


def _legend(
    canvas: Canvas, palette: dict[str, str], shapes: dict[str, str], objectives: set[str], languages: set[str]
) -> None:
    handles = [
        Line2D([], [], linestyle="", marker="o", color=c, label=shorten(o))
        for o, c in palette.items()
        if o in objectives
    ]
    handles += [
        Line2D([], [], linestyle="", marker=m, color="none", markeredgecolor=INK, label=shorten(language))
        for language, m in shapes.items()
        if language in languages
    ]
    canvas.legend(handles=handles, loc="outside upper left", ncols=3, fontsize=8.5, handletextpad=0.3)


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
