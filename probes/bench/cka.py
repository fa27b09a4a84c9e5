"""CKA at full size beside the bare products of the same states: time as ratios, and the memory of the whole process."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from pretrain.bench.timing import peak_memory_mb
from probes.measures.cka.similarity import CKA, MEMORY

BATCH = 128  # sentences that a model gives at once
BLOCK = 1024  # rows of the bare products at once


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What ``run`` takes; the defaults are the full size."""
    parser.add_argument("--cka-layers", type=int, default=9, help="of each of both models")
    parser.add_argument("--cka-sentences", type=int, default=10_000)
    parser.add_argument("--cka-width", type=int, default=768)
    parser.add_argument("--cka-memory", type=int, default=MEMORY // 2**20, help="MB that its sums may take")


def run_options(options: argparse.Namespace) -> dict[str, Any]:
    """``run`` with the command's arguments."""
    memory = options.cka_memory * 2**20
    return run(options.cka_layers, options.cka_sentences, options.cka_width, memory)


def run(layers: int, sentences: int, width: int, memory: int = MEMORY) -> dict[str, Any]:
    """Seconds of CKA on random states, ratios to the bare products, and peak memory in MB. In a process of its own.

    The bare products are Σ X_lᵀ Y_r of all layers² pairs, uncentred, as one product of matrices a block, in float32 and
    in float64. CKA needs 2 · layers more, of every layer with itself, so its ratio to those in float64 is at least
    1 + 2 / layers. ``cpu`` are ratios of the time of all cores, which other work on the machine changes less.
    No time has the making of the states in it. The peak is that before the bare products.
    """
    ours: dict[str, float] = {"wall": 0.0, "cpu": 0.0}
    gather = CKA(layers, layers, width, width, memory=memory)
    for left, right in _states(layers, sentences, width):
        with _timed(ours):
            gather.update(left, right)
    with _timed(ours):
        result = gather.result()
    peak = peak_memory_mb()
    del gather
    bare = {dtype: _bare(layers, sentences, width, dtype) for dtype in (torch.float32, torch.float64)}
    ratios = {
        str(dtype).removeprefix("torch."): {kind: round(ours[kind] / found[kind], 2) for kind in ours}
        for dtype, found in bare.items()
    }
    return {
        "layers": layers,
        "sentences": sentences,
        "width": width,
        "memory_mb": memory // 2**20,
        "seconds": round(ours["wall"], 2),
        "ratio_to_products": ratios,
        "peak_memory_mb": round(peak, 1),
        "biased_average": float(result.biased.diagonal().mean()),
        "debiased_average": None if result.debiased is None else float(result.debiased.diagonal().mean()),
    }


def _states(layers: int, sentences: int, width: int, rows: int = BATCH) -> Iterator[tuple[Tensor, Tensor]]:
    """The same states each time, [layers, n, width] of both sides; half of each is a common signal."""
    generator = torch.Generator().manual_seed(0)
    for start in range(0, sentences, rows):
        shape = (layers, min(rows, sentences - start), width)
        common = torch.randn(shape[1:], generator=generator)
        left, right = (torch.randn(shape, generator=generator).add_(common).add_(5.0) for _ in range(2))
        yield left, right


def _bare(layers: int, sentences: int, width: int, dtype: torch.dtype) -> dict[str, float]:
    taken = {"wall": 0.0, "cpu": 0.0}
    products = torch.zeros(layers * width, layers * width, dtype=dtype)
    for sides in _states(layers, sentences, width, BLOCK):
        left, right = (side.transpose(0, 1).flatten(1).to(dtype) for side in sides)
        with _timed(taken):
            products.addmm_(left.T, right)
    return taken


@contextmanager
def _timed(taken: dict[str, float]) -> Iterator[None]:
    """Add what the block takes."""
    wall, cpu = time.perf_counter(), time.process_time()
    yield
    taken["wall"] += time.perf_counter() - wall
    taken["cpu"] += time.process_time() - cpu
