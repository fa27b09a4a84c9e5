"""The measurements run anywhere, count what is computed, and compare like with like."""

from __future__ import annotations

import json
import runpy
import sys
from argparse import Namespace

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from pretrain.build import new_model, train_batches
from pretrain.cost import peak_of
from pretrain.model.tensors import TensorBatch
from synthlang.export import export_language
from synthlang.language import parse_language
from synthlang.sources.conllu import ConlluSource
from synthlang.sources.text import TextSource
from synthlang_bench import pretrain, probes, synthlang
from synthlang_bench.measured import call, medians

CPU = torch.device("cpu")


@pytest.mark.parametrize(
    ("main", "arguments", "said"),
    [
        (synthlang.main, ["--quick", "--text", "none.txt"], "error: none.txt: no such file or folder ("),
        (pretrain.main, ["--steps", "3", "--warmup", "3"], "--steps (3) must be more than --warmup"),
        (pretrain.main, ["--shape", "huge"], "error: argument --shape"),
        (probes.main, ["--probe", "alignment", "--n", "-1"], "at least 1"),
    ],
)
def test_wrong_options(main, arguments, said, capsys):
    try:
        code = main(arguments)
    except SystemExit as error:
        code = error.code
    captured = capsys.readouterr()
    assert (code, captured.out) == (2, "") and said in captured.err


@pytest.mark.parametrize("package", ["synthlang", "pretrain", "probes"])
def test_the_commands(package, capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["bench", "--help"])
    with pytest.raises(SystemExit) as ended:
        runpy.run_module(f"{package}.bench", run_name="__main__")
    assert ended.value.code == 0 and f"usage: python -m {package}.bench" in capsys.readouterr().out


def test_a_quick_run_of_the_engine(tmp_path, capsys):
    assert synthlang.main(["--quick", "--workers", "1", "2", "--out", str(tmp_path / "b.json")]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result == json.loads((tmp_path / "b.json").read_text())
    names = {"columns: inversion and transliteration", "reading text", "reading CoNLL-U", "reorder"}
    assert set(result["speeds"]) == names
    for name, found in result["speeds"].items():
        assert "skipped" in found or found["words_per_second"] > 0 < found["ratio"], name
    one, two = (result["export"][f"workers {n}"] for n in (1, 2))
    assert one["words"] == two["words"] > 15_000 and result["export"]["speed-up of two workers"] > 0
    assert all(50 < found["peak_rss_mb"] < 1000 for found in (one, two))


def test_the_loops_do_the_same_work(tmp_path):
    text, language, sentences = tmp_path / "t.txt", parse_language("trans+inv"), []
    synthlang.write_text(text, 3000)
    for batch in TextSource(text).batches("train"):
        for before, after in zip(batch, language.derive(batch), strict=True):
            sentences.append(before.words)
            assert synthlang.derive_by_loop(before.words)[0] == after.words
    synthlang.export_by_loop(sentences, tmp_path / "loop")
    export_language(TextSource(text), language, tmp_path / "d", source_name="x")
    for config in ("parent", "derived", "parallel"):
        ours = pq.read_table(tmp_path / "d" / "data" / config / "train-00000.parquet")
        assert ours.to_pylist() == pq.read_table(tmp_path / f"loop.{config}").to_pylist()
    assert 0 < synthlang.read_text_by_loop(text) < sum(map(len, sentences))  # final marks are words of their own
    (tmp_path / "bank").mkdir()
    synthlang.write_treebank(tmp_path / "bank", 50)
    batch = next(ConlluSource(tmp_path / "bank").batches("train"))
    words = synthlang.read_conllu_by_loop(tmp_path / "bank" / "mini-train.conllu")
    assert len(batch) == 50 and words == batch.offsets[-1] == synthlang.shuffle_by_loop(batch)


def test_speeds_by_hand(monkeypatch):
    clock = iter([0.0, 1.0, 0.0, 4.0, 0.0, 2.0, 0.0, 1.0, 0.0, 4.0])
    monkeypatch.setattr("time.perf_counter", lambda: next(clock))
    found = synthlang.speed_of(lambda: None, 100, 3)
    assert found == {"words": 100, "words_per_second": 50, "repeats": [100, 25, 50]}
    assert synthlang.compared(lambda: None, lambda: None, 100, 1, "x")["ratio"] == 4.0
    assert medians([{"a": 1, "of": {"b": value}} for value in (3, 1, 2)]) == {"a": 1, "of": {"b": 2}}


def test_blocks_leave_the_warm_up_out(monkeypatch):
    ends = [50, 100, *range(102, 122, 2)]  # of 12 steps, of which two take 50 s and the others 2 s
    read = iter(ends[1::2])  # the clock is read at the end of the warm-up and of each block of two
    monkeypatch.setattr("time.perf_counter", lambda: next(read))
    clock = pretrain.Clock(warmup=2, steps=12, tokens=100)
    for _ in ends:
        clock()
    result = clock.result()
    assert (len(clock.times), result["step_seconds"], result["tokens_per_second"]) == (6, 2, 50)


@pytest.mark.parametrize(("name", "objective"), [("tiny", "mlm"), ("quickstart", "mlm"), ("quickstart", "clm")])
def test_flops_are_those_that_torch_counts(name, objective):
    shape = pretrain.SHAPES[name]
    config, artifacts = shape.config(objective, "float32", "off", 1), pretrain.artifacts_of(shape, 1)
    model = new_model(config, artifacts).train()
    model.seed_dropout(0)
    batch = TensorBatch.of(train_batches(config, artifacts).batch(0), CPU)
    counter = FlopCounterMode(display=False)
    with counter, torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        model(batch).sum().backward()
    counted = counter.get_total_flops() / shape.rows / shape.length
    # the bias of the output has its gradient from a product with one column, which is not counted
    bias = 0 if objective == "clm" else 2 * batch.masked.shape[1] * shape.ids / shape.length
    assert counted == pytest.approx(shape.flops_per_token(objective=objective) + bias, rel=0.01)


def test_flops_of_all_positions_are_more_and_known_at_the_papers_shape():
    shape = pretrain.SHAPES["align_mlm"]
    d, t, ids = 512, 512, 80_000
    layer = 2 * (4 * d * d + 2 * t * d + 2 * d * 2048)
    assert shape.flops_per_token(all_positions=True) == 3 * (8 * layer + 2 * d * (d + ids))
    assert shape.flops_per_token() < 0.5 * shape.flops_per_token(all_positions=True)
    assert peak_of("NVIDIA H200") == 989.4e12 and peak_of("an unknown one") is None


@pytest.mark.parametrize("objective", ["mlm", "clm"])
def test_both_sides_see_the_same_rows_and_start_from_the_same_weights(objective, tmp_path):
    shape, steps = pretrain.SHAPES["tiny"], 3
    folder = str(tmp_path)
    options = Namespace(shape="tiny", steps=steps, warmup=1, precision="float32", folder=folder, objective=objective)
    pretrain.write_start(options)
    rows = np.load(tmp_path / "rows.npy")
    config, artifacts = shape.config(objective, "float32", "off", steps), pretrain.artifacts_of(shape, steps)
    batches = [train_batches(config, artifacts).batch(step) for step in range(steps)]
    for batch, theirs in zip(batches, np.split(rows, steps), strict=True):
        if objective == "clm":
            assert np.array_equal(batch.input_ids, theirs) and np.array_equal(batch.labels[:, :-1], theirs[:, 1:])
            continue
        same = np.ones_like(batch.input_ids, bool)
        np.put_along_axis(same, batch.masked, False, axis=1)
        assert np.array_equal(batch.input_ids[same], theirs[same])
        assert np.array_equal(np.take_along_axis(theirs, batch.masked, 1), batch.labels)
    found, model = pretrain.run_theirs(options), new_model(config, artifacts)
    losses = [model(TensorBatch.of(batch, CPU)).sum().item() / batch.targets for batch in batches]
    near = 0.2 if objective == "mlm" else 0.02  # other masks, and two tiny updates
    counted = 1.0 if objective == "mlm" else (shape.length - 1) / shape.length  # the Trainer also counts first tokens
    assert found["mean_loss"] == pytest.approx(counted * np.mean(losses), abs=near)
    assert found["mean_loss"] == pytest.approx(counted * np.log(shape.ids), abs=0.3)


@pytest.fixture
def here(monkeypatch):
    """Sides run in this process, which saves loading the libraries in each of theirs."""
    for module in (pretrain, probes):
        monkeypatch.setattr(module, "call", lambda work, given, **more: work(Namespace(**{**vars(given), **more})))


def printed_json(capsys):
    out = capsys.readouterr().out
    return json.loads(out[out.index("{\n") :])


def test_a_side_runs_in_a_process_of_its_own(tmp_path):
    (tmp_path / "t.txt").write_text("a b c.\n")
    found = call(synthlang.export, Namespace(text=tmp_path / "t.txt", to=tmp_path / "d"), workers=1)
    assert found["words"] == 4 and found["seconds"] > 0
    with pytest.raises(RuntimeError, match="export ended with code 1"):
        call(synthlang.export, Namespace(text=tmp_path / "none", to=tmp_path / "d"), workers=1)


@pytest.mark.parametrize("model", ["roberta", "gpt2"])
def test_pretraining_beside_transformers(model, tmp_path, capsys, here):
    options = f"--model {model} --shape tiny --steps 3 --warmup 1 --repeats 1 --precision float32".split()
    assert pretrain.main([*options, "--against", "hf", "--out", str(tmp_path / "b.json")]) == 0
    printed = printed_json(capsys)
    assert printed == json.loads((tmp_path / "b.json").read_text())
    ours, theirs, found = printed["ours"], printed["theirs"], printed["same_precision"]["float32"]
    assert (found["ours"], found["theirs"], theirs["precision"]) == (ours, theirs, "float32")
    assert printed["ratio"] == found["ratio"] == ours["tokens_per_second"] / theirs["tokens_per_second"]
    assert found["memory_ratio"] == ours["peak_memory_mb"] / theirs["peak_memory_mb"]
    per_token = printed["settings"]["flops_per_token"]
    assert ours["flops_per_second"] == ours["tokens_per_second"] * per_token["ours"]
    assert theirs["flops_per_second"] == theirs["tokens_per_second"] * per_token["all_positions"]


@pytest.mark.parametrize(("probe", "full"), [("alignment", 40_000), ("retrieval", 200_000)])
def test_a_probe_is_measured_beside_the_products_in_it(probe, full, capsys, here):
    small = ["--n", "300", "--d", "16", "--threads", "1", "--repeats", "1"]
    assert probes.main(["--probe", probe, *small]) == 0
    found = printed_json(capsys)
    assert (found["settings"]["n"], probes.PROBES[probe][1]) == (300, full)
    assert found["ratio"] == pytest.approx(found["ours"]["seconds"] / found["bare"]["seconds"])
    assert found["ratio_to_one_product"] > found["ratio"] > 0
    assert found["peak_memory_mb"] > 50 and 0 < found["ours"]["cosine"] < 100


def test_fine_tuning_beside_transformers(capsys, here):
    data = "builtin:mini-english?types=500&sentences=60&dev=20&test=20"
    sizes = {"data": data, "items": 40, "epochs": 1, "rows": 8, "length": 48, "layers": 1, "hidden": 16}
    arguments = [word for name, value in sizes.items() for word in (f"--{name}", str(value))]
    assert probes.main([*arguments, "--vocabulary", "300", "--repeats", "1", "--threads", "1"]) == 0
    found = printed_json(capsys)
    assert found["ratio"] == found["ours"]["items_per_second"] / found["theirs"]["items_per_second"]
    assert all(0 <= found[side]["score"] <= 100 for side in ("ours", "theirs"))
