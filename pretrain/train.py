"""The entry of ``accelerate launch [flags] -m pretrain.train CONFIG --out RUN [--set key=value …]``.

The same run as ``synthlang pretrain``. The file also starts by path (pods that cannot pass
``-m`` do so): ``accelerate launch … pretrain/train.py CONFIG --out RUN``.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path


def main(arguments: list[str] | None = None) -> int:
    """Read the arguments and run; returns the exit code."""
    parser = argparse.ArgumentParser(prog="pretrain.train", description="Pretrain a bilingual model from a config.")
    parser.add_argument("config", type=Path, help="YAML file, or the name of a run of the catalogue")
    parser.add_argument("--out", type=Path, required=True, help="run folder; an unfinished run in it goes on")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="override a key of the config")
    options = parser.parse_args(arguments)
    from synthlang.errors import InputError

    try:
        return run(options.config, options.out, options.set)
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


def run(config_path: Path, out: Path, overrides: list[str]) -> int:
    """Load the config, run it with progress, say where the result is."""

    from pretrain.config import PretrainConfig
    from pretrain.devices import process_state
    from pretrain.run import pretrain
    from pretrain.stopping import EXIT_CODE, Stopped, on_sigterm
    from synthlang.config import load
    from synthlang.progress import Display, silent, unheard

    config = load(PretrainConfig, config_path, overrides, "runs")
    with Display() as display, on_sigterm() as stop:
        is_main = process_state().is_main_process
        report, say = (display.report, display.message) if is_main else (silent, unheard)
        try:
            pretrain(config, out, report=report, say=say, stop=stop)
        except Stopped as stopped:
            if is_main:
                display.message(f"stopped at step {stopped} of {config.steps}, saved; run the same command to go on")
            return EXIT_CODE
        if is_main:
            display.message(f"run folder: {out}  ·  models: {out / 'export'}")
    return 0


if __name__ == "__main__":
    # started by path, Python puts this folder first; its modules must not hide others
    sys.path[:] = [p for p in sys.path if Path(p or ".").resolve() != Path(__file__).resolve().parent]
    raise SystemExit(main())
