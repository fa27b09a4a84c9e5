"""Estimate the least memory of a pretraining run, so that a run that cannot fit is refused at once."""

from __future__ import annotations

from pathlib import Path

import psutil
import torch
from rich.filesize import decimal

from pretrain.config import PretrainConfig
from pretrain.cost import size_of_run
from pretrain.model.losses import BLOCK
from synthlang.errors import InputError

FLOAT, IDS = 4, 3 * 8
"""Bytes of a float32 number, and of the ids, labels and positions of a token in a batch."""
KEPT = 4
"""Float32 numbers in memory for each weight: the weight, its gradient and two moments of AdamW."""
SMALLEST = 300
"""Assumed number of ids of a vocabulary whose size is not known yet."""
GROUP = Path("/sys/fs/cgroup/memory.max")


def check_memory(config: PretrainConfig, processes: int, device: torch.device, ids: int = SMALLEST) -> None:
    """Check that the machine and the device have the least memory that a run needs.

    Args:
        config: The settings.
        processes: Number of processes of the launch. On a CPU they share the memory of the machine.
        device: The device of this process.
        ids: Number of ids of all languages (default: SMALLEST, for a vocabulary that is not known yet).

    Raises:
        InputError: The device or the machine has too little memory.
    """
    weights, activations, rows = needed(config, processes, ids)
    sharing = processes if device.type == "cpu" else 1
    machine, each = memory_of_machine() // sharing, f" for each of the {processes} processes" if sharing > 1 else ""
    parts = {"weights and optimizer": weights, "activations": activations, "rows of a step": rows}
    places = [("the machine", machine, parts)]
    if device.type == "cuda":
        total = int(torch.cuda.mem_get_info(device)[1])
        of_rows = {"rows of a step": parts.pop("rows of a step")}
        places = [(f"the device {device}", total, parts), ("the machine", machine, of_rows)]
    for name, has, sizes in places:
        if (needs := sum(sizes.values())) > has:
            hint = "make batch.rows or batch.length smaller"
            if sizes.get("activations", 0) >= rows:
                hint += ", or batch.accumulation larger"
            if sizes.get("weights and optimizer", 0) > has:
                hint = "make model.layers, model.hidden, model.feed_forward or vocabulary.size smaller"
            known = ", ".join(f"{what}: {decimal(size)}" for what, size in sizes.items() if size)
            reason = (
                f"a process needs at least {decimal(needs)} of memory ({known}), but {name} has {decimal(has)}{each}"
            )
            raise InputError(reason, hint=hint, code="resources")


def needed(config: PretrainConfig, processes: int, ids: int) -> tuple[int, int, int]:
    """Return the least bytes of a process for weights with optimizer, for activations, and for the rows of a step.

    ``processes`` is the number of processes of the launch, and ``ids`` the number of ids of all languages. If a run
    starts from a checkpoint, only the rows are known, and the other two numbers are 0.
    """
    tokens = config.batch.tokens // processes
    rows = tokens * IDS
    if config.start is not None:
        return 0, 0, rows
    size = size_of_run(config, ids)
    micro = tokens // config.batch.accumulation
    if config.batch.packing == "sentences":  # the rows are padded, and padding is not computed
        micro //= 2
    share = 2 if config.precision == "bfloat16" else FLOAT
    # A layer needs at least the inputs of its four products. The last layer and the softmax need labelled tokens only.
    activations = micro * (size.layers - 1) * (4 * size.hidden + size.feed_forward) * share
    logits = int(micro * config.objective.mask_rate) * ids
    if config.objective.is_causal:  # which has some of its logits in memory at a time
        logits = min(micro * ids, *BLOCK.values())
    activations += logits * share
    return size.parameters * KEPT * FLOAT, activations, rows


def memory_of_machine() -> int:
    """Return the bytes of memory that this machine, container or job may use in all, free or not."""
    total = int(psutil.virtual_memory().total)
    allowed = GROUP.read_text("utf-8").strip() if GROUP.is_file() else "max"
    return min(total, int(allowed)) if allowed.isdecimal() else total
