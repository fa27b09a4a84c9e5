"""Runs killed by SIGKILL at random places, and runs of two processes, end as one that nobody disturbed."""

import os
import random
import signal
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from accelerate.commands import launch as launcher

from pretrain.checkpoints import latest_checkpoint
from pretrain.config import PretrainConfig
from pretrain.folder import read_metrics
from pretrain.run import pretrain
from pretrain.train import main
from synthlang.config import parse
from synthlang.store import Store
from tests.runs import assert_same_run, forked, two_processes, untimed, weights
from tests.tiny import PRETRAIN, changed

STEPS = 40
OBJECTIVES: dict[str, dict[str, Any]] = {
    "sum": {"objective": {"kind": "sum", "weights": {"mlm": 1.0, "tlm": 0.5, "dict": 2.0, "align": 10.0}}},
    "separate": {"objective__kind": "mlm", "sharing": {"embeddings": "separate", "layers": [1]}},
    "decoder": {
        "model__kind": "gpt2",
        "objective": {
            "kind": "sum", "dict_target": "switched",
            "weights": {"clm": 1.0, "mlm": 1.0, "tlm": 0.5, "dict": 2.0, "align": 10.0},
        },
        "sampling": {"schedule": [
            {"start": 0, "shares": {"parent": 0.7, "trans+inv": 0.3}},
            {"start": 0.45, "shares": {"parent": 0, "trans+inv": 1}},
        ]},
    },
    "one language": {
        "objective__kind": "mlm", "sharing": {"embeddings": "separate"},
        "sampling": {"batches": "one-language", "shares": {"parent": 2.0, "trans+inv": 1.0}},
    },
}  # fmt: skip


def settings(name, **values):
    schedule: dict[str, Any] = {"steps": STEPS, "log_every": 7, "validation__every": 20, "checkpoints": {"every": 4}}
    return changed(PRETRAIN, **(schedule | OBJECTIVES[name] | values))


def train(config, run, store):
    torch.set_num_threads(1)
    pretrain(parse(PretrainConfig, config), run, Store(store))


def command(config, run, told):
    sys.stderr = told.open("w")
    sys.exit(main([str(config), "--out", str(run)]))


def last_step(run):
    rows = read_metrics(run / "metrics.jsonl")
    return rows[-1]["step"] if rows else 0


@pytest.mark.parametrize("name", ["sum", "decoder", "one language"])  # sum has all terms of encoders, decoder has all
def test_three_kills_change_nothing(name, tmp_path):
    config, numbers = settings(name, log_every=1), random.Random(name)
    for target in sorted(numbers.sample(range(1, STEPS - 5), 3)):
        process = forked(train, config, tmp_path / "killed", tmp_path / "store")
        deadline = time.monotonic() + 120
        while last_step(tmp_path / "killed") < target and time.monotonic() < deadline:
            time.sleep(0.002)
        time.sleep(numbers.random() * 0.02)  # somewhere inside a step, a line or a checkpoint
        process.kill()
        process.join()
        assert process.exitcode == -signal.SIGKILL, "it was over before it was killed"
    for run in ("killed", "whole"):
        process = forked(train, config, tmp_path / run, tmp_path / "store")
        process.join()
        assert process.exitcode == 0
    assert_same_run(tmp_path / "killed", tmp_path / "whole")
    assert [row["step"] for row in untimed(tmp_path / "killed")] == list(range(1, STEPS + 1))


def launched(main, *arguments):
    """Two processes by the launcher itself."""
    told = Path(arguments[0]).with_suffix(".told")
    words = ["--multi_gpu", "--num_processes", "2", "--main_process_port", "0", "-m", main.__module__]
    process = forked(launch, [*words, *map(str, arguments)], told)
    process.join(300)
    assert process.exitcode == 0, told.read_text()
    assert "2 processes × 1 micro-batch × 4 rows" in told.read_text()


def launch(words, told):
    os.dup2(os.open(told, os.O_WRONLY | os.O_CREAT), 2)
    os.environ |= {"ACCELERATE_USE_CPU": "true", "OMP_NUM_THREADS": "1"}
    sys.argv = ["accelerate-launch", *words]
    launcher.main()


@pytest.mark.parametrize(
    ("start", "name", "more"),
    [
        (two_processes, "sum", {"sharing": {"layers": [1]}}),  # a micro-batch may lack rows
        (two_processes, "decoder", {"sharing": {"layers": [1]}}),
        (two_processes, "one language", {}),
        (launched, "separate", {}),
    ],
    ids=["sum", "decoder", "one language", "launcher"],
)
def test_two_processes_give_the_losses_of_one(start, name, more, tmp_path):
    """Two processes of a launch against one: the same rows, the same losses, nearly the same weights."""
    config = settings(name, model__dropout=0.0, steps=8, log_every=1, optimizer__learning_rate=1e-3, **more)
    (tmp_path / "c.yaml").write_text(yaml.safe_dump(config))
    start(main, tmp_path / "c.yaml", "--out", tmp_path / "two", "--set", "processes=2")
    train(config, tmp_path / "one", tmp_path / "store")
    for one, two in zip(untimed(tmp_path / "one"), untimed(tmp_path / "two"), strict=True):
        for key, value in one.items():
            if not key.startswith("alignment"):  # a share of a few words: a tie may fall the other way
                assert two[key] == pytest.approx(value, rel=1e-5, abs=1e-5), (one["step"], key)
    for key, tensor in weights(tmp_path / "two").items():
        torch.testing.assert_close(tensor, weights(tmp_path / "one")[key], rtol=1e-3, atol=1e-4)


def test_sigterm_saves_and_ends(tmp_path):
    """The process that is asked to end saves the step it is at; started again it goes on from there."""
    config = settings("separate", steps=5000, checkpoints={"every": 5000}, validation__every=0)
    (tmp_path / "c.yaml").write_text(yaml.safe_dump(config))
    process = forked(command, tmp_path / "c.yaml", tmp_path / "run", tmp_path / "told")
    deadline = time.monotonic() + 120
    while last_step(tmp_path / "run") < 14 and time.monotonic() < deadline:
        time.sleep(0.01)
    process.terminate()
    process.join(timeout=60)
    assert process.exitcode == 128 + signal.SIGTERM
    path = latest_checkpoint(tmp_path / "run" / "checkpoints")
    assert path is not None
    step = int(path.name.removeprefix("step-"))
    assert 14 <= step < 5000
    assert f"stopped at step {step} of 5000" in (tmp_path / "told").read_text()
