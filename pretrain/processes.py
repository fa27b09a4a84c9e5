"""Which of the processes of a launch this one is."""

from __future__ import annotations

import torch
from accelerate import PartialState
from accelerate.utils import is_torch_xla_available, parse_flag_from_env


def process_state() -> PartialState:
    """Accelerate's state of this process; the first call joins the processes of the launch.

    On a machine without an accelerator the state must be told so, else a launch of several
    processes silently becomes that many runs of one.
    """
    on_cpu = not torch.accelerator.is_available() and not is_torch_xla_available()
    return PartialState(cpu=on_cpu or parse_flag_from_env("ACCELERATE_USE_CPU"))
