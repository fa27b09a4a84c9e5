"""Parsed sources: chunks, cache, what cannot be parsed, files; with an engine of a few lines."""

from __future__ import annotations

import dataclasses
import gzip
import importlib.util
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from filelock import FileLock

from synthlang.corpus import Corpus, concatenate
from synthlang.distribution import install_command
from synthlang.errors import InputError
from synthlang.parsing import ParsedSource, chunks, open_engine
from synthlang.parsing.chunks import default_cache
from synthlang.parsing.engines import Engine, Parsed, one_root, problem_of
from synthlang.parsing.parse_command import parse_command, write_parsed
from synthlang.sources import open_source
from synthlang.sources.base import BATCH_SENTENCES, Source
from tests.refusals import refusal, refused
from tests.test_sources_conllu import word
from tests.test_tasks import write

COLUMNS = ("form", "upos", "head", "deprel")


@dataclasses.dataclass(frozen=True)
class Chain(Engine):
    """Every word hangs on the one before it; some words are trouble. Writes a line into ``log`` at each call."""

    name: str = "chain"
    version: str = "1"
    fingerprint: str = "chain"
    columns: tuple[str, ...] = COLUMNS
    log: str = ""

    def parse(self, sentences: Sequence[Sequence[str]]) -> list[Parsed]:
        with Path(self.log).open("a") as handle:
            handle.write(f"{os.getpid()} {len(sentences)}\n")
        for words in sentences:
            if "boom" in words:
                raise RuntimeError("no parse\nand a second line")
            if "huge" in words:
                raise MemoryError
            if "die" in words:
                os._exit(1)
        return [self._chain(list(words)) for words in sentences]

    def _chain(self, words: list[str]) -> Parsed:
        label = ["root"] + ["dep"] * (len(words) - 1)
        head = list(range(len(words)))
        return {"form": words, "upos": ["X"] * len(words), "head": [2, 1] if "loop" in words else head, "deprel": label}

    def parse_text(self, lines: Sequence[str]) -> list[list[Parsed]]:
        return [[self._chain(part.split()) for part in line.split(";") if part.strip()] for line in lines]


@pytest.fixture
def engine(tmp_path):
    return Chain(log=str(tmp_path / "log"))


@pytest.fixture
def parse(tmp_path, engine):
    """The lines of a text, or a spec, as a parsed source; the cache is in ``tmp_path``."""

    def make(
        *lines: str, spec: str = "", cache: str = "cache", engine: Chain = engine, **settings: Any
    ) -> ParsedSource:
        if lines:
            spec = f"text:{write(tmp_path / 'text.txt', chr(10).join(lines))}"
        return ParsedSource(open_source(spec), engine, tmp_path / cache, **settings)

    return make


def whole(source: Source, split: str = "train") -> Corpus:
    return concatenate(list(source.batches(split)))


def same(a: Corpus, b: Corpus) -> bool:
    return [dict(s.columns) for s in a] == [dict(s.columns) for s in b] and np.array_equal(a.ids, b.ids)


def words_of(source: Source) -> list[list[str]]:
    corpus = whole(source)
    assert corpus.ids.tolist() == list(range(len(corpus)))
    return [s.words for s in corpus]


def lines_of(count: int) -> list[str]:
    return [f"word{i} and more" for i in range(count)]


def test_trees_are_put_on_the_words_of_the_source(parse):
    source = parse("a b c", "d e")
    assert source.columns == COLUMNS
    assert [s.columns for s in whole(source)] == [
        {"form": ["a", "b", "c"], "upos": ["X"] * 3, "head": [0, 1, 2], "deprel": ["root", "dep", "dep"]},
        {"form": ["d", "e"], "upos": ["X"] * 2, "head": [0, 1], "deprel": ["root", "dep"]},
    ]


def test_known_chunks_ask_nobody_and_another_engine_does_not_see_them(parse, engine):
    first = parse(*lines_of(450))
    a = whole(first)
    assert len(Path(engine.log).read_text().splitlines()) == 3 and first.hits == {False: 3}
    second = parse(*lines_of(450), "one more")
    b = whole(second)
    assert second.hits == {True: 2, False: 1} and same(a, b.between(0, 450))
    other = parse(*lines_of(450), engine=dataclasses.replace(engine, fingerprint="other"))
    whole(other)
    assert other.hits == {False: 3}


@pytest.mark.parametrize("damage", ["cut", "flip", "empty", "not gzip", "other key", "no mapping"])
def test_a_damaged_file_is_parsed_anew(parse, tmp_path, damage):
    before = whole(parse(*lines_of(20)))
    (path,) = (tmp_path / "cache").rglob("*.json.gz")
    good = path.read_bytes()
    flipped = bytearray(good)
    flipped[len(good) // 2] ^= 0xFF
    bad = {"cut": good[:-5], "flip": bytes(flipped), "empty": b"", "not gzip": b"hello",
           "other key": gzip.compress(json.dumps({"key": "x", "parses": []}).encode()),
           "no mapping": gzip.compress(b"[]")}[damage]  # fmt: skip
    path.write_bytes(bad)
    source = parse(*lines_of(20))
    assert same(before, whole(source))
    assert source.hits == {False: 1} and path.read_bytes() == good


def test_results_depend_neither_on_workers_nor_on_chunks(parse, engine, tmp_path, monkeypatch):
    lines = lines_of(BATCH_SENTENCES)
    lines += [" ".join(f"w{i}x{j}" for j in range(390)) for i in range(300)]  # chunks that no pipe holds
    whole(parse(*lines[200:400], cache="b"))  # one chunk is there already
    one = whole(parse(*lines, cache="a"))
    two = parse(*lines, cache="b", workers=2)
    assert same(one, whole(two)) and two.hits == {True: 1, False: 11}
    files = [{p.relative_to(tmp_path / n): p.read_bytes() for p in (tmp_path / n).rglob("*.gz")} for n in "ab"]
    assert len(files[0]) == 12 and files[0] == files[1]
    assert len({line.split()[0] for line in Path(engine.log).read_text().splitlines()}) >= 2
    monkeypatch.setattr("synthlang.parsing.source.CHUNK", 7)
    assert same(one, whole(parse(*lines, cache="c")))
    assert BATCH_SENTENCES % chunks.CHUNK == 0, "chunk borders do not depend on where a batch ends"


def test_a_sentence_that_cannot_be_parsed_is_left_out_and_counted(parse):
    source = parse("a b", "boom c", "loop d", "e f", "boom g")  # fails, no tree, fails
    for _ in range(2):  # parsed, and from the cache
        assert words_of(source) == [["a", "b"], ["e", "f"]]
        reason = "the parser gave no tree: the sentence has no root: no word has the head 0"
        assert source.skipped["train"] == {"no parse": 2, reason: 1}
    assert source.hits == {False: 1, True: 1}


@pytest.mark.parametrize(
    ("lines", "workers", "code", "reason"),
    [
        (["boom a", "boom b"], 1, "failed", "chain failed at 2 sentences in a row: no parse"),
        (["a b", "huge c d"], 1, "resources", "chain ran out of memory at a sentence of 3 words"),
        (
            [*["long " * 390] * 1000, "die now"],
            2,
            "resources",
            "a worker process ended unexpectedly, most likely for lack of memory",
        ),
    ],
)
def test_trouble_that_is_not_of_one_sentence_ends_the_work(parse, tmp_path, lines, workers, code, reason):
    error = refusal(lambda: whole(parse(*lines, workers=workers)))
    assert (error.code, error.reason) == (code, reason)
    assert workers > 1 or not list((tmp_path / "cache").rglob("*.gz"))


def test_the_engine_may_find_its_own_words(parse):
    source = parse("a b ; c", "d", tokens="engine")
    assert words_of(source) == [["a", "b"], ["c"], ["d"]]
    assert source.fingerprint != parse("a b ; c", "d").fingerprint


def test_bad_settings(parse):
    assert refused(parse, spec="builtin:mini-english", tokens="engine") == ("--tokens", "conflict")
    assert refused(lambda: whole(parse("a"), "dev")) == ("the source to parse", "missing")


# --- the folder that is written


def test_the_folder_reads_back_as_it_was(parse, tmp_path):
    source = parse("a\u00a0b c", "# x", "boom y", "_ 1-2 z")
    manifest = write_parsed(source, tmp_path / "out", "text:x")
    again = whole(open_source(f"conllu:{tmp_path / 'out'}"))
    assert same(again, whole(source))
    assert manifest == json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert manifest["sentences"] == {"train": 3} and manifest["skipped"] == {"train": {"no parse": 1}}
    written = (tmp_path / "out" / "train.conllu").read_text().splitlines()
    assert written[:2] == ["# sent_id = train-0", f"# text = {again[0].text}"]


FEATURES = "\n".join([word(1).replace("X\t_\t_", "X\t_\tCase=Nom|Number=Plur"), word(2, head=1)])


@pytest.mark.parametrize(
    ("files", "spec", "read", "column", "values"),
    [
        ({"t/train/seq.in": "fly to new york\ngo\n", "t/train/seq.out": "O O B-a|b\\p=c I-a|b\\p=c\nO\n",
          "t/train/label": "i\nj\n"}, "slots:t", "", "slot", ["O", "O", "B-a|b\\p=c", "I-a|b\\p=c", "O"]),
        ({"x.txt": "Ann B-PER\nran O\n\nEU S-ORG\n"}, "iob:x.txt", "", "ner", ["B-PER", "O", "B-ORG"]),
        ({"x.conllu": FEATURES}, "conllu:x.conllu?feats", "?feats", "feats", ["Case=Nom|Number=Plur", "_"]),
        ({"x.conllu": FEATURES.replace("w\t_", "w\tW")}, "conllu:x.conllu?lemma", "?lemma", "lemma", ["W", "W"]),
        ({"h/train.jsonl": '{"words": ["Ann", "ran"], "upos": ["A", "B"], "ner": ["B-PER", "O"]}\n'}, "hf:h", "", "ner",
         ["B-PER", "O"]),
    ],
)  # fmt: skip
def test_what_the_source_knows_beside_trees_is_kept_and_read_back(parse, tmp_path, files, spec, read, column, values):
    for name, text in files.items():
        write(tmp_path / name, text)
    scheme, _, name = spec.partition(":")
    source = parse(spec=f"{scheme}:{tmp_path / name}")
    write_parsed(source, tmp_path / "out")
    after = open_source(f"conllu:{tmp_path / 'out'}{read}")
    assert source.columns == after.columns == (*COLUMNS, column)
    assert same(whole(source), whole(after)) and whole(after).columns[column].values() == values
    assert set(whole(after).columns["upos"].values()) == {"X"}, "the parser's parts of speech, not the source's"


def test_nothing_is_written_if_nothing_can_be_parsed(parse, tmp_path):
    assert refused(write_parsed, parse("boom"), tmp_path / "out") == ("train", "empty")
    assert not (tmp_path / "out").exists()


def test_the_command_leaves_its_own_folder_and_refuses_another(engine, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("synthlang.parsing.parse_command.open_engine", lambda spec, morphology: engine)
    path = write(tmp_path / "t.txt", "a b")
    counts = [parse_command(f"text:{path}", "x", tmp_path / "out", cache=tmp_path / "cache") for _ in range(2)]
    assert counts == [{"train": 1}] * 2 and len(Path(engine.log).read_text().splitlines()) == 1
    assert "already complete" in capsys.readouterr().err
    late = tmp_path / "late.txt"
    late.write_bytes(b"a b .\n" * 3000 + b"\xff\n")
    write(path, "a b c")
    for text, out, cache, place, code in (
        (path, tmp_path / "out", tmp_path / "cache", "out", "exists"),
        (late, tmp_path / "p" / "q", tmp_path / "cache", "late.txt:3001", "format"),
        (path, tmp_path / "p" / "q", path, "t.txt", "type"),
        (path, tmp_path / "p" / "q", path / "sub/folder", "t.txt", "type"),
    ):
        assert refused(parse_command, f"text:{text}", "x", out, cache=cache) == (place, code)
        assert not (tmp_path / "p").exists()  # no empty folders are left


def test_another_run_to_the_same_folder_is_left_alone(parse, tmp_path):
    live, beside = tmp_path / ".tmp-out-0123abcd", tmp_path / ".tmp-out-dev-0123abcd"
    live.mkdir()
    with FileLock(tmp_path / ".lock-out"), pytest.raises(InputError, match="being written by another process"):
        write_parsed(parse("a b"), tmp_path / "out")
    assert live.exists()
    beside.mkdir()
    write_parsed(parse("a b"), tmp_path / "out")
    assert not live.exists() and beside.exists()


def test_where_the_cache_is(monkeypatch, tmp_path):
    monkeypatch.setenv("SYNTHLANG_CACHE", str(tmp_path))
    assert default_cache() == tmp_path / "parses"
    monkeypatch.delenv("SYNTHLANG_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "x"))
    assert default_cache() == tmp_path / "x" / "synthlang" / "parses"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert default_cache() == Path.home() / ".cache" / "synthlang" / "parses"


# --- engines


@pytest.mark.parametrize("library", ["spacy", "stanza"])
def test_without_the_extra_the_command_to_install_it_is_named(library, monkeypatch):
    real = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *a: None if name == library else real(name, *a))
    error = refusal(open_engine, f"{library}:en")
    assert (error.code, error.hint) == ("extra", f"run: {install_command('parse')}")


def test_one_root():
    assert one_root([0, 0, 2, 0], ["ROOT", "ROOT", "obj", "x"]) == (
        [0, 1, 2, 1], ["root", "parataxis", "obj", "parataxis"])  # fmt: skip
    assert one_root([2, 0], ["ROOT", ""]) == ([2, 0], ["dep", "root"])
    assert one_root([], []) == ([], [])


@pytest.mark.parametrize(
    ("changes", "words", "problem"),
    [
        ({}, ["a", "b"], None),
        ({}, ["a", "c"], "words that differ from those given"),
        ({"head": [0, 0]}, None, "no tree: words 1 and 2 are both roots, but a sentence has only one"),
    ],
)
def test_what_an_engine_must_not_give(changes, words, problem):
    good = {"form": ["a", "b"], "upos": ["X", "X"], "head": [0, 1], "deprel": ["root", "dep"]}
    assert problem_of(good | changes, words) == problem
