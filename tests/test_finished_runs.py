"""Opening finished runs to measure them: damage is refused and mended, and messages name the model they are about."""

import json
import shutil

import pytest
import torch

from pretrain.config import PretrainConfig
from pretrain.run import DONE, pretrain
from probes.transfer.model import open_pretrained
from synthlang.config import parse
from synthlang.errors import InputError
from tests.runs import assert_same_run
from tests.tiny import PRETRAIN, changed


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("finished") / "run"
    pretrain(parse(PretrainConfig, PRETRAIN), folder)
    return folder


def test_a_run_with_a_damaged_last_checkpoint_is_not_measured_as_an_older_model(run, tmp_path):
    copied = tmp_path / "copied"
    shutil.copytree(run, copied)
    path = copied / "checkpoints" / "step-6" / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(
        InputError, match=r"step-6: the last checkpoint of the finished run is damaged.*delete done\.json"
    ):
        open_pretrained(str(copied), None)
    # what the message says mends it
    (copied / DONE).unlink()
    pretrain(parse(PretrainConfig, PRETRAIN), copied)
    assert_same_run(run, copied)
    opened = [open_pretrained(str(folder), None) for folder in (run, copied)]
    assert opened[0].fingerprint == opened[1].fingerprint
    for a, b in zip(*(held.model.parameters() for held in opened), strict=True):
        assert torch.equal(a, b)


def test_messages_name_the_model(run, tmp_path):
    other = tmp_path / "other"
    settings = changed(PRETRAIN, language="parent", objective={"kind": "mlm"})
    del settings["dictionary"]
    pretrain(parse(PretrainConfig, settings), other)
    with pytest.raises(InputError, match="other: the run has no language derived"):
        open_pretrained(str(run), None, target_model=str(other))
    with pytest.raises(InputError, match="run: no language 'foo' in the run"):
        open_pretrained(str(other), "foo", target_model=str(run))
    with pytest.raises(
        InputError, match=r"^there is no folder runs/nothing; of a model of Hugging Face name a language"
    ):
        open_pretrained("runs/nothing", None)
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="empty is no pretraining run, so its languages are not known"):
        open_pretrained(str(tmp_path / "empty"), None)
    assert json.loads((other / DONE).read_text())["steps"] == 6
