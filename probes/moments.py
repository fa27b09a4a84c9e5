"""Rows that come in batches, about a fixed point near their mean, so that sums of their products lose no digits."""

from __future__ import annotations

from torch import Tensor


class Centre:
    """The mean of rows, and the rows less a point that stays: the mean of the first batch.

    Sums about a fixed point become sums about the mean at the end ("shifted data": Chan, Golub & LeVeque 1983,
    "Algorithms for Computing the Sample Variance", section 3); the merged form in the same paper needs no such end, but
    must touch every sum at every batch. What it costs: with the first n₁ of n rows around c and the mean m,
    Σ ‖x − m‖² ≥ n₁ ‖c − m‖², so Σ ‖x − c‖² is at most 1 + n / n₁ times that, however far from 0 the rows lie.
    """

    def __init__(self) -> None:
        self.count = 0
        self._point: Tensor | None = None
        self._sum: Tensor | None = None

    def add(self, rows: Tensor) -> Tensor:
        """Count rows [n ≥ 1, …] in; returns ``about(rows)``. The first ones set the point."""
        if self._point is None:
            self._point = rows.double().mean(0)
        less = self.about(rows)
        self._sum = less.sum(0) if self._sum is None else self._sum + less.sum(0)
        self.count += len(rows)
        return less

    def about(self, rows: Tensor) -> Tensor:
        """Rows [n, …] less the point, in float64."""
        assert self._point is not None, "no rows yet"
        return rows - self._point  # in float64, as the point is, and in one pass

    @property
    def shift(self) -> Tensor:
        """[…] the mean less the point."""
        assert self._sum is not None, "no rows yet"
        return self._sum / self.count

    @property
    def mean(self) -> Tensor:
        """[…] of all rows."""
        assert self._point is not None, "no rows yet"
        return self._point + self.shift
