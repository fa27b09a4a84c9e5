"""Sums over rows from which the dependence (HSIC) of one layer on others follows, without any n × n kernel.

With rows u of one layer and v of another, both about a fixed point (``probes.moments.Centre``), k = ‖u‖² and l = ‖v‖²,
these are Σ u vᵀ, Σ k v, Σ l u, Σ k l, Σ k and Σ l. Let C = Σ (u − ū)(v − v̄)ᵀ, and S, T, T′ be Σ k l, Σ k, Σ l of rows
about their means. Of the linear kernels K = XXᵀ and L = YYᵀ and the centring matrix H:

    biased      tr(KHLH) = ‖C‖²                                                       Kornblith et al. 2019, HSIC
    debiased    tr(K̃L̃) + 1ᵀK̃1 1ᵀL̃1 / ((n − 1)(n − 2)) − 2 / (n − 2) 1ᵀK̃L̃1            Song et al. 2012, HSIC₁
                = ‖C‖² − S n / (n − 2) + T T′ / ((n − 1)(n − 2))

without their factors of n, which cancel in CKA. K̃ is K with zeros on its diagonal. The last line holds because HSIC₁
does not change when rows are shifted, and because about the mean K1 = 0, so that K̃1 = −k.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor


class Dependence(NamedTuple):
    """Of one layer on R others, each [R]; ``debiased`` is None with fewer than 4 rows."""

    biased: Tensor
    debiased: Tensor | None

    def cpu(self) -> Dependence:
        """The same in main memory."""
        return Dependence(self.biased.cpu(), None if self.debiased is None else self.debiased.cpu())


class Strip:
    """The sums of one layer of ``width`` with ``others`` layers of ``other_width``."""

    def __init__(self, width: int, others: int, other_width: int, device: torch.device) -> None:
        def zeros(*shape: int) -> Tensor:
            return torch.zeros(*shape, dtype=torch.float64, device=device)

        self._products = zeros(width, others * other_width)  # Σ u vᵀ
        self._kv = zeros(others * other_width)
        self._lu = zeros(others, width)
        self._kl, self._l, self._k = zeros(others), zeros(others), zeros(1)

    @staticmethod
    def size(width: int, others: int, other_width: int) -> int:
        """Bytes that it holds, but for the small sums."""
        return 8 * width * others * other_width

    def add(self, u: Tensor, k: Tensor, v: Tensor, l: Tensor) -> None:  # noqa: E741  the name in the formulas
        """Rows ``u`` [n, d] and ``v`` [n, R, d′] and their squared lengths ``k`` [n] and ``l`` [n, R]."""
        flat = v.flatten(1)
        self._products.addmm_(u.T, flat)
        self._kv.addmv_(flat.T, k)
        self._lu.addmm_(l.T, u)
        self._kl.addmv_(l.T, k)
        self._l += l.sum(0)
        self._k += k.sum()

    def dependence(self, n: int, shift: Tensor, other_shift: Tensor) -> Dependence:
        """After ``n`` rows whose means are ``shift`` [d] and ``other_shift`` [R, d′] away from the points."""
        others, width = other_shift.shape
        blocks = self._products.view(-1, others, width)
        # layer by layer, so that the products about the means are never there a second time
        biased = torch.stack([_squares(blocks[:, r], n * shift, other_shift[r]) for r in range(others)])
        if n < 4:
            return Dependence(biased, None)
        ours, theirs = shift @ shift, other_shift.square().sum(1)
        bilinear = ((shift @ self._products).view(others, width) * other_shift).sum(1)
        across = (self._kv.view(others, width) * other_shift).sum(1) + self._lu @ shift
        kl = self._kl - 2 * across + 4 * bilinear + theirs * self._k + ours * self._l - 3 * n * ours * theirs
        spreads = self.spread(n, shift) * (self._l - n * theirs)
        return Dependence(biased, biased - kl * n / (n - 2) + spreads / ((n - 1) * (n - 2)))

    def spread(self, n: int, shift: Tensor) -> Tensor:
        """[1] Σ ‖u − ū‖² of the layer itself."""
        return self._k - n * (shift @ shift)


def _squares(products: Tensor, weighted_shift: Tensor, other_shift: Tensor) -> Tensor:
    """Squares of Σ (u − ū)(v − v̄)ᵀ, summed."""
    return torch.addr(products, weighted_shift, other_shift, alpha=-1).square().sum()
