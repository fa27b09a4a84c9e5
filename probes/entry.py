"""Where the command ``synthlang`` starts: Ctrl-C is one line from the first import on."""

from __future__ import annotations

import sys


def main() -> None:
    """Import and run the command."""
    try:
        from probes.cli import main as command

        command()
    except KeyboardInterrupt:
        print("stopped; run the same command again", file=sys.stderr)
        raise SystemExit(130) from None
