"""The MUSE format: what is written is read back, damage is an error with its line."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synthlang.dictionary.words import read_muse, write_muse
from synthlang.errors import InputError
from tests.fuzz import damaged
from tests.real_data import DATA

WORD = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=6).filter(lambda w: w.split() == [w])


@given(st.lists(st.tuples(WORD, WORD), min_size=1, max_size=20, unique=True))
def test_pairs_are_read_back(tmp_path_factory, pairs):
    path = tmp_path_factory.getbasetemp() / "muse.txt"
    write_muse(pairs, path)
    if not pairs[0][0].startswith("\ufeff"):  # at the start of a file that is a byte order mark, not a letter
        assert read_muse(path) == pairs


@pytest.mark.parametrize(
    "text",
    ["the le\nthe la\ncat chat\n", "the\tle\nthe\tla\ncat\tchat", "\ufeffthe  le\r\n\r\n the la \nthe le\ncat chat\n"],
)
def test_spaces_tabs_blank_lines_and_repeats(tmp_path, text):
    path = tmp_path / "d.txt"
    path.write_bytes(text.encode())
    assert read_muse(path) == [("the", "le"), ("the", "la"), ("cat", "chat")]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"the le\ncat\n", "d.txt:2: a line holds a source word and a target word, here are 1 words"),
        (b"the le\nNew York\tNew York\n", "d.txt:2: .* here are 4 words; mend or delete it"),
        (b"", "holds no pair of words"),
        (b"\n \n", "holds no pair of words"),
        (b"the le\ncaf\xe9 caf\xe9\n", "d.txt:2: not UTF-8"),
    ],
)
def test_damaged_lines(tmp_path, data, message):
    path = tmp_path / "d.txt"
    path.write_bytes(data)
    with pytest.raises(InputError, match=message):
        read_muse(path)


@pytest.mark.parametrize("word", ["", "New York", "a\tb", "a\u00a0b", "a\n", "\u3000"])
def test_words_that_no_line_can_hold(tmp_path, word):
    for pair in ((word, "b"), ("a", word)):
        with pytest.raises(InputError, match="is empty or holds white space; leave it out"):
            write_muse([("x", "y"), pair], tmp_path / "d.txt")
    assert list(tmp_path.iterdir()) == []


@given(damaged(b"the le\nthe la\ncat chat\nhouse maison\n"))
@settings(max_examples=200)
def test_damage_is_an_input_error_or_a_dictionary(tmp_path_factory, data):
    path = tmp_path_factory.getbasetemp() / "damaged.txt"
    path.write_bytes(data)
    with contextlib.suppress(InputError):
        assert all(a.split() == [a] and b.split() == [b] for a, b in read_muse(path))


def test_no_file(tmp_path):
    with pytest.raises(InputError, match="no such file"):
        read_muse(tmp_path / "none.txt")


@pytest.mark.skipif(not (DATA / "muse_dict").is_dir(), reason=f"needs the test data muse_dict in {DATA}")
@pytest.mark.parametrize(("language", "lines"), [("fr", 10872), ("de", 14677), ("es", 11977), ("ru", 10887)])
def test_real_dictionaries(tmp_path, language, lines):
    path = DATA / "muse_dict" / f"en-{language}.0-5000.txt"
    pairs = read_muse(path)
    assert (len(pairs), len({a for a, _ in pairs})) == (lines, 5000)
    write_muse(pairs, tmp_path / "copy.txt")
    assert (tmp_path / "copy.txt").read_bytes().split() == path.read_bytes().split()
