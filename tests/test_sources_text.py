"""Names of sources, and plain text as paragraphs (text:) and as lines (lines:)."""

from __future__ import annotations

import gzip
import importlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synthlang.derive_command import derive_command
from synthlang.export import verify_manifest
from synthlang.sources import base, open_source, text
from synthlang.sources.iob import IobSource
from synthlang.sources.splits import find_splits, split_of
from synthlang.sources.text import PIECE, TextSource, read_pieces
from tests.refusals import refusal, refused

LINES = st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n\r\ufeff"), max_size=30))


def write(path: Path, content: str | bytes) -> Path:
    content = content.encode() if isinstance(content, str) else content
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(gzip.compress(content, mtime=0) if path.suffix == ".gz" else content)
    return path


def read(source, split="train"):
    return [(s.id, s.text) for batch in source.batches(split) for s in batch]


@pytest.mark.parametrize(
    ("name", "split"),
    [("x-test.txt", "test"), ("x.txt", "train"), ("x-test.txt?split=train", "train"), ("x.txt?split=dev", "dev")],
)
def test_a_file_is_the_split_its_name_or_the_spec_says(tmp_path, name, split):
    write(tmp_path / name.partition("?")[0], "\ufeffA dog. C\r\n\r\n  \r\nD")
    source = open_source(f"text:{tmp_path / name}")
    assert isinstance(source, TextSource)
    assert source.splits == (split,) and source.columns == ("form",)
    assert read(source, split) == [(0, "A dog ."), (1, "C"), (2, "D")]


def test_no_file_with_labels_is_passed_over(tmp_path):
    """A split is a part of the name of its file; a file without one must be named in the spec."""
    for name in ("abc17train.conll", "abc.dev.conll", "abc.test.annotated", "README.txt", ".dev.conll"):
        write(tmp_path / "ner" / name, "a O\n")
    source = IobSource(tmp_path / "ner")
    assert source.splits == ("train", "dev", "test")
    assert source.read_as == "train is abc17train.conll, dev is abc.dev.conll, test is abc.test.annotated"
    assert open_source(f"iob:{tmp_path / 'ner' / 'abc.test.annotated'}").splits == ("test",)
    write(tmp_path / "ner" / "gold.conll", "b O\n")
    assert str(refusal(open_source, f"iob:{tmp_path / 'ner'}")) == (
        f"{tmp_path / 'ner'}: the split of gold.conll is unknown; "
        "name the file of each split: ?train=FILE&dev=FILE&test=FILE, or move other files elsewhere"
    )
    named = open_source(f"iob:{tmp_path / 'ner'}?train=abc17train.conll&test=gold.conll")
    assert read(named, "test") == [(0, "b")] and named.splits == ("train", "test")
    write(tmp_path / "two" / "train.conllu", "1\tw\t_\tX\t_\t_\t0\tdep\t_\t_")
    write(tmp_path / "two" / "test.conll", "x")  # an ending that the reader does not know
    assert refused(open_source, f"conllu:{tmp_path / 'two'}") == ("two", "unknown")
    write(tmp_path / "text" / "train.txt", "a")
    write(tmp_path / "text" / "more.txt", "b")
    write(tmp_path / "text" / "held-out.dat", "b")  # no ending of ours, and no usual one of anything beside data
    write(tmp_path / "text" / "log.json", "{}")
    assert TextSource(tmp_path / "text").read_as == "train is train.txt; not read: held-out.dat, more.txt"


def test_what_files_a_task_reads_is_said(tmp_path, capsys):
    write(tmp_path / "ner" / "train.conll", "a O\n")
    write(tmp_path / "ner" / "gold.dat", "a O\n")
    write(tmp_path / "nli" / "dev.tsv", "premise\thypothesis\tlabel\na\tb\tneutral\n")
    for task, files in (("ner", "train is train.conll; not read: gold.dat"), ("nli", "dev is dev.tsv")):
        derive_command(f"{task}:{tmp_path / task}", "inv", tmp_path / f"{task}-inv")
        assert files in capsys.readouterr().err


@pytest.mark.parametrize(
    ("spec", "place", "code"),
    [
        ("/a.txt?train=b.txt", "a.txt train", "type"),
        ("?dev=c.txt", "c.txt", "missing"),
        ("/a.txt?split=all", "a.txt split", "unknown"),
        ("/a.txt?split=dev&split=test", "a.txt split", "duplicate"),
        ("/a.txt?feats", "a.txt feats", "unknown"),
    ],
)
def test_wrong_options(tmp_path, spec, place, code):
    write(tmp_path / "d" / "a.txt", "a")
    assert refused(open_source, f"text:{tmp_path / 'd'}{spec}") == (place, code)


def test_what_was_mended_or_may_be_wrong_is_counted(tmp_path, monkeypatch):
    """Control characters, long lines, clauses that no rule cuts: in the counts of a data set, and said."""
    long = "word " * 60
    path = write(tmp_path / "x.txt", f"a\x00b don\x92t.\n{long}\n{long}\n我们昨天去了北京大学。 北京大学。\n👩‍👧\n")
    monkeypatch.setattr(text, "PIECE", 256)
    derive_command(f"text:{path}", "inv", tmp_path / "d")
    counts = verify_manifest(tmp_path / "d")["counts"]["train"]
    assert counts == {text.CONTROL_CHARACTERS: 2, text.CUT_LINES: 2, text.UNCUT: 1}
    card = (tmp_path / "d" / "README.md").read_text()
    assert all(reason in card for reason in counts)
    lines = open_source(f"lines:{path}")
    assert len(read(lines, "train")) == 5 and text.CUT_LINES not in base.remarks_of(
        lines, "train"
    )  # its pieces are joined


def test_what_has_no_end_is_refused(tmp_path, monkeypatch):
    assert refused(open_source, "text:/dev/zero") == ("zero", "unsupported")
    path = write(tmp_path / "x.txt", b"x" * 5000)
    monkeypatch.setattr(text, "PIECE", 256)
    for scheme, source in (("text", TextSource), ("lines", text.LinesSource)):
        monkeypatch.setattr(source, "longest_line", 1024)
        assert refused(lambda: read(open_source(f"{scheme}:{path}"))) == ("x.txt:1", "range")  # noqa: B023
        assert refused(open_source, f"{scheme}:{path}") == ("x.txt:1", "range"), "before any work"


@pytest.mark.parametrize("scheme", ["text", "lines"])
def test_a_folder_has_a_file_for_each_split(tmp_path, scheme):
    for name in ("x-valid.txt", "x-train.txt.gz", "test.txt", "README.txt", "train.md"):
        write(tmp_path / name, f"{name.split('.')[0]}\n\nend")
    source = open_source(f"{scheme}:{tmp_path}")
    assert source.splits == ("train", "dev", "test")
    names = {"train": "x-train", "dev": "x-valid", "test": "test"}
    assert {split: read(source, split) for split in source.splits} == {
        split: [(0, name), (2 if scheme == "lines" else 1, "end")] for split, name in names.items()
    }


@pytest.mark.parametrize(
    ("name", "endings", "split"),
    [
        *((f"Wiki.{part}.txt", (".txt",), "dev") for part in ("dev", "valid", "val", "validation")),
        *(("x-ud-dev.conllu", (".conllu",), "dev"), ("en_test.conllu", (".conllu",), "test")),
        *(("devx.txt", (".txt",), None), ("my.conllu", (".conllu",), None), ("dev.txt", (".conllu",), None)),
        *(("Valid", ("", ".txt"), "dev"), ("valid.md", ("", ".txt"), None), ("valid", (".txt",), None)),
    ],
)
def test_the_split_that_a_name_says(name, endings, split):
    assert split_of(name, endings) == split


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
    assert set(" ".join(line for _, line in read(TextSource(path))).split()) == {"word", "end"}


@pytest.mark.parametrize(
    ("scheme", "one", "other"),
    [
        ("text", "A b.\n", "A c.\n"),
        ("lines", "A b.\n", "A c.\n"),
        ("conllu", "1\tw\t_\tX\t_\t_\t0\tdep\t_\t_", "1\tw\t_\tY\t_\t_\t0\tdep\t_\t_"),
        ("iob", "a O\n", "a B-X\n"),
        ("slots", "i\t\ta\n", "j\t\ta\n"),
    ],
)
def test_fingerprint_is_of_the_content_and_the_reader(tmp_path, monkeypatch, scheme, one, other):
    def mark(name, content=one, scheme=scheme):
        return open_source(f"{scheme}:{write(tmp_path / name, content)}").fingerprint

    ending = {"conllu": "conllu", "iob": "iob", "slots": "tsv"}.get(scheme, "txt")
    first = mark(f"a.{ending}")
    assert mark(f"b.{ending}") == first != mark(f"c.{ending}", other)
    write(tmp_path / "d" / f"dev.{ending}", one)
    assert open_source(f"{scheme}:{tmp_path / 'd'}").fingerprint != first
    if ending == "txt":
        assert mark("b.txt.gz") == first != mark("b.txt", scheme="lines" if scheme == "text" else "text")
    module = importlib.import_module(f"synthlang.sources.{'text' if ending == 'txt' else scheme}")
    monkeypatch.setattr(module, "RULES" if ending == "txt" else "READER", 99)
    assert mark(f"a.{ending}") != first


@pytest.mark.parametrize("scheme", ["text", "lines"])
@pytest.mark.parametrize(
    ("name", "content", "place", "code"),
    [
        ("x.txt", b"", "x.txt", "empty"),
        ("x.txt", b" \n\t\r\n\xc2\xa0\n", "x.txt", "empty"),
        ("x.txt", b"ok\nb\xffd\n", "x.txt:2", "format"),
        ("x.txt.gz", b"plain", "x.txt.gz", "format"),
        ("x.txt.gz", gzip.compress(b"some words " * 50, mtime=0)[:-12], "x.txt.gz", "damaged"),
        ("train.md", b"a", "d", "missing"),
    ],
)
def test_wrong_files(tmp_path, scheme, name, content, place, code):
    folder = tmp_path / "d"
    folder.mkdir()
    (folder / name).write_bytes(content)
    spec = f"{scheme}:{folder / name if name.startswith('x') else folder}"
    assert refused(lambda: read(open_source(spec))) == (place, code)


@pytest.mark.parametrize("scheme", ["text", "lines"])
def test_a_folder_of_texts_is_one_split(tmp_path, scheme):
    folder = tmp_path / "d"
    folder.mkdir()
    write(folder / "b.txt", "Two words .\n\nThree more words\n")
    write(folder / "README.txt", "not read")
    write(folder / "c.txt", "")
    (folder / "a.txt.gz").write_bytes(gzip.compress(b"One ."))
    source = open_source(f"{scheme}:{folder}")
    assert isinstance(source, TextSource)
    assert source.splits == ("train",) and source.read_as == "train is 3 files: a.txt.gz, b.txt, c.txt"
    [batch] = source.batches("train")
    assert batch.texts() == ["One .", "Two words .", "Three more words"]
    assert batch.ids.tolist() == ([0, 1, 3] if scheme == "lines" else [0, 1, 2])
    assert open_source(f"{scheme}:{folder}?split=dev").splits == ("dev",)
    before = source.fingerprint
    (folder / "a.txt.gz").rename(folder / "aa.txt.gz")
    assert open_source(f"{scheme}:{folder}").fingerprint == before, "names count only by their order"
    (folder / "aa.txt.gz").rename(folder / "z.txt.gz")
    assert open_source(f"{scheme}:{folder}").fingerprint != before
    (folder / "b.txt").write_bytes(b"ok\nb\xffd\n")
    assert refused(lambda: read(open_source(f"{scheme}:{folder}"))) == ("b.txt:2", "format")


def test_a_folder_without_texts(tmp_path):
    write(tmp_path / "d" / "x-train.txt", "a")
    assert refused(open_source, f"text:{tmp_path / 'd'}?split=dev") == ("d split", "type"), "it has files of splits"
    assert refused(open_source, f"text:{tmp_path}") == (tmp_path.name, "missing")
    write(tmp_path / "a.txt", "\n")
    assert refused(open_source, f"text:{tmp_path}") == (tmp_path.name, "empty")


def test_wrong_splits(tmp_path):
    write(tmp_path / "a-val.txt", "a")
    assert str(refusal(TextSource(tmp_path / "a-val.txt").batches, "train")) == (
        f"text:{tmp_path / 'a-val.txt'}: the source has no split 'train', only dev; "
        "read the file as this split: PATH?split=train"
    )
    assert refusal(TextSource(tmp_path / "a-val.txt").batches, "validation").hint == "use this split"
    error = refusal(open_source, f"text:{tmp_path / 'a-val.txt'}?limt=3")
    assert (error.keys, error.hint.partition("? ")[0]) == (("limt",), "did you mean limit")
    assert refusal(open_source, f"text:{tmp_path / 'a-val.txt'}?").keys == ()
    write(tmp_path / "b-dev.txt", "b")
    assert refused(find_splits, tmp_path, (".txt",)) == (tmp_path.name, "duplicate")


@pytest.mark.parametrize(
    ("spec", "place", "code"),
    [
        ("wiki.txt", "", "unknown"),
        ("text:", "", "unknown"),
        ("csv:x", "", "unknown"),
        ("text:no/such", "such", "missing"),
        ("conllu:no/such", "such", "missing"),
        ("builtin:big-english", "", "unknown"),
        ("builtin:big-english?size=3", "", "unknown"),
        *(
            (f"builtin:mini-english?{options}", f"builtin:mini-english {key}", code)
            for options, key, code in (
                *(("size=3", "size", "unknown"), ("seed=x", "seed", "type"), ("seed=-1", "seed", "type")),
                *(("seed", "seed", "type"), ("seed=1&seed=2", "seed", "duplicate"), ("feats=1", "feats", "type")),
                *(("seed=1&dev=1234567890", "dev", "type"), ("zipf=10", "zipf", "type")),
            )
        ),
    ],
)
def test_wrong_specs(spec, place, code):
    assert refused(open_source, spec) == (place, code)


@pytest.mark.parametrize("scheme", ["text", "lines"])
def test_each_chinese_character_and_each_kana_is_a_word_if_asked_for(tmp_path, scheme):
    path = write(tmp_path / "a.txt", "我在Linux上。か\u3099とスーパー 3月\n")
    source = open_source(f"{scheme}:{path}?cjk=characters")
    assert " ".join(text for _, text in read(source)) == "我 在 Linux 上 。 か\u3099 と ス ー パ ー 3 月"
    assert source.fingerprint != open_source(f"{scheme}:{path}").fingerprint


def test_a_line_is_a_sentence_and_blank_lines_keep_their_number(tmp_path):
    path = write(tmp_path / "a.txt", "One. Two!\n\n  \nThree, four\r\n\nend")
    assert read(open_source(f"lines:{path}")) == [(0, "One . Two !"), (3, "Three , four"), (5, "end")]


def test_long_and_many_lines_of_sentences(tmp_path):
    path = write(tmp_path / "a.txt", "word " * (PIECE // 4) + "\n" + "x\n" * 4500)
    found = read(open_source(f"lines:{path}"))
    assert [i for i, _ in found] == list(range(4501))
    assert found[0][1].split() == ["word"] * (PIECE // 4)
