"""Bars in groups: retrieval accuracy by part of speech or by condition, one colour for each model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.lines import Line2D

from probes.figures.drawing import INK, Drawing, alternative, colours, grid, legend_above, shorten
from probes.statistics import Interval

T = TypeVar("T")
RETRIEVAL = "retrieval accuracy (%)"
"""Label of an axis of retrieval accuracy."""


@dataclass(frozen=True)
class Bar:
    """A bar with the accuracy of a model.

    Attributes:
        group: Heading above the tags of a group, or "" for no heading.
        tag: The part of speech or the condition.
        model: Name of the model in the legend. All bars of a model have one colour.
        accuracy: Accuracy in percent, with its interval.
        n: Number of words, if it is known.
    """

    group: str
    tag: str
    model: str
    accuracy: Interval
    n: int | None = None


def retrieval_by_tag(name: str, title: str, bars: Sequence[Bar]) -> Drawing:
    """Draw the retrieval accuracy of every model by part of speech, with a caption that explains the measure.

    The arguments are those of ``accuracy_bars``.
    """
    note = (
        "Share of words whose nearest word of the other language is the translation, by part of speech. The number of "
        "words is in brackets. Lines are 95 % intervals, where known."
    )
    return accuracy_bars(name, title, bars, note, RETRIEVAL)


def accuracy_bars(name: str, title: str, bars: Sequence[Bar], note: str, label: str) -> Drawing:
    """Draw a bar of every model for each tag, under the headings of their groups.

    Args:
        name: Name of the file.
        title: Title of the figure.
        bars: The bars, at least one, with accuracies in percent.
        note: Text after the title in the caption.
        label: Label of the horizontal axis, which extends from 0 to 100.
    """
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
        axes.set_xlabel(label)
        if len(palette) > 1:
            handles = [Line2D([], [], color=c, linewidth=6, label=shorten(m, 30)) for m, c in palette.items()]
            legend_above(axes, handles)

    alt = alternative(f"Bars: {title}", ((f"{bar.tag}, {bar.model}", bar.accuracy.mean) for bar in bars), "{:.1f} %")
    lines = sum(1.3 + len(tags) * max(1.0, 0.55 * len(palette)) for tags in rows.values())
    return Drawing(name, title, paint, note, alt, 0.9 + 0.24 * lines)


def _with_number(tag: str, models: Sequence[Bar]) -> str:
    counts = [bar.n for bar in models if bar.n is not None]
    return f"{tag} ({max(counts):,})" if counts else tag


def under_headings(
    axes: Axes, groups: Mapping[str, Sequence[tuple[str, T]]], told: Callable[[str, T], str], length: int
) -> list[tuple[float, T]]:
    """Write the labels of all items on the vertical axis, under the headings of their groups in bold.

    Args:
        axes: The axes to draw on.
        groups: Heading → (label, item) of each item. An empty heading is left out.
        told: A function from the label and the item to the text on the axis.
        length: Maximum number of letters of a text.

    Returns:
        The vertical position of each item, paired with the item. Positions increase downwards.
    """
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
