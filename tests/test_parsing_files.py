"""What parses leave on disk: tags that are read back, locks, caches that are none, leftovers of killed runs."""

from __future__ import annotations

import pytest
from filelock import FileLock

from synthlang.corpus import concatenate
from synthlang.errors import InputError
from synthlang.parsing import ParsedSource
from synthlang.parsing.command import parse_command, write_parsed
from synthlang.sources import open_source
from tests.test_parsing import Chain, same, whole
from tests.test_sources_conllu import word
from tests.test_tasks import write


@pytest.fixture
def engine(tmp_path):
    return Chain(str(tmp_path / "log"))


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
    with pytest.raises(InputError, match=r"x.conllu:3: the ner tag 'PER' must be O, B-… or I-…"):
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
