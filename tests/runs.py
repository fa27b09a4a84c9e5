"""Helpers for tests of runs: weights, the log without times, and a comparison of two runs bit by bit."""

import logging
import multiprocessing
import os
import signal
import socket
import sys
from collections.abc import Callable, Sequence
from multiprocessing import forkserver, util
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor

from pretrain.checkpoints import latest_checkpoint
from pretrain.devices import process_state
from pretrain.folder import read_metrics
from synthlang.workers import warm_up
from tests.forked_python import forked_python, new_python

OURS = ("synthlang", "pretrain", "probes", "synthlang_bench", "tests")
ROOT = Path(__file__).parents[1]


def forked(target: Callable[..., object], *arguments: object) -> ForkServerProcess:
    """Start a process of the server that has loaded the libraries (see conftest.py). It receives Ctrl-C."""
    warm_up("probes.stages.loaded")
    process = multiprocessing.get_context("forkserver").Process(target=_hearing, args=(target, *arguments))
    process.start()
    return process


def _hearing(target: Callable[..., object], *arguments: object) -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    setattr(util, "spawnv_passfds", forked_python)  # noqa: B010 (the stubs do not know the function)
    target(*arguments)


def run_anew(code: str, *arguments: object, path: Sequence[Path] = (), folder: Path, exit_code: int = 0) -> str:
    """Run ``python -c CODE ARGUMENTS`` in a process that has the libraries loaded, but none of our modules.

    It saves the seconds that imports of libraries take.

    Args:
        code: The program.
        arguments: Its arguments.
        path: Folders that modules are looked for first. The checkout is not on the path.
        folder: The working folder of the process.
        exit_code: The exit code that the process must have.

    Returns:
        The standard output, or the standard error of a process that fails.
    """
    with TemporaryDirectory() as told:
        files = [Path(told, name) for name in ("out", "err")]
        process = forked(_anew, code, [*map(str, arguments)], [*map(str, path)], folder, files)
        process.join(300)
        out, err = (file.read_text(encoding="utf-8") for file in files)
    assert process.exitcode == exit_code, err
    return err if exit_code else out


def _anew(code: str, arguments: list[str], path: list[str], folder: Path, told: list[Path]) -> None:
    for number, file in enumerate(told, 1):
        os.dup2(os.open(file, os.O_WRONLY | os.O_CREAT), number)
    sys.stdout, sys.stderr = (os.fdopen(number, "w", 1, "utf-8", closefd=False) for number in (1, 2))
    logging.getLogger().handlers.clear()  # which pytest has where the server of processes is a fork of its process
    setattr(util, "spawnv_passfds", new_python)  # noqa: B010 (the stubs do not know the function)
    vars(forkserver)["_forkserver"].__init__()  # its own processes are new ones
    for name in [name for name in sys.modules if name.partition(".")[0] in OURS]:
        del sys.modules[name]
    os.chdir(folder)
    os.environ["PYTHONPATH"] = os.pathsep.join(path)
    sys.path[:] = [*path, *(place for place in sys.path if place not in ("", *path, str(ROOT)))]
    sys.argv = ["-c", *arguments]
    main = sys.modules["__main__"] = ModuleType("__main__")
    exec(code, vars(main))


def two_processes(main: Callable[[list[str]], int], *arguments: object) -> None:
    """Run a command in two processes as accelerate launch starts them."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    ranks = [forked(_rank, rank, port, main, [str(word) for word in arguments]) for rank in (0, 1)]
    for process in ranks:
        process.join(timeout=120)
    assert [process.exitcode for process in ranks] == [0, 0]


def _rank(rank: int, port: int, main: Callable[[list[str]], int], arguments: list[str]) -> None:
    torch.set_num_threads(1)
    place = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "ACCELERATE_USE_CPU": "true"}
    os.environ |= {**place, "RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2"}
    assert process_state().num_processes == 2
    sys.exit(main(arguments))


def weights(run: Path) -> dict[str, Tensor]:
    """The weights of the newest checkpoint."""
    path = latest_checkpoint(run / "checkpoints")
    assert path is not None
    saved: dict[str, Tensor] = load_file(path / "model.safetensors")
    return saved


def untimed(run: Path) -> list[dict[str, Any]]:
    """The lines of the log without the speed."""
    return [{k: v for k, v in row.items() if k != "tokens_per_second"} for row in read_metrics(run / "metrics.jsonl")]


def assert_same_run(run: Path, other: Path) -> None:
    """Check that two runs have the same bits and the same log."""
    a, b = weights(run), weights(other)
    assert a.keys() == b.keys()
    assert all(torch.equal(a[k], b[k]) for k in a)
    assert untimed(run) == untimed(other)
