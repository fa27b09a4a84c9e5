"""The document on pretraining: its configs parse, its commands exist; it and those on transfer and probes show every
key with its default."""

from __future__ import annotations

import itertools
import re
import shlex
from pathlib import Path
from typing import Any, get_args

import pytest
from typer.testing import CliRunner

from pretrain.config import BatchConfig, ObjectiveConfig, PretrainConfig, SharingConfig
from probes.cli import app
from probes.measures.table import ProbeConfig
from probes.transfer.config import TransferConfig
from synthlang.catalogue import names
from synthlang.config import load, parse
from synthlang.strict_yaml import parse_yaml
from synthlang.vocabularies import VocabularySpec

DOCS = Path(__file__).parents[1] / "docs"
DOC = (DOCS / "pretraining.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\S+)([^\n]*)\n(.*?)^```$", DOC, re.DOTALL | re.MULTILINE)
CONFIGS = [text for kind, note, text in BLOCKS if kind == "yaml" and "part" not in note]
COMMANDS = [line for kind, _, text in BLOCKS if kind == "sh" for line in text.splitlines()]


@pytest.mark.parametrize("text", CONFIGS, ids=[str(i) for i in range(len(CONFIGS))])
def test_configs_parse(text, tmp_path, monkeypatch):
    (tmp_path / "fr-en.txt").write_text("maison house\n")
    monkeypatch.chdir(tmp_path)
    assert parse(PretrainConfig, parse_yaml(text, "the document")).all_languages


@pytest.mark.parametrize(
    ("name", "model"), [("pretraining", PretrainConfig), ("transfer", TransferConfig), ("probes", ProbeConfig)]
)
def test_every_key_is_shown_with_its_default_in_order(name, model):
    [text] = re.findall(r"^```yaml all\n(.*?)^```$", (DOCS / f"{name}.md").read_text(), re.DOTALL | re.MULTILINE)
    shown = parse_yaml(text, "the document")
    needed = {"source": shown["source"], "language": shown["language"]} if name == "pretraining" else {}
    defaults = model(**needed).model_dump(mode="json")
    if needed:
        shown["language"] = defaults["language"]  # by its name
    assert order(shown) == order(defaults)
    assert shown == defaults


def order(data: Any) -> Any:
    """The keys as they stand, at every depth."""
    return [(key, order(value)) for key, value in data.items()] if isinstance(data, dict) else None


def test_every_choice_is_named():
    for model, field in (
        (ObjectiveConfig, "kind"),
        (ObjectiveConfig, "random_words"),
        (ObjectiveConfig, "dict_target"),
        (BatchConfig, "packing"),
        (VocabularySpec, "kind"),
    ):
        for value in get_args(model.model_fields[field].annotation):
            assert f"`{value}`" in DOC, (field, value)


def test_sharing_is_that_of_the_configs():
    rows = dict(re.findall(r"^\| (.+?) \| `(\{.*\})` \|$", DOC, re.MULTILINE))
    sharing = {name: parse(SharingConfig, parse_yaml(text, name)) for name, text in rows.items()}
    assert len(sharing) == 5
    for name, file in (
        ("all shared", "default"),
        ("Sep Emb", "sep_emb"),
        ("Sep Emb + L1-3", "sep_emb+l1-3"),
        ("Sep L1-6", "sep_l1-6"),
    ):
        config = load(PretrainConfig, f"emerging-{file}/en-fr/paper", kind="runs")
        assert sharing[name] == config.sharing


def expanded(pattern: str) -> list[str]:
    """``a-{b,c}`` → a-b, a-c."""
    parts = [part.strip("{}").split(",") for part in re.findall(r"\{[^}]*\}|[^{}]+", pattern)]
    return ["".join(choice) for choice in itertools.product(*parts)]


def test_the_list_of_runs_is_complete():
    part = DOC.split("## The papers' runs")[1]
    named = [n for pattern in re.findall(r"^\| `(\S+)` \| [^|]*\|$", part, re.MULTILINE) for n in expanded(pattern)]
    known = sorted(name.removesuffix("/paper") for name in names("runs") if name.endswith("/paper"))
    assert sorted(name for name in named if name not in ("paper", "lab", "tiny")) == known


@pytest.mark.parametrize("line", COMMANDS)
def test_commands_exist_and_their_configs_load(line, tmp_path, monkeypatch):
    words = shlex.split(line)
    if "synthlang" in words:
        command = words[words.index("synthlang") + 1]
        shown = CliRunner().invoke(app, [command, "--help"])
        assert shown.exit_code == 0
        assert all(word in shown.output for word in words if word.startswith("--"))
    else:
        assert words[words.index("launch") + 1 :][-1] and "pretrain.train" in words
    [config] = [word for word in words if word in names("runs")]
    sets = [value for key, value in itertools.pairwise(words) if key == "--set"]
    for given in sets:  # the dictionaries that a user has
        if given.endswith(".txt"):
            (tmp_path / given.split("=")[1]).write_text("house maison\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert load(PretrainConfig, config, sets, "runs").all_languages


def test_python_is_python():
    blocks = [text for kind, _, text in BLOCKS if kind == "python"]
    assert blocks and all(compile(text, "the document", "exec") for text in blocks)
