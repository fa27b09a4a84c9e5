"""Parts of the loop by themselves: the learning rate, the window of losses, batches ahead of time, trackers."""

import importlib.util
import json
import math
import os
import signal
import threading

import pytest
import torch

from pretrain.devices import ENOUGH_STEPS, WIDE, faster_precision, should_compile
from pretrain.loop import LossWindow, Prefetch
from pretrain.optim import learning_rate
from pretrain.run import pretrain
from pretrain.step import Step
from pretrain.stopping import on_sigterm
from synthlang.errors import InputError
from synthlang.store import Store
from tests.refusals import refused
from tests.runs import untimed
from tests.test_pretrain_config import config_of


def test_a_run_may_be_shorter_than_its_warm_up(tmp_path):
    """The rate rises to the end, and the user hears of it."""
    told: list[str] = []
    pretrain(config_of(steps=2), tmp_path / "run", Store(tmp_path / "store"), say=told.append)
    config = config_of(steps=2).optimizer
    rates = [json.loads(line)["lr"] for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert rates[-1] == pytest.approx(config.learning_rate * 2 / config.warmup_steps)
    assert [line for line in told if line.startswith("the learning rate never falls, since the warm-up (2 steps)")]


def test_schedules_by_hand():
    def rates(schedule, warmup=2):
        return [learning_rate(2.0, warmup, 6, s, schedule) for s in range(6)]

    assert [learning_rate(1.0, 2, 6, s) for s in range(6)] == [0.5, 1.0, 1.0, 0.75, 0.5, 0.25]
    assert rates("constant") == [1.0, 2.0, 2.0, 2.0, 2.0, 2.0]
    assert rates("inverse_sqrt")[2:] == pytest.approx([2 * math.sqrt(2 / n) for n in (3, 4, 5, 6)])
    assert rates("inverse_sqrt", 0) == pytest.approx([2 / math.sqrt(n) for n in (1, 2, 3, 4, 5, 6)])
    assert rates("cosine")[2:] == pytest.approx([1 + math.cos(math.pi * x) for x in (0, 0.25, 0.5, 0.75)])


def window_of(*steps):
    window = LossWindow(lambda values: values)
    for step in steps:
        window.add({n: (torch.tensor(float(s)), torch.tensor(float(c))) for n, (s, c) in step.items()})
    return window


def test_the_mean_of_a_window_is_over_all_terms():
    window = window_of({"mlm": (6, 2), "tlm": (0, 0)}, {"mlm": (4, 8), "tlm": (9, 3)})
    window.read(2)
    assert window.means() == {"mlm": 1.0, "tlm": 3.0}
    assert window.rows == []


def test_a_window_survives_a_checkpoint():
    window = window_of({"mlm": (6, 2)})
    window.read(1)
    other = window_of()
    other.restore(json.loads(json.dumps(window.state())))
    other.add({"mlm": (torch.tensor(4.0), torch.tensor(8.0))})
    other.read(2)
    assert other.means() == {"mlm": 1.0}


@pytest.mark.parametrize(
    ("value", "after", "place", "code", "lines"),
    [
        (math.nan, False, "run", "failed", 3),
        # the loss of step 4 is finite, its update is not: only the weights show it
        (math.inf, True, "run", "failed", 4),
    ],
)
def test_a_run_that_diverges_stops_and_saves_nothing(value, after, place, code, lines, tmp_path, monkeypatch):
    train = Step.__call__

    def diverges(self, step, batches):
        losses = train(self, step, batches) if after else None
        if step == 3:
            with torch.no_grad():
                next(iter(self.model.parameters())).fill_(value)
        return losses if after else train(self, step, batches)

    monkeypatch.setattr(Step, "__call__", diverges)
    assert refused(pretrain, config_of(), tmp_path / "run", Store(tmp_path / "store")) == (place, code)
    assert max(row["step"] for row in untimed(tmp_path / "run")) == lines


def test_batches_ahead_of_time():
    made = []

    def make(step):
        made.append((step, threading.current_thread().name))
        if step == 3:
            raise InputError("no such row")
        return step * 10

    with Prefetch(make, 5) as batches:
        assert [batches.get(step) for step in (0, 1, 2)] == [0, 10, 20]
        assert refused(batches.get, 3) == ("", "invalid")
        assert batches.get(1) == 10
    assert {name.split("_")[0] for _, name in made} == {"batches"}


def test_sigterm_sets_the_flag_inside_the_block_only():
    before = signal.getsignal(signal.SIGTERM)
    with on_sigterm() as flag:
        seen = [flag.is_set]
        os.kill(os.getpid(), signal.SIGTERM)
        seen.append(flag.is_set)
    assert seen == [False, True]
    assert signal.getsignal(signal.SIGTERM) == before


def test_a_tracker_that_is_not_installed_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert refused(pretrain, config_of(trackers=["wandb"]), tmp_path / "run", Store(tmp_path / "store")) == (
        "trackers",
        "extra",
    )
    assert not (tmp_path / "run").exists()


def test_tensorboard_gets_the_lines(tmp_path):
    events_of = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator").EventAccumulator
    pretrain(config_of(trackers=["tensorboard"]), tmp_path / "run", Store(tmp_path / "store"))
    events = events_of(str(next((tmp_path / "run").rglob("events.out.*")).parent)).Reload()
    assert [(e.step, e.value) for e in events.Scalars("mlm")] == [
        (row["step"], pytest.approx(row["mlm"])) for row in untimed(tmp_path / "run")
    ]


def test_the_best_checkpoint_is_exported(tmp_path, monkeypatch):
    """Perplexities are made to rise after step 3, so that step 3 is the best one."""
    from pretrain.validation import Validation

    measure, found = Validation.measure, iter([5.0, 9.0])
    monkeypatch.setattr(
        Validation, "measure", lambda self, model: measure(self, model) | {"validation/parent": next(found)}
    )
    config = config_of(checkpoints={"every": 3, "keep": 1, "select": "best"}, validation__every=3)
    pretrain(config, tmp_path / "run", Store(tmp_path / "store"))
    from safetensors.torch import load_file

    folders = sorted(p.name for p in (tmp_path / "run" / "checkpoints").iterdir())
    assert folders == ["step-3", "step-6"]
    best = load_file(tmp_path / "run" / "checkpoints" / "step-3" / "model.safetensors")
    exported = load_file(tmp_path / "run" / "export" / "parent" / "model.safetensors")
    same = [k for k, v in exported.items() if any(v.shape == w.shape and torch.equal(v, w) for w in best.values())]
    assert len(same) > len(exported) / 2


@pytest.mark.parametrize(
    ("choice", "device", "steps", "tools", "expected"),
    [
        ("auto", "cuda", ENOUGH_STEPS, True, True),
        ("auto", "cuda", ENOUGH_STEPS - 1, True, False),
        ("auto", "cuda", ENOUGH_STEPS, False, False),
        ("auto", "cpu", ENOUGH_STEPS, True, False),
        ("off", "cuda", ENOUGH_STEPS, True, False),
        ("on", "cuda", 1, True, True),
        ("on", "cpu", 1, True, True),
        ("on", "cuda", 1, False, "triton"),
        ("on", "cpu", 1, False, r"C\+\+ compiler"),
        ("on", "xla", 1, True, "device xla"),
    ],
)
def test_when_compiling_pays(choice, device, steps, tools, expected, monkeypatch):
    monkeypatch.setattr("pretrain.devices._has_triton", lambda: tools)
    monkeypatch.setattr("shutil.which", lambda name: "/usr/bin/g++" if tools else None)
    if isinstance(expected, bool):
        assert should_compile(choice, torch.device(device), steps) == expected
    else:
        with pytest.raises(InputError, match=expected):
            should_compile(choice, torch.device(device), steps)


@pytest.mark.parametrize("amx", [True, False])
def test_a_cpu_runs_wide_models_faster_in_bfloat16_where_it_has_amx(amx, monkeypatch):
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"amx_bf16": amx})
    cpu = torch.device("cpu")
    assert faster_precision(WIDE - 1, cpu) == "float32"
    assert faster_precision(WIDE, cpu) == ("bfloat16" if amx else "float32")
    assert faster_precision(WIDE, torch.device("cuda")) is None
