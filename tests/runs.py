"""What tests of runs share: the weights and the timeless part of the log, and comparing two runs bit by bit."""

from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor

from pretrain.checkpoints import latest_checkpoint
from pretrain.folder import read_metrics


def weights(run: Path) -> dict[str, Tensor]:
    """The weights of the newest checkpoint."""
    path = latest_checkpoint(run / "checkpoints")
    assert path is not None
    held: dict[str, Tensor] = load_file(path / "model.safetensors")
    return held


def untimed(run: Path) -> list[dict[str, Any]]:
    """The lines of the log without the speed."""
    return [{k: v for k, v in row.items() if k != "tokens_per_second"} for row in read_metrics(run / "metrics.jsonl")]


def assert_same_run(run: Path, other: Path) -> None:
    """The same bits and the same log."""
    a, b = weights(run), weights(other)
    assert a.keys() == b.keys()
    assert all(torch.equal(a[k], b[k]) for k in a)
    assert untimed(run) == untimed(other)
