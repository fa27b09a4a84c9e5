"""Weights, gradients and optimizer spread over the processes of a launch: FSDP, as PyTorch's ``fully_shard`` does it.

Each process holds a part of every tensor. A layer is gathered while it computes, what stands around the layers for a
whole step. Everything here that gathers is a collective: all processes call it, in the same order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn


def shard(losses: nn.Module, layers: Iterable[nn.Module], device: torch.device) -> None:
    """Spread the parameters of ``losses`` over all processes; each of its ``layers`` is gathered by itself."""
    from torch.distributed import get_world_size
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    mesh = init_device_mesh(device.type, (get_world_size(),))
    for module in (*layers, losses):
        fully_shard(module, mesh=mesh)


def is_sharded(module: nn.Module) -> bool:
    return hasattr(module, "unshard")


def whole(tensor: Tensor) -> Tensor:
    """The tensor of which this process may hold a part."""
    gathered: Tensor = tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor
    return gathered


def part_of(value: Tensor, place: Tensor) -> Tensor:
    """Of a whole ``value`` what this process holds where ``place`` is; ``value`` itself where that is whole."""
    if not hasattr(place, "full_tensor") or value.shape != place.shape:  # a count of steps has no parts
        return value
    from torch.distributed.tensor import distribute_tensor

    mesh, placements = place.device_mesh, place.placements  # type: ignore[attr-defined]
    return distribute_tensor(value.to(place.device), mesh, placements, src_data_rank=None)


@contextmanager
def gathered(module: nn.Module) -> Iterator[None]:
    """In the block all weights of a module are there, to be read."""
    parts = [part for part in module.modules() if is_sharded(part)]
    for part in parts:
        part.unshard()  # type: ignore[operator]
    try:
        yield
    finally:
        for part in parts:
            part.reshard()  # type: ignore[operator]
