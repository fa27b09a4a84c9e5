"""``python -m pretrain.bench``: measure our training step, beside that of others, and print JSON."""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from synthlang.files import write_json

SIDES = ("ours", "theirs")


def main(arguments: list[str] | None = None) -> int:
    """Measure what the arguments say; returns the exit code."""
    options = _parser().parse_args(arguments)
    if options.side:
        _run_side(options)
        return 0
    if min(options.repeats, options.warmup) < 1 or options.steps <= options.warmup:
        _parser().error("--repeats and --warmup must be at least 1, --steps more than --warmup")
    result: dict[str, Any] = {"settings": _settings(options)}
    if options.against:
        result |= _against(options)
    if options.objectives or not options.against:
        result["objectives"] = _objectives(options)
    print(json.dumps(result, indent=2))
    if options.out:
        write_json(options.out, result)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m pretrain.bench", description=__doc__)
    parser.add_argument("--against", choices=["hf"], help="transformers' Trainer on the same model, data and batch")
    parser.add_argument("--objectives", action="store_true", help="each objective beside MLM")
    parser.add_argument("--shape", choices=["v16k", "quickstart", "align_mlm", "tiny"], default="v16k")
    parser.add_argument(
        "--precision",
        nargs="+",
        choices=["float32", "bfloat16"],
        default=["float32", "bfloat16"],
        help="of both sides; of two, the ratio is of our faster one and of their first one",
    )
    parser.add_argument("--compile", choices=["auto", "on", "off"], default="auto", help="torch.compile of our side")
    parser.add_argument("--repeats", type=int, default=3, help="runs of each side, which take turns")
    parser.add_argument("--steps", type=int, default=13, help="of a run")
    parser.add_argument("--warmup", type=int, default=3, help="steps of a run that do not count")
    parser.add_argument("--out", type=Path, help="write the JSON to this file too")
    parser.add_argument("--side", choices=["start", *SIDES], help=argparse.SUPPRESS)
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    parser.add_argument("--objective", default="mlm", help=argparse.SUPPRESS)
    return parser


def _run_side(options: argparse.Namespace) -> None:
    """In a process of its own: one run, its measurements as one line of JSON."""
    precision, warmup, steps = options.precision[0], options.warmup, options.steps
    if options.side == "start":
        from pretrain.bench.ours import write_start

        write_start(options.shape, options.folder, steps)
        found: dict[str, Any] = {}
    elif options.side == "ours":
        from pretrain.bench.ours import run_ours

        found = run_ours(options.shape, options.objective, precision, options.compile, warmup, steps)
    else:
        from pretrain.bench.theirs import run_theirs

        found = run_theirs(options.shape, options.folder, precision, warmup, steps)
    print(json.dumps(found))


def _side(options: argparse.Namespace, side: str, precision: str, *more: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "pretrain.bench", "--side", side, "--shape", options.shape]
    command += ["--precision", precision, "--compile", options.compile, "--steps", str(options.steps)]
    command += ["--warmup", str(options.warmup), *more]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603  our own interpreter and code
    if done.returncode:
        raise RuntimeError(f"{side} ended with code {done.returncode}:\n{done.stderr[-2000:]}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def _against(options: argparse.Namespace) -> dict[str, Any]:
    """Both sides take turns; the ratio is that of the medians, also for each precision by itself."""
    with tempfile.TemporaryDirectory() as folder:
        _side(options, "start", "float32", "--folder", folder)
        runs: dict[tuple[str, str], list[dict[str, Any]]] = {}
        for _ in range(options.repeats):
            for precision in options.precision:
                for side in SIDES:
                    runs.setdefault((side, precision), []).append(_side(options, side, precision, "--folder", folder))
    medians = {key: _median(found) | {"precision": key[1]} for key, found in runs.items()}
    _add_flops(options, medians)
    # what a user gets: of ours the faster precision, of the stock script its default, unless one was asked for
    ours = max((medians["ours", p] for p in options.precision), key=lambda found: float(found["tokens_per_second"]))
    theirs = medians["theirs", options.precision[0]]
    both = {p: {side: medians[side, p] for side in SIDES} for p in options.precision}
    same = {p: sides | _ratios(sides["ours"], sides["theirs"]) for p, sides in both.items()}
    return {"ours": ours, "theirs": theirs, **_ratios(ours, theirs), "same_precision": same}


def _add_flops(options: argparse.Namespace, medians: dict[tuple[str, str], dict[str, Any]]) -> None:
    """Operations per second of each side, each with its own count; on a known GPU the share of its bfloat16 peak."""
    settings = _settings(options)
    for (side, _), found in medians.items():
        count = settings["flops_per_token"]["ours" if side == "ours" else "all_positions"]
        found["flops_per_second"] = found["tokens_per_second"] * count
        if settings["peak_flops"]:
            found["share_of_peak"] = found["flops_per_second"] / settings["peak_flops"]


def _objectives(options: argparse.Namespace) -> dict[str, Any]:
    """Each objective's step beside that of MLM, which take turns."""
    from pretrain.bench.shapes import OBJECTIVES

    found: dict[str, Any] = {}
    for precision in options.precision:
        runs: dict[str, list[dict[str, Any]]] = {name: [] for name in OBJECTIVES}
        for _ in range(options.repeats):
            for name in OBJECTIVES:
                runs[name].append(_side(options, "ours", precision, "--objective", name))
        medians = {name: _median(each) for name, each in runs.items()}
        for median in medians.values():
            median["speed_by_that_of_mlm"] = median["tokens_per_second"] / medians["mlm"]["tokens_per_second"]
            median["cpu_speed_by_that_of_mlm"] = medians["mlm"]["step_cpu_seconds"] / median["step_cpu_seconds"]
        found[precision] = medians
    return found


def _median(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """The median of each number over runs; the speed of each run; the rest of the first."""
    found = dict(runs[0])
    for key, value in found.items():
        if isinstance(value, float):
            found[key] = statistics.median(run[key] for run in runs)
    return found | {"runs_tokens_per_second": [run["tokens_per_second"] for run in runs]}


def _ratios(ours: dict[str, Any], theirs: dict[str, Any]) -> dict[str, Any]:
    """Ours by theirs; ``cpu_time_ratio`` is that of processor time, which other programs on the machine touch less."""
    memory = "peak_gpu_memory_mb" if "peak_gpu_memory_mb" in ours else "peak_memory_mb"
    return {
        "ratio": ours["tokens_per_second"] / theirs["tokens_per_second"],
        "cpu_time_ratio": theirs["step_cpu_seconds"] / ours["step_cpu_seconds"],
        "memory_ratio": ours[memory] / theirs[memory],
    }


def _settings(options: argparse.Namespace) -> dict[str, Any]:
    """What was measured where."""
    import torch
    import transformers

    from pretrain.bench.shapes import SHAPES, peak_of

    shape = SHAPES[options.shape]
    gpu = torch.cuda.get_device_name() if torch.cuda.is_available() else None
    ours = shape.flops_per_token()
    return {
        "shape": options.shape,
        "model": {"ids": shape.ids, **shape.model.model_dump(exclude_none=True)},
        "batch": {"rows": shape.rows, "length": shape.length, "mask_rate": shape.mask_rate},
        "compile": options.compile,
        "device": gpu or f"cpu, {torch.get_num_threads()} threads of {os.cpu_count()}",
        "versions": {"torch": torch.__version__, "transformers": transformers.__version__},
        "flops_per_token": {
            "ours": ours,
            "all_positions": shape.flops_per_token(all_positions=True),
            "counted": "2mkn of each matrix product of forward, three times (backward has two for one); nothing else",
        },
        "peak_flops": peak_of(gpu) if gpu else None,
    }


if __name__ == "__main__":
    sys.exit(main())
