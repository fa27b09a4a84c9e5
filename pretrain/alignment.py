"""Word-embedding alignment: does a word's row lie nearest to the row of its own counterpart?

Source: ALIGN-MLM (Deshpande et al. 2021), the alignment score, here in both directions and
also under CSLS (Conneau et al. 2018, equation 4). With p_i, d_i the rows of word i in the
parent and in the derived language and cos their cosine:

    forward(i)  = 1 if argmax_j s(p_i, d_j) = i else 0          j over ALL derived rows
    backward(i) = 1 if argmax_j s(p_j, d_i) = i else 0          j over ALL parent rows
    s = cos                                                     for ``cosine``
    s = 2 cos(p, d) - r(p) - r(d)                               for ``csls``
    r(x) = mean cosine of x to its k nearest rows of the other language

and a score is 100 times the mean over the words of a subset.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor

from synthlang.errors import InputError

TIE = 1e-6
"""Similarities closer than this are tied: float32 products differ by as much between kernels."""


@dataclass(frozen=True)
class Retrieval:
    """Percent (0-100) of words whose nearest row is their counterpart's."""

    forward: float
    """Parent → derived, the direction of the paper."""
    backward: float
    """Derived → parent."""
    mean: float
    """Mean of both directions."""


@dataclass(frozen=True)
class SubsetAlignment:
    """The scores of ``n`` words; every other word still competes as a neighbour."""

    n: int
    cosine: Retrieval
    csls: Retrieval


@dataclass(frozen=True)
class AlignmentScores:
    """Scores of all words, of those in the training dictionary and of the rest; None if there are none."""

    all: SubsetAlignment | None
    in_dictionary: SubsetAlignment | None
    held_out: SubsetAlignment | None

    def to_json(self) -> dict[str, Any]:
        """Nested JSON values: ``{"all": {"n": 9, "cosine": {"forward": …}, "csls": …} | None, …}``."""
        return asdict(self)


def alignment(
    parent: Tensor,
    derived: Tensor,
    in_dictionary: Tensor,
    candidates: Tensor | None = None,
    *,
    k: int = 10,
    chunk: int = 1024,
) -> AlignmentScores:
    """Score how well rows of ``parent`` [n, d] find their counterparts, rows of ``derived`` [n, d].

    Row i of both is the same word. ``in_dictionary`` [n] (bool) marks the words whose pair
    was trained on. ``candidates`` [m, d] are further derived rows without a counterpart in
    ``parent`` (say, never-trained types when the released code's number is wanted): they
    compete in the forward direction and have no query of their own. The caller leaves out
    special tokens, types never seen in training and types shared by both languages (one row
    is trivially its own neighbour).

    A tie for the maximum (within TIE) between t rows, the counterpart among them, counts
    1/t: the expectation of breaking it at random, so a collapsed embedding scores 100/n and
    not 100. A row of zeros has cosine 0 to everything, and its word counts as a miss in
    both directions. Similarities are float32 whatever the input; memory is O(chunk · (n + m));
    ``k`` is cut to the number of rows.

    >>> rows = torch.eye(3)
    >>> alignment(rows, rows[[0, 2, 1]], torch.tensor([True, False, False])).all.cosine.forward
    33.33333333333333
    """
    _check(parent, derived, in_dictionary, candidates)
    if k < 1 or chunk < 1:
        raise InputError(f"k and chunk must be at least 1, not {k} and {chunk}")
    with torch.no_grad(), _full_precision(parent.device.type):
        p, d, usable, further = _prepare(parent, derived, candidates)
        targets = d if further is None else torch.cat([d, further])
        cosine = (_credit(p, targets, None, chunk), _credit(d, p, None, chunk))
        r_parent, r_targets = _density(p, targets, k, chunk), _density(targets, p, k, chunk)
        csls = (_credit(p, targets, r_targets, chunk), _credit(d, p, r_parent, chunk))
        inside = in_dictionary.to(usable.device)

        def subset(members: Tensor) -> SubsetAlignment | None:
            n = int(members.sum())
            return SubsetAlignment(n, *(_retrieval(pair, members, usable) for pair in (cosine, csls))) if n else None

        return AlignmentScores(subset(torch.ones_like(inside)), subset(inside), subset(~inside))


def _check(parent: Tensor, derived: Tensor, members: Tensor, extra: Tensor | None) -> None:
    assert parent.ndim == 2 and parent.shape == derived.shape, (parent.shape, derived.shape)
    assert members.dtype == torch.bool and members.shape == parent.shape[:1], (members.dtype, members.shape)
    assert extra is None or (extra.ndim == 2 and extra.shape[1] == parent.shape[1]), "rows of the same size"
    if not all(bool(rows.isfinite().all()) for rows in (parent, derived, extra) if rows is not None):
        raise InputError("the embeddings hold NaN or infinity: the training run has diverged")


@contextmanager
def _full_precision(device: str) -> Iterator[None]:
    """No TF32 and no autocast: nearest neighbours differ by less than their rounding."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    try:
        with torch.autocast(device, enabled=False):
            yield
    finally:
        torch.set_float32_matmul_precision(before)


def _unit(rows: Tensor) -> Tensor:
    """Rows of length 1 in float32; a row of zeros stays zero. Scaled first: no under- or overflow of squares."""
    rows = rows.float()
    if not rows.numel():
        return rows
    largest = rows.abs().amax(1, keepdim=True)
    rows = rows / largest.where(largest > 0, 1)
    norms = rows.norm(dim=1, keepdim=True)
    unit: Tensor = rows / norms.where(norms > 0, 1)
    return unit


def _prepare(parent: Tensor, derived: Tensor, extra: Tensor | None) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
    """Unit rows [n, d] twice, which words have a direction on both sides [n], unit further rows [m, d]."""
    p, d = _unit(parent), _unit(derived.to(parent.device))
    usable = (p != 0).any(1) & (d != 0).any(1)
    return p, d, usable, None if extra is None else _unit(extra.to(parent.device))


def _density(queries: Tensor, targets: Tensor, k: int, chunk: int) -> Tensor:
    """r(x) [n]: mean cosine of each query [n, d] to its k nearest targets [m, d]."""
    k = min(k, len(targets))
    if not k or not len(queries):
        return queries.new_zeros(len(queries))
    blocks = (queries[start : start + chunk] for start in range(0, len(queries), chunk))
    return torch.cat([(block @ targets.T).topk(k, dim=1).values.mean(1) for block in blocks])


def _credit(queries: Tensor, targets: Tensor, density: Tensor | None, chunk: int) -> Tensor:
    """1/t [n] where target i is among the t nearest tied ones of query i, else 0.

    With ``density`` r(target) [m] the similarity is CSLS less r(query), which is the same
    for all targets of a query and does not move the maximum.
    """
    parts = [queries.new_zeros(0, dtype=torch.float64)]
    for start in range(0, len(queries), chunk):
        similarity = queries[start : start + chunk] @ targets.T  # [chunk, m]
        if density is not None:
            similarity = similarity.mul_(2).sub_(density)
        own = similarity.diagonal(start)  # [chunk]: query start + i against target start + i
        nearest = similarity >= similarity.amax(1, keepdim=True) - TIE
        hit = own >= similarity.amax(1) - TIE
        parts.append(hit.double() / nearest.sum(1))
    return torch.cat(parts)


def _retrieval(credits: tuple[Tensor, Tensor], members: Tensor, usable: Tensor) -> Retrieval:
    forward, backward = (100 * float((credit * usable)[members].mean()) for credit in credits)
    return Retrieval(forward, backward, (forward + backward) / 2)
