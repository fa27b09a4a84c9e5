"""lines:PATH: one sentence a line, known by its line number."""

import gzip

import pytest

from synthlang.errors import InputError
from synthlang.sources import open_source
from synthlang.sources.text import PIECE


def sentences(source, split="train"):
    return [(s.id, s.words) for batch in source.batches(split) for s in batch]


def test_a_line_is_a_sentence_and_blank_lines_keep_their_number(tmp_path):
    (tmp_path / "a.txt").write_text("One. Two!\n\n  \nThree, four\r\n\nend", encoding="utf-8")
    assert sentences(open_source(f"lines:{tmp_path / 'a.txt'}")) == [
        (0, ["One", ".", "Two", "!"]),
        (3, ["Three", ",", "four"]),
        (5, ["end"]),
    ]


def test_long_lines_and_many_lines(tmp_path):
    long = "word " * (PIECE // 4)
    (tmp_path / "a.txt").write_text(long + "\n" + "x\n" * 4500)
    read = sentences(open_source(f"lines:{tmp_path / 'a.txt'}"))
    assert [i for i, _ in read] == list(range(4501))
    assert read[0][1] == ["word"] * (PIECE // 4)


def test_splits_and_gzip(tmp_path):
    (tmp_path / "train.txt").write_text("a b\n")
    (tmp_path / "dev.txt.gz").write_bytes(gzip.compress(b"c\n\nd", mtime=0))
    source = open_source(f"lines:{tmp_path}")
    assert source.splits == ("train", "dev")
    assert sentences(source, "dev") == [(0, ["c"]), (2, ["d"])]


def test_it_is_not_the_text_source(tmp_path):
    (tmp_path / "a.txt").write_text("a b\n")
    lines, text = (open_source(f"{kind}:{tmp_path / 'a.txt'}") for kind in ("lines", "text"))
    assert lines.fingerprint != text.fingerprint


@pytest.mark.parametrize(("content", "message"), [(b"", "holds no word"), (b"\n \n", "holds no word")])
def test_empty_files(content, message, tmp_path):
    (tmp_path / "a.txt").write_bytes(content)
    with pytest.raises(InputError, match=message):
        open_source(f"lines:{tmp_path / 'a.txt'}")


def test_bytes_that_are_not_utf8(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"fine\nb\xffd\n")
    with pytest.raises(InputError, match="not UTF-8"):
        sentences(open_source(f"lines:{tmp_path / 'a.txt'}"))
