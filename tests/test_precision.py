"""float16: near float32, its loss is scaled, a step that overflows is left out, and resume is exact."""

import json

import pytest
import torch
from safetensors.torch import load_file

from pretrain.config import PretrainConfig
from pretrain.folder import read_metrics
from pretrain.run import pretrain
from pretrain.step import GradientStep
from pretrain.stopping import Flag, Stopped
from synthlang.config import parse
from tests.tiny import PRETRAIN, changed

STEPS = 12
HALF = changed(PRETRAIN, steps=STEPS, precision="float16", log_every=1, checkpoints__every=STEPS)


def losses(run):
    return [row["loss"] for row in read_metrics(run / "metrics.jsonl")]


def scaler(run, step):
    return json.loads((run / "checkpoints" / f"step-{step}" / "state.json").read_text())["scaler"]


def test_losses_are_near_those_of_float32(tmp_path):
    pretrain(parse(PretrainConfig, HALF), tmp_path / "half")
    pretrain(parse(PretrainConfig, {**HALF, "precision": "float32"}), tmp_path / "whole")
    half, whole = losses(tmp_path / "half"), losses(tmp_path / "whole")
    assert half == pytest.approx(whole, abs=1e-2) and half != whole
    assert scaler(tmp_path / "half", STEPS)["_growth_tracker"] == STEPS
    assert "scaler" not in json.loads((tmp_path / "whole/checkpoints/step-12/state.json").read_text())


def test_steps_that_overflow_are_left_out_and_resume_is_exact(tmp_path, monkeypatch):
    """The scale begins so high that gradients overflow; it is halved until they do not, also over a stop."""
    real = GradientStep.__init__

    def high(self, *arguments):
        real(self, *arguments)
        self.scaler = torch.amp.GradScaler("cpu", init_scale=2.0**40, enabled=True)

    monkeypatch.setattr(GradientStep, "__init__", high)
    config, flag = parse(PretrainConfig, HALF), Flag()
    pretrain(config, tmp_path / "whole")
    flag.until = 3
    with pytest.raises(Stopped):
        pretrain(config, tmp_path / "two", stop=flag)
    assert scaler(tmp_path / "two", 3)["scale"] == 2.0**37, "three steps were left out"
    started = load_file(tmp_path / "two/checkpoints/step-3/optimizer.safetensors")
    assert not any(tensor.any() for tensor in started.values()), "the optimizer has not moved"
    pretrain(config, tmp_path / "two")
    assert losses(tmp_path / "two") == losses(tmp_path / "whole")
    assert scaler(tmp_path / "two", STEPS) == scaler(tmp_path / "whole", STEPS)
    for name in ("model", "optimizer"):
        one, two = (load_file(tmp_path / run / f"checkpoints/step-12/{name}.safetensors") for run in ("two", "whole"))
        assert one.keys() == two.keys() and all(torch.equal(one[key], two[key]) for key in one)
