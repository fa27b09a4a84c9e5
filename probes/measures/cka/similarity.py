"""Linear CKA: the similarity of two models' representations of the same sentences, for all pairs of layers.

    CKA(X, Y) = ‖YᵀX‖² / (‖XᵀX‖ ‖YᵀY‖)        with columns centred over the sentences, and Frobenius norms

Sources are Kornblith et al. 2019 and Conneau et al. 2020, "Emerging cross-lingual structure", section 5.2, which uses
mean-pooled subword states without special tokens. CKA does not change when a side is rotated, shifted, or scaled by one
factor. CKA is biased: with at least as many dimensions as sentences, even unrelated states come near 1. The debiased
estimator replaces the squared norms by HSIC₁ (Song et al. 2012), as in Murphy et al. 2024. The debiased CKA is about 0
for unrelated states, and may be negative.

Both estimators are computed from sums over the n sentences in float64, without an n × n kernel. Let x [d] and y [d′] be
the states of one sentence in two layers, minus the means of the layers, with k = ‖x‖² and l = ‖y‖². The sums are
C = Σ x yᵀ [d, d′] and the numbers T = Σ k, T′ = Σ l and V = Σ k l − T T′ / n. For the linear kernels K = XXᵀ and
L = YYᵀ and the centring matrix H:

    biased      tr(KHLH) = ‖C‖²                                                       Kornblith et al. 2019, HSIC
    debiased    tr(K̃L̃) + 1ᵀK̃1 1ᵀL̃1 / ((n − 1)(n − 2)) − 2 / (n − 2) 1ᵀK̃L̃1            Song et al. 2012, HSIC₁
                = ‖C‖² − V n / (n − 2) − T T′ / (n − 1)

Factors of n cancel in CKA and are left out. K̃ is K with a zero diagonal. The last line holds because HSIC₁ does not
change when rows are shifted, and because centred rows have K1 = 0, so that K̃1 = −k.

States are read once, so the means are only known at the end. Each layer is therefore shifted by a fixed point near its
mean ("shifted data": Chan, Golub & LeVeque 1983, "Algorithms for Computing the Sample Variance", section 3). Let now x
and y be the shifted states, and x̄ and ȳ their means. C, T, T′ and V follow from one matrix of sums:

    S = Σ u vᵀ  [d + 2, d′ + 2]      with u = (x, ‖x‖², 1) and v = (y, ‖y‖², 1)
    a, b                             the last column and the last row of S without their last entry, which is n
    Q = S without its last row and column − a bᵀ / n  [d + 1, d′ + 1]
    C = Q without its last row and column
    T = Σ ‖x‖² − n ‖x̄‖²
    V = (−2x̄, 1) Q (−2ȳ, 1)ᵀ         because ‖x − x̄‖² = ‖x‖² − 2x̄ᵀx + ‖x̄‖²
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import compress, product

import torch
from torch import Tensor

from probes.layer_cache import ROWS, LayerCache
from probes.measures.cka import Estimator
from probes.rotation.procrustes import NOTHING
from synthlang.errors import InputError
from synthlang.progress import Report, silent

MEMORY = 1280 * 2**20
"""Memory for products, in bytes. 13 × 13 layers of width 768 fit, and a process stays under 2 GB."""
SIDES = ("left", "right")
CPU = torch.device("cpu")
Pair = tuple[int, int]
"""Two layers, or one layer twice. Left layers are numbered first, then right layers."""


class Sums:
    """The sums Σ u vᵀ for some pairs of layers.

    States are summed in blocks of fixed size, so that the result does not depend on the sizes of batches. The attribute
    ``layers`` has the layers that occur in a pair, ascending.

    Args:
        pairs: The pairs of layers.
        widths: The size of the states of each layer.
        device: The device for the sums, which must support float64.
    """

    def __init__(self, pairs: Sequence[Pair], widths: Sequence[int], device: torch.device) -> None:
        self.layers = sorted({i for pair in pairs for i in pair})
        self._products = {
            (i, j): torch.zeros(widths[i] + 2, widths[j] + 2, dtype=torch.float64, device=device) for i, j in pairs
        }
        self._blocks = {i: torch.ones(ROWS, widths[i] + 2, dtype=torch.float64, device=device) for i in self.layers}
        self._points: dict[int, Tensor] = {}  # the means of the first block
        self._rounding: dict[int, float] = {}
        self._waiting = 0

    def add(self, states: Sequence[Tensor]) -> None:
        """Add states [n, d] of n sentences for each layer in ``layers``."""
        done, n = 0, len(states[0])
        while done < n:
            some = min(n - done, ROWS - self._waiting)
            for i, x in zip(self.layers, states, strict=True):
                self._blocks[i][self._waiting : self._waiting + some, :-2] = x[done : done + some]
                self._rounding[i] = torch.finfo(torch.promote_types(x.dtype, torch.float32)).eps
            done, self._waiting = done + some, self._waiting + some
            if self._waiting == ROWS:
                self._take()

    def _take(self) -> None:
        rows = {i: u[: self._waiting] for i, u in self._blocks.items()}
        for i, u in rows.items():
            x = u[:, :-2]
            if i not in self._points:
                self._points[i] = x.mean(0)
            x -= self._points[i]
            u[:, -2] = torch.linalg.vecdot(x, x)
        for (i, j), products in self._products.items():
            products.addmm_(rows[i].T, rows[j])
        self._waiting = 0

    def hsic(self) -> Iterator[tuple[Pair, Tensor]]:
        """Yield each pair of layers with its HSIC [2], biased and debiased (see the formulas at the top of this file).

        The debiased HSIC needs 4 sentences. The HSIC of a layer with itself is NaN if its states differ only by
        rounding errors. Its debiased HSIC is also NaN if all states have the same distance from each other.
        """
        self._take()
        for (i, j), products in self._products.items():
            n, totals = float(products[-1, -1]), (products[:-1, -1], products[-1, :-1])
            q = torch.addr(products[:-1, :-1], *totals, alpha=-1 / n)
            # matrix_norm does not make a copy of the squares
            biased = torch.linalg.matrix_norm(q[:-1, :-1]).square()
            about_means = [torch.cat([-2 / n * total[:-1], total.new_ones(1)]) for total in totals]
            covariance = about_means[0] @ q @ about_means[1]
            spreads = [total[-1] - total[:-1].square().sum() / n for total in totals]
            debiased = biased - covariance * n / (n - 2) - spreads[0] * spreads[1] / (n - 1)
            found = torch.stack([biased, debiased])
            if i == j:
                equal = spreads[0] <= n * self._rounding[i] ** 2 * self._points[i].square().sum()
                # zero up to the rounding of n sentences in float32, see NOTHING
                equally_far = debiased <= n * NOTHING * biased
                found = found.masked_fill(torch.stack([equal, equal | equally_far]), math.nan)
            yield (i, j), found.cpu()


class CKA:
    """Collector of states that computes linear CKA, ‖YᵀX‖² / (‖XᵀX‖ ‖YᵀY‖), for all pairs of layers.

    The equation is from Kornblith et al. 2019. The method ``result`` may be called at any time.

    There are P = L · R + L + R pairs of layers, because each layer is also paired with itself. For d = d′, their
    products take about 8 P d² bytes. If the products and a block of all layers exceed ``memory``, states are stored in
    temporary files, which ``result`` reads once for each group of pairs that fits.

    Args:
        left_layers: Number L of left layers.
        right_layers: Number R of right layers.
        width_left: Size d of the left states.
        width_right: Size d′ of the right states.
        memory: Memory for products and blocks, in bytes.
        device: The device for products, which must support float64.
        names: The names of the layers of each side, for messages.
    """

    def __init__(
        self,
        left_layers: int,
        right_layers: int,
        width_left: int,
        width_right: int,
        memory: int = MEMORY,
        device: torch.device = CPU,
        names: tuple[Sequence[str], Sequence[str]] | None = None,
    ) -> None:
        shapes = (left_layers, width_left), (right_layers, width_right)
        called = names or [[f"{side} layer {i}" for i in range(n)] for side, (n, _) in zip(SIDES, shapes, strict=True)]
        self._names, self._lefts = [*called[0], *called[1]], left_layers
        self._widths = [width_left] * left_layers + [width_right] * right_layers
        self._device, self._n = device, 0
        every = range(len(self._widths))
        pairs = [*product(every[:left_layers], every[left_layers:]), *zip(every, every, strict=True)]
        fit = max(1, (memory - 8 * ROWS * sum(self._widths)) // (8 * max(self._widths) ** 2))
        self.groups = [pairs[start : start + fit] for start in range(0, len(pairs), fit)]
        self._sums = Sums(pairs, self._widths, device) if len(self.groups) == 1 else None
        self._files = [] if self._sums else [LayerCache(*shape) for shape in shapes]

    def update(self, left: Tensor, right: Tensor) -> None:
        """Add states [L, n, d] and [R, n, d′] of n sentences.

        Raises:
            InputError: A state is not finite, in which case no state of this call is added, or the disk is full.
        """
        assert left.shape[1] == right.shape[1], (left.shape, right.shape)
        states = [*left, *right]
        for name, x in zip(self._names, states, strict=True):
            if not bool(x.isfinite().all()):
                told = f"CKA is undefined, because states contain NaN or infinity ({name})"
                raise InputError(told, hint="use an earlier checkpoint, or another model", code="damaged")
        self._n += left.shape[1]
        if self._sums:
            self._sums.add(states)
        else:
            for files, side in zip(self._files, (left, right), strict=True):
                files.write(side)

    def result(self, report: Report = silent) -> CKAResult:
        """Return the similarities of the states added so far.

        A layer that has the same vector for all sentences has the similarity NaN and a line in ``undefined``. The
        debiased similarity is also NaN if all sentences of a layer have the same distance from each other.

        Args:
            report: Receives the progress in groups of pairs.

        Raises:
            InputError: There are fewer than 2 sentences.
        """
        if (n := self._n) < 2:
            told = f"CKA needs at least 2 sentences or aligned words, but there is {'only one' if n else 'none'}"
            hint = "reduce data.test, or give more or shorter sentence pairs"
            raise InputError(told, keys="cka", hint=hint, code="range")
        found = torch.zeros(2, len(self._names), len(self._names), dtype=torch.float64)
        for done, pairs in enumerate(self.groups, 1):
            for (i, j), estimates in (self._sums or self._read(pairs)).hsic():
                found[:, i, j] = estimates
            report("CKA", done, len(self.groups), "")
        own, lefts = found.diagonal(dim1=1, dim2=2), self._lefts
        lengths = own.clamp_min(0).sqrt()
        # one after the other: the product of two small lengths may be 0
        biased, debiased = found[:, :lefts, lefts:] / lengths[:, :lefts, None] / lengths[:, None, lefts:]
        same, without = own.isnan()
        undefined = [f"{name}: all {n} sentences have the same vector" for name in compress(self._names, same)]
        if n < 4:
            return CKAResult(biased, None, n, tuple(undefined))
        undefined += [
            f"{name}, debiased: all {n} sentences are equally far from each other"
            for name in compress(self._names, without & ~same)
        ]
        return CKAResult(biased, debiased, n, tuple(undefined))

    def _read(self, pairs: Sequence[Pair]) -> Sums:
        """Compute the sums of the given pairs from the files."""
        sums = Sums(pairs, self._widths, self._device)
        layers = [partial(files.blocks, i) for files in self._files for i in range(files.layers)]
        for blocks in zip(*(layers[i]() for i in sums.layers), strict=True):
            sums.add(blocks)
        return sums


@dataclass(frozen=True, eq=False)
class CKAResult:
    """CKA of layers. Rows are the layers of the left model, and columns are the layers of the right model.

    Attributes:
        biased: [L, R] float64, the biased CKA from 0 to 1, or NaN if it is undefined.
        debiased: [L, R] float64, the debiased CKA, which is at most 1 and about 0 for unrelated layers, or NaN if it is
            undefined. With fewer than 4 sentences, the attribute is None.
        n: Number of sentences.
        undefined: Reasons for NaN, one line for each layer and reason.
    """

    biased: Tensor
    debiased: Tensor | None
    n: int
    undefined: tuple[str, ...] = ()

    def table(self, estimator: Estimator) -> Tensor | None:
        """Return the similarities [L, R] of an estimator, or None if it needs more sentences."""
        return self.biased if estimator == "biased" else self.debiased

    def numbers(self, estimator: Estimator) -> list[list[float | None]] | None:
        """Return the similarities [L, R] of an estimator for JSON, with None for NaN.

        The result is None if the estimator needs more sentences.
        """
        table = self.table(estimator)
        return None if table is None else [[_number(value) for value in row] for row in table.tolist()]


def _number(value: float) -> float | None:
    return float(f"{value:.6g}") if math.isfinite(value) else None
