"""Places of word pairs in a plane: both words of each pair, by principal components or by t-SNE.

t-SNE is what Cao et al. 2020 draw (figure 1); principal components are the default here, since they are linear, exact
and without settings: a distance in the picture is never larger than the one in the space.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal

import torch
from torch import Tensor

from probes.figures.limits import MOST_PAIRS
from synthlang.errors import InputError
from synthlang.rng import key_of

Method = Literal["pca", "tsne"]
PERPLEXITY = 30.0  # van der Maaten & Hinton 2008: the picture hardly changes from 5 to 50


@dataclass(frozen=True, eq=False)
class Picture:
    """Coordinates [n, 2] float64 of the words of n pairs.

    explained    the share of the variance that each axis shows, of ``pca``
    perplexity   of ``tsne``
    """

    method: Method
    left: Tensor
    right: Tensor
    left_words: tuple[str, ...]
    right_words: tuple[str, ...]
    explained: tuple[float, float] | None = None
    perplexity: float | None = None

    def to_json(self) -> dict[str, Any]:
        """Words with their places, to draw the picture elsewhere."""

        def places(points: Tensor) -> list[list[float]]:
            return [[float(f"{x:.6g}") for x in point] for point in points.tolist()]

        sides = {"left": places(self.left), "right": places(self.right)}
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
    """Place word pairs, rows of ``left`` and ``right`` [n, d]; row i of both are translations.

    Both languages are placed in one plane: principal axes and neighbours are those of all 2 n vectors. Vectors are
    taken as they are; for pictures of the cosine give unit vectors. InputError for no pair, more than MOST_PAIRS, NaN,
    or vectors that are all the same, and for ``tsne`` with one pair or without scikit-learn.
    """
    assert left.ndim == 2 and left.shape == right.shape, (left.shape, right.shape)
    n = len(left)
    assert len(left_words) == len(right_words) == n, (len(left_words), len(right_words), n)
    if not 1 <= n <= MOST_PAIRS:
        raise InputError(f"a picture shows 1 to {MOST_PAIRS} word pairs, not {n}; choose fewer words")
    points = torch.cat([left.detach().double().cpu(), right.detach().double().cpu()])
    if not bool(points.isfinite().all()):
        raise InputError("the word vectors hold NaN or infinity: the model has diverged or is damaged")
    if bool((points == points[0]).all()):
        raise InputError("all word vectors of the picture are the same (all zero, say): there is nothing to draw")
    explained, perplexity = None, None
    if method == "pca":
        places, explained = principal(points)
    else:
        places, perplexity = _tsne(points, seed)
    return Picture(method, places[:n], places[n:], tuple(left_words), tuple(right_words), explained, perplexity)


def principal(points: Tensor) -> tuple[Tensor, tuple[float, float]]:
    """[m, 2] the coordinates of points [m, d] on their first two principal axes, and the share of variance of each.

    The sign of an axis is such that its largest component, the first of equal ones, is positive; so the picture is
    the same on every machine. An axis of no variance but rounding has only zeros.
    """
    centred = points - points.mean(0)
    u, sizes, axes = torch.linalg.svd(centred, full_matrices=False)
    places = points.new_zeros(len(points), 2)
    shares = [0.0, 0.0]
    for i in range(min(2, len(sizes))):
        if sizes[i] <= sizes[0] * max(centred.shape) * torch.finfo(sizes.dtype).eps or sizes[0] == 0:
            continue
        size = axes[i].abs()
        largest = (size >= size.max() * (1 - 1e-9)).nonzero()[0, 0]  # rounding does not decide between equal ones
        places[:, i] = u[:, i] * sizes[i] * axes[i, largest].sign()
        shares[i] = float(sizes[i] ** 2 / (sizes**2).sum())
    return places, (shares[0], shares[1])


def _tsne(points: Tensor, seed: int) -> tuple[Tensor, float]:
    """[m, 2] by t-SNE, started from the principal components; perplexity is at most a third of the other points."""
    if len(points) < 4:
        raise InputError("t-SNE needs at least two word pairs; use the method pca")
    try:
        tsne = import_module("sklearn.manifold").TSNE
    except ImportError as error:
        raise InputError("t-SNE needs scikit-learn: pip install 'synthlang[probe]', or use the method pca") from error
    perplexity = min(PERPLEXITY, (len(points) - 1) / 3)
    model = tsne(2, perplexity=perplexity, init="pca", random_state=key_of("t-sne", seed) % 2**32, n_jobs=1)
    return torch.from_numpy(model.fit_transform(points.numpy())).double(), perplexity
