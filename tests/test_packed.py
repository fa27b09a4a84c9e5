"""Packed files unpack up to a limit, whoever reads them."""

import bz2
import gzip
import json
import lzma
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from probes.static.vectors import read_vec
from synthlang import packed
from synthlang.catalogue import load_yaml
from synthlang.dictionary.word_dictionary import read_muse
from synthlang.order.model import read_model
from synthlang.packed import LIMIT, open_packed
from synthlang.parallel.text import read_joint
from synthlang.sources import open_source
from synthlang.tasks import open_task
from tests.refusals import place_and_code, refusal, refused

MODEL = json.dumps({"kind": "order-model", "name": "x" * (1 << 20)}).encode()
VECTORS = b"10000 2\n" + b"".join(b"%d 0 0\n" % word for word in range(10_000))
BOMBS = {
    "text": (b"\n" * (1 << 20), lambda path: open_source(f"text:{path}")),
    "lines": (b"a b\n" * (1 << 18), lambda path: list(open_source(f"lines:{path}").batches("train"))),
    "parallel text": (b"a ||| b\n" * (1 << 17), read_joint),
    "order model": (MODEL, read_model),
    "word vectors": (VECTORS, read_vec),
}


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(packed, "RATIO", 2)
    monkeypatch.setattr(packed, "FREE", 1 << 14)


@pytest.mark.parametrize("case", BOMBS)
def test_a_small_file_that_unpacks_to_much_is_refused_before_it_is_unpacked(case, tmp_path):
    content, read = BOMBS[case]
    path = tmp_path / "x.txt.gz"
    path.write_bytes(gzip.compress(content))
    assert refused(read, path) == ("x.txt.gz", "range")


def test_a_file_that_states_a_size_over_the_limit_is_refused_before_a_line_is_read(tmp_path):
    path = tmp_path / "x.txt.gz"
    path.write_bytes(gzip.compress(b"\n" * (1 << 20)))

    def read() -> None:
        with packed.open_packed(path):
            raise AssertionError("lines could be read")

    assert refused(read) == ("x.txt.gz", "range")


@pytest.mark.parametrize("end", [b"", b"\xff" * 4])
def test_a_file_that_is_cut_off_is_damaged_whatever_its_last_bytes_state(tmp_path, end):
    path = tmp_path / "x.txt.gz"
    text = "\n".join(str(n * n) for n in range(10_000)).encode()
    path.write_bytes(gzip.compress(text)[:-100] + end)
    assert packed.stated_size(path) > packed.most_unpacked(path.stat().st_size)
    assert refused(open_source, f"text:{path}") == ("x.txt.gz", "damaged")


@pytest.mark.parametrize("end", [gzip.compress(b"a b\n"), bytes(4)])
def test_a_file_whose_end_states_another_size_is_refused_at_the_limit(tmp_path, end):
    path = tmp_path / "x.txt.gz"
    path.write_bytes(gzip.compress(b"\n" * (1 << 20)) + end)
    assert refused(open_source, f"text:{path}") == ("x.txt.gz", "range")


FOREIGN = {
    "gzip": gzip.compress(b"a b\n"),
    "zip": b"PK\x03\x04" + bytes(30),
    "xz": lzma.compress(b"a b\n"),
    "bzip2": bz2.compress(b"a b\n"),
    "UTF-16": "a b\n".encode("utf-16"),
    "UTF-16 ": "a b c d\n".encode("utf-16-be"),
}
READERS: dict[str, Callable[[Path], Any]] = {
    "text": lambda path: open_source(f"text:{path}"),
    "lines": lambda path: open_source(f"lines:{path}"),
    "iob": lambda path: open_source(f"iob:{path}"),
    "conllu": lambda path: open_source(f"conllu:{path}"),
    "nli": lambda path: open_task(f"nli:{path}"),
    "slots": lambda path: open_task(f"slots:{path}"),
    "qa": lambda path: open_task(f"qa:{path}"),
    "parallel text": read_joint,
    "dictionary": read_muse,
    "config": load_yaml,
}


@pytest.mark.parametrize("content", FOREIGN)
@pytest.mark.parametrize("reader", READERS)
def test_content_that_is_no_text_is_named(tmp_path, content, reader):
    path = tmp_path / "x.yaml"
    path.write_bytes(FOREIGN[content])
    error = refusal(lambda: list(READERS[reader](path)))
    assert content.strip() in error.reason and error.hint
    assert place_and_code(error) == ("x.yaml", "unsupported")


def test_the_limit_can_be_raised(tmp_path, monkeypatch):
    path = tmp_path / "x.txt.gz"
    path.write_bytes(gzip.compress(b"a b\n" * (1 << 18)))
    monkeypatch.setenv(LIMIT, "5000")
    assert sum(map(len, open_source(f"lines:{path}").batches("train"))) == 1 << 18
    monkeypatch.setenv(LIMIT, "many")
    assert refused(open_source, f"lines:{path}") == (LIMIT, "type")


def test_a_file_below_the_limit_is_whole(tmp_path, monkeypatch):
    monkeypatch.setenv(LIMIT, "1000")
    path = tmp_path / "x.gz"
    path.write_bytes(gzip.compress(b"abc\n" * 10_000))
    with open_packed(path) as handle:
        assert handle.readline() == b"abc\n" and handle.read() == b"abc\n" * 9_999
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(ValueError, match=r"x\.gz"), open_packed(path) as handle:
        handle.read()
