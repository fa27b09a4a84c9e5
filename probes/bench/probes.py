"""Probes beside the bare work that none can do without, on random data; each side runs in a process of its own.

A probe of ``PROBES`` has sides, functions of the command's arguments that return figures, and ``compare``, which makes
ratios of the sides' medians.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from pretrain.alignment import alignment
from pretrain.bench.timing import peak_memory_mb
from pretrain.nearest import nearest
from pretrain.nearest_lists import TILE, Matrix
from probes.bench import cka
from probes.bench.job import use_threads
from synthlang.progress import Display

Figures = dict[str, Any]
NOISE = 3.0
WRITTEN = 8192  # rows that are drawn and written at once


@dataclass(frozen=True)
class Probe:
    """``about`` says what is compared; ``n`` is the number of rows where the arguments name none (0: no such thing)."""

    sides: Mapping[str, Callable[[argparse.Namespace], Figures]]
    compare: Callable[[Mapping[str, Figures]], Figures]
    about: str
    n: int = 0


def medians(runs: list[Figures]) -> Figures:
    """Of each figure, also of those within figures."""
    first = runs[0]
    return {
        key: medians([run[key] for run in runs])
        if isinstance(value, dict)
        else statistics.median(run[key] for run in runs)
        for key, value in first.items()
    }


def measured(work: Callable[[], Figures]) -> Figures:
    """What the work returns, with its time and the peak memory of the process."""
    began = time.perf_counter(), time.process_time()
    found = work()
    seconds, cpu = time.perf_counter() - began[0], time.process_time() - began[1]
    return {"seconds": seconds, "cpu_seconds": cpu, "peak_memory_mb": peak_memory_mb(), **found}


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


def _cka(options: argparse.Namespace) -> Figures:
    use_threads(options.threads)
    return cka.run_options(options)


ABOUT = "ours: both directions, cosine and CSLS; bare: the products X Yᵀ and Y Xᵀ alone, which two directions need"
PROBES = {
    "alignment": Probe({"ours": _alignment, "bare": _products}, _against_products, ABOUT, 40_000),
    "retrieval": Probe({"ours": _retrieval, "bare": _products}, _against_products, ABOUT, 200_000),
    "cka": Probe({"ours": _cka}, lambda _: {}, "ours: every layer against every layer, with its ratios to products"),
}
