"""FSDP: weights, gradients and optimizer split over the processes of a launch, by PyTorch's ``fully_shard``.

Each process holds a part of every tensor. A layer is gathered for its computation, and other parameters are gathered
for a whole step. Functions that gather must be called by all processes in the same order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn


def shard(losses: nn.Module, layers: Iterable[nn.Module], device: torch.device) -> None:
    """Split the parameters of ``losses`` over all processes. Each of its ``layers`` is gathered separately.

    ``device`` is the device of this process, whose type all processes share.
    """
    from torch.distributed import get_world_size
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    mesh = init_device_mesh(device.type, (get_world_size(),))
    for module in (*layers, losses):
        fully_shard(module, mesh=mesh)


def is_sharded(module: nn.Module) -> bool:
    """Return True if the parameters of a module were split by ``shard``."""
    return hasattr(module, "unshard")


def whole(tensor: Tensor) -> Tensor:
    """Return the whole tensor if this process holds a part of a tensor that was split, else ``tensor`` itself."""
    gathered: Tensor = tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor
    return gathered


def part_of(value: Tensor, place: Tensor) -> Tensor:
    """Return the part of ``value`` that this process holds if the tensor ``place`` is split, else ``value``.

    A value of another shape than ``place``, such as the step number of an optimizer, is returned whole.
    """
    if not hasattr(place, "full_tensor") or value.shape != place.shape:  # the step number is not split
        return value
    from torch.distributed.tensor import distribute_tensor

    mesh, placements = place.device_mesh, place.placements  # type: ignore[attr-defined]
    return distribute_tensor(value.to(place.device), mesh, placements, src_data_rank=None)


@contextmanager
def gathered(module: nn.Module) -> Iterator[None]:
    """Gather all weights of a module during the block, so that they can be read."""
    parts = [part for part in module.modules() if is_sharded(part)]
    for part in parts:
        part.unshard()  # type: ignore[operator]
    try:
        yield
    finally:
        for part in parts:
            part.reshard()  # type: ignore[operator]
