"""Runs that resume, split over processes and load elsewhere."""

import inspect
import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import yaml

from pretrain.config import PretrainConfig
from pretrain.folder import read_metrics, steps_in
from pretrain.prepare import prepare
from pretrain.run import Trainer, open_run, pretrain
from pretrain.step import Step
from synthlang.config import parse
from synthlang.errors import InputError
from synthlang.store import Store
from tests.runs import assert_same_run, weights
from tests.tiny import PRETRAIN, changed


def config_of(**values):
    return parse(PretrainConfig, changed(PRETRAIN, **values))


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A finished tiny run."""
    folder = tmp_path_factory.mktemp("runs")
    pretrain(config_of(), folder / "run", Store(folder / "store"))
    return folder


class Killed(BaseException):
    """Stands for the end of the process."""


@pytest.mark.parametrize("at", [1, 3, 4])
def test_a_stopped_run_ends_as_an_uninterrupted_one(finished, tmp_path, monkeypatch, at):
    """Stopped before step ``at + 1``, between or at checkpoints (every 2 steps), with dropout on."""
    train = Step.__call__

    def dies(self, step, batches):
        if step == at:
            raise Killed
        return train(self, step, batches)

    with monkeypatch.context() as patch:
        patch.setattr(Step, "__call__", dies)
        with pytest.raises(Killed):
            pretrain(config_of(), tmp_path / "run", Store(finished / "store"))
    assert not (tmp_path / "run" / "export").exists()
    pretrain(config_of(), tmp_path / "run", Store(finished / "store"))
    assert_same_run(finished / "run", tmp_path / "run")


def test_the_run_folder(finished):
    run = finished / "run"
    assert parse(PretrainConfig, yaml.safe_load((run / "config.yaml").read_text())) == config_of()
    rows = read_metrics(run / "metrics.jsonl")
    assert [row["step"] for row in rows] == [2, 3, 4, 6]
    for row in rows:
        assert row["loss"] == pytest.approx(row["mlm"] + 10 * row["align"], rel=1e-5)
        assert row["tokens_seen"] == row["step"] * 8 * 48
    assert all(row["validation/parent"] > 1 for row in rows if row["step"] in (3, 6))
    assert all(0 <= row["alignment/trans+inv"] <= 100 for row in rows if row["step"] in (3, 6))
    assert steps_in(run / "checkpoints") == [4, 6]
    assert {p.name for p in (run / "export").iterdir()} == {"parent", "trans+inv"}


def test_a_finished_run_is_not_run_again(finished):
    before = {p: p.stat().st_mtime_ns for p in (finished / "run").rglob("*")}
    pretrain(config_of(), finished / "run", Store(finished / "store"))
    assert before == {p: p.stat().st_mtime_ns for p in (finished / "run").rglob("*")}


def test_another_config_in_the_same_folder_is_refused(finished):
    with pytest.raises(InputError, match="holds another run"):
        pretrain(config_of(seed=1), finished / "run", Store(finished / "store"))


def test_a_folder_of_other_things_is_refused(finished, tmp_path):
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(InputError, match="is not empty and holds no run"):
        pretrain(config_of(), tmp_path, Store(finished / "store"))
    assert (tmp_path / "thesis.txt").read_text() == "mine"


def test_open_run_asks_for_a_finished_run(tmp_path, finished):
    with pytest.raises(InputError, match="no run folder"):
        open_run(tmp_path)
    (tmp_path / "config.yaml").write_text("x: 1")
    with pytest.raises(InputError, match="not finished"):
        open_run(tmp_path)
    assert open_run(finished / "run")[0] == config_of()


def train_once(tmp_path, finished, name, **values):
    config = config_of(**values)
    artifacts = prepare(config, Store(finished / "store"))
    (tmp_path / name).mkdir()
    trainer = Trainer(config, artifacts, tmp_path / name)
    trainer.train()
    return weights(tmp_path / name)


def test_micro_batches_give_the_same_weights(finished, tmp_path):
    whole = train_once(tmp_path, finished, "a", model__dropout=0.0)
    parts = train_once(tmp_path, finished, "b", model__dropout=0.0, batch__accumulation=4)
    for name, tensor in whole.items():
        torch.testing.assert_close(tensor, parts[name], rtol=1e-3, atol=1e-4)


def test_the_command_by_path_and_by_module_are_the_same_run(finished, tmp_path):
    (tmp_path / "c.yaml").write_text(yaml.safe_dump(PRETRAIN))
    path = Path(inspect.getfile(pretrain)).with_name("train.py")
    command = [sys.executable, str(path), str(tmp_path / "c.yaml"), "--out", str(tmp_path / "run")]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert str(tmp_path / "run") in done.stderr
    assert_same_run(finished / "run", tmp_path / "run")


def test_an_export_loads_without_this_project(finished, tmp_path):
    code = """
import sys, torch
from transformers import AutoModelForMaskedLM, AutoTokenizer
model, info = AutoModelForMaskedLM.from_pretrained(sys.argv[1], output_loading_info=True)
assert not any(info.values()), info
tokenizer = AutoTokenizer.from_pretrained(sys.argv[1])
ids = tokenizer("тхе <mask> ис хере", return_tensors="pt")
assert ids["input_ids"].max() < model.config.vocab_size
assert torch.isfinite(model(**ids).logits).all()
assert not any(m.split(".")[0] in ("synthlang", "pretrain", "probes") for m in sys.modules)
print(type(model).__name__, ids["input_ids"][0, 0].item())
"""
    for name in ("parent", "trans+inv"):
        folder = finished / "run" / "export" / name
        done = subprocess.run(
            [sys.executable, "-c", code, folder], check=True, capture_output=True, text=True, cwd=tmp_path
        )
        assert done.stdout.split() == ["RobertaForMaskedLM", "0"]


def test_an_empty_dictionary_is_an_error_before_training(finished, tmp_path):
    with pytest.raises(InputError, match=r"dictionary.coverage 0.001 .* empty dictionary"):
        pretrain(config_of(dictionary__coverage=0.001), tmp_path / "run", Store(finished / "store"))
    assert not (tmp_path / "run").exists()


def test_metrics_leave_out_a_line_cut_short(tmp_path):
    path = tmp_path / "m.jsonl"
    path.write_text(json.dumps({"step": 1}) + "\n" + '{"step": 2, "lo')
    assert read_metrics(path) == [{"step": 1}]
    assert read_metrics(tmp_path / "none") == []


@pytest.mark.parametrize("line", [b"123", b"\xff\xfe", b'{"loss": 1}', b"null"])
def test_metrics_end_at_a_line_that_is_none(line, tmp_path):
    path = tmp_path / "m.jsonl"
    path.write_bytes(b'{"step": 1}\n' + line + b'\n{"step": 3}\n')
    assert read_metrics(path) == [{"step": 1}]


def test_what_a_killed_export_left_goes(tmp_path, monkeypatch):
    train, left = Trainer.train, tmp_path / "run" / "export" / ".tmp-parent-00000000"

    def leaves(self):
        train(self)
        left.mkdir(parents=True)

    monkeypatch.setattr(Trainer, "train", leaves)
    pretrain(config_of(), tmp_path / "run", Store(tmp_path / "store"))
    assert not left.exists() and (tmp_path / "run" / "export" / "parent").exists()


def test_what_a_killed_builder_left_goes(tmp_path):
    """Of the same artifact only: another one may be built by another process at this moment."""
    mine, other = tmp_path / ".tmp-shards-x-00000000", tmp_path / ".tmp-shards-y-00000000"
    for folder in (mine, other):
        folder.mkdir()
    Store(tmp_path).obtain("shards", "x", lambda path: path.mkdir())
    assert not mine.exists() and other.exists()
