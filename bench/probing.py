"""Probes beside the bare work that none can do without, on random data; each side runs in a process of its own.

A probe of ``PROBES`` has sides, functions of the command's arguments that return figures, and ``compare``, which makes
ratios of the sides' medians.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from bench.measured import Figures, measured, peak_memory_mb
from bench.tuning import use_threads
from pretrain.alignment import alignment
from pretrain.nearest import nearest
from pretrain.nearest_lists import TILE, Matrix
from probes.measures.cka.similarity import CKA, MEMORY
from synthlang.progress import Display

NOISE = 3.0
WRITTEN = 8192  # rows that are drawn and written at once
BATCH = 128  # sentences that a model gives at once
BLOCK = 1024  # rows of the bare products at once


@dataclass(frozen=True)
class Probe:
    """``about`` says what is compared; ``n`` is the number of rows where the arguments name none (0: no such thing)."""

    sides: Mapping[str, Callable[[argparse.Namespace], Figures]]
    compare: Callable[[Mapping[str, Figures]], Figures]
    about: str
    n: int = 0


def _planted(options: argparse.Namespace) -> tuple[torch.Tensor, torch.Tensor]:
    """Rows [n, d] and noisy copies of them."""
    generator = torch.Generator().manual_seed(0)
    rows = torch.randn(options.n, options.d, generator=generator)
    return rows, torch.randn(options.n, options.d, generator=generator).mul_(NOISE).add_(rows)


def _alignment(options: argparse.Namespace) -> Figures:
    """Both directions, cosine and CSLS."""
    use_threads(options.threads)
    rows, copies = _planted(options)

    def work() -> Figures:
        found = alignment(rows, copies, torch.zeros(len(rows), dtype=torch.bool)).all
        assert found is not None, "there are rows"
        return {"cosine": found.cosine.mean, "csls": found.csls.mean}

    return measured(work)


def _retrieval(options: argparse.Namespace) -> Figures:
    """The same of contextual words: float16 files that are mapped, and every fourth word is linked to none."""
    use_threads(options.threads)
    with tempfile.TemporaryDirectory() as folder, Display() as display:
        sides = [_mapped(options, Path(folder), side) for side in (0, 1)]
        linked = torch.arange(options.n)[torch.arange(options.n) % 4 > 0]
        pairs = torch.stack([linked, linked], 1)

        def work() -> Figures:
            found = nearest(sides[0], sides[1], pairs, report=display.report)
            ways = found.forward, found.backward
            return {
                "cosine": 50 * sum(float(way.cosine.credit.mean()) for way in ways),
                "csls": 50 * sum(float(way.csls.credit.mean()) for way in ways),
            }

        return measured(work)


def _mapped(options: argparse.Namespace, folder: Path, side: int) -> Matrix:
    """``_planted`` as a file of one side, written part by part."""
    path = folder / f"{side}.npy"
    shape = (options.n, options.d)
    held = np.lib.format.open_memmap(path, mode="w+", dtype=np.float16, shape=shape)
    for start in range(0, options.n, WRITTEN):
        generator = torch.Generator().manual_seed(start)
        rows = torch.randn(len(held[start : start + WRITTEN]), options.d, generator=generator)
        noise = torch.randn(rows.shape, generator=generator).mul_(NOISE) if side else 0
        held[start : start + WRITTEN] = (rows + noise).numpy()
    held.flush()
    del held
    mapped: Matrix = np.load(path, mmap_mode="r", allow_pickle=False)
    return mapped


def _products(options: argparse.Namespace) -> Figures:
    """X Yᵀ and Y Xᵀ, tile by tile in the search's own size of tile, with nothing done to them."""
    use_threads(options.threads)
    x, y = _planted(options)
    tile = torch.empty(min(TILE, options.n) ** 2)

    def product(left: torch.Tensor, right: torch.Tensor) -> Figures:
        for start in range(0, len(left), TILE):
            rows = left[start : start + TILE]
            for first in range(0, len(right), TILE):
                columns = right[first : first + TILE]
                torch.mm(rows, columns.T, out=tile[: len(rows) * len(columns)].view(len(rows), len(columns)))
        return {}

    def work() -> Figures:
        one = measured(lambda: product(x, y))
        product(y, x)
        return {"seconds_one": one["seconds"], "cpu_seconds_one": one["cpu_seconds"]}

    return measured(work)


def _against_products(found: Mapping[str, Figures]) -> Figures:
    ours, bare = found["ours"], found["bare"]
    return {
        "ratio": ours["seconds"] / bare["seconds"],
        "cpu_time_ratio": ours["cpu_seconds"] / bare["cpu_seconds"],
        "ratio_to_one_product": ours["seconds"] / bare["seconds_one"],
        "cpu_time_ratio_to_one_product": ours["cpu_seconds"] / bare["cpu_seconds_one"],
        "peak_memory_mb": ours["peak_memory_mb"],
    }


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What ``cka`` takes; the defaults are the full size."""
    parser.add_argument("--cka-layers", type=int, default=9, help="of each of both models")
    parser.add_argument("--cka-sentences", type=int, default=10_000)
    parser.add_argument("--cka-width", type=int, default=768)
    parser.add_argument("--cka-memory", type=int, default=MEMORY // 2**20, help="MB that its sums may take")


def run_cka(options: argparse.Namespace) -> Figures:
    """``cka`` with the command's arguments."""
    use_threads(options.threads)
    memory = options.cka_memory * 2**20
    return cka(options.cka_layers, options.cka_sentences, options.cka_width, memory)


def cka(layers: int, sentences: int, width: int, memory: int = MEMORY) -> Figures:
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


ABOUT = "ours: both directions, cosine and CSLS; bare: the products X Yᵀ and Y Xᵀ alone, which two directions need"
PROBES = {
    "alignment": Probe({"ours": _alignment, "bare": _products}, _against_products, ABOUT, 40_000),
    "retrieval": Probe({"ours": _retrieval, "bare": _products}, _against_products, ABOUT, 200_000),
    "cka": Probe({"ours": run_cka}, lambda _: {}, "ours: every layer against every layer, with its ratios to products"),
}
