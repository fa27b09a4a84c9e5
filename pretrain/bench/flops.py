"""Floating-point operations of a step, counted from the shapes of its matrix products.

A product [m, k] × [k, n] is 2mkn operations; backward has two of them for each one of forward (none is computed
again). Everything else (softmax, LayerNorm, GELU, dropout, the optimizer) is not counted. ``ours`` counts what our
encoder computes: in the last layer queries, output and feed-forward at the k slots of a row only, and so the head.
``all_positions`` counts the same model as Hugging Face's class runs it. Shares of a peak use ``ours``: work that we
leave out earns nothing.
"""

from __future__ import annotations

from pretrain.bench.shapes import Shape
from pretrain.masking import slots_per_row

# dense bfloat16 without sparsity, of the manufacturer's data sheets, in operations per second
PEAKS = {"H200": 989.4e12, "H100 PCIe": 756e12, "H100": 989.4e12, "A100": 312e12, "L40S": 362e12, "L4": 121e12}


def per_token(shape: Shape, all_positions: bool = False) -> float:
    """Operations of forward and backward, by token of the batch."""
    t, d, ff = shape.length, shape.model.hidden, shape.model.feed_forward
    k = t if all_positions else slots_per_row(shape.mask_rate, t)
    full = _layer(t, t, d, ff) * (shape.model.layers - 1)
    head = 2 * k * d * (d + shape.ids)
    return 3 * (full + _layer(k, t, d, ff) + head) / t


def _layer(queries: int, t: int, d: int, ff: int) -> int:
    """Of one row: projections to keys and values, to queries and from attention, attention, feed-forward."""
    return 2 * (2 * t * d * d + 2 * queries * d * d + 2 * queries * t * d + 2 * queries * d * ff)


def peak_of(device_name: str) -> float | None:
    """The peak in bfloat16 of a GPU, if it is known."""
    return next((peak for name, peak in PEAKS.items() if name in device_name), None)
