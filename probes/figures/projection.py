"""Pictures of word pairs in a plane: a line joins translations, and words are labelled where there is room.

Positions are principal components or t-SNE. Cao et al. 2020 draw t-SNE (figure 1). Principal components are the
default, because they are linear, exact and have no settings. With principal components, a distance in the picture is
never larger than the distance of the vectors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.lines import Line2D
from torch import Tensor

from probes.figures.drawing import (
    COLOURS,
    INK,
    Drawing,
    alternative,
    legend_above,
    place_labels,
    shorten,
    writable,
)
from probes.statistics import Floats
from synthlang.errors import InputError
from synthlang.rng import key_of

Method = Literal["pca", "tsne"]
PERPLEXITY = 30.0  # van der Maaten & Hinton 2008: the picture hardly changes from 5 to 50
LEFT, RIGHT = COLOURS[0], COLOURS[5]
LABEL_POINTS = 7.5
LINE_POINTS = 24  # number of points that represent a line when labels are placed
GAP = 4.0  # distance of a label from its word, in points of 1/72 inch
HEIGHT = 5.0  # inches
MOST_LABELS = 240
"""Maximum number of words with a label. More labels do not fit, and measuring them takes time."""


@dataclass(frozen=True, eq=False)
class Picture:
    """Positions of the words of n pairs in a plane.

    Attributes:
        method: ``pca`` or ``tsne``.
        left: [n, 2] float64, the positions of the left words.
        right: [n, 2] float64, the positions of the right words.
        left_words: [n] the left words.
        right_words: [n] the right words.
        explained: Share of the variance on each axis, 0 to 1, or None for ``tsne``.
        perplexity: Perplexity of t-SNE, or None for ``pca``.
    """

    method: Method
    left: Tensor
    right: Tensor
    left_words: tuple[str, ...]
    right_words: tuple[str, ...]
    explained: tuple[float, float] | None = None
    perplexity: float | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the words with their positions for JSON, so that other programs can draw the picture.

        Positions have six significant digits.
        """
        sides = {
            side: [[float(f"{x:.6g}") for x in point] for point in places.tolist()]
            for side, places in (("left", self.left), ("right", self.right))
        }
        words = {"left_words": list(self.left_words), "right_words": list(self.right_words)}
        return {"method": self.method, "explained": self.explained, "perplexity": self.perplexity, **sides, **words}


def picture(
    left: Tensor,
    right: Tensor,
    left_words: Sequence[str],
    right_words: Sequence[str],
    method: Method = "pca",
    seed: int = 0,
) -> Picture:
    """Place n word pairs in a plane, where row i of ``left`` and of ``right`` [n, d] are translations.

    Both languages are in one plane, because principal axes and neighbours are computed over all 2 n vectors. Vectors
    are not normalised. To show cosine distances, pass unit vectors.

    Args:
        left: [n, d] the vectors of the left words, without NaN. ``tsne`` needs at least two.
        right: [n, d] the vectors of the right words.
        left_words: [n] the left words.
        right_words: [n] the right words.
        method: ``pca`` (principal components) or ``tsne``.
        seed: Seed of t-SNE.

    Raises:
        InputError: All vectors are equal.
        ImportError: The method is ``tsne``, and scikit-learn is not installed.
    """
    assert left.ndim == 2 and left.shape == right.shape, (left.shape, right.shape)
    n = len(left)
    assert len(left_words) == len(right_words) == n, (len(left_words), len(right_words), n)
    assert n >= (2 if method == "tsne" else 1), n
    points = torch.cat([left.detach().double().cpu(), right.detach().double().cpu()])
    assert bool(points.isfinite().all()), "checked when the vectors were measured"
    if bool((points == points[0]).all()):
        reason = "all word vectors of the picture are equal, so there is nothing to draw"
        raise InputError(reason, hint="set distances.layer to another layer", code="empty")
    explained, perplexity = None, None
    if method == "pca":
        places, explained = principal(points)
    else:
        places, perplexity = _tsne(points, seed)
    return Picture(method, places[:n], places[n:], tuple(left_words), tuple(right_words), explained, perplexity)


def principal(points: Tensor) -> tuple[Tensor, tuple[float, float]]:
    """Return the coordinates [m, 2] of points [m, d] on their first two principal axes, and their shares of variance.

    With the singular value decomposition U S Vᵀ of the centred points, the coordinates are the first two columns of
    U S, and the share of axis i is s_i² / Σ s² (Jolliffe 2002, *Principal Component Analysis*).

    The sign of an axis is chosen so that its largest component is positive (the first of equal ones). The picture
    therefore does not depend on the machine. If the variance of an axis is only rounding, its coordinates are 0.
    """
    centred = points - points.mean(0)
    u, sizes, axes = torch.linalg.svd(centred, full_matrices=False)
    places = points.new_zeros(len(points), 2)
    shares = [0.0, 0.0]
    for i in range(min(2, len(sizes))):
        if sizes[i] <= sizes[0] * max(centred.shape) * torch.finfo(sizes.dtype).eps or sizes[0] == 0:
            continue
        size = axes[i].abs()
        largest = (size >= size.max() * (1 - 1e-9)).nonzero()[0, 0]  # the first of those that are equal up to rounding
        places[:, i] = u[:, i] * sizes[i] * axes[i, largest].sign()
        shares[i] = float(sizes[i] ** 2 / (sizes**2).sum())
    return places, (shares[0], shares[1])


def _tsne(points: Tensor, seed: int) -> tuple[Tensor, float]:
    """Return positions [m, 2] by t-SNE, initialised with PCA, and the perplexity."""
    tsne = import_module("sklearn.manifold").TSNE
    perplexity = min(PERPLEXITY, (len(points) - 1) / 3)
    model = tsne(2, perplexity=perplexity, init="pca", random_state=key_of("t-sne", seed) % 2**32, n_jobs=1)
    return torch.from_numpy(model.fit_transform(points.numpy())).double(), perplexity


def word_pairs(name: str, title: str, drawn: Picture, left: str, right: str) -> Drawing:
    """Draw both words of each pair in the plane, with a line between translations.

    A label is placed where it covers nothing. A label without room is left out, so the most important words should come
    first. If the font cannot write a word (a derived script, or letters that need shaping), the label is its
    translation in ‹ ›.

    Args:
        name: Name of the file.
        title: Title of the figure.
        drawn: The words and their positions.
        left: Name of the language of the left words, in the legend.
        right: Name of the language of the right words, in the legend.
    """
    labels = [label_pair(a, b, i) for i, (a, b) in enumerate(zip(drawn.left_words, drawn.right_words, strict=True))]
    points = np.stack([drawn.left.numpy(), drawn.right.numpy()])  # [2, n, 2]

    def paint(canvas: Canvas) -> None:
        axes = canvas.subplots()
        for a, b in zip(*points, strict=True):
            axes.plot([a[0], b[0]], [a[1], b[1]], color=INK, alpha=0.3, linewidth=0.8, zorder=1)
        for side, colour, marker in ((0, LEFT, "o"), (1, RIGHT, "s")):
            axes.plot(*points[side].T, linestyle="", marker=marker, markersize=3.6, color=colour, zorder=2)
        axes.margins(0.12)
        axes.set_xlabel(_axis(drawn, 0))
        axes.set_ylabel(_axis(drawn, 1))
        if drawn.method == "pca":
            axes.set_aspect("equal", adjustable="datalim")
        else:
            axes.set_xticks([])
            axes.set_yticks([])
        handles = [
            Line2D([], [], linestyle="", marker=m, color=c, label=shorten(language))
            for language, m, c in ((left, "o", LEFT), (right, "s", RIGHT))
        ]
        legend_above(axes, handles)
        _label(canvas, axes, points, labels)

    apart, spread = (np.median(np.linalg.norm(points[0] - places, axis=1)) for places in (points[1], points[0].mean(0)))
    alt = alternative(
        f"Plane of {len(labels)} word pairs of {left} and {right}; median distance",
        [("translations", apart), (f"{left} from its middle", spread)],
        "{:.3g}",
    )
    return Drawing(name, title, paint, _note(drawn, labels), alt, HEIGHT)


def _note(drawn: Picture, labels: Sequence[tuple[str, str]]) -> str:
    """Return the text below a picture with these labels."""
    note = "A line joins a word and its translation. Labels without room are left out. "
    if any("‹" in label for pair in labels for label in pair):
        note += "‹word› is the translation of a word that the font cannot write. "
    if drawn.perplexity is None:
        return f"{note}The axes are the first two principal components of the vectors."
    return (
        f"{note}Positions are by t-SNE with perplexity {drawn.perplexity:.3g}. Neighbours are near, but distances "
        "between groups have little meaning."
    )


def _axis(drawn: Picture, number: int) -> str:
    if drawn.explained is None:
        return f"t-SNE {number + 1} (no unit)"
    return f"principal axis {number + 1} ({100 * drawn.explained[number]:.0f} % of the variance)"


def label_pair(left: str, right: str, number: int) -> tuple[str, str]:
    """Return the labels of both words of a pair.

    A word that the font cannot write becomes ‹its translation›. If the font can write neither word, both labels are
    the number of the pair, such as ‹#1› for the index ``number`` = 0.

    >>> label_pair("cat", "\\uac00", 0)
    ('cat', '‹cat›')
    """
    can = [bool(word.strip()) and writable(word) for word in (left, right)]
    one, other = (shorten(word, 16) for word in (left, right))
    if not any(can):
        return f"‹#{number + 1}›", f"‹#{number + 1}›"
    return one if can[0] else f"‹{other}›", other if can[1] else f"‹{one}›"


def _label(canvas: Canvas, axes: Axes, points: Floats, labels: Sequence[tuple[str, str]]) -> None:
    """Place labels where they cover no point or other label, and as little of the lines as possible."""
    canvas.draw_without_rendering()
    scale = canvas.dpi / 72
    places = np.asarray(axes.transData.transform(points.reshape(-1, 2))).reshape(points.shape)
    dots = places.reshape(-1, 2)
    taken = np.concatenate([dots - 2.2 * scale, dots + 2.2 * scale], axis=1)  # [boxes, 4] x0 y0 x1 y1
    on_lines = np.concatenate([(1 - t) * places[0] + t * places[1] for t in np.linspace(0, 1, LINE_POINTS)])
    words = [
        (text, (float(x), float(y)), colour)
        for number, pair in enumerate(labels[: MOST_LABELS // 2])
        for text, (x, y), colour in zip(pair, points[:, number], (LEFT, RIGHT), strict=True)
    ]
    place_labels(axes, words, taken, GAP, on_lines, fontsize=LABEL_POINTS, zorder=3)
