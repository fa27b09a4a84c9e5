"""Orthogonal Procrustes: the orthogonal map that brings one set of vectors closest to another, row by row.

    W = argmin Σ ‖W x − y‖² over orthogonal W = U Vᵀ, where U S Vᵀ is the SVD of Σ y xᵀ   (Schönemann 1966)

The map is fitted from sums over batches, so memory is d² for any number of rows. All numbers are float64.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from synthlang.errors import InputError

# relative size below which a direction is only rounding of float32
NOTHING = torch.finfo(torch.float32).eps ** 2


@dataclass(frozen=True, eq=False)
class LinearMap:
    """The map x ↦ W (x − before) + after on row vectors.

    Attributes:
        matrix: W, [d, d].
        before: [d], subtracted before the multiplication.
        after: [d], added after the multiplication.
    """

    matrix: Tensor
    before: Tensor
    after: Tensor

    def apply(self, x: Tensor) -> Tensor:
        """Map ``x`` […, d], and keep its type and device. Half precision is computed in float32."""
        same = self.to(x.device, torch.promote_types(x.dtype, torch.float32))
        mapped = (x.to(same.matrix.dtype) - same.before) @ same.matrix.T + same.after
        return mapped.to(x.dtype)

    def to(self, device: torch.device, dtype: torch.dtype) -> LinearMap:
        """Return the same map on a device and in a type."""
        if self.matrix.device == device and self.matrix.dtype == dtype:
            return self
        return LinearMap(*(t.to(device, dtype) for t in (self.matrix, self.before, self.after)))


@dataclass(frozen=True, eq=False)
class Fit:
    """A fitted map from x to y, with measures of the fit.

    Attributes:
        map: The fitted map.
        pairs: Number of pairs of rows.
        rank: Number of directions that the pairs determine. Other directions are rotated as little as possible.
        residual: The mean squared distance between mapped x and y.
        identity: The mean squared distance between x and y.
        orthogonality: The largest element of |WᵀW − I|.
    """

    map: LinearMap
    pairs: int
    rank: int
    residual: float
    identity: float
    orthogonality: float

    def to_json(self) -> dict[str, Any]:
        """Return the measures of the fit, for JSON."""
        numbers = {name: float(f"{getattr(self, name):.6g}") for name in ("residual", "identity", "orthogonality")}
        return {"pairs": self.pairs, "rank": self.rank, **numbers}


class Fitter:
    """Fitter of an orthogonal map on pairs of rows, which are added batch by batch. ``fit`` may be called repeatedly.

    Sums are taken about the mean of the first batch, so that a mean far from 0 does not cost precision ("shifted data":
    Chan, Golub & LeVeque 1983, "Algorithms for Computing the Sample Variance", section 3).

    Args:
        width: Number of dimensions d of a row.
    """

    def __init__(self, width: int) -> None:
        self.pairs = 0
        self._points = self._sums = torch.zeros(2, width, dtype=torch.float64)  # of x and of y
        self._products = torch.zeros(width, width, dtype=torch.float64)  # Σ (y − c)(x − b)ᵀ about the points b, c
        self._squares = 0.0  # Σ ‖x − b‖² + ‖y − c‖²

    def update(self, x: Tensor, y: Tensor) -> None:
        """Add rows [n, d] of ``x`` and ``y``, paired by index.

        Raises:
            InputError: A row is not finite.
        """
        if not len(x):
            return
        rows = torch.stack([x, y]).detach().double()
        if not bool(rows.isfinite().all()):
            reason = "a map cannot be fitted, because vectors contain NaN or infinity"
            raise InputError(reason, hint="use an earlier checkpoint, or another model", code="damaged")
        if not self.pairs:
            self._points = rows.mean(1).cpu()
        rows -= self._points.to(rows.device)[:, None]
        self.pairs += len(x)
        self._sums = self._sums + rows.sum(1).cpu()
        self._products += (rows[1].T @ rows[0]).cpu()
        self._squares += float(rows.square().sum())

    def fit(self, centre: bool = False) -> Fit:
        """Return the orthogonal map with the smallest squared distance from mapped x to y, over the rows added so far.

        The equation is in the description of the module. Directions that the rows do not determine are rotated as
        little as possible.

        Args:
            centre: True to subtract the mean of x before the rotation and to add the mean of y after it.

        Raises:
            InputError: There are no rows.
        """
        if not self.pairs:
            raise InputError("a map cannot be fitted, because there are no pairs of vectors", code="empty")
        shifts = self._sums / self.pairs
        means = self._points + shifts
        centred = torch.addr(self._products, shifts[1], shifts[0], alpha=-self.pairs)
        squares = self._squares - self.pairs * float(shifts.square().sum())
        raw = centred + self.pairs * torch.outer(means[1], means[0])
        raw_squares = squares + self.pairs * float(means.square().sum())
        products, identity = (centred if centre else raw), raw_squares - 2.0 * float(raw.trace())
        squares = squares if centre else raw_squares
        matrix, rank = _nearest_orthogonal(products)
        # ‖W x − y‖² = ‖x‖² + ‖y‖² − 2 tr(Wᵀ y xᵀ)
        residual = squares - 2.0 * float((matrix * products).sum())
        off = float((matrix.T @ matrix - torch.eye(len(matrix), dtype=torch.float64)).abs().max())
        residual, identity = (max(value, 0.0) / self.pairs for value in (residual, identity))
        linear = LinearMap(matrix, *(means if centre else torch.zeros_like(means)))
        return Fit(linear, self.pairs, rank, residual, identity, off)


def _nearest_orthogonal(products: Tensor) -> tuple[Tensor, int]:
    """Return the orthogonal W with the largest tr(Wᵀ products), and the rank of ``products``."""
    u, sizes, vt = torch.linalg.svd(products)
    rank = int((sizes > len(sizes) * NOTHING * sizes[0]).sum())
    matrix = u[:, :rank] @ vt[:rank]
    if rank < len(sizes):
        # the data do not determine the other directions; map them as near to the identity as possible
        inner_u, _, inner_vt = torch.linalg.svd(u[:, rank:].T @ vt[rank:].T)
        matrix = matrix + u[:, rank:] @ inner_u @ inner_vt @ vt[rank:]
    return matrix, rank
