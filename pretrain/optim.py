"""AdamW and the learning rate as a function of the step."""

from __future__ import annotations

import math

import torch
from torch import nn

from pretrain.config import OptimizerConfig
from pretrain.devices import finish


def build_optimizer(config: OptimizerConfig, model: nn.Module) -> torch.optim.AdamW:
    """Return AdamW (Loshchilov & Hutter 2019) for the trainable weights of a model.

    Weight decay acts only on matrices, not on biases and LayerNorms.
    """
    parameters = [p for p in model.parameters() if p.requires_grad]
    groups = [
        {"params": [p for p in parameters if p.ndim >= 2], "weight_decay": config.weight_decay},
        {"params": [p for p in parameters if p.ndim < 2], "weight_decay": 0.0},
    ]
    betas = (config.beta1, config.beta2)
    if parameters[0].device.type != "xla":
        return torch.optim.AdamW(groups, lr=config.learning_rate, betas=betas, eps=config.epsilon, fused=True)
    # XLA has no fused kernel. With capturable, the step number is on the device, so it is not a constant of the graph.
    optimizer = torch.optim.AdamW(
        groups, lr=config.learning_rate, betas=betas, eps=config.epsilon, foreach=False, capturable=True
    )
    # Moments created in the first step would be constants of its graph, so the second step would need a new graph.
    for p in parameters:
        state = {"step": torch.zeros((), device=p.device)}
        optimizer.state[p] = state | {name: torch.zeros_like(p) for name in ("exp_avg", "exp_avg_sq")}
    finish(parameters[0].device)
    return optimizer


def learning_rate(peak: float, warmup: int, steps: int, step: int, schedule: str = "linear") -> float:
    """Return the learning rate of a step, which counts from 0.

    The rate rises linearly to ``peak`` in ``warmup`` steps and then follows the schedule. With t = (step − warmup) /
    (steps − warmup), the rates are:

        warm-up        peak · (step + 1) / warmup
        linear         peak · (1 − t)
        cosine         peak · (1 + cos πt) / 2                      (Loshchilov & Hutter 2017, equation 5)
        inverse_sqrt   peak · √(max(warmup, 1) / (step + 1))        (Vaswani et al. 2017, equation 3)
        constant       peak

    Args:
        peak: Largest learning rate.
        warmup: Number of steps in which the rate rises.
        steps: Number of steps of the whole run.
        step: The step.
        schedule: ``linear``, ``cosine``, ``inverse_sqrt`` or ``constant``.

    >>> [learning_rate(1.0, 2, 6, s) for s in range(6)]
    [0.5, 1.0, 1.0, 0.75, 0.5, 0.25]
    """
    if step < warmup:
        return peak * (step + 1) / warmup
    if schedule == "constant":
        return peak
    if schedule == "inverse_sqrt":
        return peak * math.sqrt(max(warmup, 1) / max(step + 1, 1))
    left = (steps - step) / (steps - warmup)
    return peak * left if schedule == "linear" else peak * (1 + math.cos(math.pi * (1 - left))) / 2
