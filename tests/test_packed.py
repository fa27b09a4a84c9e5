"""Packed files unpack up to a limit, whoever reads them."""

import gzip
import json

import pytest

from probes.static.vec_file import read_vec
from synthlang import packed
from synthlang.order.model import read_model
from synthlang.packed import LIMIT, open_packed
from synthlang.parallel.text import read_joint
from synthlang.sources import open_source
from tests.refusals import refused

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
