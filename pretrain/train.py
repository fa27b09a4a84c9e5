"""Entry point of ``accelerate launch [flags] -m pretrain.train CONFIG --out RUN [--set key=value …]``.

This is ``synthlang pretrain`` for several processes. Where a launcher cannot pass ``-m``, the file is started by its
path: ``accelerate launch … pretrain/train.py CONFIG --out RUN``.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pretrain.stopping import Flag
    from synthlang.progress import Report, Say


def main(arguments: list[str] | None = None) -> int:
    """Read the arguments, run the pretraining and return the exit code.

    The exit codes are:

        0     the run is finished
        2     the input is wrong, or the output cannot be written
        130   Ctrl-C ended the process
        143   SIGTERM ended the process

    Args:
        arguments: The command line (default: the arguments of the process).

    Raises:
        SystemExit: An option is wrong (code 2), or ``--help`` is given (code 0).
    """
    from synthlang.files import user_path

    parser = arguments_of("pretrain.train", "runs", "Pretrain a model from a config.")
    parser.add_argument(
        "--out", type=user_path, metavar="PATH", help="Run folder (default: runs/NAME). An unfinished run continues."
    )
    return exit_code(
        lambda given: run(given.config, given.out, given.set, given.smoke, given.threads), parser.parse_args(arguments)
    )


def arguments_of(prog: str, kind: str, description: str) -> argparse.ArgumentParser:
    """Return the parser of a command for ``accelerate launch``, with a config of the ``kind`` in the catalogue."""
    from synthlang.files import user_path

    parser = argparse.ArgumentParser(prog=prog, description=description)
    parser.add_argument("config", type=user_path, help=f"YAML file, or name from synthlang configs {kind}.")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="New value for a config key. Dots separate nested keys (default: none; repeatable).",
    )
    parser.add_argument(
        "--threads",
        type=int,
        metavar="N",
        help="Number of CPU threads per process (default: OMP_NUM_THREADS, else chosen by model width and cores).",
    )
    parser.add_argument(
        "--smoke",
        action="store_true",
        help="Smoke test: tiny settings, done in seconds, written to OUT-smoke. Its scores mean nothing.",
    )
    return parser


def exit_code(command: Callable[[argparse.Namespace], int], given: argparse.Namespace) -> int:
    """Run a command with the arguments ``given`` and return its exit code, or 2 for wrong input and 130 for Ctrl-C.

    ``set_environment`` is called first, before libraries are loaded. The message of an error goes to stderr.
    """
    from pretrain.threads import set_environment
    from synthlang.errors import InputError

    set_environment()
    try:
        return command(given)
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("stopped; run the same command again to continue", file=sys.stderr)
        return 130


def run(
    config_path: Path, out: Path | None, overrides: list[str], smoke: bool = False, threads: int | None = None
) -> int:
    """Pretrain a model from a config, and show the progress and the run folder.

    Args:
        config_path: A YAML file, or a name of the catalogue.
        out: The run folder (None: ``runs/NAME``).
        overrides: New values as KEY=VALUE.
        smoke: True to try the run with small settings, in ``OUT-smoke``.
        threads: Number of threads (None: OMP_NUM_THREADS, or chosen by model width and cores).

    Returns:
        The exit code: 0, or 143 after SIGTERM.

    Raises:
        InputError: The config is wrong, or the run cannot start or continue (see ``pretrain.run.pretrain``).
    """
    from pretrain.config import PretrainConfig
    from pretrain.run import pretrain
    from pretrain.threads import threads_for, use_threads
    from synthlang.catalogue import run_folder
    from synthlang.config import load
    from synthlang.smoke import NOTE, smaller, smoke_path

    folder = out or run_folder(config_path)
    config = load(PretrainConfig, config_path, overrides, "runs")
    if smoke:
        config, folder = smaller(config), smoke_path(folder)

    use_threads(threads or threads_for(None if config.start else config.model.hidden))

    def work(report: Report, say: Say, stop: Flag) -> list[str]:
        if smoke:
            say(NOTE)
        pretrain(config, folder, report=report, say=say, stop=stop)
        return [f"run folder: {folder}  ·  models: {folder / 'export'}"]

    return with_progress(work, config_path, f" of {config.steps}")


def with_progress(work: Callable[[Report, Say, Flag], list[str]], config_path: Path, of_steps: str = "") -> int:
    """Run ``work`` with progress bars and a handler of SIGTERM, and show the lines that ``work`` returns.

    Only the main process of a launch shows progress and messages.

    Args:
        work: Function of (report, say, stop), which show progress, show a message, and request an early end.
        config_path: The config, which becomes the path of an error that has only keys.
        of_steps: Text after the step in the message about a stopped run, such as `` of 1000``.

    Returns:
        The exit code: 0, or 143 after SIGTERM.

    Raises:
        InputError: ``work`` raises it.
    """
    from pretrain.devices import process_state
    from pretrain.stopping import EXIT_CODE, Stopped, on_sigterm
    from synthlang.errors import InputError
    from synthlang.progress import Display, silent, unheard

    is_main = process_state().is_main_process
    with Display() as display, on_sigterm() as stop:
        report, say = (display.report, display.message) if is_main else (silent, unheard)
        try:
            lines = work(report, say, stop)
        except Stopped as stopped:
            say(f"stopped at step {stopped}{of_steps} with a checkpoint; run the same command again to continue")
            return EXIT_CODE
        except InputError as error:
            raise (error.inside(path=config_path) if error.keys else error) from error
        for line in lines:
            say(line)
    return 0


if __name__ == "__main__":
    # For a start by path, Python puts this folder first in sys.path, where its modules would hide others.
    sys.path[:] = [p for p in sys.path if Path(p or ".").resolve() != Path(__file__).resolve().parent]
    raise SystemExit(main())
