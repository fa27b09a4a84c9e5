"""Bars in groups: retrieval accuracy by part of speech or by condition, one colour a model; Δ of conditions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.lines import Line2D

from probes.figures.drawing import INK, TOLD, WIDTH, Drawing, Figure, colours, draw, grid, legend_above, shorten
from probes.statistics import Interval
from synthlang.errors import InputError

BARS = 48
"""Most bars of Δ in one figure: more are taller than a page, and the table has their numbers."""
T = TypeVar("T")


@dataclass(frozen=True)
class Bar:
    """Accuracy in % (0 to 100) of the ``n`` words of a part of speech, or of another ``tag``; a ``group`` "" has no
    heading."""

    group: str
    tag: str
    model: str
    accuracy: Interval
    n: int | None = None


def retrieval_by_tag(name: str, title: str, bars: Sequence[Bar]) -> Drawing:
    """Parts of speech one under another under the heading of their group, for each a bar of every model."""
    note = (
        "How often the nearest word of the other language is the translation, by part of speech; in brackets the "
        "number of words. Lines: 95 % intervals, where given."
    )
    return retrieval_bars(name, title, bars, note)


def retrieval_bars(name: str, title: str, bars: Sequence[Bar], note: str) -> Drawing:
    """Tags one under another under the heading of their group, for each a bar of every model; InputError for none."""
    if not bars:
        raise InputError(f"{title}: no part of speech has words to draw")
    palette = colours([bar.model for bar in bars])
    rows: dict[str, dict[str, list[Bar]]] = {}
    for bar in bars:
        rows.setdefault(bar.group, {}).setdefault(bar.tag, []).append(bar)

    def paint(canvas: Canvas) -> None:
        axes = canvas.subplots()
        places = list(palette)
        tags = {group: list(of.items()) for group, of in rows.items()}
        height = 0.8 / len(palette)
        for y, models in under_headings(axes, tags, _with_number, 30):
            for bar in models:
                at = y - 0.4 + height * (places.index(bar.model) + 0.5)
                axes.barh(at, bar.accuracy.mean, height=height, color=palette[bar.model], alpha=0.75)
                if bar.accuracy.low is not None and bar.accuracy.high is not None:
                    ends = [bar.accuracy.low, bar.accuracy.high]
                    axes.plot(ends, [at, at], color=INK, linewidth=1.1, solid_capstyle="butt")
        axes.set_xlim(0, 100)
        axes.set_xlabel("retrieval accuracy (%)")
        if len(palette) > 1:
            handles = [Line2D([], [], color=c, linewidth=6, label=shorten(m, 30)) for m, c in palette.items()]
            legend_above(axes, handles)

    told = "; ".join(f"{bar.tag}, {bar.model}: {bar.accuracy.mean:.1f} %" for bar in bars[:TOLD])
    lines = sum(1.3 + len(tags) * max(1.0, 0.55 * len(palette)) for tags in rows.values())
    return Drawing(name, title, paint, note, f"{title}. {told}.", 0.9 + 0.24 * lines)


def _with_number(tag: str, models: Sequence[Bar]) -> str:
    counts = [bar.n for bar in models if bar.n is not None]
    return f"{tag} ({max(counts):,})" if counts else tag


def under_headings(
    axes: Axes, groups: Mapping[str, Sequence[tuple[str, T]]], told: Callable[[str, T], str], length: int
) -> list[tuple[float, T]]:
    """The items of each group one under another and named at the left, the name of the group above them, bold; where
    each item stands."""
    y = 0.0
    ticks, headings, places = list[tuple[float, str]](), list[int](), list[tuple[float, T]]()
    for group, items in groups.items():
        if group:
            headings.append(len(ticks))
            ticks.append((y, shorten(group, 60)))
            y += 1
        for label, item in items:
            ticks.append((y, shorten(told(label, item), length)))
            places.append((y, item))
            y += 1
        y += 0.35
    axes.set_yticks([at for at, _ in ticks], [label for _, label in ticks])
    for number in headings:
        axes.get_yticklabels()[number].set_fontweight("bold")
    axes.set_ylim(y - 0.7, -0.6)
    axes.spines["left"].set_visible(False)
    axes.tick_params(axis="y", length=0)
    grid(axes, "x")
    return places


@dataclass(frozen=True)
class Gap:
    """Δ of a condition, called ``name`` in its ``group`` and ``label`` in all; ``values``: of its runs or seeds."""

    group: str
    name: str
    label: str
    delta: Interval
    values: Sequence[float]


def delta_bars(file: str, task: str, gaps: Sequence[Gap], palette: Mapping[str, str], axis: str) -> Figure:
    """A bar per condition in groups: mean Δ, 95 % t interval, a dot per run or seed."""
    groups: dict[str, list[tuple[str, Gap]]] = {}
    for gap in gaps[:BARS]:
        groups.setdefault(gap.group, []).append((gap.name, gap))

    def paint(canvas: Canvas) -> None:
        axes = canvas.subplots()
        known = [(y, gap.delta.shown, gap) for y, gap in under_headings(axes, groups, lambda name, _: name, 34)]
        # all bars, then all intervals, then all dots: few artists, since each takes its time
        places, shades = [y for y, *_ in known], [palette[gap.name] for *_, gap in known]
        axes.barh(places, [delta.mean for _, delta, _ in known], height=0.66, color=shades, alpha=0.75)
        lines = [(y - 0.1, d.low, d.high) for y, d, _ in known if d.low is not None and d.high is not None]
        if lines:
            axes.hlines(*zip(*lines, strict=True), color=INK, linewidth=1.4)
        dots = [(value, y + 0.2) for y, _, gap in known for value in gap.values]  # below, or they would hide lines
        axes.plot(*zip(*dots, strict=True), linestyle="", marker="o", markersize=3.8, color="white", mec=INK, mew=0.8)
        axes.axvline(0, color=INK, linewidth=0.7)
        axes.set_xlabel(axis)

    svg = draw(WIDTH, 0.9 + 0.3 * (len(gaps[:BARS]) + 1.4 * len(groups)), paint)
    bars = [f"{gap.label}: {gap.delta.mean:.1f}" for gap in gaps[:TOLD]]
    alt = f"Bars of Δ on {task}. " + "; ".join(bars) + ("; …" if len(gaps) > TOLD else ".")
    caption = (
        f"{task}: Δ of each condition, lower is better. Bar: mean; line: 95 % t interval; dots: pretraining runs, or "
        "fine-tuning seeds where there is one run."
    )
    caption += f" The first {BARS} of {len(gaps):,} conditions." if len(gaps) > BARS else ""
    return Figure(file, svg, alt, caption)
