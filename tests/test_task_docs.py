"""The examples in Python of the documents on tasks and parsing run as they are written."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from synthlang.sources import open_source
from tests.test_parsing import Chain
from tests.test_tasks import write

DOCS = Path(__file__).parents[1] / "docs"


class Plain(Chain):
    """No word is trouble."""

    def parse(self, sentences):
        return [self._chain(list(words)) for words in sentences]


@pytest.fixture
def place(tmp_path, monkeypatch):
    """An empty folder to work in, with a parser of a few lines in place of the one that the documents name."""
    asked = []

    def engine(spec, morphology=False):
        assert not morphology
        asked.append(spec)
        return Plain(log=str(tmp_path / "log"))

    monkeypatch.setattr("synthlang.parsing.open_engine", engine)
    monkeypatch.setattr("synthlang.parsing.parse_command.open_engine", engine)
    monkeypatch.setenv("SYNTHLANG_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    assert asked == ["spacy:en_core_web_sm"]


def run(name):
    [block] = re.findall(r"^```python\n(.*?)^```$", (DOCS / name).read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    found = {"__name__": "__main__"}
    exec(compile(block, name, "exec"), found)
    return found


def test_tasks(place, capsys):
    found = run("tasks.md")
    assert len(found["derived"]) == len(found["batch"]) > 0
    assert capsys.readouterr().out


def test_parsing(place):
    write(place / "corpus" / "train.txt", "Anna ran home.\nShe slept.\n")
    run("parsing.md")
    source = open_source("conllu:corpus-parsed")
    assert [s.text for batch in source.batches("train") for s in batch] == ["Anna ran home .", "She slept ."]
