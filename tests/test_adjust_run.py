"""Whole adjustments: what they change, what they leave behind, and that a stopped one ends as one that was not."""

import json
import random
import shutil
import signal
import sys
import time

import pytest
import torch
import yaml
from safetensors.torch import load_file, save_file
from transformers import AutoModelForMaskedLM, AutoTokenizer

from pretrain.adjust.__main__ import main
from pretrain.adjust.adjust_command import adjust_command
from pretrain.adjust.config import AdjustConfig
from pretrain.adjust.run import adjust
from pretrain.folder import read_metrics
from pretrain.stopping import EXIT_CODE
from synthlang.config import parse
from synthlang.errors import InputError
from synthlang.sources import open_source
from tests.adjust_models import save_model
from tests.runs import forked, two_processes, untimed

SOURCE = "builtin:mini-english?types=500&sentences=60&dev=0&test=0"


def text():
    return [line for batch in open_source(SOURCE).batches("train") for line in batch.texts()]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return save_model(tmp_path_factory.mktemp("model"), "bert", text(), max_position_embeddings=96)


def settings(model, **changes):
    pairs = {name: {"kind": "derived", "source": SOURCE, "left": name} for name in ("inv", "perm")}
    return {
        "model": str(model), "pairs": pairs, "data": {"dev": 20}, "rows": 4, "epochs": 2, "log_every": 6,
        "optimizer": {"learning_rate": 2e-3}, "checkpoints": {"every": 5},
        **changes,
    }  # fmt: skip


def run_one(data, run):
    torch.set_num_threads(1)
    return adjust(parse(AdjustConfig, data), run)


@pytest.fixture(scope="module")
def whole(model, tmp_path_factory):
    """A finished adjustment that nobody disturbed."""
    run = tmp_path_factory.mktemp("whole") / "run"
    run_one(settings(model), run)
    return run


def test_linked_words_come_together_and_others_stay_further_apart(whole):
    done = json.loads((whole / "done.json").read_text())
    assert done["steps"] == 20
    for name in ("inv", "perm"):
        before, after = (
            {kind: done[when][f"{kind}/{name}"] for kind in ("related", "unrelated")} for when in ("before", "after")
        )
        assert after["related"] < 0.8 * before["related"]
        assert after["related"] / after["unrelated"] < before["related"] / before["unrelated"]
        assert done["counts"][name]["sentence pairs to measure on"] == 20
    rows = read_metrics(whole / "metrics.jsonl")
    assert [row["step"] for row in rows] == [0, 6, 12, 18, 20]
    assert rows[-1]["pull"] < rows[1]["pull"]
    assert done["after"].items() <= rows[-1].items()
    assert set(done["parents"]) == {"model", "tokenizers", "pairs"}


def test_the_export_is_another_model_with_the_same_head(whole, model):
    adjusted, before = (AutoModelForMaskedLM.from_pretrained(f).eval() for f in (whole / "export", model))
    text = AutoTokenizer.from_pretrained(whole / "export")("the cat saw it .", return_tensors="pt")
    assert not torch.allclose(adjusted(**text).logits, before(**text).logits, atol=1e-2)
    changed = {k for k, v in adjusted.state_dict().items() if not torch.equal(v, before.state_dict()[k])}
    assert any("layer.2" in key for key in changed)
    # the head of its own stays; its decoder is the word embedding
    assert {k for k in changed if k.startswith("cls.")} == {"cls.predictions.decoder.weight"}


def test_it_stops_and_goes_on_bit_for_bit(model, whole, tmp_path, monkeypatch):
    from pretrain.adjust.loop import AdjustStep

    calls, original = [], AdjustStep.__call__

    def failing(self, step, batches):
        calls.append(step)
        if len(calls) in (8, 20, 22):
            raise KeyboardInterrupt
        return original(self, step, batches)

    monkeypatch.setattr(AdjustStep, "__call__", failing)
    for _ in range(3):
        with pytest.raises(KeyboardInterrupt):
            run_one(settings(model), tmp_path / "run")
    run_one(settings(model, log_every=6), tmp_path / "run")
    assert calls.count(5) == 2  # it went on from the checkpoint of step 5
    assert_same(tmp_path / "run", whole)
    monkeypatch.undo()
    files = sorted(p for p in (tmp_path / "run").rglob("*") if p.is_file())
    times = [p.stat().st_mtime_ns for p in files]
    run_one(settings(model, log_every=3), tmp_path / "run")  # it is done
    assert times == [p.stat().st_mtime_ns for p in files]


def assert_same(run, other):
    assert [clean(row) for row in untimed(run)] == [clean(row) for row in untimed(other)]
    one, two = (load_file(folder / "export" / "model.safetensors") for folder in (run, other))
    assert one.keys() == two.keys()
    assert all(torch.equal(one[key], two[key]) for key in one)
    assert json.loads((run / "done.json").read_text()) == json.loads((other / "done.json").read_text())


def clean(row):
    return {k: v for k, v in row.items() if k != "sentence_pairs_per_second"}


def command(config, run):
    sys.exit(adjust_command(None, config, run))


def test_killed_it_ends_as_the_whole_one(model, whole, tmp_path):
    numbers = random.Random(0)
    for target in (6, 12, None):
        process = forked(run_one, settings(model, log_every=3), tmp_path / "run")
        deadline = time.monotonic() + 120
        while target and time.monotonic() < deadline:
            rows = read_metrics(tmp_path / "run" / "metrics.jsonl")
            if rows and rows[-1]["step"] >= target:
                time.sleep(numbers.random() * 0.01)
                process.kill()
                break
            time.sleep(0.002)
        process.join()
        assert process.exitcode == (-signal.SIGKILL if target else 0)
    one, two = (load_file(folder / "export" / "model.safetensors") for folder in (tmp_path / "run", whole))
    assert all(torch.equal(one[key], two[key]) for key in one)
    assert [row["step"] for row in read_metrics(tmp_path / "run" / "metrics.jsonl")] == [*range(0, 21, 3), 20]


# with a small epsilon Adam turns rounding errors of a gradient near 0 into whole steps
SMOOTH = {"learning_rate": 1e-3, "epsilon": 1e-2}


def test_two_processes_and_accumulation_give_the_same(model, tmp_path):
    data = settings(model, dropout=False, epochs=1, log_every=5, optimizer=SMOOTH)
    (tmp_path / "c.yaml").write_text(yaml.safe_dump(data))
    two_processes(main, tmp_path / "c.yaml", "--out", tmp_path / "two")
    run_one(data, tmp_path / "one")
    run_one({**data, "accumulation": 2}, tmp_path / "micro")
    rows = [[clean(row) for row in untimed(tmp_path / name)] for name in ("one", "two", "micro")]
    for one, *others in zip(*rows, strict=True):
        for other in others:
            assert other == pytest.approx(one, rel=1e-5)
    files = [load_file(tmp_path / name / "export" / "model.safetensors") for name in ("one", "two", "micro")]
    for key, tensor in files[0].items():
        for other in files[1:]:
            torch.testing.assert_close(other[key], tensor, rtol=1e-3, atol=1e-4)


def test_sigterm_saves(model, tmp_path):
    (tmp_path / "c.yaml").write_text(yaml.safe_dump(settings(model, epochs=500, log_every=1)))
    process = forked(command, tmp_path / "c.yaml", tmp_path / "run")
    deadline = time.monotonic() + 120
    while len(read_metrics(tmp_path / "run" / "metrics.jsonl")) < 9 and time.monotonic() < deadline:
        time.sleep(0.01)
    process.terminate()
    process.join()
    assert process.exitcode == EXIT_CODE
    last = read_metrics(tmp_path / "run" / "metrics.jsonl")[-1]["step"]
    assert 8 <= last < 500 * 10
    assert (tmp_path / "run" / "checkpoints" / f"step-{last}").is_dir()


def test_the_command_and_layers_of_the_original_that_are_carried_along(model, tmp_path, capsys):
    source = shutil.copytree(model, tmp_path / "model")
    pooler = {"bert.pooler.dense.weight": torch.ones(16, 16), "bert.pooler.dense.bias": torch.zeros(16)}
    save_file(load_file(model / "model.safetensors") | pooler, source / "model.safetensors", metadata={"format": "pt"})
    config = tmp_path / "c.yaml"
    config.write_text(yaml.safe_dump({**settings("nowhere"), "pairs": {"inv": settings(model)["pairs"]["inv"]}}))
    assert adjust_command(str(source), config, tmp_path / "run", ["epochs=1", "loss.hold=0.5"]) == 0
    told = capsys.readouterr().err
    assert "distance of related words, inv:" in told
    assert "inv: 40 sentence pairs to train on, 20 sentence pairs to measure on" in told
    kept = load_file(tmp_path / "run" / "export" / "model.safetensors")
    assert all(torch.equal(kept[key], value) for key, value in pooler.items())
    saved = yaml.safe_load((tmp_path / "run" / "config.yaml").read_text())
    assert (saved["model"], saved["loss"]["hold"]) == (str(source), 0.5)
    with pytest.raises(InputError, match=r"holds another adjustment \(loss.hold: 0.5 → 1.0; epochs: 1 → 2\); choose"):
        adjust_command(str(source), config, tmp_path / "run", ["epochs=2"])
    (tmp_path / "run" / "run.json").write_text('{"fingerprint": "0", "data": "data"}')
    with pytest.raises(InputError, match="run: holds a pretraining run; choose another folder"):
        adjust_command(str(source), config, tmp_path / "run", [])


def test_other_settings_bring_words_together_too(model, tmp_path):
    optimizer = {"learning_rate": 2e-3, "schedule": "linear", "clip": 1.0, "weight_decay": 0.01}
    run_one(settings(model, precision="bfloat16", optimizer=optimizer), tmp_path / "run")
    done = json.loads((tmp_path / "run" / "done.json").read_text())
    assert done["after"]["related/inv"] < 0.9 * done["before"]["related/inv"]
