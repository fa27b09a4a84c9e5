"""A study on the hub: a repository for each model, a data set of results, a collection, and what is refused."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import probes
from probes.cli import app
from probes.publication import _names, publication
from probes.study.cells import load_study
from probes.study.record import read_record
from synthlang.files import write_json
from synthlang.strict_yaml import parse_yaml
from tests.hub_server import TOKEN, hub_server
from tests.refusals import refusal, refused
from tests.study_cases import TINY, command, run_here
from tests.study_graphs import ADJUST

DATA = {**TINY, "name": "tiny-study", "seeds": [0], "scale": "tiny", "title": "A tiny study"}
RESULTS = "me/table-results"
PUSH = """import sys
from transformers import AutoModel, AutoModelForMaskedLM, AutoTokenizer
name, language = sys.argv[1:]
body = AutoModel.from_pretrained(name, subfolder=language)
model = AutoModelForMaskedLM.from_pretrained(name, subfolder=language)
tokenizer = AutoTokenizer.from_pretrained(name, subfolder=language)
out = model(**tokenizer("the dog", return_tensors="pt"))
assert not any(part.startswith(("synthlang", "pretrain", "probes")) for part in sys.modules)
print(body.config.hidden_size, tuple(out.logits.shape)[-1])
"""


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("study") / "study"
    run_here(folder, DATA)
    return folder


@pytest.fixture
def study(finished, tmp_path):
    return Path(shutil.copytree(finished, tmp_path / "study"))


@pytest.fixture
def hub(monkeypatch):
    with hub_server(monkeypatch) as server:
        yield server


def models_of(study):
    return {cell["run"].rpartition("-")[2]: cell for cell in read_record(study)["cells"]}


def test_a_study_becomes_models_results_and_a_collection(study, hub):
    addresses = probes.push(study, to="me/table")
    models, [slug] = models_of(study), list(hub.collections)
    assert len(models) == 2 and addresses[-1] == f"{hub.address}/collections/{slug}"
    names = {f"me/table-trans-{cell['labels']['pretrain.objective.kind'].replace('_', '-')}-{key[:8]}": key
             for key, cell in models.items()}  # fmt: skip
    assert hub.made == {**{("model", name): True for name in names}, ("dataset", RESULTS): True}
    items = [(item["type"], item["id"]) for item in hub.collections[slug]["items"]]
    assert items == [*(("model", name) for name in names), ("dataset", RESULTS)]
    assert hub.collections[slug]["private"] is True and hub.collections[slug]["title"] == "A tiny study"
    for name, key in names.items():
        run, there = study / "stages" / f"pretrain-{key}", hub.content["model", name]
        for path in (run / "export").rglob("*"):
            if path.is_file():
                assert there[path.relative_to(run / "export").as_posix()] == path.read_bytes()
        assert there["metrics.jsonl"] == (run / "metrics.jsonl").read_bytes() and b"steps: 20" in there["config.yaml"]
        card = there["README.md"].decode()
        assert "study **A tiny study**" in card and f"/datasets/{RESULTS})" in card
        assert f"| pretrain.objective.kind | {models[key]['labels']['pretrain.objective.kind']} |" in card


def test_the_results_are_those_of_the_study_and_can_be_read_and_run_again(study, hub, tmp_path, monkeypatch):
    probes.push(study, to="me/table")
    there = hub.content["dataset", RESULTS]
    for name in ("results.parquet", "measures.parquet", "measurements.parquet"):
        assert pq.read_table(io.BytesIO(there[name])).equals(pq.read_table(study / name))
    assert there["report.html"] == (study / "report.html").read_bytes()
    header = parse_yaml(there["README.md"].decode().split("---")[1], "card")
    assert [one["config_name"] for one in header["configs"]] == ["results", "measures"]
    assert read_record(study)["fingerprint"].encode() in there["README.md"]
    downloaded = tmp_path / "downloaded"
    for name, content in there.items():
        (downloaded / name).parent.mkdir(parents=True, exist_ok=True)
        (downloaded / name).write_bytes(content)
    again, cells = load_study(downloaded / "study.yaml", [])
    assert again.fingerprint == read_record(study)["fingerprint"] and len(cells) == 2
    assert command(monkeypatch, "report", downloaded) == 0


def test_no_token_and_no_path_of_the_machine_is_uploaded(study, hub):
    record = read_record(study)
    record["config"]["source"] = f"text:{study}/secret/en"
    record["cells"][0]["overrides"]["source"] = f"text:{study}/secret/en"
    write_json(study / "study.json", record)
    probes.push(study, to="me/table")
    for files in hub.content.values():
        for name, content in files.items():
            assert TOKEN.encode() not in content and str(study).encode() not in content, name
    assert "text:…/secret/en" in hub.content["dataset", RESULTS]["study.yaml"].decode()
    assert TOKEN not in "".join(p.read_text("utf-8", "replace") for p in study.rglob("*.json"))


def test_an_interrupted_push_continues(study, hub):
    first = publication(study, "me/table").repositories[1].repo_id
    hub.refused.append(f"/api/models/{first}/commit/main")
    assert refusal(probes.push, study, to="me/table").code == "failed"
    assert len(hub.commits) == 1 and not hub.collections
    probes.push(study, to="me/table")
    assert len(hub.commits) == 3, "the first model is not sent again"
    requests = len(hub.requests)
    probes.push(study, to="me/table")
    assert len(hub.commits) == 3 and len(hub.collections) == 1
    assert not [path for _, path, _ in hub.requests[requests:] if "/commit/" in path or path.endswith("/items")]


def test_a_dry_run_prints_everything_and_sends_nothing(study, hub):
    done = CliRunner().invoke(app, ["push", str(study), "--to", "me", "--dry-run"])
    assert done.exit_code == 0, done.output
    names = re.findall(r"^(model|dataset) (\S+): \d+ files, ", done.output, re.MULTILINE)
    assert [kind for kind, _ in names] == ["model", "model", "dataset"]
    assert names[-1][1] == "me/tiny-study-results" and all(name.startswith("me/tiny-study-") for _, name in names)
    assert "  parent/model.safetensors  " in done.output and "  results.parquet  " in done.output
    assert "collection 'A tiny study' of me: 2 models and the results" in done.output
    assert not hub.requests and not hub.made


def test_a_model_loads_from_the_hub_without_synthlang(study, hub, tmp_path):
    probes.push(study, to="me/table", public=True)
    name = next(name for kind, name in hub.made if kind == "model")
    assert not any(hub.made.values()) and not next(iter(hub.collections.values()))["private"]
    variables = {**os.environ, "HF_HOME": str(tmp_path / "home"), "HF_HUB_OFFLINE": "0", "HF_HUB_DISABLE_XET": "1"}
    done = subprocess.run([sys.executable, "-P", "-c", PUSH, name, "trans"], cwd=tmp_path, env=variables,
                          capture_output=True, text=True, check=False)  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[0] == "16"


def test_models_that_are_adjusted_have_a_card_that_loads_them(tmp_path, hub):
    data = {key: value for key, value in DATA.items() if key != "grid"}
    data |= {"pretrain": {**DATA["pretrain"], "language": "trans+inv"}, "adjust": ADJUST}
    run_here(tmp_path / "adjusted", data)
    probes.push(tmp_path / "adjusted", to="me/adjusted")
    cards = [files["README.md"].decode() for (kind, _), files in hub.content.items() if kind == "model"]
    adjusted = [card for card in cards if "adjusted by synthlang" in card]
    assert len(cards) == 2 and len(adjusted) == 1
    assert "subfolder='trans+inv'" in adjusted[0] and "study **A tiny study**" in adjusted[0]


def unfinished(study):
    record = read_record(study)
    record["cells"][1].update(status="pending", stages={})
    write_json(study / "study.json", record)


def damaged(study):
    run = study / "stages" / f"pretrain-{list(models_of(study))[1]}"
    (run / "export" / "trans" / "tokenizer.json").write_text("{}")


def without_weights(study):
    assert CliRunner().invoke(app, ["gc", str(study), "--keep", "results"]).exit_code == 0


@pytest.mark.parametrize(
    ("change", "told", "models"),
    [
        (unfinished, "1 of 2 cells is not finished: ", 1),
        (damaged, "1 model damaged or missing: pretrain-", 1),
        (without_weights, "2 models without weights, which synthlang gc deleted: pretrain-", 0),
    ],
)
def test_an_unfinished_or_damaged_study_is_refused_unless_it_is_partial(change, told, models, study, hub):
    change(study)
    error = refusal(probes.push, study, to="me/table")
    assert told in error.reason and error.code == "conflict" and "--partial" in error.hint and "\n" not in str(error)
    assert not hub.requests
    probes.push(study, to="me/table", partial=True)
    assert [kind for kind, _ in hub.made].count("model") == models
    assert told in hub.content["dataset", RESULTS]["README.md"].decode()


@pytest.mark.parametrize(
    ("name", "scale", "prefix"),
    [("dose-inv", "", "dose-inv"), ("dose-inv", "dose-inv", "dose-inv"), ("dose-lab", "lab", "dose-lab"),
     ("labels", "lab", "labels-lab"), ("table 3", "tiny", "table-3-tiny")],
)  # fmt: skip
def test_repositories_begin_with_the_name_and_the_scale(name, scale, prefix):
    assert _names("me", {"name": name, "config": {"scale": scale}}) == ("me", prefix)


def test_a_name_of_other_letters_needs_a_prefix():
    assert refused(_names, "me", {"name": "опыт", "config": {}}) == ("--to", "format")
    assert _names("me/trial", {"name": "опыт", "config": {}}) == ("me", "trial")


def test_refusals(study, hub, tmp_path):
    assert refused(probes.push, study) == ("study", "missing")
    for to in (None, "me"):
        assert refused(probes.push, study, "me/name", to=to) == ("REPO", "no_effect")
    for to in ("", "a/b/c", "../x", "me/" + "x" * 90):
        assert refused(probes.push, study, to=to)[1] in ("format", "range")
    (study / "report.json").unlink()
    assert refused(probes.push, study, to="me") == ("study", "missing")
    (study / "results.parquet").write_bytes(b"PAR1")
    assert refused(probes.push, study, to="me", partial=True) == ("results.parquet", "format")
    (study / "results.parquet").unlink()
    assert refused(probes.push, study, to="me", partial=True) == ("results.parquet", "missing")
    (study / "study.json").write_text(json.dumps({"name": "x"}))
    assert refused(probes.push, study, to="me") == ("study.json", "format")
    assert not hub.requests
