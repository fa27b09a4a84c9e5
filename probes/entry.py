"""Entry point of the command ``synthlang``. Ctrl-C prints one line, even while libraries are imported."""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType

STOPPED = "stopped; run the same command again to continue"


def main() -> None:
    """Import and run the command. Ctrl-C prints one line and exits with code 130."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _interrupt)
    try:
        from probes.cli import main as command

        command()
    except KeyboardInterrupt:
        print(STOPPED, file=sys.stderr)
        raise SystemExit(130) from None


def _interrupt(_number: int, frame: FrameType | None) -> None:
    """Handle Ctrl-C. During an import, exit at once, because some libraries would catch an exception."""
    if _is_importing(frame) and not _has_children():
        os.write(2, f"{STOPPED}\n".encode())
        os._exit(130)
    raise KeyboardInterrupt


def _is_importing(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename == "<frozen importlib._bootstrap>":
            return True
        frame = frame.f_back
    return False


def _has_children() -> bool:
    """Return whether worker processes are running, which must be stopped first."""
    processes = sys.modules.get("multiprocessing.process")
    return bool(processes and processes.active_children())
