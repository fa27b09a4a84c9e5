"""--smoke: any run or study in seconds, at the first try, and never among real results."""

import json
import shutil

import pytest

from pretrain.config import PretrainConfig
from probes.transfer.config import TransferConfig
from probes.transfer.transfer_command import fitted_to
from synthlang import catalogue
from synthlang.config import load, parse
from synthlang.files import read_json
from synthlang.smoke import smaller, smaller_source
from tests.study_cases import command


@pytest.mark.parametrize("name", [name for name in catalogue.names("runs") if not name.endswith("/lab")])
def test_every_run_becomes_one_of_seconds_that_fits_together(name):
    """``steps=20`` tripped over the warm-up, then over checkpoints."""
    try:
        config = load(PretrainConfig, name, kind="runs")
    except ValueError:
        pytest.skip("reads files that are not here")
    small = smaller(config)
    parse(PretrainConfig, json.loads(small.model_dump_json()))
    assert small.optimizer.warmup_steps < small.steps <= 20 and small.batch.rows <= 16
    assert small.start is not None or small.model.hidden <= 8 * small.model.heads
    assert small.model.layers == config.model.layers and small.batch.length == config.batch.length


@pytest.mark.usefixtures("painted")
def test_a_study_a_run_and_what_is_made_of_it_at_the_first_try(monkeypatch, tmp_path, capsys):
    monkeypatch.chdir(tmp_path)
    run = tmp_path / "runs" / "mlm-trans+inv-tiny-smoke"
    assert command(monkeypatch, "pretrain", "mlm/trans+inv/tiny", "--smoke") == 0
    assert read_json(run / "done.json")["steps"] == 20 and not run.with_name("mlm-trans+inv-tiny").exists()
    assert command(monkeypatch, "adjust", run, "tiny", "--smoke", "--out", "a") == 0
    assert (tmp_path / "a-smoke" / "done.json").exists()
    assert command(monkeypatch, "transfer", run, "--config", "align_mlm-pos", "--smoke") == 0
    assert len(read_json(run / "transfer" / "pos-trans+inv-smoke.json")["seeds"]) == 1
    said = capsys.readouterr().err
    assert said.count("smoke run: it shows that everything works") == 3
    assert "has no effect" not in said, "what only the smoke run sets is not told of"
    assert "length is 64 instead of 128, because the model reads 64 tokens at once" in said
    arguments = ("study", "quickstart", "--smoke", "--only", "transform=trans", "--executor", "in-process")
    assert command(monkeypatch, *arguments) == 0
    record = read_json(tmp_path / "runs" / "quickstart-smoke" / "study.json")
    assert {cell["status"] for cell in record["cells"] if "trans, " in cell["name"]} == {"done"}
    page = (tmp_path / "runs" / "quickstart-smoke" / "report.md").read_text()
    assert "did not learn" not in page and "in the figure and under Scores" in page, "all parts of a report are tried"
    shutil.copytree(tmp_path / "runs" / "quickstart-smoke", tmp_path / "runs" / "quickstart")
    assert command(monkeypatch, "study", "quickstart") == 2, "a smoke run is no beginning of the real one"


def test_rows_are_as_long_as_the_model_reads():
    """``--config`` of a paper was refused on every small model, and questions on every model of short rows."""
    config, notes = fitted_to(parse(TransferConfig, {"task": "qa", "length": 384, "stride": 128}), 48)
    assert (config.length, config.stride, len(notes)) == (None, 12, 2)
    assert fitted_to(parse(TransferConfig, {"length": 48}), 48) == (parse(TransferConfig, {"length": 48}), [])


def test_built_in_text_is_cut_short():
    assert smaller_source("nli:builtin:mini-english?types=700&sentences=4000&dev=7#dev") == (
        "nli:builtin:mini-english?types=700&sentences=300&dev=7&test=60#dev"
    )
    assert smaller_source("text:a?b") == "text:a?b"
    assert smaller_source("builtin:mini-english?dev=many") == "builtin:mini-english?dev=many&sentences=300&test=60"


def test_a_source_of_ones_own_is_cut_short_by_a_limit():
    for source, expected in (("conllu:a/b?feats", "conllu:a/b?feats&limit=300"), ("text:a?limit=20",) * 2):
        config = parse(PretrainConfig, {"source": source, "language": "trans"})
        assert smaller(config).source == expected
