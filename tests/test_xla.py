"""On XLA (its CPU backend stands for a TPU) a training step compiles once and never again, and trains the same.

Each run is a process: python -m tests.test_xla FOLDER OVERRIDES-AS-JSON [STEP-TO-STOP-AT]
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.tiny import PRETRAIN, changed
from tests.tpu_cloud import ROOT

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("torch_xla") is None, reason="torch_xla is not installed (docs/tpu.md says how)"
)
STOPPED = 3
QUIET = {"validation__every": 0, "log_every": 1000, "checkpoints__every": 1000, "steps": 6}  # steps and nothing else
DECODER: dict[str, Any] = {"model__kind": "gpt2", "objective__mask_rate": 0.15}
CASES: dict[str, dict[str, Any]] = {
    "mlm": {},
    "mlm bfloat16": {"precision": "bfloat16"},
    "mlm accumulated": {"batch__accumulation": 2},
    "mlm separate": {"sharing": {"embeddings": "separate", "layers": [1]}},
    "xlm": {},
    "dict_mlm": {},
    "align_mlm": {},
    "clm": DECODER,
    "clm separate": DECODER | {"sharing": {"embeddings": "separate", "layers": [1]}},
    "tlm_clm": DECODER,
    "align_clm": DECODER,
    "dict_clm": DECODER | {"objective__dict_target": "switched"},
}


def run(folder: Path, stop: int | None = None, xla: bool = True, **overrides: Any) -> dict[str, Any]:
    """The compilations before each step and the log of a run; a step that grows with each one ends in a timeout."""
    environment = os.environ | {"PJRT_DEVICE": "CPU", "USE_TORCH_XLA": str(int(xla)), "OMP_NUM_THREADS": "1"}
    arguments = [str(folder), json.dumps(overrides), *([] if stop is None else [str(stop)])]
    command = [sys.executable, "-m", "tests.test_xla", *arguments]
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == (0 if stop is None else STOPPED), done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1]) if stop is None else {}


def losses(found: dict[str, Any]) -> list[list[float]]:
    return [[value for name, value in row.items() if name in ("loss", "mlm", "clm", "align")] for row in found["log"]]


@pytest.mark.parametrize("name", CASES)
def test_a_step_compiles_once_and_never_again(name, tmp_path):
    overrides: dict[str, Any] = QUIET | {"objective__kind": name.split()[0]} | CASES[name]
    counts = run(tmp_path / "run", **overrides)["counts"]
    assert [later - earlier for earlier, later in pairwise(counts)] == [1, 0, 0, 0, 0]


def test_logging_validating_and_saving_compile_at_their_first_time_only(tmp_path):
    every: dict[str, Any] = {"validation__every": 2, "log_every": 2, "checkpoints__every": 2, "steps": 9}
    counts = run(tmp_path / "run", objective__kind="align_mlm", **every)["counts"]
    after_the_first = [later - earlier for earlier, later in pairwise(counts)][2:]
    assert after_the_first == [0] * len(after_the_first)


@pytest.mark.parametrize(("kind", "more"), [("align_mlm", {}), ("align_clm", DECODER)])
def test_losses_are_those_of_plain_torch(kind, more, tmp_path):
    exact: dict[str, Any] = {
        "objective__kind": kind,
        "model__dropout": 0.0,
        "log_every": 1,
        "validation__every": 0,
    } | more
    ours, plain = (losses(run(tmp_path / str(xla), xla=xla, **exact)) for xla in (True, False))
    assert len(ours) == 6
    for a, b in zip(ours, plain, strict=True):
        assert a == pytest.approx(b, rel=1e-4)


@pytest.mark.parametrize(("kind", "more"), [("mlm", {}), ("clm", DECODER)])
def test_a_run_that_was_stopped_goes_on_exactly_dropout_included(kind, more, tmp_path):
    settings: dict[str, Any] = {
        "objective__kind": kind,
        "log_every": 1,
        "validation__every": 0,
        "checkpoints__every": 2,
    } | more
    whole = run(tmp_path / "whole", **settings)
    run(tmp_path / "stopped", stop=4, **settings)
    assert losses(run(tmp_path / "stopped", **settings)) == losses(whole)
    other = losses(run(tmp_path / "other", **settings, model__dropout=0.0))
    assert other != losses(whole), "there was no dropout"


def compilations() -> int:
    """Return the number of graphs that XLA has compiled so far."""
    import torch_xla.debug.metrics as metrics  # type: ignore[import-not-found,unused-ignore]

    data = metrics.metric_data("CompileTime")
    return 0 if data is None else int(data[0])


def one_run(folder: Path, overrides: dict[str, Any], stop: int | None) -> None:
    """Run to the end, or die before step ``stop``."""
    from pretrain.config import PretrainConfig
    from pretrain.data.batch import Batch
    from pretrain.folder import read_metrics
    from pretrain.run import pretrain
    from pretrain.step import Step

    counts: list[int] = []
    plain = Step.__call__

    def counted(self: Step, step: int, batches: Sequence[Batch]) -> Any:
        if step == stop:
            raise SystemExit(STOPPED)
        if self.accelerator.device.type == "xla":
            counts.append(compilations())
        return plain(self, step, batches)

    Step.__call__ = counted  # type: ignore[method-assign, assignment]
    pretrain(PretrainConfig.model_validate(changed(PRETRAIN, **overrides)), folder)
    print(json.dumps({"counts": counts, "log": read_metrics(folder / "metrics.jsonl")}))


if __name__ == "__main__":
    one_run(Path(sys.argv[1]), json.loads(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else None)
