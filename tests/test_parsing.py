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
from synthlang.errors import InputError
from synthlang.parsing import ParsedSource, chunks, open_engine
from synthlang.parsing.chunks import ParseCache, default_cache
from synthlang.parsing.command import parse_command, write_parsed
from synthlang.parsing.engines import Parsed, one_root, problem_of
from synthlang.sources import open_source
from synthlang.sources.base import BATCH_SENTENCES, Source
from synthlang.sources.text import TextSource
from tests.parsing_models import SOURCE
from tests.test_sources_conllu import word
from tests.test_tasks import write


@dataclasses.dataclass(frozen=True)
class Chain:
    """Every word hangs on the one before it; some words are trouble. Writes a line into ``log`` at each call."""

    log: str
    fingerprint: str = "chain"
    name: str = "chain"
    version: str = "1"
    columns: tuple[str, ...] = ("form", "upos", "head", "deprel")

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
def text(tmp_path):
    def make(*lines: str) -> TextSource:
        path = tmp_path / "text.txt"
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return TextSource(path)

    return make


@pytest.fixture
def engine(tmp_path):
    return Chain(str(tmp_path / "log"))


def calls(engine: Chain) -> int:
    log = Path(engine.log)
    return len(log.read_text().splitlines()) if log.exists() else 0


def whole(source: Source, split: str = "train") -> Corpus:
    return concatenate(list(source.batches(split)))


def same(a: Corpus, b: Corpus) -> bool:
    return [dict(s.columns) for s in a] == [dict(s.columns) for s in b] and np.array_equal(a.ids, b.ids)


def lines_of(count: int) -> list[str]:
    return [f"word{i} and more" for i in range(count)]


def test_trees_are_put_on_the_words_of_the_source(text, engine, tmp_path):
    source = ParsedSource(text("a b c", "d e"), engine, tmp_path / "cache")
    assert source.columns == ("form", "upos", "head", "deprel")
    corpus = whole(source)
    assert [s.columns for s in corpus] == [
        {"form": ["a", "b", "c"], "upos": ["X"] * 3, "head": [0, 1, 2], "deprel": ["root", "dep", "dep"]},
        {"form": ["d", "e"], "upos": ["X"] * 2, "head": [0, 1], "deprel": ["root", "dep"]},
    ]
    assert corpus.ids.tolist() == [0, 1]


def test_what_the_source_knows_beside_trees_stays(engine, tmp_path):
    from datasets import Dataset

    folder = tmp_path / "data"
    folder.mkdir()
    Dataset.from_dict({"words": [["Ann", "ran"]], "upos": [["A", "B"]], "ner": [["B-PER", "O"]]}).to_parquet(
        folder / "train.parquet"
    )
    source = ParsedSource(open_source(f"hf:{folder}"), engine, tmp_path / "cache")
    assert source.columns == ("form", "upos", "head", "deprel", "ner")
    assert whole(source)[0].columns["ner"] == ["B-PER", "O"]
    assert whole(source)[0].columns["upos"] == ["X", "X"], "the parser's parts of speech, not the source's"


def test_a_second_run_and_another_source_with_the_same_text_ask_nobody(text, engine, tmp_path):
    first = ParsedSource(text(*lines_of(450)), engine, tmp_path / "cache")
    a = whole(first)
    assert calls(engine) == 3 and first.hits == {False: 3}
    second = ParsedSource(text(*lines_of(450), "one more"), engine, tmp_path / "cache")
    b = whole(second)
    assert second.hits == {True: 2, False: 1}
    assert same(a, b.between(0, 450))


def test_another_engine_does_not_see_the_cache(text, engine, tmp_path):
    whole(ParsedSource(text("a b"), engine, tmp_path / "cache"))
    other = ParsedSource(text("a b"), dataclasses.replace(engine, fingerprint="other"), tmp_path / "cache")
    whole(other)
    assert other.hits == {False: 1}


@pytest.mark.parametrize("damage", ["cut", "flip", "empty", "not gzip", "other key", "no mapping"])
def test_a_damaged_file_is_parsed_anew(text, engine, tmp_path, damage):
    make = lambda: ParsedSource(text(*lines_of(20)), engine, tmp_path / "cache")  # noqa: E731
    before = whole(make())
    (path,) = (tmp_path / "cache").rglob("*.json.gz")
    good = path.read_bytes()
    flipped = bytearray(good)
    flipped[len(good) // 2] ^= 0xFF
    bad = {"cut": good[:-5], "flip": bytes(flipped), "empty": b"", "not gzip": b"hello",
           "other key": gzip.compress(json.dumps({"key": "x", "parses": []}).encode()),
           "no mapping": gzip.compress(b"[]")}[damage]  # fmt: skip
    path.write_bytes(bad)
    source = make()
    assert same(before, whole(source))
    assert source.hits == {False: 1}
    assert path.read_bytes() == good


def test_results_depend_neither_on_workers_nor_on_chunks(text, engine, tmp_path, monkeypatch):
    lines = lines_of(BATCH_SENTENCES + 300)
    one = whole(ParsedSource(text(*lines), engine, tmp_path / "a"))
    two = ParsedSource(text(*lines), engine, tmp_path / "b", workers=2)
    assert same(one, whole(two))
    files = [{p.relative_to(tmp_path / n): p.read_bytes() for p in (tmp_path / n).rglob("*.gz")} for n in "ab"]
    assert len(files[0]) == 12 and files[0] == files[1]
    assert len({line.split()[0] for line in Path(engine.log).read_text().splitlines()}) >= 2
    monkeypatch.setattr("synthlang.parsing.source.CHUNK", 7)
    assert same(one, whole(ParsedSource(text(*lines), engine, tmp_path / "c")))


def test_a_sentence_that_cannot_be_parsed_is_left_out_and_counted(text, engine, tmp_path):
    lines = ["a b", "boom c", "loop d", "e f", "boom g"]  # fails, no tree, fails
    source = ParsedSource(text(*lines), engine, tmp_path / "cache")
    for _ in range(2):  # parsed, and from the cache
        corpus = whole(source)
        assert [s.words for s in corpus] == [["a", "b"], ["e", "f"]]
        assert corpus.ids.tolist() == [0, 1]
        reason = "the parser gave the sentence has no root: no word has the head 0"
        assert source.skipped["train"] == {"no parse": 2, reason: 1}
    assert source.hits == {False: 1, True: 1}


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["boom a", "boom b"], "chain cannot parse any sentence of a chunk: no parse"),
        (["a b", "huge c d"], "ran out of memory at a sentence of 3 words"),
    ],
)
def test_trouble_that_is_not_of_one_sentence_ends_the_work(text, engine, tmp_path, lines, message):
    with pytest.raises(InputError, match=message):
        whole(ParsedSource(text(*lines), engine, tmp_path / "cache"))
    assert not list((tmp_path / "cache").rglob("*.gz"))


def test_chunks_that_no_pipe_holds_go_to_processes_too(text, engine, tmp_path):
    lines = [" ".join(f"w{i}x{j}" for j in range(390)) for i in range(900)]
    whole(ParsedSource(text(*lines[:250]), engine, tmp_path / "b"))  # one chunk is there already
    two = ParsedSource(text(*lines), engine, tmp_path / "b", workers=2)
    assert same(whole(ParsedSource(text(*lines), engine, tmp_path / "a")), whole(two))
    assert two.hits == {True: 1, False: 4}
    assert not list(tmp_path.rglob("*.asked"))


def test_a_process_that_dies_is_one_clear_line(text, engine, tmp_path):
    with pytest.raises(InputError, match="a parsing process died"):
        whole(ParsedSource(text(*lines_of(250), "die now"), engine, tmp_path / "cache", workers=2))


def test_the_engine_may_find_its_own_words(text, engine, tmp_path):
    source = ParsedSource(text("a b ; c", "d"), engine, tmp_path / "cache", tokens="engine")
    corpus = whole(source)
    assert [s.words for s in corpus] == [["a", "b"], ["c"], ["d"]]
    assert corpus.ids.tolist() == [0, 1, 2]
    assert source.fingerprint != ParsedSource(source.source, engine, tmp_path / "cache").fingerprint


def test_bad_settings(text, engine, tmp_path):
    with pytest.raises(InputError, match=r"plain text only.*form, upos"):
        ParsedSource(open_source(SOURCE), engine, tmp_path, tokens="engine")
    with pytest.raises(InputError, match="source or engine"):
        ParsedSource(text("a"), engine, tmp_path, tokens="words")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="workers"):
        ParsedSource(text("a"), engine, tmp_path, workers=0)
    with pytest.raises(InputError, match="no split 'dev'"):
        whole(ParsedSource(text("a"), engine, tmp_path), "dev")


def test_the_folder_reads_back_as_it_was(text, engine, tmp_path):
    source = ParsedSource(text("a\u00a0b c", "# x", "boom y", "_ 1-2 z"), engine, tmp_path / "cache")
    manifest = write_parsed(source, tmp_path / "out", "text:x")
    again = concatenate(list(open_source(f"conllu:{tmp_path / 'out'}").batches("train")))
    assert same(again, whole(source))
    assert manifest == json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert manifest["sentences"] == {"train": 3}
    assert manifest["skipped"] == {"train": {"no parse": 1}}
    assert (tmp_path / "out" / "train.conllu").read_text().splitlines()[:2] == [
        "# sent_id = train-0",
        f"# text = {again[0].text}",
    ]


def test_nothing_is_written_if_nothing_can_be_parsed(text, engine, tmp_path):
    with pytest.raises(InputError, match=r"the split train has no parsed sentence \(no parse\)"):
        write_parsed(ParsedSource(text("boom"), engine, tmp_path / "cache"), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_the_command_leaves_its_own_folder_and_refuses_another(text, engine, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("synthlang.parsing.command.open_engine", lambda spec: engine)
    path = text("a b").path
    counts = [parse_command(f"text:{path}", "x", tmp_path / "out", cache=tmp_path / "cache") for _ in range(2)]
    assert counts == [{"train": 1}] * 2 and calls(engine) == 1
    assert "is there already" in capsys.readouterr().err
    text("a b c")
    with pytest.raises(InputError, match="exists already and is not this parse"):
        parse_command(f"text:{path}", "x", tmp_path / "out", cache=tmp_path / "cache")


def test_where_the_cache_is(monkeypatch, tmp_path):
    monkeypatch.setenv("SYNTHLANG_CACHE", str(tmp_path))
    assert default_cache() == tmp_path / "parses"
    monkeypatch.delenv("SYNTHLANG_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "x"))
    assert default_cache() == tmp_path / "x" / "synthlang" / "parses"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert default_cache() == Path.home() / ".cache" / "synthlang" / "parses"


@pytest.mark.parametrize("library", ["spacy", "stanza"])
def test_without_the_extra_the_command_to_install_it_is_named(library, monkeypatch):
    real = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *a: None if name == library else real(name, *a))
    with pytest.raises(InputError, match=r"pip install 'synthlang\[parse\]'"):
        open_engine(f"{library}:en")


def test_one_root():
    assert one_root([0, 0, 2, 0], ["ROOT", "ROOT", "obj", "x"]) == (
        [0, 1, 2, 1], ["root", "parataxis", "obj", "parataxis"])  # fmt: skip
    assert one_root([2, 0], ["ROOT", ""]) == ([2, 0], ["dep", "root"])
    assert one_root([], []) == ([], [])


def test_what_an_engine_must_not_give():
    good: dict[str, list[Any]] = {"form": ["a", "b"], "upos": ["X", "X"], "head": [0, 1], "deprel": ["root", "dep"]}
    columns = ("form", "upos", "head", "deprel")
    assert problem_of(good, columns, ["a", "b"]) is None
    assert "other words" in (problem_of(good, columns, ["a", "c"]) or "")
    assert "unequal" in (problem_of({**good, "upos": ["X"]}, columns, None) or "")
    assert "columns" in (problem_of({**good, "ner": ["O", "O"]}, columns, None) or "")
    assert "both roots" in (problem_of({**good, "head": [0, 0]}, columns, None) or "")
    assert problem_of({name: [] for name in columns}, columns, []) == "no word"
    assert BATCH_SENTENCES % chunks.CHUNK == 0, "chunk borders do not depend on where a batch ends"
    assert ParseCache.read(Path("nowhere.json.gz")) is None


def parsed(source, engine, tmp_path):
    """The parse of a source, and the same after it was written and read again."""
    source = ParsedSource(source, engine, tmp_path / "cache")
    write_parsed(source, tmp_path / "out")
    return source, open_source(f"conllu:{tmp_path / 'out'}")


def test_slots_and_names_are_read_back(engine, tmp_path):
    for part, text in (
        ("seq.in", "fly to new york\ngo\n"),
        ("seq.out", "O O B-a|b\\p=c I-a|b\\p=c\nO\n"),
        ("label", "i\nj\n"),
    ):
        write(tmp_path / "s" / "train" / part, text)
    before, after = parsed(open_source(f"slots:{tmp_path / 's'}"), engine, tmp_path)
    assert "slot" in after.columns and "ner" not in after.columns
    assert same(whole(before), whole(after))
    assert whole(after)[0].columns["slot"] == ["O", "O", "B-a|b\\p=c", "I-a|b\\p=c"]


def test_entities_are_read_back(engine, tmp_path):
    path = write(tmp_path / "x.txt", "Ann B-PER\nran O\n\nEU S-ORG\n")
    before, after = parsed(open_source(f"iob:{path}"), engine, tmp_path)
    assert same(whole(before), whole(after))
    assert whole(after).columns["ner"].values() == ["B-PER", "O", "B-ORG"]
    assert (tmp_path / "out" / "train.conllu").read_text().splitlines()[2].endswith("\tNER=B-PER")


def test_features_are_read_back(engine, tmp_path):
    lines = [word(1).replace("X\t_\t_", "X\t_\tCase=Nom|Number=Plur"), word(2, head=1)]
    path = write(tmp_path / "x.conllu", "\n".join(lines))
    _, after = parsed(open_source(f"conllu:{path}?feats"), engine, tmp_path)
    assert after.columns == ("form", "upos", "head", "deprel")
    again = open_source(f"conllu:{tmp_path / 'out'}?feats")
    assert whole(again)[0].columns["feats"] == ["Case=Nom|Number=Plur", "_"]


def folder_is_left_alone(call, tmp_path, message):
    with pytest.raises(InputError, match=message):
        call()
    assert not (tmp_path / "p").exists()


def test_wrong_input_leaves_no_empty_folders(engine, tmp_path, monkeypatch):
    monkeypatch.setattr("synthlang.parsing.command.open_engine", lambda spec: engine)
    late = tmp_path / "late.txt"
    late.write_bytes(b"a b .\n" * 3000 + b"\xff\n")
    call = lambda: parse_command(f"text:{late}", "x", tmp_path / "p" / "q", cache=tmp_path / "cache")  # noqa: E731
    folder_is_left_alone(call, tmp_path, "late.txt:3001: not UTF-8")


@pytest.mark.parametrize("inside", ["", "sub/folder"])
def test_a_cache_that_is_a_file_is_named(engine, tmp_path, monkeypatch, inside):
    monkeypatch.setattr("synthlang.parsing.command.open_engine", lambda spec: engine)
    file = write(tmp_path / "c.txt", "x\n")
    with pytest.raises(InputError, match=r"c.txt: the parse cache must be a folder, this is a file"):
        parse_command(f"text:{file}", "x", tmp_path / "p" / "out", cache=file / inside)
    assert not (tmp_path / "p").exists()


def test_another_run_to_the_same_folder_is_left_alone(engine, tmp_path):
    write(tmp_path / "t.txt", "a b\n")
    live = tmp_path / ".tmp-out-0123abcd"
    live.mkdir()
    source = ParsedSource(open_source(f"text:{tmp_path / 't.txt'}"), engine, tmp_path / "cache")
    with FileLock(tmp_path / ".lock-out"), pytest.raises(InputError, match="being written by another process"):
        write_parsed(source, tmp_path / "out")
    assert live.exists()
    beside = tmp_path / ".tmp-out-dev-0123abcd"
    beside.mkdir()
    write_parsed(source, tmp_path / "out")
    assert not live.exists() and beside.exists()


def test_one_clear_line_for_a_tag_that_is_none(tmp_path):
    tagged = [word(1).removesuffix("_") + "NER=B-PER", "", word(1).removesuffix("_") + "NER=PER"]
    path = write(tmp_path / "x.conllu", "\n".join(tagged))
    with pytest.raises(InputError, match=r"x.conllu:3: ner: the tag 'PER' must be O, or B- or I-"):
        list(open_source(f"conllu:{path}").batches("train"))


@pytest.mark.parametrize(
    ("first", "second", "columns"),
    [
        ("NER=B-PER", "_", ("ner",)),
        ("Slot=O|Gloss=x", "Slot=I-x", ("slot",)),
        ("A=b|NER=O|Slot=O", "Slot=B-x|NER=O", ("ner", "slot")),
        ("_", "NER=B-PER", ()),
        ("NER=PERSON", "NER=B-PER", ()),
        ("Corner=B-PER", "_", ()),
    ],
)
def test_the_first_sentence_tells_which_tags_there_are(tmp_path, first, second, columns):
    lines = [word(1).removesuffix("_") + first, "", word(1).removesuffix("_") + second]
    path = write(tmp_path / "x.conllu", "\n".join(lines))
    source = open_source(f"conllu:{path}")
    assert source.columns == ("form", "upos", "head", "deprel", *columns)
    corpus = concatenate(list(source.batches("train")))
    assert tuple(corpus.columns) == source.columns
    if columns == ("ner",):
        assert corpus.columns["ner"].values() == ["B-PER", "O"]
    if columns == ("slot",):
        assert corpus.columns["slot"].values() == ["O", "B-x"], "made legal"
