"""``python -m probes.bench``: fine-tuning beside transformers' Trainer on the same model and data; prints JSON."""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from synthlang.files import write_json

SIDES = ("ours", "theirs")
DATA = "builtin:mini-english?types=2000&sentences=20000"


def main(arguments: list[str] | None = None) -> int:
    """Measure what the arguments say; returns the exit code."""
    options = _parser().parse_args(arguments)
    if options.side:
        print(json.dumps(_one_side(options)))
        return 0
    if min(options.repeats, options.items, options.epochs, options.rows) < 1:
        _parser().error("--repeats, --items, --epochs and --rows must be at least 1")
    asked = sys.argv[1:] if arguments is None else arguments
    with tempfile.TemporaryDirectory() as folder:
        _call(asked, "start", folder)
        runs: dict[str, list[dict[str, Any]]] = {side: [] for side in SIDES}
        for _ in range(options.repeats):  # the sides take turns
            for side in SIDES:
                runs[side].append(_call(asked, side, folder))
    found = {side: {key: statistics.median(run[key] for run in held) for key in held[0]} for side, held in runs.items()}
    ours, theirs = found["ours"], found["theirs"]
    result = {
        "settings": _settings(options),
        **found,
        "ratio": ours["items_per_second"] / theirs["items_per_second"],
        "cpu_time_ratio": theirs["cpu_seconds"] / ours["cpu_seconds"],
        "runs": {side: [round(run["items_per_second"], 1) for run in held] for side, held in runs.items()},
    }
    print(json.dumps(result, indent=2))
    if options.out:
        write_json(options.out, result)
    return 0


def _one_side(options: argparse.Namespace) -> dict[str, Any]:
    """In a process of its own: one run."""
    if options.side == "start":
        from probes.bench.job import write_model

        write_model(options)
        return {}
    from probes.bench import sides

    return sides.run_ours(options) if options.side == "ours" else sides.run_theirs(options)


def _call(asked: list[str], side: str, folder: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "probes.bench", *asked, "--side", side, "--folder", folder]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603  our own interpreter and code
    if done.returncode:
        raise RuntimeError(f"{side} ended with code {done.returncode}:\n{done.stderr[-2000:]}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m probes.bench", description=__doc__)
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
    parser.add_argument("--side", choices=["start", *SIDES], help=argparse.SUPPRESS)
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
