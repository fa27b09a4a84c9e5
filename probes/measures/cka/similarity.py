"""Linear CKA: how alike two models' representations of the same sentences are, every layer against every layer.

    CKA(X, Y) = ‖YᵀX‖² / (‖XᵀX‖ ‖YᵀY‖)        of columns centred over the sentences, Frobenius norms

(Kornblith et al. 2019; Conneau et al. 2020, "Emerging cross-lingual structure", section 5.2, with mean-pooled subword
states, specials left out, at layer 0, the embeddings, and after each layer). It does not change when a side is turned
(orthogonally), moved, or scaled by one factor. It is biased: with at least as many dimensions as sentences even
unrelated states come near 1. The debiased estimator puts HSIC₁ (Song et al. 2012) in place of the squared norms, as in
Murphy et al. 2024; it is about 0 for unrelated states, and may be below.

Both follow from sums over sentences in float64, without any n × n kernel. With rows x and y of two layers about their
means, k = ‖x‖² and l = ‖y‖², these are C = Σ x yᵀ, S = Σ k l, T = Σ k and T′ = Σ l. Of the linear kernels K = XXᵀ and
L = YYᵀ and the centring matrix H:

    biased      tr(KHLH) = ‖C‖²                                                       Kornblith et al. 2019, HSIC
    debiased    tr(K̃L̃) + 1ᵀK̃1 1ᵀL̃1 / ((n − 1)(n − 2)) − 2 / (n − 2) 1ᵀK̃L̃1            Song et al. 2012, HSIC₁
                = ‖C‖² − S n / (n − 2) + T T′ / ((n − 1)(n − 2))

without their factors of n, which cancel in CKA. K̃ is K with zeros on its diagonal. The last line holds because HSIC₁
does not change when rows are shifted, and because about the mean K1 = 0, so that K̃1 = −k.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from probes.measures.cka import Estimator
from probes.rotation.procrustes import NOTHING
from probes.spool import LayerFiles
from synthlang.errors import InputError
from synthlang.progress import Report, silent

MEMORY = 1280 * 2**20
"""Bytes: the products of 13 × 13 layers of width 768 fit, and a process stays under 2 GB."""
SIDES = ("left", "right")
CPU = torch.device("cpu")


class States:
    """The states of one side, in files; as ``rows`` they are float64, about the mean of their layer.

    names      what the layers are called in messages
    squares    [layers, n] the squared length of each row
    constant   [layers] whether all sentences are the same, but for rounding
    """

    def __init__(self, layers: int, width: int, names: Sequence[str], device: torch.device) -> None:
        self._files, self.names, self._device = LayerFiles(layers, width), names, device

    def __len__(self) -> int:
        return self._files.count

    def check(self, states: Tensor) -> None:
        """InputError if one of the states [layers, n, d] is not finite."""
        bad = (~states.isfinite()).flatten(1).any(1)
        if bool(bad.any()):
            name = self.names[int(bad.nonzero()[0])]
            raise InputError(f"{name} gives NaN or infinity, so there is no CKA: it has diverged")

    def write(self, states: Tensor) -> None:
        """Add n sentences [layers, n, d]."""
        self._files.write(states)

    def centre(self) -> None:
        """Find the means of all that was written."""
        layers = range(self._files.layers)
        # about the first row, so that a mean far from 0 costs no digits
        self._points = torch.cat([self._files.block(layer, 0, 1).double() for layer in layers]).to(self._device)
        self._shifts = torch.zeros_like(self._points)
        sums = [sum(rows.sum(0) for rows in self.rows([layer])) for layer in layers]
        self._shifts = torch.stack([torch.as_tensor(total) for total in sums]) / len(self)
        squares = [torch.cat([torch.linalg.vecdot(rows, rows) for rows in self.rows([layer])]) for layer in layers]
        self.squares = torch.stack(squares)
        # rows that differ by no more than rounding does are the same
        rounding = torch.finfo(self._files.dtype).eps ** 2 * (self._points + self._shifts).square().sum(1)
        self.constant = self.squares.sum(1) <= len(self) * rounding

    def rows(self, layers: Sequence[int]) -> Iterator[Tensor]:
        """Block by block the rows of some layers, one beside the other [n, layers · d]."""
        for start in self._files.starts:
            blocks = (self._files.block(layer, start).to(self._device).double() for layer in layers)
            parts = [rows - self._points[i] - self._shifts[i] for i, rows in zip(layers, blocks, strict=True)]
            yield torch.cat(parts, dim=1)

    def own(self) -> Tensor:
        """[layers] ‖Σ x xᵀ‖² of each layer with itself."""
        every = range(self._files.layers)
        return torch.cat([squares for i in every for squares in _squares(self, [i], self, [i])])


class CKA:
    """Gathers states batch by batch; ``result`` may be called at any time.

    The states wait in temporary files. The products of L × R pairs of layers take 8 L R d d′ bytes; where they are
    more than ``memory`` (bytes) allows, ``result`` reads the files once for as many left layers as fit: the products
    of one left layer with all right ones, 8 R d d′ bytes, are the least. All is computed on ``device``, which must have
    float64. ``names`` are what the layers of each side are called in messages (default: left layer 0 …).
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
        self._left, self._right = (States(*shape, own, device) for shape, own in zip(shapes, called, strict=True))
        self.group = max(1, memory // (8 * right_layers * width_left * width_right))
        self._layers = range(left_layers), range(right_layers)

    def update(self, left: Tensor, right: Tensor) -> None:
        """Add n sentences: states [L, n, d] and [R, n, d′]; InputError if one is not finite, and then none is added."""
        assert left.shape[1] == right.shape[1], (left.shape, right.shape)
        both = (self._left, left), (self._right, right)
        for side, states in both:
            side.check(states)
        for side, states in both:
            side.write(states)

    def result(self, report: Report = silent) -> CKAResult:
        """The similarities so far; InputError with fewer than 2 sentences.

        A layer whose sentences are all the same has none: NaN, and a line in ``undefined``. So has, of the debiased
        ones, a layer whose sentences are equally far from each other. ``report`` hears of left layers done.
        """
        left, right = self._left, self._right
        if (n := len(left)) < 2:
            raise InputError(f"CKA needs at least 2 sentences (the debiased one 4), but there are {n}")
        for side in (left, right):
            side.centre()
        found, (mine, theirs) = [], self._layers
        for start in range(0, len(mine), self.group):
            found += _squares(left, mine[start : start + self.group], right, theirs)
            report("CKA", len(found), len(mine), "")
        return similarities(torch.stack(found), left, right)


def _squares(left: States, some: Sequence[int], right: States, others: Sequence[int]) -> list[Tensor]:
    """For each of ``some`` layers of the left side [others] ‖Σ x yᵀ‖² with other layers of the right one."""
    products: list[Tensor] = []
    for x, y in zip(left.rows(some), right.rows(others), strict=True):
        parts = x.chunk(len(some), dim=1)
        products = products or [x.new_zeros(part.shape[1], y.shape[1]) for part in parts]
        for product, part in zip(products, parts, strict=True):
            product.addmm_(part.T, y)
    # a norm makes no copy of its squares
    return [torch.linalg.vector_norm(one.view(len(one), len(others), -1), dim=(0, 2)).square() for one in products]


@dataclass(frozen=True, eq=False)
class CKAResult:
    """Similarities of layers: rows are layers of the left model, columns of the right one.

    biased      [L, R] from 0 to 1
    debiased    [L, R] at most 1, about 0 for unrelated layers; None with fewer than 4 sentences
    n           sentences
    undefined   why some are NaN, a line for each layer and reason
    """

    biased: Tensor
    debiased: Tensor | None
    n: int
    undefined: tuple[str, ...] = ()

    def table(self, estimator: Estimator) -> Tensor | None:
        """[L, R], NaN where it is not defined; None: there are too few sentences for the debiased one."""
        return self.biased if estimator == "biased" else self.debiased

    def numbers(self, estimator: Estimator) -> list[list[float | None]] | None:
        """The same as JSON has it: None where one is not defined."""
        table = self.table(estimator)
        return None if table is None else [[_number(value) for value in row] for row in table.tolist()]


def similarities(cross: Tensor, left: States, right: States) -> CKAResult:
    """From the squared products [L, R] of the layers of both sides."""
    n, sides, own = len(left), (left, right), (left.own(), right.own())
    undefined = [
        f"{side.names[i]}: all {n} sentences have the same vector"
        for side in sides
        for i in side.constant.nonzero().flatten().tolist()
    ]
    biased = _ratios(cross, *(_lengths(squares, side.constant) for side, squares in zip(sides, own, strict=True)))
    if n < 4:
        return CKAResult(biased, None, n, tuple(undefined))
    spread = [side.squares.sum(1) for side in sides]
    scale = (n - 1) * (n - 2)
    lengths = []
    for side, squares, total in zip(sides, own, spread, strict=True):
        debiased = squares - side.squares.square().sum(1) * n / (n - 2) + total.square() / scale
        # what float32's rounding of n sentences leaves of 0, see NOTHING
        empty = debiased <= n * NOTHING * squares
        lengths.append(_lengths(debiased, empty | side.constant))
        undefined += [
            f"{side.names[i]}, debiased: all {n} sentences are equally far from each other"
            for i in (empty & ~side.constant).nonzero().flatten().tolist()
        ]
    cross = cross - left.squares @ right.squares.T * n / (n - 2) + torch.outer(*spread) / scale
    return CKAResult(biased, _ratios(cross, *lengths), n, tuple(undefined))


def _lengths(squares: Tensor, without: Tensor) -> Tensor:
    return squares.clamp_min(0.0).sqrt().masked_fill(without, math.nan)


def _ratios(cross: Tensor, left: Tensor, right: Tensor) -> Tensor:
    # one after the other: the product of two small lengths may be 0
    return (cross / left[:, None] / right).cpu()


def _number(value: float) -> float | None:
    return float(f"{value:.6g}") if math.isfinite(value) else None
