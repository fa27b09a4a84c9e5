"""The examples of the page on Python run as they are written, in order; every command has a function in its table."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.test_golden_features import commands
from tests.test_task_docs import Plain

TEXT = (Path(__file__).parents[1] / "docs" / "python.md").read_text(encoding="utf-8")
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


class Hub:
    """A hub that takes everything."""

    def __init__(self, **_):
        pass

    def create_repo(self, repo_id, **_):
        return f"https://hub/{repo_id}"

    def upload_folder(self, **_):
        pass


@pytest.fixture
def place(tmp_path, monkeypatch):
    """The files that the examples name, a parser of a few lines and a hub that takes everything."""
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.setattr("synthlang.parsing.parse_command.open_engine", lambda spec: Plain(str(tmp_path / "log")))
    monkeypatch.setattr("huggingface_hub.HfApi", Hub)
    monkeypatch.setenv("SYNTHLANG_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)


def test_the_examples_run(place):
    found = {"__name__": "__main__"}
    for block in re.findall(r"^```python\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE):
        exec(compile(block, "python.md", "exec"), found)
    assert {cell.status for cell in found["study"].cells} == {"done"}
    assert Path("runs/quick/report.html").is_file() and Path("kept.md").is_file()
    used = {name for name in re.findall(r"^\|.*$", TEXT, re.MULTILINE) for name in re.findall(r"\[\w+\.(\w+)\]", name)}
    assert not [name for name in used if len(re.findall(rf"\b{name}\(", TEXT)) == 0]


def test_every_command_is_a_function():
    named = set(re.findall(r"\| `(\w+(?: \w+)?)` \| ", TEXT))
    assert {name for name, _ in commands()} - {"synthlang", "order"} == named
