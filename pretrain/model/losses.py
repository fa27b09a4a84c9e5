"""Losses with hand-written gradients: cross entropy over a large vocabulary, and the sum of cosines of pairs of rows.

The cross entropy needs one buffer of the size of the logits, while PyTorch keeps the logits, their log-softmax and both
gradients. The logits z of a position with the label y are replaced by u = exp(z − max z) − s·[y] with s = Σ exp(z − max
z). The gradient is u/s, so backward has two matrix products and no pass over the logits. The exponentials are computed
in float32 for a few rows at a time, which stay in a CPU's cache.

With a label at every position, as in a decoder, even one buffer is large. If the weight of each position in the whole
loss is known in the forward pass, the gradients are computed there, for a block of positions at a time. The backward
pass then only multiplies them by a number.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

from pretrain.data.batch import IGNORE

CHUNK = {"cpu": 1 << 18}  # number of logits that are processed at a time
LARGE_CHUNK = 1 << 28  # the same number on an accelerator, where large kernels are faster
BLOCK = {"cpu": 1 << 23}  # number of logits in memory at a time if weights are given; LARGE_CHUNK on an accelerator

SMALLEST = 1e-8  # smallest norm, so that a row of zeros has the cosine 0

Exponentials = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]


def exponentials(logits: Tensor, index: Tensor) -> tuple[Tensor, Tensor]:
    """Replace ``logits`` [n, V] by u (see the module), and return s [n] and −log softmax at ``index`` [n, 1], [n]."""
    z = logits.float()  # the same tensor if it is float32
    z.sub_(z.amax(1, keepdim=True))
    wanted = z.gather(1, index)
    total = z.exp_().sum(1, keepdim=True)
    z.scatter_(1, index, wanted.exp() - total)
    if logits.dtype != torch.float32:
        logits.copy_(z)
    return total.squeeze(1), (total.log() - wanted).squeeze(1)


class _SlotLoss(Function):
    @staticmethod
    def forward(ctx: Any, hidden: Tensor, weight: Tensor, bias: Tensor, labels: Tensor, step: Exponentials) -> Tensor:
        device = hidden.device.type
        dtype = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else hidden.dtype
        with torch.autocast(device, enabled=False):
            hidden, weight = hidden.to(dtype), weight.to(dtype)
            logits = torch.addmm(bias.to(dtype), hidden, weight.t())
            wanted = labels != IGNORE
            index = torch.where(wanted, labels, 0).unsqueeze(1)
            rows = max(1, CHUNK.get(device, LARGE_CHUNK) // logits.shape[1])
            parts = zip(torch.split(logits, rows), torch.split(index, rows), strict=True)
            totals, losses = zip(*[step(part, at) for part, at in parts], strict=True)
        ctx.save_for_backward(hidden, weight, logits, torch.where(wanted, 1 / torch.cat(totals), 0.0))
        return torch.where(wanted, torch.cat(losses), 0.0)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, Tensor, None, None]:
        hidden, weight, u, inverse = ctx.saved_tensors
        scale = (gradient * inverse).unsqueeze(1).to(u.dtype)
        return scale * (u @ weight), u.t() @ (scale * hidden), (u.t() @ scale).squeeze(1), None, None


class _BlockLoss(Function):
    """The loss with gradients that are computed for a block of positions at a time, for given weights."""

    @staticmethod
    def forward(
        ctx: Any, hidden: Tensor, weight: Tensor, bias: Tensor, labels: Tensor, step: Exponentials, weights: Tensor,
        learns: bool,
    ) -> Tensor:  # fmt: skip
        device = hidden.device.type
        dtype = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else hidden.dtype
        size = len(weight)
        rows, fewer = (max(1, by.get(device, LARGE_CHUNK) // size) for by in (BLOCK, CHUNK))
        largest = weights.amax().clamp_min(SMALLEST)  # so that gradients of half precision do not underflow
        gradients = [torch.zeros_like(x, dtype=torch.float32) for x in (hidden, weight, bias)] if learns else []
        losses = []
        with torch.autocast(device, enabled=False):
            table, offset = weight.to(dtype), bias.to(dtype)
            for start in range(0, len(hidden), rows):
                here = slice(start, start + rows)
                states, wanted = hidden[here].to(dtype), labels[here] != IGNORE
                index = torch.where(wanted, labels[here], 0).unsqueeze(1)
                logits = torch.addmm(offset, states, table.t())
                parts = zip(torch.split(logits, fewer), torch.split(index, fewer), strict=True)
                totals, found = zip(*[step(part, at) for part, at in parts], strict=True)
                losses.append(torch.where(wanted, torch.cat(found), 0.0))
                if learns:
                    scale = torch.where(wanted, weights[here] / largest / torch.cat(totals), 0.0).unsqueeze(1).to(dtype)
                    gradients[0][here] = scale * (logits @ table)
                    gradients[1] += logits.t() @ (scale * states)
                    gradients[2] += (logits.t() @ scale).squeeze(1)
        ctx.save_for_backward(weights.sum() / largest, *gradients)
        return torch.cat(losses)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        total, *gradients = ctx.saved_tensors
        factor = gradient.sum() / total.clamp_min(SMALLEST)  # the gradient is proportional to the weights
        return *(factor * each for each in gradients), None, None, None, None


def masked_loss(
    hidden: Tensor,
    weight: Tensor,
    bias: Tensor,
    labels: Tensor,
    step: Exponentials = exponentials,
    weights: Tensor | None = None,
) -> Tensor:
    """Return −log softmax(hidden weightᵀ + bias) at ``labels`` in nats, or 0 for the label IGNORE, [n] float32.

    The shapes are hidden [n, d], weight [V, d], bias [V] and labels [n]. ``step`` may be a compiled ``exponentials``.
    With ``weights`` [n], only some logits are in memory at a time. The gradient of the result must then be proportional
    to the weights.
    """
    loss: Tensor
    if weights is None:
        loss = _SlotLoss.apply(hidden, weight, bias, labels, step)  # type: ignore[no-untyped-call]
    else:
        learns = torch.is_grad_enabled()
        loss = _BlockLoss.apply(hidden, weight, bias, labels, step, weights, learns)  # type: ignore[no-untyped-call]
    return loss


def sum_of_cosines(rows: Tensor) -> Tensor:
    """Return Σ cos(a_i, b_i), [], where ``rows`` [2n, d] holds a and then b. A row of zeros has the cosine 0."""
    total: Tensor = _SumOfCosines.apply(rows)  # type: ignore[no-untyped-call]
    return total


class _SumOfCosines(Function):
    """Sum of the cosines of row pairs (a, b), where a is in the first half of the rows and b in the second.

    The forward pass also computes the gradient, ∂cos/∂a = b / (|a| |b|) − cos · a / |a|², in half the time of autograd.
    """

    @staticmethod
    def forward(ctx: Any, rows: Tensor) -> Tensor:
        a, b = rows.chunk(2)
        norms = torch.linalg.vector_norm(rows, dim=1).clamp_min(SMALLEST)
        inverse = 1.0 / (norms[: len(a)] * norms[len(a) :])
        cosines = (a * b).sum(dim=1) * inverse
        gradient = rows * (-torch.cat([cosines, cosines]) / norms**2).unsqueeze(1)
        for mine, other in zip(gradient.chunk(2), (b, a), strict=True):
            mine.addcmul_(other, inverse.unsqueeze(1))
        ctx.save_for_backward(gradient)
        total: Tensor = cosines.sum()
        return total

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        rows: Tensor = ctx.saved_tensors[0]
        return rows * gradient
