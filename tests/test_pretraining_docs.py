"""The document on pretraining: its configs parse, its commands exist, and its list of runs is complete."""

from __future__ import annotations

import itertools
import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from pretrain.config import PretrainConfig, SharingConfig
from probes.cli import app
from synthlang.catalogue import names
from synthlang.config import load, parse
from synthlang.strict_yaml import parse_yaml

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
