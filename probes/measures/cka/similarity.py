"""Linear CKA: how alike two models' representations of the same sentences are, every layer against every layer.

    CKA(X, Y) = ‖YᵀX‖² / (‖XᵀX‖ ‖YᵀY‖)        of columns centred over the sentences, Frobenius norms

(Kornblith et al. 2019; Conneau et al. 2020, "Emerging cross-lingual structure", section 5.2, with mean-pooled subword
states, specials left out, at layer 0, the embeddings, and after each layer). It does not change when a side is turned
(orthogonally), moved, or scaled by one factor. It is biased: with at least as many dimensions as sentences even
unrelated states come near 1. The debiased estimator puts HSIC₁ (Song et al. 2012) in place of the squared norms, as in
Murphy et al. 2024; it is about 0 for unrelated states, and may be below.

Both follow from sums over sentences in float64, without any n × n kernel. With rows u of one layer and v of another,
both about a fixed point (``probes.moments.Centre``), k = ‖u‖² and l = ‖v‖², these are Σ u vᵀ, Σ k v, Σ l u, Σ k l, Σ k
and Σ l. Let C = Σ (u − ū)(v − v̄)ᵀ, and S, T, T′ be Σ k l, Σ k, Σ l of rows about their means. Of the linear kernels
K = XXᵀ and L = YYᵀ and the centring matrix H:

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
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from probes.measures.cka import Estimator
from probes.moments import Centre
from probes.rotation.procrustes import NOTHING
from probes.spool import Spool
from synthlang.errors import InputError
from synthlang.progress import Report, silent

MEMORY = 1280 * 2**20
"""Bytes: the products of 13 × 13 layers of width 768 fit, and a process stays under 2 GB."""
ROWS = 1024  # in a block: enough that the products, not the additions to them, take the time
SIDES = ("left", "right")
CPU = torch.device("cpu")


class Job(NamedTuple):
    """One layer of a side with layers ``start`` to ``stop`` of the same or the other side."""

    side: int
    layer: int
    other: int
    start: int
    stop: int


class CKA:
    """Gathers states batch by batch; ``result`` may be called at any time.

    The sums of L × R pairs of layers take 8 L R d d′ bytes. Where they are more than ``memory`` (bytes) allows, the
    states go to a temporary file in ``folder`` (default: the system's) and ``result`` reads it once for as many layers
    as fit: the sums of one left layer with all right ones, 8 R d d′ bytes, are the least. Rows are taken in blocks of
    fixed size, so that the sizes of batches change nothing. All is computed on ``device``, which must have float64.
    ``names`` are what the layers of each side are called in messages (default: left layer 0 …).
    """

    def __init__(
        self,
        left_layers: int,
        right_layers: int,
        width_left: int,
        width_right: int,
        memory: int = MEMORY,
        folder: Path | None = None,
        device: torch.device = CPU,
        names: tuple[Sequence[str], Sequence[str]] | None = None,
    ) -> None:
        assert min(left_layers, right_layers, width_left, width_right) > 0
        self._shapes = ((left_layers, width_left), (right_layers, width_right))
        self._names = names or tuple(
            [f"{side} layer {i}" for i in range(layers)] for side, (layers, _) in zip(SIDES, self._shapes, strict=True)
        )
        self._device = device
        self._centres = (Centre(), Centre())
        self._held: tuple[Tensor, Tensor] | None = None  # a block that is not full yet
        self._waiting = 0
        # a row stands in the block in float32 and once more in float64; a quarter of the memory is for both
        row = 12 * sum(layers * width for layers, width in self._shapes)
        self._rows = max(16, min(ROWS, memory // 4 // row))
        self._groups = list(self._grouped(memory - self._rows * row))
        self._strips: dict[Job, Strip] = {}
        self._spool = Spool(folder) if len(self._groups) > 1 else None

    def update(self, left: Tensor, right: Tensor) -> None:
        """Add n sentences: states [L, n, d] and [R, n, d′]; InputError if one is not finite, and then none is added."""
        sides = (left.detach(), right.detach())
        for names, states, (layers, width) in zip(self._names, sides, self._shapes, strict=True):
            assert states.ndim == 3 and states.shape == (layers, left.shape[1], width), (states.shape, layers, width)
            for layer in range(layers):
                if not bool(states[layer].isfinite().all()):
                    raise InputError(f"{names[layer]} gives NaN or infinity, so there is no CKA: it has diverged")
        if self._held is None:
            self._held = (self._block(0, left.dtype), self._block(1, right.dtype))
        done = 0
        while done < left.shape[1]:
            stop = min(left.shape[1], done + self._rows - self._waiting)
            for block, states in zip(self._held, sides, strict=True):
                block[self._waiting : self._waiting + stop - done] = states[:, done:stop].transpose(0, 1)
            self._waiting, done = self._waiting + stop - done, stop
            if self._waiting == self._rows:
                self._flush()

    def result(self, report: Report = silent) -> CKAResult:
        """The similarities so far; InputError with fewer than 2 sentences.

        A layer whose sentences are all the same has none: NaN, and a line in ``undefined``. So has, of the debiased
        ones, a layer whose sentences are equally far from each other. ``report`` hears of blocks read again.
        """
        self._flush()
        if (n := self._centres[0].count) < 2:
            raise InputError(f"CKA needs at least 2 sentences (the debiased one 4), but there are {n}")
        cross: list[Dependence] = []
        own: tuple[list[Dependence], list[Dependence]] = ([], [])
        spread: tuple[list[Tensor], list[Tensor]] = ([], [])
        for strips in self._passes(report):
            for job, strip in strips.items():
                shift = self._centres[job.side].shift[job.layer]
                found = strip.dependence(n, shift, self._centres[job.other].shift[job.start : job.stop])
                if job.side != job.other:
                    cross.append(found)
                else:
                    own[job.side].append(found)
                    spread[job.side].append(strip.spread(n, shift))
        sides = [self._own(side, own[side], torch.cat(spread[side])) for side in (0, 1)]
        return similarities(n, [found.cpu() for found in cross], *sides)

    def _own(self, side: int, found: list[Dependence], spread: Tensor) -> Own:
        """``spread`` [layers] Σ ‖x − x̄‖²."""
        assert self._held is not None
        # rows that differ by no more than rounding does are the same
        rounding = torch.finfo(self._held[side].dtype).eps ** 2 * self._centres[side].mean.square().sum(1)
        constant = spread <= self._centres[side].count * rounding
        debiased = [one.debiased for one in found if one.debiased is not None]
        own = Dependence(torch.cat([one.biased for one in found]), torch.cat(debiased) if debiased else None)
        return Own(self._names[side], own.cpu(), constant.cpu())

    def _block(self, side: int, dtype: torch.dtype) -> Tensor:
        return torch.empty(self._rows, *self._shapes[side], dtype=torch.promote_types(dtype, torch.float32))

    def _flush(self) -> None:
        if not self._waiting or self._held is None:
            return
        left, right = (block[: self._waiting] for block in self._held)
        self._waiting = 0
        about = tuple(c.add(rows.to(self._device)) for c, rows in zip(self._centres, (left, right), strict=True))
        if self._spool is None:
            self._strips = self._strips or self._new(self._groups[0])
            _add(self._strips, about)
        else:
            self._spool.write(left, right)

    def _passes(self, report: Report) -> Iterator[dict[Job, Strip]]:
        """Complete strips, group by group."""
        if self._spool is None:
            yield self._strips
            return
        total, done = len(self._groups) * len(self._spool), 0
        for group in self._groups:
            strips = self._new(group)
            for blocks in self._spool.read():
                rows = zip(self._centres, blocks, strict=True)
                _add(strips, tuple(centre.about(block.to(self._device)) for centre, block in rows))
                done += 1
                report("CKA", done, total, "")
            yield strips

    def _grouped(self, memory: int) -> Iterator[list[Job]]:
        """All jobs, in groups whose sums fit, or that are one job."""
        (left, _), (right, _) = self._shapes
        jobs = [Job(0, layer, 1, 0, right) for layer in range(left)]
        jobs += [Job(s, i, s, i, i + 1) for s, (layers, _) in enumerate(self._shapes) for i in range(layers)]
        group: list[Job] = []
        taken = 0
        for job in jobs:
            size = Strip.size(*self._strip_shape(job))
            if group and taken + size > memory:
                yield group
                group, taken = [], 0
            group.append(job)
            taken += size
        yield group

    def _new(self, group: list[Job]) -> dict[Job, Strip]:
        return {job: Strip(*self._strip_shape(job), self._device) for job in group}

    def _strip_shape(self, job: Job) -> tuple[int, int, int]:
        return self._shapes[job.side][1], job.stop - job.start, self._shapes[job.other][1]


def _add(strips: dict[Job, Strip], about: tuple[Tensor, ...]) -> None:
    """Rows of both sides about their points, [n, layers, d]."""
    squares = [torch.linalg.vecdot(rows, rows) for rows in about]
    for job, strip in strips.items():
        others = slice(job.start, job.stop)
        u, k = about[job.side][:, job.layer], squares[job.side][:, job.layer]
        strip.add(u, k, about[job.other][:, others], squares[job.other][:, others])


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


class Own(NamedTuple):
    """The layers of one model by themselves.

    names       what they are called
    dependence  of each layer on itself
    constant    [layers] whether all sentences are the same, but for rounding
    """

    names: Sequence[str]
    dependence: Dependence
    constant: Tensor


def similarities(n: int, cross: Sequence[Dependence], left: Own, right: Own) -> CKAResult:
    """From the dependence of each left layer on the right ones, and of all on themselves."""
    undefined: list[str] = []
    for own in (left, right):
        undefined += [f"{own.names[i]}: all {n} sentences have the same vector" for i in _true(own.constant)]
    lengths = [_lengths(own.dependence.biased, own.constant) for own in (left, right)]
    biased = _ratios([row.biased for row in cross], *lengths)
    if left.dependence.debiased is None:
        return CKAResult(biased, None, n, tuple(undefined))
    lengths = []
    for own in (left, right):
        squares = own.dependence.debiased
        assert squares is not None
        # what float32's rounding of n sentences leaves of 0, see NOTHING
        empty = squares <= n * NOTHING * own.dependence.biased
        lengths.append(_lengths(squares, empty | own.constant))
        undefined += [
            f"{own.names[i]}, debiased: all {n} sentences are equally far from each other"
            for i in _true(empty & ~own.constant)
        ]
    debiased = [row.debiased for row in cross if row.debiased is not None]
    return CKAResult(biased, _ratios(debiased, *lengths), n, tuple(undefined))


def _lengths(squares: Tensor, without: Tensor) -> Tensor:
    return squares.clamp_min(0.0).sqrt().masked_fill(without, math.nan)


def _ratios(cross: Sequence[Tensor], left: Tensor, right: Tensor) -> Tensor:
    # one after the other: the product of two small lengths may be 0
    return torch.stack(list(cross)) / left[:, None] / right


def _true(which: Tensor) -> list[int]:
    found: list[int] = which.nonzero().flatten().tolist()
    return found


def _number(value: float) -> float | None:
    return float(f"{value:.6g}") if math.isfinite(value) else None
