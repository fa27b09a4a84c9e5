"""Cross entropy over a large vocabulary, with one buffer of the size of the logits.

PyTorch's keeps the logits, their log-softmax and the gradient of both. Here the logits z of a position with the label y
become u = exp(z − max z) − s·[y], s = Σ exp(z − max z), in the buffer they stand in: the gradient is u/s, so that
backward has two matrix products to do and no pass over the logits. The exponentials are taken in float32, of a few
rows at a time, which stay in a CPU's cache.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

from pretrain.data.batch import IGNORE

CHUNK = {"cpu": 1 << 18}  # logits at a time
LARGE_CHUNK = 1 << 28  # of an accelerator, which likes large kernels

Exponentials = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]


def exponentials(logits: Tensor, index: Tensor) -> tuple[Tensor, Tensor]:
    """Turn ``logits`` [n, V] into u, in place; s [n] and −log softmax at ``index`` [n, 1] are returned."""
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


def slot_loss(
    hidden: Tensor, weight: Tensor, bias: Tensor, labels: Tensor, step: Exponentials = exponentials
) -> Tensor:
    """−log softmax(hidden weightᵀ + bias) at ``labels``, [n] float32 in nats; 0 where a label is IGNORE.

    hidden [n, d], weight [V, d], bias [V], labels [n]. ``step`` may be a compiled ``exponentials``.
    """
    loss: Tensor = _SlotLoss.apply(hidden, weight, bias, labels, step)  # type: ignore[no-untyped-call]
    return loss
