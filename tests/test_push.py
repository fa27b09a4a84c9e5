"""A model on the hub: what is sent, its card, and what is refused; the hub is a folder here."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from transformers import AutoModelForMaskedLM, AutoTokenizer
from typer.testing import CliRunner

from pretrain.config import PretrainConfig
from pretrain.model_push import push_model_to_hub
from pretrain.run import pretrain
from probes.cli import app
from synthlang.config import parse
from synthlang.strict_yaml import parse_yaml
from tests.refusals import refused
from tests.tiny import PRETRAIN


class Hub:
    """Stands in for huggingface_hub.HfApi."""

    def __init__(self, root):
        self.root, self.created = root, {}

    def create_repo(self, repo_id, **options):
        self.created[repo_id] = options
        return f"https://hub.invalid/{repo_id}"

    def upload_folder(self, *, folder_path, repo_id, repo_type, commit_message):
        assert repo_type == self.created[repo_id]["repo_type"] == "model" and "synthlang model" in commit_message
        shutil.copytree(folder_path, self.root / repo_id, dirs_exist_ok=True)

    def upload_file(self, *, path_or_fileobj, path_in_repo, repo_id, **_):
        (self.root / repo_id / path_in_repo).write_bytes(path_or_fileobj)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pushed") / "run"
    pretrain(parse(PretrainConfig, PRETRAIN), folder)
    return folder


def header_of(card):
    return parse_yaml(card.split("---")[1], "card")


def test_all_languages_of_a_run_stand_beside_one_card(run, tmp_path):
    hub = Hub(tmp_path)
    assert push_model_to_hub(run, "me/tiny", api=hub) == "https://hub.invalid/me/tiny"
    assert hub.created["me/tiny"]["private"] is True
    card = (tmp_path / "me/tiny/README.md").read_text()
    done = json.loads((run / "done.json").read_text())
    assert header_of(card) == {"library_name": "transformers", "pipeline_tag": "fill-mask", "tags": ["synthlang"]}
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    for language in ("parent", "trans+inv"):
        assert f"| {language} | {rows[-1][f'validation/{language}']:.2f} |" in card
    assert f"- run: `{done['fingerprint']}`" in card and all(f"`{of}`" in card for of in done["parents"].values())
    assert (run / "config.yaml").read_text().strip() in card
    code = card.split("```python\n")[1].split("```")[0].replace("'me/tiny'", repr(str(tmp_path / "me/tiny")))
    found: dict[str, Any] = {}
    exec(code, found)
    assert isinstance(found["model"], type(AutoModelForMaskedLM.from_pretrained(run / "export" / "parent")))
    assert len(found["tokenizer"]) == len(AutoTokenizer.from_pretrained(run / "export" / "trans+inv"))


def test_one_language_is_a_repository(run, tmp_path):
    push_model_to_hub(run / "export" / "parent", "tiny", private=False, api=Hub(tmp_path))
    card = (tmp_path / "tiny/README.md").read_text()
    assert "# parent" in card and "| trans+inv |" in card and "steps: 6" in card
    assert (tmp_path / "tiny/model.safetensors").exists()


def test_what_is_refused(run, tmp_path, monkeypatch):
    hub = Hub(tmp_path / "hub")
    for name in ("a/b/c", "../x"):
        assert refused(push_model_to_hub, run, name, api=hub) == ("", "format")
    changed = shutil.copytree(run, tmp_path / "run")
    (changed / "export" / "parent" / "config.json").write_text("{}")
    for folder, code in ((changed, "damaged"), (tmp_path, "missing")):
        assert refused(push_model_to_hub, folder, "me/tiny", api=hub) == (folder.name, code)
    assert not hub.created
    monkeypatch.setattr("huggingface_hub.HfApi", lambda token: hub)
    done = CliRunner().invoke(app, ["push", str(run), "me/tiny", "--public"])
    assert done.exit_code == 0 and "https://hub.invalid/me/tiny" in done.output, done.output
    assert hub.created["me/tiny"]["private"] is False and Path(tmp_path / "hub/me/tiny/parent/tokenizer.json").exists()
