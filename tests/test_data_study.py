"""From an empty folder to a report: the data of a study comes from a server, and the study runs on it."""

from __future__ import annotations

import re

from synthlang.corpus import Corpus
from synthlang.data import list_sets
from synthlang.data.entries import entry
from synthlang.data.record import read_record
from synthlang.parsing.parse_command import conllu
from synthlang.sources import open_source
from tests.data_server import serving
from tests.study_cases import command
from tests.test_data_fetch import parquet

ENGLISH = "builtin:mini-english?types=500&sentences=700&dev=60&test=60"


def sentences(split: str) -> list[Corpus]:
    return list(open_source(ENGLISH).batches(split))


def test_two_commands_end_in_a_report(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    study = ("study", "align_mlm-figure1", "--size", "lab", "--out", "runs/figure1")
    assert command(monkeypatch, *study) == 2
    [said] = capsys.readouterr().err.splitlines()
    assert said.startswith(
        "error: data: 2 data sets of the study are missing: text/en, ud/en; run: synthlang data fetch"
    )
    fetch = re.findall("run: synthlang (.*?);", said)[0].split()

    text = [text for batch in sentences("train") for text in batch.texts()]
    with serving() as server:
        monkeypatch.setenv("HF_ENDPOINT", server.address)
        wiki, treebank = entry("text/en").source, entry("ud/en").source
        assert wiki.kind == "hub" and treebank.kind == "git" and wiki.revision
        articles = ["\n".join(text[start : start + 2]) for start in range(0, len(text), 2)]
        server.repos[wiki.repo, wiki.revision] = {
            "20231101.en/train-00000-of-00041.parquet": parquet(text=articles),
            "20231101.en/train-00001-of-00041.parquet": b"not read at lab",
        }
        for file, split in zip(treebank.remote, ("train", "dev", "test"), strict=True):
            found = (sentence for batch in sentences(split) for sentence in batch)
            content = "".join(conllu(sentence, split) for sentence in found)
            server.files[file.url.removeprefix("https://")] = content.encode()
        assert command(monkeypatch, *fetch) == 2, "without consent"
        assert command(monkeypatch, *fetch, "--from", server.address, "--yes") == 0
    assert not [path for _, path, _ in server.requests if "00001-of" in path]
    assert read_record(tmp_path / "data").sets["text/en"].variant == "lab"
    assert [item.state for item in list_sets(["text/en", "ud/en"], size="paper")] == ["here, the lab source", "here"]

    assert command(monkeypatch, *study, "--smoke", "--executor", "in-process", "--only", "objective=MLM") == 0
    assert (tmp_path / "runs" / "figure1-smoke" / "report.html").is_file()
    assert command(monkeypatch, "data", "check") == 0
    assert "text/en: as recorded; train: " in capsys.readouterr().out
