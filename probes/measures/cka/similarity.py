"""Linear CKA: how alike two models' representations of the same sentences are, every layer against every layer.

    CKA(X, Y) = ‖YᵀX‖² / (‖XᵀX‖ ‖YᵀY‖)        of columns centred over the sentences, Frobenius norms

(Kornblith et al. 2019; Conneau et al. 2020, "Emerging cross-lingual structure", section 5.2, with mean-pooled subword
states, specials left out, at layer 0, the embeddings, and after each layer). It does not change when a side is turned
(orthogonally), moved, or scaled by one factor. It is biased: with at least as many dimensions as sentences even
unrelated states come near 1. The debiased estimator puts HSIC₁ (Song et al. 2012) in place of the squared norms, as in
Murphy et al. 2024; it is about 0 for unrelated states, and may be below.

Both follow from sums over sentences in float64, without any n × n kernel. With rows x and y of two layers about their
means, k = ‖x‖² and l = ‖y‖², these are C = Σ x yᵀ, T = Σ k, T′ = Σ l and V = Σ k l − T T′ / n. Of the linear kernels
K = XXᵀ and L = YYᵀ and the centring matrix H:

    biased      tr(KHLH) = ‖C‖²                                                       Kornblith et al. 2019, HSIC
    debiased    tr(K̃L̃) + 1ᵀK̃1 1ᵀL̃1 / ((n − 1)(n − 2)) − 2 / (n − 2) 1ᵀK̃L̃1            Song et al. 2012, HSIC₁
                = ‖C‖² − V n / (n − 2) − T T′ / (n − 1)

without their factors of n, which cancel in CKA. K̃ is K with zeros on its diagonal. The last line holds because HSIC₁
does not change when rows are shifted, and because about the mean K1 = 0, so that K̃1 = −k.

States are read once, so their means are known only at the end, and the sums are about points near them ("shifted
data": Chan, Golub & LeVeque 1983, "Algorithms for Computing the Sample Variance", section 3). Let u be the d + 2
numbers x, ‖x‖² and 1, x a state about its point, and v those of y. Σ u vᵀ is all that is needed: it ends with Σ u, Σ v
and n, and the rest of it less Σ u Σ vᵀ / n is Q, whose first d rows and d′ columns are C. About its mean x̄ a state
has the squared length ‖x‖² − 2x̄ᵀx + ‖x̄‖², so V = (−2x̄, 1) Q (−2ȳ, 1)ᵀ and T = Σ ‖x‖² − n ‖x̄‖².
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
"""Bytes: the products of 13 × 13 layers of width 768 fit, and a process stays under 2 GB."""
SIDES = ("left", "right")
CPU = torch.device("cpu")
Pair = tuple[int, int]
"""Two layers, or a layer with itself; the numbers of the right layers follow those of the left ones."""


class Sums:
    """Sums Σ u vᵀ of some pairs of layers, by blocks of fixed size, so that the sizes of batches do not matter.

    ``layers`` are the numbers of the layers in a pair, ascending; ``widths`` are those of all layers.
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
        """Add n sentences: states [n, d] of each of ``layers``."""
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
        """Yield the biased and the debiased estimate of each pair, the latter for at least 4 sentences.

        The estimate of a layer with itself is NaN if the layer holds nothing but rounding.
        """
        self._take()
        for (i, j), products in self._products.items():
            n, totals = float(products[-1, -1]), (products[:-1, -1], products[-1, :-1])
            q = torch.addr(products[:-1, :-1], *totals, alpha=-1 / n)
            # a norm makes no copy of its squares
            biased = torch.linalg.matrix_norm(q[:-1, :-1]).square()
            about_means = [torch.cat([-2 / n * total[:-1], total.new_ones(1)]) for total in totals]
            covariance = about_means[0] @ q @ about_means[1]
            spreads = [total[-1] - total[:-1].square().sum() / n for total in totals]
            debiased = biased - covariance * n / (n - 2) - spreads[0] * spreads[1] / (n - 1)
            found = torch.stack([biased, debiased])
            if i == j:
                equal = spreads[0] <= n * self._rounding[i] ** 2 * self._points[i].square().sum()
                # what float32's rounding of n sentences leaves of 0, see NOTHING
                equally_far = debiased <= n * NOTHING * biased
                found = found.masked_fill(torch.stack([equal, equal | equally_far]), math.nan)
            yield (i, j), found.cpu()


class CKA:
    """A fitter that gathers states batch by batch; ``result`` may be called at any time.

    The products of P pairs of layers, L · R and each layer with itself, take 8 P d d′ bytes. If they and a block of all
    layers need more than ``memory`` (bytes), the states wait in temporary files, and ``result`` reads these once for as
    many pairs as fit, at least for one. Everything is computed on ``device``, which must have float64. ``names`` are
    the names of the layers of each side in messages (default: left layer 0 …).
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
        """Add n sentences: states [L, n, d] and [R, n, d′]; InputError if one is not finite, and then none is added."""
        assert left.shape[1] == right.shape[1], (left.shape, right.shape)
        states = [*left, *right]
        for name, x in zip(self._names, states, strict=True):
            if not bool(x.isfinite().all()):
                raise InputError(f"{name} gives NaN or infinity, so there is no CKA: it has diverged")
        self._n += left.shape[1]
        if self._sums:
            self._sums.add(states)
        else:
            for files, side in zip(self._files, (left, right), strict=True):
                files.write(side)

    def result(self, report: Report = silent) -> CKAResult:
        """Return the similarities so far.

        A layer whose sentences all have the same vector has none: it is NaN, with a line in ``undefined``. The debiased
        similarity of a layer whose sentences are equally far from each other is NaN, too.

        Args:
            report: Receives the number of groups of pairs that are done.

        Raises:
            InputError: There are fewer than 2 sentences.
        """
        if (n := self._n) < 2:
            told = f"CKA needs at least 2 sentences (the debiased one 4), but there are {n}"
            raise InputError(told, keys="cka", hint="raise data.length or lower data.test", code="range")
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
        """Return the sums of some pairs, from the files."""
        sums = Sums(pairs, self._widths, self._device)
        layers = [partial(files.blocks, i) for files in self._files for i in range(files.layers)]
        for blocks in zip(*(layers[i]() for i in sums.layers), strict=True):
            sums.add(blocks)
        return sums


@dataclass(frozen=True, eq=False)
class CKAResult:
    """Similarities of layers: rows are layers of the left model, columns those of the right one.

    Attributes:
        biased: [L, R] from 0 to 1.
        debiased: [L, R] at most 1, about 0 for unrelated layers. None with fewer than 4 sentences.
        n: The number of sentences.
        undefined: Why some are NaN, a line for each layer and reason.
    """

    biased: Tensor
    debiased: Tensor | None
    n: int
    undefined: tuple[str, ...] = ()

    def table(self, estimator: Estimator) -> Tensor | None:
        """Return the similarities [L, R], NaN where undefined; None with too few sentences for the debiased one."""
        return self.biased if estimator == "biased" else self.debiased

    def numbers(self, estimator: Estimator) -> list[list[float | None]] | None:
        """Return the similarities as JSON has them, None where undefined."""
        table = self.table(estimator)
        return None if table is None else [[_number(value) for value in row] for row in table.tolist()]


def _number(value: float) -> float | None:
    return float(f"{value:.6g}") if math.isfinite(value) else None
