"""What XLA (TPUs) needs: it records operations and compiles them when it is told that a graph is complete."""

from __future__ import annotations

import torch


def finish(device: torch.device) -> None:
    """On XLA, run what was recorded; elsewhere nothing. Without it each step's graph holds all steps before it."""
    if device.type == "xla":
        import torch_xla

        torch_xla.sync()


def sum_gradients(optimizer: torch.optim.Optimizer, device: torch.device) -> None:
    """On XLA, the mean of the gradients over all replicas, as DDP makes elsewhere (accelerate wraps no model there)."""
    if device.type == "xla":
        import torch_xla.core.xla_model as xm

        for group in optimizer.param_groups:
            for p in group["params"]:  # parts of a language that this replica had no row of; all must reduce the same
                p.grad = torch.zeros_like(p) if p.grad is None else p.grad
        xm.reduce_gradients(optimizer)


def seed(key: int, device: torch.device) -> None:
    """Seed the device's own generator with 63 bits; torch.manual_seed does not reach that of XLA."""
    if device.type == "xla":
        import torch_xla

        torch_xla.manual_seed(key)
    else:
        torch.manual_seed(key)
