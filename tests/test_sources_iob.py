"""Sources of words with tags: columns of CoNLL, and utterances with slots."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synthlang.sources import open_source
from synthlang.sources.iob import IobSource
from synthlang.sources.slots import SlotsSource
from synthlang.sources.words import visible
from tests.refusals import refusal, refused
from tests.test_tasks import write

TAG = st.sampled_from(["O", "B-PER", "I-PER", "B-LOC", "I-LOC"])
WORD = st.text(st.characters(exclude_categories=["Cs", "Zs", "Cc", "Zl", "Zp"]), min_size=1, max_size=5)
WORD = WORD.filter(lambda w: w.split() == [w] and visible(w) == w and w != "_" and not w.startswith(("#", "-DOC")))
SENTENCES = st.lists(st.lists(st.tuples(WORD, TAG), min_size=1, max_size=6), min_size=1, max_size=5)


def rows(source, split="train"):
    return [(s.words, s.columns["ner"]) for batch in source.batches(split) for s in batch]


@given(SENTENCES, st.sampled_from(["", "en:"]), st.sampled_from(["\t", " ", "\tNNP\tB-NP\t"]))
def test_sentences_are_read_back_with_legal_tags(tmp_path_factory, sentences, prefix, between):
    text = "\n\n".join("\n".join(f"{prefix}{w}{between}{t}" for w, t in s) for s in sentences)
    found = rows(IobSource(write(tmp_path_factory.getbasetemp() / "x.txt", text + "\n")))
    if prefix or not sentences[0][0][0][:3].endswith(":"):  # words that all begin alike, as "ab:", seem a prefix
        assert [words for words, _ in found] == [[w for w, _ in s] for s in sentences]
    for (_, tags), sentence in zip(found, sentences, strict=True):
        for at, (tag, (_, before)) in enumerate(zip(tags, sentence, strict=True)):
            starts = before[0] == "B" or at == 0 or sentence[at - 1][1][1:] != before[1:]
            assert tag == "O" == before or tag == ("B" if starts else "I") + before[1:]


CONLL = "-DOCSTART- -X- O O\n\nEU NNP I-NP I-ORG\nrejects VBZ I-VP O\n\n# a comment\nre: X O S-PER\nde: X O E-LOC\n"
WIKIANN = "fr:10 000\tB-LOC\nfr:#\tO\r\nfr:re:x\tO\n\n\nfr:y\tB-PER"


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("a.conll", CONLL, [(["EU", "rejects"], ["B-ORG", "O"]), (["re:", "de:"], ["B-PER", "B-LOC"])]),
        ("b", WIKIANN, [(["10\u00a0000", "#", "re:x"], ["B-LOC", "O", "O"]), (["y"], ["B-PER"])]),
        ("one without the prefix", "en:a O\nen:b O\n\nc O\n", [(["en:a", "en:b"], ["O", "O"]), (["c"], ["O"])]),
    ],
)
def test_the_formats(tmp_path, name, text, expected):
    assert rows(IobSource(write(tmp_path / name, text))) == expected


NUMBERED = "# a source\n1\tNew\tB-LOC\tO\n2\tYork\tI-LOC\tB-X\n\n1\t5\tO\tO\n"


def test_the_words_may_stand_in_another_column(tmp_path):
    """Numbers of words are no words: such a file is refused until the spec names the column of its words."""
    path = write(tmp_path / "x-train.tsv", NUMBERED)
    assert refused(open_source, f"iob:{path}") == ("x-train.tsv", "format")
    last, third = (open_source(f"iob:{path}?column=2{more}") for more in ("", "&tag=3"))
    assert rows(last) == [(["New", "York"], ["O", "B-X"]), (["5"], ["O"])]
    assert rows(third) == [(["New", "York"], ["B-LOC", "I-LOC"]), (["5"], ["O"])]
    assert last.fingerprint != third.fingerprint
    assert refused(open_source, f"iob:{path}?column=0") == ("x-train.tsv column", "type")
    assert refused(open_source, f"iob:{path}?column=9") == ("x-train.tsv:2", "format")
    assert rows(IobSource(write(tmp_path / "years", "1 CD O\n2 CD O\n\nin IN O\n"))) == [
        (["1", "2"], ["O", "O"]),
        (["in"], ["O"]),
    ]


COMMENTED = "# id: 1\n# text: wake me at 6\n# intent: alarm/set\n1\twake\talarm/set\tO\n2\tme\talarm/set\tO\n"
COMMENTED += "3\tat\talarm/set\tB-time\n4\t6\talarm/set\tI-time\n\n# intent = weather\n1\t#\tweather\tO\n"


@pytest.mark.parametrize("numbers", [True, False])
def test_utterances_under_comments(tmp_path, numbers):
    text = COMMENTED if numbers else re.sub(r"(?m)^[0-9]\t(.*)\t.*\t(.*)$", r"\1\t\2", COMMENTED)
    source = SlotsSource(write(tmp_path / "en.valid.conll", text))
    assert source.splits == ("dev",) and source.intents == ("alarm/set", "weather")
    [batch] = source.labelled("dev")
    assert [(s.words, s.columns["slot"]) for s in batch.corpus] == [
        (["wake", "me", "at", "6"], ["O", "O", "B-time", "I-time"]),
        (["#"], ["O"]),
    ]
    assert batch.labels == ["alarm/set", "weather"]


def utterances(folder, words="a b\n", tags="O B-x\n", labels="i\n"):
    for part, text in (("seq.in", words), ("seq.out", tags), ("label", labels)):
        write(folder / part, text)
    return folder


def test_a_folder_of_utterances(tmp_path):
    source = SlotsSource(utterances(tmp_path / "valid", "a b c d\n", "I-x I-x E-x S-x\n"))
    assert (source.splits, source.columns, source.intents) == (("dev",), ("form", "slot"), ("i",))
    [batch] = source.batches("dev")
    assert batch[0].columns == {"form": ["a", "b", "c", "d"], "slot": ["B-x", "I-x", "I-x", "B-x"]}
    assert SlotsSource(utterances(tmp_path / "other")).splits == ("train",)
    assert SlotsSource(tmp_path).splits == ("dev",)


def test_characters_that_are_slots_become_words(tmp_path):
    lines = [
        "find\t0:4:a,5:12:b/c\tfrom New York",
        "i\t2:5:x\tab cde",
        "i\t-1:3:x\tleft out",
        "i\t\t \t",
        "",
        "i\t\tok",
    ]
    source = SlotsSource(write(tmp_path / "en-test.tsv", "\n".join(lines)))
    assert source.splits == ("test",) and source.intents == ("find", "i")
    [batch] = source.labelled("test")
    assert [s.columns["slot"] for s in batch.corpus] == [["B-a", "B-b/c", "I-b/c"], ["O", "B-x"], ["O"]]
    assert batch.labels == ["find", "i", "i"]
    assert list(batch.counts.values()) == [2, 1, 1]  # widened, outside the text, without a word


@pytest.mark.parametrize(
    ("files", "place", "code"),
    [
        ({"x.txt": ""}, "x.txt", "empty"),
        ({"x.txt": "a O\nb\n"}, "x.txt:2", "format"),
        ({"x.txt": "a\tO\n\tO\n"}, "x.txt:2", "format"),
        ({"x.txt": "a\tB-\n"}, "x.txt:1", "format"),
        ({"x.txt": "en:\tO\n"}, "x.txt:1", "format"),
        ({"tags": "O\n"}, "seq.out:1", "format"),
        ({"words": "a b\nc\n"}, "seq.out", "format"),
        ({"labels": "\n"}, "label:1", "empty"),
        ({"tags": "O Bx\n"}, "seq.out:1", "format"),
        ({"words": "", "tags": "", "labels": ""}, "train", "empty"),
        ({"x.tsv": "i\tx\n"}, "x.tsv:1", "format"),
        ({"x.tsv": "\t\tx\n"}, "x.tsv:1", "empty"),
        ({"x.tsv": "# text: a\n1\ta\ti\tO\n"}, "x.tsv:2", "missing"),
        ({"x.tsv": "# intent: i\n1\ta\ti\tO\n3\tb\ti\tO\n"}, "x.tsv:3", "format"),
        ({"x.tsv": "i\t1:x\ta\n"}, "x.tsv:1", "format"),
    ],
)
def test_wrong_lines(tmp_path, files, place, code):
    name = next(iter(files))
    path = write(tmp_path / name, files[name]) if "." in name else utterances(tmp_path / "train", **files)
    source = IobSource if name == "x.txt" else SlotsSource
    assert refused(lambda: list(source(path).batches("train"))) == (place, code)


def test_folders_that_lack_something(tmp_path):
    write(tmp_path / "other.tsv", "x\n")
    assert refused(SlotsSource, tmp_path) == (tmp_path.name, "unknown")
    (tmp_path / "val").mkdir()
    (tmp_path / "dev").mkdir()
    error = refusal(SlotsSource, tmp_path)
    assert error.reason == "several folders could be the split dev: dev, val" and "?" not in error.hint
    (tmp_path / "val").rmdir()
    (utterances(tmp_path / "train") / "label").unlink()
    assert refused(SlotsSource, tmp_path) == ("train", "missing")
