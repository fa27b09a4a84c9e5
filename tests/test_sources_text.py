from __future__ import annotations

import gzip
from itertools import chain
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synthlang.corpus import concatenate
from synthlang.errors import InputError
from synthlang.sources import base, open_source, text, words
from synthlang.sources.text import PIECE, TextSource, find_splits, read_pieces, split_of
from synthlang.sources.words import LONGEST, split_sentences, split_words
from tests.real_data import DATA

LINES = st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n\r\ufeff"), max_size=30))

WORDS = [
    ("The cat sat.", "The cat sat ."),
    ("Don't pay $1,000 (or 3.14)!", "Don't pay $ 1,000 ( or 3.14 ) !"),
    ("a well-known man’s co-op", "a well-known man’s co-op"),
    ("dogs' 'tis -x- a--b", "dogs ' ' tis - x - a - - b"),
    ("1,2 3. 4.a x.5 1,000,000.50", "1,2 3 . 4 . a x . 5 1,000,000.50"),
    ("wait... what?!", "wait . . . what ? !"),
    ("<unk> a<unk>b </s> [MASK] [mask] 0 @.@ 7 &apos;s", "<unk> a <unk> b </s> [MASK] [ mask ] 0 @.@ 7 &apos; s"),
    ("3 < 4 and 5 > 2", "3 < 4 and 5 > 2"),
    ("= = History = =", "= = History = ="),
    ("“Où?” dit-il…", "“ Où ? ” dit-il …"),
    ("यह हिन्दी है।", "यह हिन्दी है ।"),
    ("مَجمُوعَةٌ، مِن", "مَجمُوعَةٌ ، مِن"),
    ("I ❤️ col·legi snake_case", "I ❤️ col·legi snake_case"),
    ("a\u00a0b\u3000c\td", "a b c d"),
    ("x@y.org", "x @ y . org"),
    ("", ""),
]


@pytest.mark.parametrize(("line", "expected"), WORDS)
def test_words(line, expected):
    assert split_words(line) == expected.split(" ") if expected else split_words(line) == []


@given(st.text())
def test_words_joined_by_spaces_are_the_same_words_again(line):
    found = split_words(line)
    assert split_words(" ".join(found)) == found
    assert "".join(found) == "".join(line.split())
    assert all(word.split() == [word] for word in found)


SENTENCES = [
    ("He left. She stayed", ["He left .", "She stayed"]),
    ("He left! She? Yes.", ["He left !", "She ?", "Yes ."]),
    ('He said "Go." Then he left.', ['He said " Go . "', "Then he left ."]),
    ('It ended. "Go," he said.', ["It ended .", '" Go , " he said .']),
    ('the song "Angel of Death"."', ['the song " Angel of Death " . "']),
    ("(It ended.) Then [more.]", ["( It ended . )", "Then [ more . ]"]),
    ("Wait... What?! No.", ["Wait . . .", "What ? !", "No ."]),
    ("wait... what", ["wait . . . what"]),
    ("J. Doe met Dr. Who. So I left with I. Then", ["J . Doe met Dr . Who .", "So I left with I .", "Then"]),
    ("in the U.S. Army, see No. 5. No. He", ["in the U . S . Army , see No . 5 .", "No .", "He"]),
    ("= J. What? Yes. =", ["= J . What ? Yes . ="]),
    ("これ です 。 それ です 。", ["これ です 。", "それ です 。"]),
    ("यह है। वह", ["यह है ।", "वह"]),
    (". . A", [". .", "A"]),
    ("It is 3.14. 5 is more.", ["It is 3.14 .", "5 is more ."]),
]


@pytest.mark.parametrize(("line", "expected"), SENTENCES)
def test_sentences(line, expected):
    assert [" ".join(s) for s in split_sentences(split_words(line))] == expected


@given(st.lists(st.sampled_from([".", "?", '"', "'", ")", "=", "A", "b", "Cat", "Dr", "No", "5"]), max_size=40))
def test_sentences_keep_every_word_in_order(line):
    found = list(split_sentences(line))
    assert list(chain.from_iterable(found)) == line
    assert all(found)


def test_a_long_sentence_is_cut():
    found = list(split_sentences(["dog"] * (2 * LONGEST + 1) + [".", "B"]))
    assert [len(s) for s in found] == [LONGEST, LONGEST, 2, 1]


def write(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def sentences(source: TextSource, split: str = "train") -> list[str]:
    return [line for batch in source.batches(split) for line in batch.texts()]


def test_a_file_is_the_split_train(tmp_path):
    source = TextSource(write(tmp_path / "x-test.txt", "\ufeffA dog. C\r\n\r\n  \r\nD"))
    assert source.splits == ("train",)
    assert source.columns == ("form",)
    assert sentences(source) == ["A dog .", "C", "D"]


def test_a_folder_has_a_file_for_each_split(tmp_path):
    for name in ("x-valid.txt", "x-train.txt.gz", "test.txt", "README.txt", "train.md"):
        content = f"{name.split('.')[0]}\n".encode()
        write(tmp_path / name, gzip.compress(content) if name.endswith("gz") else content)
    source = TextSource(tmp_path)
    assert source.splits == ("train", "dev", "test")
    assert [sentences(source, split) for split in source.splits] == [["x-train"], ["x-valid"], ["test"]]


@pytest.mark.parametrize("part", ["dev", "valid", "val", "validation"])
def test_names_for_dev(part):
    assert split_of(f"Wiki.{part}.txt", (".txt",)) == "dev"
    assert split_of(f"{part}x.txt", (".txt",)) is None


def test_ids_count_on_over_batches(tmp_path, monkeypatch):
    source = TextSource(write(tmp_path / "x.txt", "".join(f"Line {i}.\n" for i in range(7))))
    whole = list(source.batches("train"))
    monkeypatch.setattr(base, "BATCH_SENTENCES", 3)
    parts = list(source.batches("train"))
    assert [len(b) for b in whole] == [7]
    assert [len(b) for b in parts] == [3, 3, 1]
    assert concatenate(parts).ids.tolist() == list(range(7))
    assert concatenate(parts).texts() == whole[0].texts()


@given(LINES, st.integers(8, 60))
def test_pieces_of_long_lines_lose_nothing(tmp_path_factory, lines, piece):
    path = write(tmp_path_factory.mktemp("t") / "x.txt", "\n".join(lines))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text, "PIECE", piece)
        found = list(read_pieces(path))
    assert "".join(p for _, p in found) == "\n".join(lines)
    for number, line in enumerate(lines, start=1):
        assert "".join(p for n, p in found if n == number).rstrip("\n") == line
    assert all(len(p.encode()) <= 2 * piece for _, p in found)


def test_a_line_of_many_pieces_is_cut_between_words(tmp_path, monkeypatch):
    path = write(tmp_path / "x.txt", "word " * 50 + "\nend\n")
    monkeypatch.setattr(text, "PIECE", 16)
    assert set(" ".join(sentences(TextSource(path))).split()) == {"word", "end"}


def test_fingerprint_is_of_the_content(tmp_path):
    first = TextSource(write(tmp_path / "a.txt", "A b.\n")).fingerprint
    assert TextSource(write(tmp_path / "b.txt", "A b.\n")).fingerprint == first
    assert TextSource(write(tmp_path / "b.txt.gz", gzip.compress(b"A b.\n", mtime=0))).fingerprint == first
    assert TextSource(write(tmp_path / "c.txt", "A c.\n")).fingerprint != first
    folder = tmp_path / "d"
    folder.mkdir()
    write(folder / "dev.txt", "A b.\n")
    assert TextSource(folder).fingerprint != first


def test_the_rules_are_part_of_the_fingerprint(tmp_path, monkeypatch):
    path = write(tmp_path / "a.txt", "A b.\n")
    before = TextSource(path).fingerprint
    monkeypatch.setattr(text, "RULES", words.RULES + 1)
    assert TextSource(path).fingerprint != before


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("x.txt", b"", "x.txt: holds no word"),
        ("x.txt", b" \n\t\r\n\xc2\xa0\n", "x.txt: holds no word"),
        ("x.txt", b"ok\nb\xffd\n", "x.txt:2: not UTF-8 (byte 1 of the line)"),
        ("x.txt.gz", b"plain", "x.txt.gz: damaged or not a gzip file"),
        ("x.txt.gz", gzip.compress(b"some words " * 50, mtime=0)[:-12], "x.txt.gz: damaged or not a gzip file"),
        ("train.md", b"a", "holds no file whose name says train, dev or test and ends in .txt or .txt.gz"),
    ],
)
def test_wrong_files(tmp_path, name, content, message):
    path = write(tmp_path / name, content)
    with pytest.raises(InputError) as info:
        list(TextSource(path if name.startswith("x") else tmp_path).batches("train"))
    assert message in str(info.value)


def test_two_files_for_a_split(tmp_path):
    write(tmp_path / "a-val.txt", "a")
    write(tmp_path / "b-dev.txt", "b")
    with pytest.raises(InputError, match=r"several files for the split dev: a-val.txt, b-dev.txt"):
        find_splits(tmp_path, (".txt",))


def test_a_split_that_is_not_there(tmp_path):
    source = TextSource(write(tmp_path / "x.txt", "a"))
    with pytest.raises(InputError, match=r"has no split 'dev'; it has train"):
        source.batches("dev")


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (
            "wiki.txt",
            "must be one of: builtin:mini-english[?types=800&sentences=5000], text:PATH",
        ),
        ("text:", "must be one of: builtin:"),
        ("csv:x", "must be one of: builtin:"),
        ("text:no/such", "no/such: no such file or folder"),
        ("conllu:no/such", "no/such: no such file or folder"),
        ("builtin:big-english", "the only built-in one is mini-english"),
        ("builtin:mini-english?size=3", "unknown option 'size'; allowed are types, sentences, dev, test, seed"),
        ("builtin:mini-english?seed=x", "seed must be a whole number from 0 to 999999999, not 'x'"),
        ("builtin:mini-english?seed=-1", "seed must be a whole number from 0 to 999999999, not '-1'"),
        ("builtin:mini-english?seed=1&seed=2", "the option 'seed' is given twice"),
        ("builtin:mini-english?seed", "seed must be a whole number from 0 to 999999999, not ''"),
    ],
)
def test_wrong_specs(spec, message):
    with pytest.raises(InputError) as info:
        open_source(spec)
    assert message in str(info.value)


def test_specs_open_the_right_reader(tmp_path):
    path = write(tmp_path / "x.txt", "a")
    assert isinstance(open_source(f"text:{path}"), TextSource)


@pytest.mark.skipif(not (DATA / "enwiki_slice").is_dir(), reason=f"needs the test data enwiki_slice in {DATA}")
def test_real_text():
    source = TextSource(DATA / "enwiki_slice")
    assert source.splits == ("train", "dev")
    batches = list(source.batches("dev"))
    assert all(len(batch) <= 2000 and batch.lengths.min() > 0 and batch.lengths.max() <= LONGEST for batch in batches)
    path = source.files["dev"]
    line_words = sum(len(split_words(line)) for line in path.read_text("utf-8").split("\n"))
    assert sum(int(batch.offsets[-1]) for batch in batches) == line_words
    assert 15 < line_words / sum(map(len, batches)) < 30  # words in a sentence of encyclopedic English


# --- lines:PATH: one sentence a line, known by its line number


def numbered(source, split="train"):
    return [(s.id, s.words) for batch in source.batches(split) for s in batch]


def test_a_line_is_a_sentence_and_blank_lines_keep_their_number(tmp_path):
    (tmp_path / "a.txt").write_text("One. Two!\n\n  \nThree, four\r\n\nend", encoding="utf-8")
    assert numbered(open_source(f"lines:{tmp_path / 'a.txt'}")) == [
        (0, ["One", ".", "Two", "!"]),
        (3, ["Three", ",", "four"]),
        (5, ["end"]),
    ]


def test_long_and_many_lines_of_sentences(tmp_path):
    long = "word " * (PIECE // 4)
    (tmp_path / "a.txt").write_text(long + "\n" + "x\n" * 4500)
    read = numbered(open_source(f"lines:{tmp_path / 'a.txt'}"))
    assert [i for i, _ in read] == list(range(4501))
    assert read[0][1] == ["word"] * (PIECE // 4)


def test_splits_and_gzip_of_lines(tmp_path):
    (tmp_path / "train.txt").write_text("a b\n")
    (tmp_path / "dev.txt.gz").write_bytes(gzip.compress(b"c\n\nd", mtime=0))
    source = open_source(f"lines:{tmp_path}")
    assert source.splits == ("train", "dev")
    assert numbered(source, "dev") == [(0, ["c"]), (2, ["d"])]


def test_it_is_not_the_text_source(tmp_path):
    (tmp_path / "a.txt").write_text("a b\n")
    lines, text = (open_source(f"{kind}:{tmp_path / 'a.txt'}") for kind in ("lines", "text"))
    assert lines.fingerprint != text.fingerprint


@pytest.mark.parametrize(("content", "message"), [(b"", "holds no word"), (b"\n \n", "holds no word")])
def test_empty_files_of_lines(content, message, tmp_path):
    (tmp_path / "a.txt").write_bytes(content)
    with pytest.raises(InputError, match=message):
        open_source(f"lines:{tmp_path / 'a.txt'}")


def test_bytes_of_lines_that_are_not_utf8(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"fine\nb\xffd\n")
    with pytest.raises(InputError, match="not UTF-8"):
        numbered(open_source(f"lines:{tmp_path / 'a.txt'}"))
