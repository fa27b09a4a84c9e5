"""README and the page on Python: the tour and the examples run as they are written; every command has a function."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest
from typer.testing import CliRunner

from probes.cli import app
from probes.reference import commands
from tests.test_task_docs import Plain

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
FEWER_STEPS = {  # what is in the page → in the test
    '"steps": 40, "optimizer.warmup_steps": 5': '"steps": 6, "optimizer.warmup_steps": 2',
    '"pretrain.steps": 40, "pretrain.optimizer.warmup_steps": 5, "pretrain.validation.every": 40': (
        '"pretrain.steps": 6, "pretrain.optimizer.warmup_steps": 2, "pretrain.validation.every": 6'
    ),
    '"grid.product.objective": None}': '"grid.product.objective": None, "grid.product.pretrain.seed": [0, 1]}',
}
FILES = {
    "corpus/train.txt": "Anna ran home.\nShe slept.\n",
    "treebank.conllu": "1\ta\t_\tDET\t_\t_\t2\tdet\t_\t_\n2\tcat\t_\tNOUN\t_\t_\t3\tnsubj\t_\t_\n"
    "3\tsleeps\t_\tVERB\t_\t_\t0\troot\t_\t_\n\n",
    "fr@N.orm": "PRE_DET_@NOUN 1.0\n",
    "fr@V.orm": "PRE_NOUN_@VERB 1.0\n",
    "left.txt": "a b\nc d\n",
    "right.txt": "A B\nC D\n",
    "links.txt": "0-0 1-1\n0-1\n",
    "gold.txt": "0-0 1-1\n0-0 1-1\n",
}


@pytest.fixture
def place(tmp_path, monkeypatch):
    """The files that the examples name, a parser of a few lines and a hub that takes everything."""
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.setattr("synthlang.parsing.parse_command.open_engine", lambda spec: Plain(str(tmp_path / "log")))
    monkeypatch.setattr("huggingface_hub.HfApi", MagicMock())
    monkeypatch.setenv("SYNTHLANG_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)


def test_the_examples_run(place):
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
    assert {name for name, _ in commands()} - {"synthlang", "order"} == named


# --- README: the tour, and the study that is also on the page of studies

README = (ROOT / "README.md").read_text(encoding="utf-8")
FEWER = {  # sizes for a test: what a line has is kept
    "pretrain": [
        "--set",
        "steps=20",
        "--set",
        "optimizer.warmup_steps=5",
        "--set",
        "source=builtin:mini-english?sentences=300",
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
    tour, ablation = re.findall(r"^```sh\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)
    [study] = re.findall(r"^```yaml study\n.*?^```$", README, re.DOTALL | re.MULTILINE)
    assert study in (ROOT / "docs" / "studies.md").read_text(encoding="utf-8")
    Path("my-study.yaml").write_text("\n".join(study.splitlines()[1:-1]))
    for line in (*tour.splitlines(), ablation.splitlines()[0]):
        _, *words = shlex.split(line, comments=True)
        done = CliRunner().invoke(app, [*words, *FEWER.get(words[0], [])])
        assert done.exit_code == 0, (line, done.output, done.exception)
    assert "4 cells" in done.output


def test_what_the_readme_links_to_is_there():
    links = re.findall(r"\]\(([^)#:]+)[^)]*\)", README)
    assert len(links) > 20 and not [link for link in links if not (ROOT / link).exists()]
