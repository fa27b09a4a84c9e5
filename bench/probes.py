"""``python -m probes.bench``: fine-tuning beside transformers' Trainer on the same model and data; prints JSON.

With ``--probe`` it is a probe at full size, beside the bare work in it.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from functools import partial
from pathlib import Path

from bench import probing, tuning
from bench.measured import Figures, call, in_turns, medians, tell, where
from bench.probing import PROBES

SIDES = ("ours", "theirs")
DATA = "builtin:mini-english?types=2000&sentences=20000"


def main(arguments: list[str] | None = None) -> int:
    """Measure what the arguments say; returns the exit code."""
    options = _parser().parse_args(arguments)
    if options.side:
        sides = PROBES[options.probe].sides if options.probe else tuning.SIDES
        if options.probe:
            options.n = options.n or PROBES[options.probe].n
        print(json.dumps(sides[options.side](options)))
        return 0
    if min(options.repeats, options.items, options.epochs, options.rows, options.d, options.n or 1) < 1:
        _parser().error("--repeats, --items, --epochs, --rows, --n and --d must be at least 1")
    asked = sys.argv[1:] if arguments is None else arguments
    tell(_probe(options, asked) if options.probe else _task(options, asked), options.out)
    return 0


def _probe(options: argparse.Namespace, asked: list[str]) -> Figures:
    """The sides of a probe and what they are to each other."""
    probe = PROBES[options.probe]
    sides = {side: partial(call, "bench.probes", [*asked, "--side", side], quiet=False) for side in probe.sides}
    runs = in_turns(sides, options.repeats)
    found = {side: medians(held) for side, held in runs.items()}
    settings = {key: getattr(options, key) for key in ("probe", "n", "d", "threads", "repeats")}
    settings |= {"n": options.n or probe.n, **where(options.threads)}
    return {"about": probe.about, "settings": settings, **probe.compare(found), **found, "runs": runs}


def _task(options: argparse.Namespace, asked: list[str]) -> Figures:
    """Fine-tuning: ours beside theirs."""
    with tempfile.TemporaryDirectory() as folder:
        asked = [*asked, "--folder", folder, "--side"]
        call("bench.probes", [*asked, "start"])
        runs = in_turns({side: partial(call, "bench.probes", [*asked, side]) for side in SIDES}, options.repeats)
    found = {side: medians(held) for side, held in runs.items()}
    ours, theirs = found["ours"], found["theirs"]
    settings = {key: value for key, value in vars(options).items() if key not in ("side", "folder", "out")}
    return {
        "settings": {**settings, **where(options.threads)},
        **found,
        "ratio": ours["items_per_second"] / theirs["items_per_second"],
        "cpu_time_ratio": theirs["cpu_seconds"] / ours["cpu_seconds"],
        "runs": {side: [round(run["items_per_second"], 1) for run in held] for side, held in runs.items()},
    }


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m probes.bench", description=__doc__)
    parser.add_argument("--probe", choices=[*PROBES], help="a probe instead of fine-tuning")
    parser.add_argument("--n", type=int, help="rows of each side of a probe (default: its full size)")
    parser.add_argument("--d", type=int, default=512, help="size of the vectors of a probe")
    probing.add_arguments(parser)
    parser.add_argument("--task", choices=["pos", "ner", "nli"], default="pos")
    parser.add_argument("--data", default=DATA, help="what --train of synthlang transfer takes")
    parser.add_argument("--items", type=int, default=2000, help="training items; a tenth to choose by, a fifth to test")
    sizes = {"epochs": 3, "rows": 32, "length": 128, "layers": 4, "hidden": 256, "vocabulary": 8000}
    for name, default in sizes.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--rate", type=float, default=5e-4)
    parser.add_argument("--precision", choices=["float32", "bfloat16"], default="float32", help="of both sides")
    parser.add_argument("--threads", type=int, help="of both sides (default: torch's)")
    parser.add_argument("--repeats", type=int, default=3, help="runs of each side, which take turns")
    parser.add_argument("--out", type=Path, help="write the JSON to this file too")
    parser.add_argument("--side", help=argparse.SUPPRESS)
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    return parser


if __name__ == "__main__":
    sys.exit(main())
