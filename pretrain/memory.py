"""How much memory a pretraining needs at least, told before any of it is taken: no run begins that cannot fit."""

from __future__ import annotations

from pathlib import Path

import psutil
import torch
from rich.filesize import decimal

from pretrain.config import PretrainConfig
from synthlang.errors import InputError

FLOAT, IDS = 4, 3 * 8
"""Bytes of a number, and of the ids, labels and places of a token in a batch."""
KEPT = 4
"""Weights, their gradients and two moments of AdamW, all in float32."""
SMALLEST = 300
"""Ids of a vocabulary, where it is not known yet."""
GROUP = Path("/sys/fs/cgroup/memory.max")


def check_memory(config: PretrainConfig, processes: int, device: torch.device, ids: int = SMALLEST) -> None:
    """InputError if the weights, the optimizer, the activations of a micro-batch and the rows of a step are more than
    the device has, or the machine; ``ids`` are those of the vocabulary. Of a checkpoint that it starts from only the
    rows count, which is all that the config tells."""
    weights, activations, rows = needed(config, processes, ids)
    machine = memory_of_machine() // (processes if device.type == "cpu" else 1)
    places = [("the machine", machine, weights + activations + rows)]
    if device.type == "cuda":
        total = int(torch.cuda.mem_get_info(device)[1])
        places = [(f"the device {device}", total, weights + activations), ("the machine", machine, rows)]
    for name, has, needs in places:
        if needs > has:
            shrink = "batch.rows or batch.length smaller, or batch.accumulation larger"
            if weights > has:
                shrink = "model.layers, model.hidden or model.feed_forward smaller"
            raise InputError(
                f"a process needs at least {decimal(needs)} of memory (weights and optimizer {decimal(weights)}, "
                f"activations {decimal(activations)}, rows of a step {decimal(rows)}) and {name} has {decimal(has)} "
                f"for it: make {shrink}"
            )


def needed(config: PretrainConfig, processes: int, ids: int) -> tuple[int, int, int]:
    """Bytes that a process needs at least: for weights with their optimizer, activations, and the rows of a step."""
    model, sharing, languages = config.model, config.sharing, len(config.all_languages)
    tokens = config.batch.rows * config.batch.length // processes
    rows = tokens * IDS
    if config.start is not None:
        return 0, 0, rows
    h, f = model.hidden, model.feed_forward
    layers = model.layers + len(sharing.layers) * (languages - 1)
    positions = (model.positions or config.batch.length) * (languages if sharing.embeddings == "separate" else 1)
    weights = layers * (4 * h * h + 2 * h * f) + (ids + positions) * h + h * h
    micro = tokens // config.batch.accumulation
    if config.batch.packing == "sentences":  # their rows are padded, and padding is not computed
        micro //= 2
    share = 2 if config.precision == "bfloat16" else FLOAT
    # of a layer what goes into its four products at least; in the last one and for the softmax masked tokens only
    activations = micro * (model.layers - 1) * (4 * h + f) * share
    activations += int(micro * config.objective.mask_rate) * ids * share
    return weights * KEPT * FLOAT, activations, rows


def memory_of_machine() -> int:
    """Bytes of memory, or of what a container or a job may use of it."""
    total = int(psutil.virtual_memory().total)
    allowed = GROUP.read_text("utf-8").strip() if GROUP.is_file() else "max"
    return min(total, int(allowed)) if allowed.isdecimal() else total
