"""README and the page on Python: the tour and the examples run as they are written; every command has a function."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from probes.cli import app
from probes.reference import commands
from synthlang.catalogue import names

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
FEWER_STEPS = {  # what is in the page → in the test
    '"steps": 40, "optimizer.warmup_steps": 5': '"steps": 6, "optimizer.warmup_steps": 2',
    '"pretrain.steps": 40, "pretrain.optimizer.warmup_steps": 5, "pretrain.validation.every": 40': (
        '"pretrain.steps": 6, "pretrain.optimizer.warmup_steps": 2, "pretrain.validation.every": 6'
    ),
    '"builtin:mini-english?types=500&sentences=400"': '"builtin:mini-english?types=500&sentences=400&dev=300&test=60"',
    '"builtin:mini-english?sentences=400&test=100"': '"builtin:mini-english?sentences=100&dev=10&test=40"',
    '"transfer.train_items": 100': '"transfer.train_items": 50',
    '"grid.product.objective": None}': '"grid.product.objective": None, "grid.product.pretrain.seed": [0, 1]}',
}


def test_the_examples_run_in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("SYNTHLANG_CACHE", str(tmp_path / "cache"))
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    found: dict[str, Any] = {"__name__": "__main__"}
    text = TEXT
    for shown, fewer in FEWER_STEPS.items():
        assert shown in text
        text = text.replace(shown, fewer)
    for block in re.findall(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE):
        exec(compile(block, "python.md", "exec"), found)
    assert {cell.status for cell in found["study"].cells} == {"done"}
    assert Path("runs/quick/report.html").is_file() and Path("kept.md").is_file()
    used = {name for name in re.findall(r"^\|.*$", TEXT, re.MULTILINE) for name in re.findall(r"\[\w+\.(\w+)\]", name)}
    assert not [name for name in used if len(re.findall(rf"\b{name}\(", TEXT)) == 0]


def test_every_command_is_a_function():
    named = set(re.findall(r"\| `(\w+(?: \w+)?)` \| ", TEXT))
    assert {name for name, _ in commands()} - {"synthlang", "order", "data"} == named


# --- README: the tour, and the study that is also on the page of studies

CAPITALS = re.compile(r"\b[A-Z]{2,}\d?\b")
"""A word that stands for a name of the reader."""
README = (ROOT / "README.md").read_text(encoding="utf-8")
FEWER = {  # sizes for a test: what a line has is kept
    "pretrain": [
        "--set",
        "steps=4",
        "--set",
        "optimizer.warmup_steps=2",
        "--set",
        "source=builtin:mini-english?sentences=300&dev=100&test=100",
    ],
    "transfer": [
        "--set",
        "train_items=60",
        "--set",
        "dev_items=30",
        "--set",
        "test_items=30",
        "--set",
        "fine_tune.epochs=1",
    ],
}


def test_the_tour_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tour, decoder, ablation = re.findall(r"^```sh\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)
    [study] = re.findall(r"^```yaml study\n.*?^```$", README, re.DOTALL | re.MULTILINE)
    assert study in (ROOT / "docs" / "studies.md").read_text(encoding="utf-8")
    Path("my-study.yaml").write_text("\n".join(study.splitlines()[1:-1]))
    for line in (*tour.splitlines(), *decoder.splitlines(), ablation.splitlines()[0]):
        _, *words = shlex.split(line.replace("sentences=2000", "sentences=100&dev=9&test=9"), comments=True)
        done = CliRunner().invoke(app, [*words, *FEWER.get(words[0], [])])
        assert done.exit_code == 0, (line, done.output, done.exception)
    assert "4 cells" in done.output


@pytest.mark.parametrize("page", ["README.md", "docs/how-to.md"])
def test_commands_name_files_that_are_made_before_or_stand_for_those_of_the_reader(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    kinds = ("adjust", "derived", "probes", "runs", "studies", "transfer")
    known = {name for kind in kinds for name in names(kind)} | {*re.findall("Save this as `(.*?)`", text)}
    missing = []
    for command in re.findall(r"(?:^ *|`)(synthlang [a-z][^`\n]*)", text, re.MULTILINE):
        words = shlex.split(command, comments=True)
        made = {words[n + 1] for n, word in enumerate(words) if word in ("--out", "--save-models", "--init")}
        paths = [re.sub("^(text|conllu|lines):", "", word.partition("=")[2] or word) for word in words]
        paths = [path for path in paths if re.search(r"/|\.(yaml|json|csv|txt|conllu)$", path)]
        missing += [path for path in paths if path not in known | made and not CAPITALS.search(path)]
        known |= made
    assert not missing


def test_what_the_readme_links_to_is_there():
    links = re.findall(r"\]\(([^)#:]+)[^)]*\)", README)
    assert len(links) > 20 and not [link for link in links if not (ROOT / link).exists()]
