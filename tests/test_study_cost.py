"""What a study costs before it starts: counts by hand, lines of the dry run, and the refusal above a limit."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import transformers
import yaml

from probes.commands import _naming_tiny
from probes.models.sizes import size_of_model
from probes.study import devices
from probes.study.cell import Cell, in_cell
from probes.study.checks import missing_data
from probes.study.cost import StageCost, StudyCost, check_cost, study_cost
from probes.study.devices import Device, device_of, gpu
from probes.study.executors import resources
from probes.study.executors.base import Machine
from probes.study.options import StudyOptions
from synthlang.errors import InputError
from synthlang.files import no_such
from synthlang.workers import cores
from tests.refusals import refusal
from tests.study_cases import TINY, command, opened
from tests.study_graphs import ADJUSTED
from tests.tiny import changed

PARAMETERS = 2224 + 600 * 17 + 48 * 16 + 2 * 16 + 16 * 16 + 3 * 16
"""Of TINY: a layer, 2 × 300 ids with a bias each, positions, the first LayerNorm, the head."""
YEARS = changed(TINY, pretrain__steps=10**14)
SLOW = Device("a slow device", {"float32": 1.0})


@pytest.fixture
def tiny(tmp_path):
    path = tmp_path / "study.yaml"
    path.write_text(yaml.safe_dump(TINY))
    return path


def test_the_costs_of_a_small_study_by_hand(tmp_path):
    run = opened(tmp_path, dry_run=True)
    cost = study_cost(run)
    kinds = {kind: [stage for stage in cost.stages if stage.kind == kind] for kind in ("pretrain", "fit")}
    assert [stage.tokens for stage in kinds["pretrain"]] == [20 * 8 * 48] * 2
    assert [stage.tokens for stage in kinds["fit"]] == [60 * 48] * 8, "2 models × 2 seeds × 2 languages"
    body = 2 * 48 * (4 * 16 * 16 + 2 * 48 * 16 + 2 * 16 * 32)
    assert {stage.flops for stage in kinds["fit"]} == {3 * 60 * body}
    # two checkpoints with two moments for each weight, and the exports of two languages
    assert [stage.disk for stage in kinds["pretrain"]] == [(2 * 3 + 2) * PARAMETERS * 4] * 2
    cost_on_three = StudyCost(cost.stages, Device("x", {"float32": 2.0}, 3), 0)
    assert cost_on_three.seconds == pytest.approx(sum(stage.flops for stage in cost.stages) / 6)
    *amounts, forecast, disk = cost.lines()
    assert amounts == [
        "to do: 2 pretrainings of 7.7 thousand tokens, 15 thousand tokens in all",
        "to do: 8 fine-tunings of up to 2.9 thousand tokens, up to 23 thousand tokens in all",
    ]
    assert forecast == f"forecast: about 0 s on {cost.device.name}"
    assert disk == "disk: about 865.8 kB for checkpoints and exported models"


def test_an_adjustment_reads_its_sentences(tmp_path):
    cost = study_cost(opened(tmp_path, ADJUSTED, dry_run=True))
    (adjust,) = (stage for stage in cost.stages if stage.kind == "adjust")
    assert adjust.tokens == 2 * 40 * 40 and adjust.flops > 0
    assert "to do: 1 adjustment of up to 3.2 thousand tokens" in list(cost.lines())


def test_what_is_unknown_is_told(tmp_path):
    """Items of a hub data set have no known number. Those of a file are bounded by its size."""
    assert isinstance(TINY["transfer"], dict)
    transfer = {key: value for key, value in TINY["transfer"].items() if key != "train_items"}
    items = tmp_path / "en-ud-train.conllu"
    items.write_bytes(b"x" * 900)
    found = {}
    for train in ("hf:none", f"conllu:{items}"):
        data = {**TINY, "transfer": {**transfer, "train": train}}
        cost = study_cost(opened(tmp_path / "out", data, dry_run=True))
        found[train] = [stage.tokens for stage in cost.stages if stage.kind == "fit"]
        told = "to do: 8 fine-tunings on data of unknown size, without a forecast"
        assert (told in cost.lines()) == (train == "hf:none")
        assert any("at least" in line for line in cost.lines()) == (train == "hf:none")
    assert set(found["hf:none"]) == {None} and set(found[f"conllu:{items}"]) == {300}


def test_a_study_of_years_is_refused_without_consent(tiny, tmp_path, monkeypatch, capsys):
    out = tmp_path / "out"
    options = ["--out", out, "--set", "pretrain.steps=100000000000000", "--executor", "in-process"]
    assert command(monkeypatch, "study", tiny, *options) == 2
    said = capsys.readouterr()
    assert said.out == "" and said.err.startswith(f"error: {tiny}: the study takes about ")
    assert " years on " in said.err and "add --yes" in said.err and said.err.count("\n") == 1
    assert not out.exists()
    assert command(monkeypatch, "study", tiny, *options, "--dry-run") == 0
    said = capsys.readouterr()
    assert "to do: 2 pretrainings of 38,400 trillion tokens, 76,800 trillion tokens in all" in said.out
    assert " on one NVIDIA H200 at 27 % of its peak" in said.out and not out.exists()


@pytest.mark.parametrize(
    ("data", "options", "refused"),
    [
        (YEARS, {}, True),
        (YEARS, {"yes": True}, False),
        (YEARS, {"smoke": True}, False),
        (YEARS, {"executor": "slurm", "slurm": ("pretrain.gpus=1",)}, True),
        (TINY, {}, False),
    ],
)
def test_consent_is_asked_above_the_limit_only(data, options, refused, tmp_path):
    run = opened(tmp_path / "out", data, **options, dry_run=True)
    if not refused:
        check_cost(run, Path("x"))
    else:
        assert refusal(check_cost, run, Path("x")).code == "resources"


def test_a_study_that_fills_the_disk_is_refused():
    stages = (StageCost("pretrain", 1, 7 * 24 * 3600.0, disk=6_000), StageCost("tune", disk=5_000))
    assert StudyCost(stages, SLOW, 11_000).excess == ""
    assert StudyCost(stages, SLOW, 10_000).excess == "needs about 11.0 kB of disk, of which 10.0 kB are free"
    longer = (*stages, StageCost("fit", 1, 24 * 3600.0))
    assert StudyCost(longer, SLOW, 11_000).excess == "takes about 8 days on a slow device"


def test_the_device_of_a_study(monkeypatch, tmp_path):
    monkeypatch.setattr(devices, "gpu_name", lambda: "NVIDIA A100-SXM4-80GB")
    two = device_of(StudyOptions(), Machine(2, 1, ("0", "1", "2")))
    assert (two.name, two.number) == ("2 × NVIDIA A100-SXM4-80GB at 27 % of its peak", 2)
    assert two.rates == {"bfloat16": 0.27 * 312e12} and two.seconds(54 * 3.12e12, "float32", 64) == pytest.approx(1.0)
    alone = device_of(StudyOptions(), Machine(2, 1))
    assert alone.name.startswith(f"{cores()} processor core") and alone.rates["float32"] == cores() * 64e9
    assert alone.seconds(cores() * 64e9, "float32", 256) == pytest.approx(1.0)
    assert alone.seconds(cores() * 64e9, "float32", 64) == pytest.approx(3.0)
    job = device_of(StudyOptions(executor="slurm", slurm=("cpus=3", "transfer.gpus=1")), Machine(1, 3))
    assert job.name == "3 processor cores"
    job = device_of(StudyOptions(executor="slurm", slurm=("gres=gpu:h100:1",)), Machine(1, 1))
    assert job.rates == {"bfloat16": 0.27 * 989.4e12} and "as on" not in job.name
    assert gpu("Other").name == "one Other (as on an NVIDIA H200) at 27 % of its peak"
    (tmp_path / "0000:01").mkdir()
    (tmp_path / "0000:01" / "information").write_text("Model: \t NVIDIA L4\nIRQ: 1\n")
    monkeypatch.setattr(resources, "GPU_INFO", tmp_path)
    assert resources.gpu_name() == "NVIDIA L4"


def test_the_size_of_a_model_by_its_name(tmp_path):
    bert = size_of_model("google-bert/bert-base-multilingual-cased")
    assert bert is not None and bert.parameters == pytest.approx(178e6, rel=0.01)
    settings = {"num_hidden_layers": 2, "hidden_size": 8, "intermediate_size": 16, "max_position_embeddings": 30}
    (tmp_path / "config.json").write_text(json.dumps({**settings, "vocab_size": 100}))
    size = size_of_model(str(tmp_path))
    assert size is not None and (size.layers, size.words, size.others) == (2, 100, 30)
    assert size_of_model(str(tmp_path / "none")) is None and size_of_model("some/other/name") is None


@pytest.mark.parametrize(
    ("architecture", "sizes", "inside"),
    [
        ("XLM", {"emb_dim": 16, "n_layers": 2, "n_heads": 2, "n_langs": 1}, 0),
        ("GPT2", {"n_embd": 16, "n_layer": 2, "n_head": 2}, 0),
        (
            "Bert",
            {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64},
            2 * 16,
        ),
    ],
)
def test_the_size_of_a_folder_has_the_parameters_of_its_architecture(architecture, sizes, inside, tmp_path):
    """``inside`` is the size of the embeddings of token types, which our models do not have."""
    config = getattr(transformers, f"{architecture}Config")(vocab_size=90, max_position_embeddings=20, **sizes)
    model = {"GPT2": "GPT2LMHeadModel", "XLM": "XLMWithLMHeadModel", "Bert": "BertForMaskedLM"}[architecture]
    config.save_pretrained(tmp_path)
    size = size_of_model(str(tmp_path))
    assert size is not None
    assert size.parameters == sum(p.numel() for p in getattr(transformers, model)(config).parameters()) - inside


def test_a_dry_run_shows_the_cost_before_it_names_missing_data(tiny, tmp_path, monkeypatch, capsys):
    options = ["--out", tmp_path / "out", "--set", "source=text:none", "--dry-run"]
    assert command(monkeypatch, "study", tiny, *options) == 2
    said = capsys.readouterr()
    assert "to do: 2 pretrainings of 7.7 thousand tokens" in said.out
    assert said.err.count("\n") == 1 and "none: no such file or folder" in said.err


@pytest.mark.parametrize(
    ("name", "error", "hint"),
    [
        ("align_mlm-table3/lab", no_such("x", hint="two files"), "two files; --size tiny runs without data"),
        ("align_mlm-table3/lab", InputError("needs weights", hint="two files", code="missing"), "two files"),
        ("align_mlm-trans+inv/lab", no_such("x", hint="two files"), "two files"),
        ("align_mlm-table3/tiny", no_such("x", hint="two files"), "two files"),
        ("my-study.yaml", no_such("x", hint="two files"), "two files"),
    ],
)
def test_missing_data_of_a_study_with_a_tiny_size(name, error, hint):
    with pytest.raises(InputError) as refused, _naming_tiny(Path(name)):
        raise error
    assert refused.value.hint == hint


@pytest.mark.parametrize(
    ("overrides", "hint"),
    [
        ((), "run: synthlang data fetch --for align_mlm-table3 --size lab; --size tiny runs without data"),
        (("seeds=[0]",), "run: synthlang data fetch ud/en --size lab; --size tiny runs without data"),
    ],
)
def test_missing_data_of_the_catalogue_names_the_command(overrides, hint):
    with pytest.raises(InputError) as refused, _naming_tiny(Path("align_mlm-table3/lab"), overrides):
        raise cast(InputError, missing_data(["data/ud/en"]))
    assert refused.value.hint == hint


def test_a_key_of_another_file_is_no_key_of_the_study():
    error = InputError("the weights are quantized", "m/config.json", keys="quantization_config", code="unsupported")
    found = in_cell(Cell.placed(cast(Any, SimpleNamespace(source=None)), error, ("init_from",)), "cell a")
    assert str(found) == "cell a: init_from: m/config.json: quantization_config: the weights are quantized"


def test_a_dry_run_shows_the_cost_of_languages_that_need_missing_data(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert command(monkeypatch, "study", "emerging-table1", "--size", "paper", "--dry-run") == 2
    said, error = capsys.readouterr()
    for start in ("to do: 30 pretrainings of ", "forecast: about ", "disk: about ", "data to fetch: muse/en-fr"):
        assert f"\n{start}" in f"\n{said}"
    assert "26 data sets of the study are missing" in error and not list(tmp_path.iterdir())
