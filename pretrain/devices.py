"""The devices of a launch: processes, torch.compile, and XLA (TPUs).

XLA records operations, and compiles them when a graph is marked as complete.
"""

from __future__ import annotations

import shutil
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import torch

from synthlang.errors import InputError

if TYPE_CHECKING:
    from accelerate import Accelerator, PartialState

# Compiling takes as long as some hundred steps of a large model.
ENOUGH_STEPS = 2_000
WIDE = 192
"""Smallest width of a model for which bfloat16 is faster than float32 on a CPU with AMX.

On a Xeon with AMX, a step in bfloat16 took 1.4 times as long as in float32 at width 128. At width 192, it took 0.86
times as long. When oneDNN was limited to other instructions, bfloat16 was slower at width 256, too.
"""


def process_state() -> PartialState:
    """Return Accelerate's state of this process. The first call joins the processes of the launch.

    Without an accelerator the state must be created with ``cpu``. Otherwise the processes of a launch silently become
    independent runs.
    """
    from accelerate import PartialState
    from accelerate.utils import is_torch_xla_available, parse_flag_from_env

    on_cpu = not torch.accelerator.is_available() and not is_torch_xla_available()
    return PartialState(cpu=on_cpu or parse_flag_from_env("ACCELERATE_USE_CPU"))


def accelerator_of(unused: bool, **options: Any) -> Accelerator:
    """Return Accelerate's interface to the launch.

    Args:
        unused: True if a micro-batch may leave parameters without a gradient.
        **options: Further arguments of ``accelerate.Accelerator``.

    Raises:
        InputError: The launch uses Accelerate's FSDP.
    """
    from accelerate import Accelerator, DistributedDataParallelKwargs
    from accelerate.utils import parse_flag_from_env

    if parse_flag_from_env("ACCELERATE_USE_FSDP"):
        hint = (
            "leave FSDP out of the options and the config file of Accelerate; a pretraining has the key shard instead"
        )
        raise InputError("FSDP of Accelerate is not supported", "accelerate launch", hint=hint, code="unsupported")
    on_cpu = process_state().device.type == "cpu"  # called before Accelerator, which would not join processes on CPUs
    handlers = [DistributedDataParallelKwargs(find_unused_parameters=unused)]
    return Accelerator(cpu=on_cpu, kwargs_handlers=handlers, **options)


def faster_precision(hidden: int, device: torch.device) -> str | None:
    """Return the faster precision on a CPU for a model of the width ``hidden``, or None for other devices.

    The precision is ``bfloat16`` for widths of at least WIDE on a CPU with AMX, and else ``float32``.
    """
    if device.type != "cpu":
        return None
    return "bfloat16" if hidden >= WIDE and torch.cpu.get_capabilities().get("amx_bf16") else "float32"


def should_compile(choice: str, device: torch.device, steps: int) -> bool:
    """Return True if a run of ``steps`` steps is to be compiled. ``choice`` is auto, on or off.

    ``auto`` compiles runs of at least ENOUGH_STEPS steps on CUDA if triton is installed. On a CPU, compiled steps
    were not faster, and compiling took at least 30 s.

    Raises:
        InputError: ``choice`` is on, but a C++ compiler (CPU) or triton (CUDA) is missing, or the device is neither.
    """
    if choice == "on":
        if device.type not in ("cpu", "cuda"):
            reason = f"on is not supported on the device {device.type}"
            raise InputError(reason, keys="compile", hint="set compile to off", code="unsupported")
        tool, is_there = "the package triton", _has_triton()
        if device.type == "cpu":
            tool = "a C++ compiler (g++ or clang++)"
            is_there = any(map(shutil.which, ("g++", "clang++", "c++")))
        if not is_there:
            hint = "install it, or set compile to off"
            raise InputError(f"on needs {tool}, which is not installed", keys="compile", hint=hint, code="extra")
        return True
    return choice == "auto" and device.type == "cuda" and steps >= ENOUGH_STEPS and _has_triton()


def _has_triton() -> bool:
    return find_spec("triton") is not None


def finish(device: torch.device) -> None:
    """Run the recorded operations on XLA, so that the graph of a step does not include the steps before it.

    On other devices, this function has no effect.
    """
    if device.type == "xla":
        import torch_xla

        torch_xla.sync()


def sum_gradients(optimizer: torch.optim.Optimizer, device: torch.device) -> None:
    """Average the gradients over all replicas on XLA, where Accelerate does not use DDP.

    Parameters without a gradient get a gradient of zeros first. On other devices, this function has no effect.
    """
    if device.type == "xla":
        import torch_xla.core.xla_model as xm

        for group in optimizer.param_groups:
            # A replica may have no row of a language, but all replicas must reduce the same parameters.
            for p in group["params"]:
                p.grad = torch.zeros_like(p) if p.grad is None else p.grad
        xm.reduce_gradients(optimizer)


def seed(key: int, device: torch.device) -> None:
    """Seed the generator of a device with ``key`` (63 bits), since torch.manual_seed does not affect XLA."""
    if device.type == "xla":
        import torch_xla

        torch_xla.manual_seed(key)
    elif device.type == "cpu":
        torch.default_generator.manual_seed(key)  # torch.manual_seed keeps a stack for each device not in use
    else:
        torch.manual_seed(key)
