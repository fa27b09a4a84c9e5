"""Entry: ``accelerate launch [flags] -m pretrain.adjust CONFIG --out DIR [--model MODEL] [--set key=value …]``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path


def main(arguments: list[str] | None = None) -> int:
    """Read the arguments and adjust; returns the exit code."""
    parser = argparse.ArgumentParser(prog="pretrain.adjust", description="Adjust a model on word-aligned text.")
    parser.add_argument("config", type=Path, help="YAML file, or the name of an adjustment that comes along")
    parser.add_argument("--model", help="name, folder or run (default: the one that the config names)")
    parser.add_argument("--out", type=Path, required=True, help="output folder; an unfinished adjustment goes on")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="override a key of the config")
    options = parser.parse_args(arguments)
    from pretrain.adjust.command import adjust_command
    from synthlang.errors import InputError

    try:
        return adjust_command(options.model, options.config, options.out, options.set)
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    raise SystemExit(main())
