"""Our side: the batches, the step and the reading ahead of a run, without its log and checkpoints."""

from __future__ import annotations

from typing import Any

import torch
from accelerate import Accelerator

from pretrain.bench.data import artifacts_of
from pretrain.bench.shapes import OBJECTIVES, SHAPES
from pretrain.bench.timing import Blocks
from pretrain.build import build_objective, new_model, train_batches
from pretrain.compiling import should_compile
from pretrain.loop import Prefetch
from pretrain.model.encoder import MaskedLM
from pretrain.model.to_hf import to_hf
from pretrain.processes import process_state
from pretrain.step import Step

LONG = 1_000_000  # steps of a run that auto decides for


def run_ours(name: str, objective: str, precision: str, compiled: str, warmup: int, steps: int) -> dict[str, Any]:
    """Train ``steps`` steps, of which the first ``warmup`` do not count."""
    shape = SHAPES[name]
    config = shape.config(OBJECTIVES[objective], precision, compiled, steps)
    artifacts = artifacts_of(shape, steps)
    device = process_state().device
    accelerator = Accelerator(cpu=device.type == "cpu")
    model: MaskedLM = new_model(config, artifacts).to(accelerator.device)
    if should_compile(config.compile, accelerator.device, LONG):
        model.compile_steps()
    step = Step(config, model, build_objective(config, artifacts, accelerator.device), accelerator)
    batches = train_batches(config, artifacts)
    step.module.train()
    blocks, losses = Blocks(warmup, steps, shape.rows * shape.length), []
    with Prefetch(lambda number: [batches.batch(number)], steps) as ahead:
        for number in range(steps):
            total, _ = step(number, ahead.get(number))["loss"]
            losses.append(total.detach())
            blocks()
    return {**blocks.result(), "losses": _ends(torch.stack(losses))}


def write_start(name: str, folder: str, steps: int) -> None:
    """For the other side: the same weights to start from, and the rows of the same batches, unmasked."""
    import numpy as np
    from safetensors.torch import save_file

    shape = SHAPES[name]
    config = shape.config(OBJECTIVES["mlm"], "float32", "off", steps)
    artifacts = artifacts_of(shape, steps)
    settings, weights = to_hf(new_model(config, artifacts), 0)
    settings.save_pretrained(folder)
    save_file(weights, f"{folder}/model.safetensors", metadata={"format": "pt"})
    batches = train_batches(config, artifacts)
    rows = []
    for step in range(steps):
        batch = batches.batch(step)
        ids = batch.input_ids.copy()
        labelled = batch.labels >= 0
        np.put_along_axis(ids, batch.masked, np.where(labelled, batch.labels, ids[0, 0]), axis=1)
        rows.append(ids)
    np.save(f"{folder}/rows.npy", np.concatenate(rows))


def _ends(losses: torch.Tensor) -> list[float]:
    """The first and the last loss."""
    return [round(value, 4) for value in losses[[0, -1]].tolist()]
