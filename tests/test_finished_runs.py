"""Opening finished runs to measure them: damage is refused and mended, and messages name the model they are about."""

import json
import shutil

import numpy as np
import pytest
import torch

from pretrain.config import PretrainConfig
from pretrain.run import DONE, open_run, pretrain
from probes.transfer.model import open_pretrained
from synthlang.config import parse
from synthlang.errors import InputError
from tests.runs import assert_same_run
from tests.study_graphs import write_treebank
from tests.tiny import PRETRAIN, changed


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("finished") / "run"
    pretrain(parse(PretrainConfig, PRETRAIN), folder)
    return folder


def test_done_says_what_was_left_out_of_each_text(tmp_path):
    """Whole sentences in short rows: those of over 38 tokens do not fit, and the record says how many of each text."""
    settings = changed(PRETRAIN, language="trans", objective={"kind": "xlm"}, steps=3)
    del settings["dictionary"]
    config = parse(PretrainConfig, {**settings, "batch": {"rows": 8, "length": 40, "packing": "sentences"}})
    pretrain(config, tmp_path / "run")
    counts = json.loads((tmp_path / "run" / DONE).read_text())["counts"]
    _, artifacts = open_run(tmp_path / "run")
    for member in artifacts.languages:
        for split, shards in (("train", member.train), ("dev", member.dev)):
            assert shards is not None
            long = int((np.diff(shards.offsets) > 38).sum())
            assert long and counts[f"{member.name} {split}"] == {"sentences dropped, over 38 tokens": long}
    [pairs] = [held for name, held in counts.items() if name.endswith(" pairs")]
    assert pairs["pairs drawn"] > pairs["pairs dropped, a side has over 18 tokens"] > 0


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
    (tmp_path / "empty" / "study.json").write_text("{}")
    with pytest.raises(InputError, match=r"empty is a study: name a run of it, as .*/empty/stages/pretrain-"):
        open_pretrained(str(tmp_path / "empty"), None)
    assert json.loads((other / DONE).read_text())["steps"] == 6


def test_a_run_whose_text_has_changed_or_is_gone_is_refused(tmp_path):
    bank = write_treebank(tmp_path / "bank")
    settings = changed(PRETRAIN, source=f"conllu:{bank}", steps=3, validation={"every": 0})
    pretrain(parse(PretrainConfig, settings), tmp_path / "run")
    assert open_pretrained(str(tmp_path / "run"), None).run is not None
    file = bank / "x-ud-train.conllu"
    text = file.read_text()
    file.write_text(text.replace("w1\t", "w31\t"))
    with pytest.raises(
        InputError, match=r"run: what the run was trained on has changed since \(.*language 0.*vocabulary"
    ):
        open_pretrained(str(tmp_path / "run"), None)
    file.write_text(text)
    assert open_pretrained(str(tmp_path / "run"), None).run is not None
    bank.rename(tmp_path / "elsewhere")
    with pytest.raises(InputError, match=r"run: what the run was trained on cannot be read again: .*bank"):
        open_pretrained(str(tmp_path / "run"), None)
    moved = parse(PretrainConfig, changed(settings, source=f"conllu:{tmp_path / 'elsewhere'}"))
    assert open_run(tmp_path / "run", moved)[0] is moved
