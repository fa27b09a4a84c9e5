"""Floating-point operations of a step, counted from the shapes of its matrix products.

A product [m, k] × [k, n] is 2mkn operations; backward has two of them for each one of forward (none is computed
again). Everything else (softmax, LayerNorm, GELU, dropout, the optimizer) is not counted. ``ours`` counts what our
encoder computes: in the last layer queries, output and feed-forward at the masked positions only, and so the head.
``all_positions`` counts the same model as Hugging Face's class runs it.
"""

from __future__ import annotations

from pretrain.config import ModelConfig
from pretrain.data.masking import masked_per_row


def per_token(model: ModelConfig, ids: int, length: int, mask_rate: float = 0.15, all_positions: bool = False) -> float:
    """Operations of forward and backward for each token of rows of ``length`` tokens, with a softmax over ``ids``."""
    t, d, ff = length, model.hidden, model.feed_forward
    k = t if all_positions else masked_per_row(mask_rate, t)
    full = _layer(t, t, d, ff) * (model.layers - 1)
    head = 2 * k * d * (d + ids)
    return 3 * (full + _layer(k, t, d, ff) + head) / t


def _layer(queries: int, t: int, d: int, ff: int) -> int:
    """Of one row: projections to keys and values, to queries and from attention, attention, feed-forward."""
    return 2 * (2 * t * d * d + 2 * queries * d * d + 2 * queries * t * d + 2 * queries * d * ff)
