"""The data of a study comes from a server: errors name what is missing, and from an empty folder there is a report."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from synthlang.corpus import Corpus
from synthlang.data import list_sets
from synthlang.data.conversions.labels import LabelTable
from synthlang.data.conversions.tables import ClassifiedPairs
from synthlang.data.entries import entry
from synthlang.data.record import read_record
from synthlang.parsing.parse_command import conllu
from synthlang.sources import open_source
from synthlang.tasks import open_task
from tests.data_server import DataServer, serving
from tests.study_cases import command
from tests.test_data_fetch import parquet

ENGLISH = "builtin:mini-english?types=500&sentences=700&dev=60&test=60"


def sentences(split: str) -> list[Corpus]:
    return list(open_source(ENGLISH).batches(split))


def publish_text_and_treebank(server: DataServer) -> None:
    """Put the first file of Wikipedia and the English treebank on the server, as sentences of the grammar."""
    text = [text for batch in sentences("train") for text in batch.texts()]
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


def test_a_study_names_missing_and_incomplete_data_until_they_are_fetched(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    study = ("study", "align_mlm-figure1", "--size", "lab", "--out", "runs/figure1")
    assert command(monkeypatch, *study) == 2
    [said] = capsys.readouterr().err.splitlines()
    assert said.startswith(
        "error: data: 2 data sets of the study are missing: text/en, ud/en; run: synthlang data fetch"
    )
    fetch = re.findall("run: synthlang (.*?);", said)[0].split()

    with serving() as server:
        monkeypatch.setenv("HF_ENDPOINT", server.address)
        publish_text_and_treebank(server)
        assert command(monkeypatch, *fetch) == 2, "without consent"
        assert command(monkeypatch, *fetch, "--from", server.address, "--yes") == 0
        capsys.readouterr()
        Path("data/ud/en/en_ewt-ud-dev.conllu").write_text("")
        assert command(monkeypatch, *study, "--dry-run") == 2
        told, [said] = (text.splitlines() for text in capsys.readouterr())
        fault = r"ud/en \(ud/en/en_ewt-ud-dev.conllu has 0 bytes instead of [\d,]+\)"
        assert re.match(f"error: data: 1 data set of the study is missing or incomplete: {fault}; run: ", said)
        assert "data: 1 of 2 data sets are there" in told and re.match(f"data to fetch: {fault} ", told[-1])
        assert command(monkeypatch, *fetch, "--from", server.address, "--yes") == 0
    assert not [path for _, path, _ in server.requests if "00001-of" in path]
    assert read_record(tmp_path / "data").sets["text/en"].variant == "lab"
    assert [item.state for item in list_sets(["text/en", "ud/en"], size="paper")] == ["here, the lab source", "here"]

    assert command(monkeypatch, *study, "--dry-run") == 0
    assert command(monkeypatch, "data", "check") == 0
    assert "text/en: as recorded; train: " in capsys.readouterr().out


@dataclass(frozen=True)
class Flat:
    """A parser for which all words hang on the first one."""

    fingerprint = name = version = "flat"
    columns = ("form", "upos", "head", "deprel")

    def parse(self, sentences):
        return [self._parsed([*words]) for words in sentences]

    def _parsed(self, words):
        rest = len(words) - 1
        return {
            "form": words,
            "upos": ["VERB", *["NOUN"] * rest],
            "head": [0, *[1] * rest],
            "deprel": ["root", *["obj"] * rest],
        }


def tagged() -> bytes:
    found = [sentence.columns for batch in sentences("train") for sentence in batch]
    names = cast(LabelTable, entry("ner/en").convert).names
    numbers = [[names.index(tag) for tag in one["ner"]] for one in found]
    return parquet(tokens=[list(one["form"]) for one in found], ner_tags=numbers)


def classified() -> bytes:
    task, convert = open_task(f"nli:{ENGLISH}"), cast(ClassifiedPairs, entry("nli/en").convert)
    found = list(task.batches("train"))
    label = [convert.labels.index(task.labels[code]) for batch in found if batch.label for code in batch.label.codes]
    sides = [[text for batch in found for text in batch.strings(side)] for side in (0, 1)]
    return parquet(premise=sides[0], hypothesis=sides[1], label=label)


def test_from_an_empty_folder_to_the_report_of_table_3(tmp_path, monkeypatch, capsys):
    """All five data sets of the study: running text, its trees, a treebank, pairs and entities."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    for place in ("synthlang.data.steps.parse", "probes.stages.inputs", "synthlang.parsing"):
        monkeypatch.setattr(f"{place}.open_engine", lambda *_, **__: Flat())
    study = ("align_mlm-table3", "--size", "lab")
    with serving() as server:
        monkeypatch.setenv("HF_ENDPOINT", server.address)
        publish_text_and_treebank(server)
        for name, content in (("nli/en", classified()), ("ner/en", tagged())):
            source = entry(name).source
            assert source.kind == "hub" and source.revision
            places = [pattern.replace("*", f"{part}-00000-of-00001") for pattern in source.files
                      for part in (("train", "validation", "test") if "*" in pattern else ("",))]  # fmt: skip
            server.repos[source.repo, source.revision] = dict.fromkeys(places, content)
        fetch = ("data", "fetch", "--for", *study, "--from", server.address, "--yes")
        assert command(monkeypatch, *fetch) == 0, capsys.readouterr().err
    assert command(monkeypatch, "data", "check") == 0
    options = (
        "--smoke",
        "--executor",
        "in-process",
        "--only",
        "objective=MLM, transform=trans+syn",
        "--out",
        "runs/table3",
    )
    assert command(monkeypatch, "study", *study, *options) == 0, capsys.readouterr().err
    assert (tmp_path / "runs" / "table3-smoke" / "report.html").is_file()
