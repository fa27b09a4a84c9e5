"""Helpers for tests of runs: weights, the log without times, and a comparison of two runs bit by bit."""

import multiprocessing
import os
import signal
import socket
import sys
from collections.abc import Callable
from multiprocessing import util
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor

from pretrain.checkpoints import latest_checkpoint
from pretrain.devices import process_state
from pretrain.folder import read_metrics
from synthlang.workers import warm_up
from tests.forked_python import forked_python


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
