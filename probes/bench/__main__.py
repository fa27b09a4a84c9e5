"""``python -m probes.bench``: fine-tuning beside transformers' Trainer on the same model and data; prints JSON.

With ``--probe`` it is a probe at full size, beside the bare work in it.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from probes.bench import cka
from synthlang.files import write_json

SIDES = ("ours", "theirs")
DATA = "builtin:mini-english?types=2000&sentences=20000"


def main(arguments: list[str] | None = None) -> int:
    """Measure what the arguments say; returns the exit code."""
    options = _parser().parse_args(arguments)
    if options.side:
        print(json.dumps(_one_side(options)))
        return 0
    if min(options.repeats, options.items, options.epochs, options.rows, options.d, options.n or 1) < 1:
        _parser().error("--repeats, --items, --epochs, --rows, --n and --d must be at least 1")
    asked = sys.argv[1:] if arguments is None else arguments
    result = _probe(options, asked) if options.probe else _task(options, asked)
    print(json.dumps(result, indent=2))
    if options.out:
        write_json(options.out, result)
    return 0


def _probe(options: argparse.Namespace, asked: list[str]) -> dict[str, Any]:
    """The sides of a probe and what they are to each other."""
    from probes.bench.probes import PROBES, medians

    probe = PROBES[options.probe]
    options.n = options.n or probe.n
    runs: dict[str, list[dict[str, Any]]] = {side: [] for side in probe.sides}
    for _ in range(options.repeats):
        for side in probe.sides:
            runs[side].append(_call(asked, side, quiet=False))
    found = {side: medians(held) for side, held in runs.items()}
    kept = {"probe", "n", "d", "threads", "repeats"}
    every = _settings(options)
    settings = {key: value for key, value in every.items() if key in kept | {"device", "versions"}}
    return {"about": probe.about, "settings": settings, **probe.compare(found), **found, "runs": runs}


def _task(options: argparse.Namespace, asked: list[str]) -> dict[str, Any]:
    """Fine-tuning: ours beside theirs."""
    with tempfile.TemporaryDirectory() as folder:
        _call([*asked, "--folder", folder], "start")
        runs: dict[str, list[dict[str, Any]]] = {side: [] for side in SIDES}
        for _ in range(options.repeats):  # the sides take turns
            for side in SIDES:
                runs[side].append(_call([*asked, "--folder", folder], side))
    found = {side: {key: statistics.median(run[key] for run in held) for key in held[0]} for side, held in runs.items()}
    ours, theirs = found["ours"], found["theirs"]
    return {
        "settings": _settings(options),
        **found,
        "ratio": ours["items_per_second"] / theirs["items_per_second"],
        "cpu_time_ratio": theirs["cpu_seconds"] / ours["cpu_seconds"],
        "runs": {side: [round(run["items_per_second"], 1) for run in held] for side, held in runs.items()},
    }


def _one_side(options: argparse.Namespace) -> dict[str, Any]:
    """In a process of its own: one run."""
    if options.probe:
        from probes.bench.probes import PROBES

        options.n = options.n or PROBES[options.probe].n
        return PROBES[options.probe].sides[options.side](options)
    if options.side == "start":
        from probes.bench.job import write_model

        write_model(options)
        return {}
    from probes.bench import sides

    return sides.run_ours(options) if options.side == "ours" else sides.run_theirs(options)


def _call(asked: list[str], side: str, quiet: bool = True) -> dict[str, Any]:
    """What a side prints; what it says beside that is shown unless ``quiet``."""
    command = [sys.executable, "-m", "probes.bench", *asked, "--side", side]
    errors = subprocess.PIPE if quiet else None
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=errors, text=True, check=False)  # noqa: S603  our own code
    if done.returncode:
        raise RuntimeError(f"{side} ended with code {done.returncode}:\n{(done.stderr or '')[-2000:]}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m probes.bench", description=__doc__)
    parser.add_argument("--probe", choices=["alignment", "retrieval", "cka"], help="a probe instead of fine-tuning")
    parser.add_argument("--n", type=int, help="rows of each side of a probe (default: its full size)")
    parser.add_argument("--d", type=int, default=512, help="size of the vectors of a probe")
    cka.add_arguments(parser)
    parser.add_argument("--task", choices=["pos", "ner", "nli"], default="pos")
    parser.add_argument("--data", default=DATA, help="what --train of synthlang transfer takes")
    parser.add_argument("--items", type=int, default=2000, help="training items; a tenth to choose by, a fifth to test")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--rows", type=int, default=32)
    parser.add_argument("--rate", type=float, default=5e-4)
    parser.add_argument("--length", type=int, default=128)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--hidden", type=int, default=256)
    parser.add_argument("--vocabulary", type=int, default=8000)
    parser.add_argument("--precision", choices=["float32", "bfloat16"], default="float32", help="of both sides")
    parser.add_argument("--threads", type=int, help="of both sides (default: torch's)")
    parser.add_argument("--repeats", type=int, default=3, help="runs of each side, which take turns")
    parser.add_argument("--out", type=Path, help="write the JSON to this file too")
    parser.add_argument("--side", help=argparse.SUPPRESS)
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    return parser


def _settings(options: argparse.Namespace) -> dict[str, Any]:
    """What was measured where."""
    import torch
    import transformers

    gpu = torch.cuda.get_device_name() if torch.cuda.is_available() else None
    hidden = ("side", "folder", "out")
    return {
        **{key: value for key, value in vars(options).items() if key not in hidden},
        "device": gpu or f"cpu, {options.threads or torch.get_num_threads()} threads",
        "versions": {"torch": torch.__version__, "transformers": transformers.__version__},
    }


if __name__ == "__main__":
    sys.exit(main())
