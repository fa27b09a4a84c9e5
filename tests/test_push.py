"""A model on the hub: what is sent, its card, and what is refused. The hub is a server of the tests."""

import json
import shutil
from typing import Any

import pytest
from transformers import AutoModelForMaskedLM, AutoTokenizer
from typer.testing import CliRunner

import probes
from pretrain.config import PretrainConfig
from pretrain.model_push import push_model_to_hub
from pretrain.run import pretrain
from probes.cli import app
from synthlang.config import parse
from synthlang.strict_yaml import parse_yaml
from tests.hub_server import hub_server
from tests.refusals import refused
from tests.tiny import PRETRAIN


@pytest.fixture
def hub(monkeypatch):
    with hub_server(monkeypatch) as server:
        yield server


def written(hub, name, folder):
    """Write the files of a model repository to a folder."""
    for path, content in hub.content["model", name].items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)
    return folder


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pushed") / "run"
    pretrain(parse(PretrainConfig, PRETRAIN), folder)
    return folder


def header_of(card):
    return parse_yaml(card.split("---")[1], "card")


def test_all_languages_of_a_run_stand_beside_one_card(run, tmp_path, hub):
    assert push_model_to_hub(run, "me/tiny") == f"{hub.address}/me/tiny"
    assert hub.made == {("model", "me/tiny"): True}
    folder = written(hub, "me/tiny", tmp_path / "there")
    card = (folder / "README.md").read_text()
    done = json.loads((run / "done.json").read_text())
    assert header_of(card) == {"library_name": "transformers", "pipeline_tag": "fill-mask", "tags": ["synthlang"]}
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    for language in ("parent", "trans+inv"):
        assert f"| {language} | {rows[-1][f'validation/{language}']:.2f} |" in card
    assert f"- run: `{done['fingerprint']}`" in card and all(f"`{of}`" in card for of in done["parents"].values())
    assert (run / "config.yaml").read_text().strip() in card
    for name in ("config.yaml", "metrics.jsonl", "trans+inv/tokenizer.json"):
        mine = run / name if (run / name).exists() else run / "export" / name
        assert (folder / name).read_bytes() == mine.read_bytes()
    code = card.split("```python\n")[1].split("```")[0].replace("'me/tiny'", repr(str(folder)))
    found: dict[str, Any] = {}
    exec(code, found)
    assert isinstance(found["model"], type(AutoModelForMaskedLM.from_pretrained(run / "export" / "parent")))
    assert len(found["tokenizer"]) == len(AutoTokenizer.from_pretrained(run / "export" / "trans+inv"))


def test_only_what_differs_is_uploaded(run, tmp_path, hub):
    changed = shutil.copytree(run, tmp_path / "run")
    for _ in range(2):
        push_model_to_hub(changed, "me/tiny")
    assert len(hub.commits) == 1
    (changed / "metrics.jsonl").write_text("{}\n")
    push_model_to_hub(changed, "me/tiny")
    assert hub.commits[1][1] == ["README.md", "metrics.jsonl"], "the card has the perplexities of the log"
    assert hub.content["model", "me/tiny"]["metrics.jsonl"] == b"{}\n"


def test_one_language_is_a_repository(run, tmp_path, hub):
    push_model_to_hub(run / "export" / "parent", "me/one", private=False)
    folder = written(hub, "me/one", tmp_path)
    card = (folder / "README.md").read_text()
    assert "# parent" in card and "| trans+inv |" in card and "steps: 6" in card
    assert (folder / "model.safetensors").exists() and not (folder / "metrics.jsonl").exists()
    assert hub.made == {("model", "me/one"): False}


def test_what_is_refused(run, tmp_path, hub, capsys):
    for name in ("a/b/c", "../x"):
        assert refused(push_model_to_hub, run, name) == ("", "format")
    changed = shutil.copytree(run, tmp_path / "run")
    (changed / "export" / "parent" / "config.json").write_text("{}")
    for folder, code in ((changed, "damaged"), (tmp_path, "missing")):
        assert refused(push_model_to_hub, folder, "me/tiny") == (folder.name, code)
    for name in ("done.json", "run.json"):
        damaged = shutil.copytree(run, tmp_path / f"without {name}")
        (damaged / name).write_text("{}")
        assert refused(push_model_to_hub, damaged, "me/tiny") == (name, "format")
    assert refused(probes.push, run) == ("run", "missing")
    assert refused(probes.push, run, to="me") == ("--to", "no_effect")
    assert refused(probes.push, run, "me/tiny", partial=True) == ("--partial", "no_effect")
    probes.push(run, "me/tiny", dry_run=True)
    assert "model me/tiny: " in (said := capsys.readouterr().out) and "  trans+inv/model.safetensors  " in said
    assert not hub.requests
    done = CliRunner().invoke(app, ["push", str(run), "me/tiny", "--public"])
    assert done.exit_code == 0 and f"{hub.address}/me/tiny" in done.output, done.output
    assert hub.made == {("model", "me/tiny"): False}
