"""Weights and optimizer spread over two processes: the losses of one process, whole checkpoints, exact to resume."""

import json
import shutil
from typing import Any

import pytest
import torch
import yaml
from safetensors.torch import load_file

from pretrain.config import PretrainConfig
from pretrain.devices import accelerator_of
from pretrain.model.language_model import LanguageModel
from pretrain.run import pretrain
from pretrain.step import Step
from pretrain.train import main
from synthlang.config import parse
from synthlang.errors import InputError
from tests.runs import assert_same_run, two_processes, untimed, weights
from tests.tiny import PRETRAIN, changed

CONFIG = changed(
    PRETRAIN,
    steps=12,
    log_every=1,
    checkpoints={"every": 4, "keep": 3},
    validation={"every": 6, "rows": 8},
    batch={"rows": 8, "length": 48, "accumulation": 2},
    model__dropout=0.0,
    model__layers=2,
)


KINDS: dict[str, dict[str, Any]] = {
    "encoder": {},
    "decoder": {"model__kind": "gpt2", "objective": {"kind": "align_clm"}},
}


def sharded_main(words):
    """The command in a process of a launch, which says how much of the weights the process holds."""
    began = Step.__init__

    def init(self, config, model: LanguageModel, *arguments):
        began(self, config, model, *arguments)
        held = sum(part.to_local().numel() for part in model.parameters())  # type: ignore[attr-defined]
        share = held / sum(p.numel() for p in model.parameters())
        assert 0.4 < share < 0.6, share

    setattr(Step, "__init__", init)  # noqa: B010
    return main(words)


@pytest.mark.parametrize("kind", KINDS)
def test_two_processes_that_share_the_weights_give_the_losses_of_one(kind, tmp_path):
    settings = changed(CONFIG, **KINDS[kind])
    (tmp_path / "c.yaml").write_text(yaml.safe_dump({**settings, "shard": True}))
    two = tmp_path / "two"
    two_processes(sharded_main, tmp_path / "c.yaml", "--out", two)
    pretrain(parse(PretrainConfig, settings), tmp_path / "one")
    for one, other in zip(untimed(tmp_path / "one"), untimed(two), strict=True):
        for key, value in one.items():
            if not key.startswith("alignment"):  # a share of a few words: a tie may fall the other way
                assert other[key] == pytest.approx(value, rel=1e-4, abs=1e-4), (one["step"], key)
    for key, tensor in weights(two).items():
        torch.testing.assert_close(tensor, weights(tmp_path / "one")[key], rtol=1e-3, atol=1e-4)
    moments = load_file(two / "checkpoints/step-12/optimizer.safetensors")
    assert {k: v.shape for k, v in moments.items()} == {
        k: v.shape for k, v in load_file(tmp_path / "one/checkpoints/step-12/optimizer.safetensors").items()
    }
    assert (
        json.loads((two / "done.json").read_text())["fingerprint"]
        == json.loads((tmp_path / "one" / "done.json").read_text())["fingerprint"]
    )

    shutil.copytree(two, tmp_path / "again")
    (tmp_path / "again" / "done.json").unlink()
    for step in (8, 12):
        shutil.rmtree(tmp_path / "again" / "checkpoints" / f"step-{step}")
    two_processes(sharded_main, tmp_path / "c.yaml", "--out", tmp_path / "again")
    assert_same_run(tmp_path / "again", two)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (
            {"sharing": {"embeddings": "separate"}, "objective__kind": "mlm"},
            "shard: cannot be combined with separate parts",
        ),
        ({"precision": "float16"}, "shard: cannot be combined with precision: float16; set precision to bfloat16"),
        ({"compile": "on"}, "shard: cannot be combined with compile: on"),
    ],
)
def test_what_is_refused(values, message, monkeypatch):
    with pytest.raises(InputError, match=message):
        parse(PretrainConfig, changed(CONFIG, shard=True, **values))
    monkeypatch.setenv("ACCELERATE_USE_FSDP", "true")
    with pytest.raises(InputError, match="FSDP of Accelerate is not supported; leave FSDP out"):
        accelerator_of(False)
