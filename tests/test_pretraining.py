"""The model and the losses against transformers' own; runs that resume, split and load elsewhere."""

import inspect
import json
import math
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml
from safetensors.torch import load_file
from transformers import RobertaForMaskedLM

from pretrain.checkpoint import is_sound, latest_checkpoint, steps_in
from pretrain.config import ModelConfig, PretrainConfig
from pretrain.data import Batch
from pretrain.loop import Trainer
from pretrain.masking import IGNORE
from pretrain.metrics import read_metrics
from pretrain.model import build_model, slot_logits, word_embedding
from pretrain.objectives.align_mlm import AlignMLM
from pretrain.objectives.base import TensorBatch, masked_cross_entropy
from pretrain.optim import learning_rate
from pretrain.prepare import prepare
from pretrain.run import open_run, pretrain
from synthlang.config import parse
from synthlang.errors import InputError
from synthlang.store import Store
from tests.tiny import PRETRAIN, changed


def config_of(**values):
    return parse(PretrainConfig, changed(PRETRAIN, **values))


def small_model() -> RobertaForMaskedLM:
    shape = ModelConfig(layers=2, heads=2, hidden=16, feed_forward=32, dropout=0.0, init_std=0.2)
    return build_model(shape, ids=50, length=12, seed=0)


def random_batch() -> TensorBatch:
    generator = torch.Generator().manual_seed(0)
    ids = torch.randint(5, 50, (3, 12), generator=generator)
    slots = torch.tensor([[1, 5, 7], [2, 3, 4], [0, 10, 11]])
    labels = torch.randint(5, 50, (3, 3), generator=generator)
    labels[0, 2] = IGNORE
    return TensorBatch(ids, slots, labels, targets=8)


def test_logits_at_slots_equal_those_of_the_stock_model():
    model, batch = small_model().eval(), random_batch()
    stock = model(input_ids=batch.input_ids, attention_mask=torch.ones_like(batch.input_ids)).logits
    expected = stock.gather(1, batch.slots.unsqueeze(-1).expand(-1, -1, 50))
    torch.testing.assert_close(slot_logits(model, batch.input_ids, batch.slots), expected)


def test_the_loss_equals_the_stock_models():
    model, batch = small_model().eval(), random_batch()
    labels = torch.full_like(batch.input_ids, IGNORE).scatter(1, batch.slots, batch.labels)
    expected = model(input_ids=batch.input_ids, labels=labels).loss
    total, count = masked_cross_entropy(model, batch)
    torch.testing.assert_close(total / count, expected)


def test_the_alignment_term_equals_a_loop():
    model, batch = small_model().eval(), random_batch()
    pairs = torch.tensor([[5, 30], [6, 31], [9, 40]])
    losses = AlignMLM(pairs, alpha=10.0).losses(model, batch)
    rows = word_embedding(model).detach().double().numpy()
    cosines = [
        np.dot(rows[a], rows[b]) / math.sqrt(np.dot(rows[a], rows[a]) * np.dot(rows[b], rows[b]))
        for a, b in pairs.tolist()
    ]
    total, count = losses["align"]
    assert count == 3
    assert total.item() == pytest.approx(-sum(cosines), abs=1e-5)


def test_the_model_is_a_function_of_the_seed():
    assert torch.equal(word_embedding(small_model()), word_embedding(small_model()))
    other = build_model(ModelConfig(layers=2, heads=2, hidden=16, feed_forward=32), 50, 12, seed=1)
    assert not torch.equal(word_embedding(small_model()), word_embedding(other))


def test_learning_rate_by_hand():
    assert [learning_rate(1.0, 2, 6, s) for s in range(6)] == [0.5, 1.0, 1.0, 0.75, 0.5, 0.25]
    assert learning_rate(1.0, 0, 2, 0) == 1.0


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A finished tiny run."""
    folder = tmp_path_factory.mktemp("runs")
    pretrain(config_of(), folder / "run", Store(folder / "store"))
    return folder


def weights(run):
    path = latest_checkpoint(run / "checkpoints")
    assert path is not None
    return load_file(path / "model.safetensors")


def untimed(run):
    return [{k: v for k, v in row.items() if k != "tokens_per_second"} for row in read_metrics(run / "metrics.jsonl")]


def assert_same_run(run, other):
    a, b = weights(run), weights(other)
    assert a.keys() == b.keys()
    assert all(torch.equal(a[k], b[k]) for k in a)
    assert untimed(run) == untimed(other)


class Killed(BaseException):
    """Stands for the end of the process."""


@pytest.mark.parametrize("at", [1, 3, 4])
def test_a_stopped_run_ends_as_an_uninterrupted_one(finished, tmp_path, monkeypatch, at):
    """Stopped before step ``at + 1``, between or at checkpoints (every 2 steps), with dropout on."""
    step = Trainer._train_step

    def dies(self):
        if self.step == at:
            raise Killed
        return step(self)

    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "_train_step", dies)
        with pytest.raises(Killed):
            pretrain(config_of(), tmp_path / "run", Store(finished / "store"))
    assert not (tmp_path / "run" / "export").exists()
    pretrain(config_of(), tmp_path / "run", Store(finished / "store"))
    assert_same_run(finished / "run", tmp_path / "run")


def test_kill_9_and_start_again(finished, tmp_path):
    """A real process, killed as soon as it has a checkpoint, ends bit-identical."""
    (tmp_path / "c.yaml").write_text(yaml.safe_dump(changed(PRETRAIN, steps=60)))
    run, again = tmp_path / "run", tmp_path / "again"
    command = [sys.executable, "-m", "pretrain.train", str(tmp_path / "c.yaml"), "--out"]
    process = subprocess.Popen([*command, str(run)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 120
    while not steps_in(run / "checkpoints") and time.monotonic() < deadline:
        time.sleep(0.005)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert not (run / "done.json").exists(), "the run was over before it was killed"
    for folder in (run, again):
        subprocess.run([*command, str(folder)], check=True, capture_output=True)
    assert_same_run(run, again)


def test_a_damaged_checkpoint_is_passed_over(finished, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(finished / "run" / "checkpoints", run / "checkpoints")
    newest, older = run / "checkpoints" / "step-6", run / "checkpoints" / "step-4"
    (newest / "model.safetensors").write_bytes((newest / "model.safetensors").read_bytes()[:-1])
    assert not is_sound(newest)
    assert latest_checkpoint(run / "checkpoints") == older
    (older / "state.json").write_text("{}")
    with pytest.raises(InputError, match="every checkpoint is damaged"):
        latest_checkpoint(run / "checkpoints")


def test_the_run_folder(finished):
    run = finished / "run"
    assert parse(PretrainConfig, yaml.safe_load((run / "config.yaml").read_text())) == config_of()
    rows = read_metrics(run / "metrics.jsonl")
    assert [row["step"] for row in rows] == [2, 3, 4, 6]
    for row in rows:
        assert row["loss"] == pytest.approx(row["mlm"] + 10 * row["align"])
        assert row["tokens_seen"] == row["step"] * 8 * 48
    assert all(row["validation/parent"] > 1 for row in rows if row["step"] in (3, 6))
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


def test_two_processes_give_the_weights_of_one(finished, tmp_path):
    """accelerate launch with two processes against one; the same batch, split."""
    (tmp_path / "c.yaml").write_text(yaml.safe_dump(changed(PRETRAIN, model__dropout=0.0)))
    environment = {**os.environ, "ACCELERATE_USE_CPU": "true", "OMP_NUM_THREADS": "1"}
    launch = [
        sys.executable,
        "-m",
        "accelerate.commands.launch",
        "--multi_gpu",
        "--num_processes",
        "2",
        "--main_process_port",
        "0",
    ]
    command = [*launch, "-m", "pretrain.train", str(tmp_path / "c.yaml"), "--out", str(tmp_path / "two")]
    subprocess.run(command, check=True, capture_output=True, env=environment, timeout=300)
    one = train_once(tmp_path, finished, "one", model__dropout=0.0)
    for name, tensor in weights(tmp_path / "two").items():
        torch.testing.assert_close(tensor, one[name], rtol=1e-3, atol=1e-4)


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


def test_a_loss_that_is_not_finite_stops_the_run(finished, tmp_path, monkeypatch):
    monkeypatch.setattr(Batch, "targets", property(lambda self: math.nan))
    with pytest.raises(InputError, match=r"not finite at step 1 .* last good checkpoint: none"):
        train_once(tmp_path, finished, "nan")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"language": "inv"}, "align_mlm needs a transliterated language"),
        ({"steps": 0}, "steps"),
        ({"steps": "many"}, "steps.*many"),
        ({"steps": 2}, "warmup_steps .2. must be below steps"),
        ({"model__heads": 3}, "hidden .16. must be a multiple of heads"),
        ({"objective__mask_rate": 1.5}, "mask_rate"),
        ({"objective__maskrate": 0.1}, "maskrate.*mask_rate"),
        ({"dictionary__coverage": -1}, "coverage"),
        ({"language": "trans:2"}, "strength"),
    ],
)
def test_wrong_configs(values, message):
    with pytest.raises(InputError, match=message):
        config_of(**values)


def test_an_empty_dictionary_is_an_error_before_training(finished, tmp_path):
    with pytest.raises(InputError, match=r"dictionary.coverage 0.0 .* empty dictionary"):
        pretrain(config_of(dictionary__coverage=0.0), tmp_path / "run", Store(finished / "store"))
    assert not (tmp_path / "run").exists()


def test_metrics_leave_out_a_line_cut_short(tmp_path):
    path = tmp_path / "m.jsonl"
    path.write_text(json.dumps({"step": 1}) + "\n" + '{"step": 2, "lo')
    assert read_metrics(path) == [{"step": 1}]
    assert read_metrics(tmp_path / "none") == []
