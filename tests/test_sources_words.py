"""Separators of words, invisible characters, comments, withheld words and other formats, in every reader."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest

from pretrain.run import TEXT_REASONS
from synthlang.parallel.text import read_joint, read_parallel
from synthlang.sources import open_source
from synthlang.sources.base import remarks_of
from synthlang.sources.markup import DOC_LINES, JOINED
from synthlang.sources.segmentation import SegmentedText, split_words
from synthlang.sources.text import REASONS
from synthlang.sources.words import BLANK, MISNUMBERED, NORMALISED, NOT_NFC, REMOVED, WITHHELD, tidied
from synthlang.tasks import open_task
from tests.refusals import refusal, refused
from tests.test_sources_conllu import word
from tests.test_tasks import question, squad, write

ODD = "Wör\u00adt\u200be\u200er\ufeff"  # a soft hyphen, a zero width space, a mark of direction, a byte order mark


def read(spec):
    source = open_source(spec)
    return [s.words for batch in source.batches("train") for s in batch], dict(remarks_of(source, "train"))


@pytest.fixture
def texts(tmp_path):
    """A file for every reader, with one word whose characters include invisible ones."""
    for part, text in (("seq.in", f"{ODD}\n"), ("seq.out", "O\n"), ("label", "i\n")):
        write(tmp_path / "train" / part, text)
    write(tmp_path / "a.txt", f"{ODD}\n\u200b\u200f\n")
    write(tmp_path / "a.conllu", word(1, ODD))
    write(tmp_path / "a.iob", f"{ODD} B-X\n\u200e O\n")
    write(tmp_path / "a.tsv", f"i\t\t{ODD}\n")
    write(tmp_path / "a.conll", f"# intent: i\n1\t{ODD}\ti\tO\n")
    write(tmp_path / "table.tsv", f"id\tutterance\tslot_labels\tintent\n1\t{ODD}\tO\ti\n")
    write(tmp_path / "hub" / "train.jsonl", json.dumps({"text": ODD}) + "\n")
    write(tmp_path / "lists" / "train.jsonl", json.dumps({"words": [ODD, "\u200e"]}) + "\n")
    return tmp_path


@pytest.mark.parametrize(
    "spec",
    [
        *("text:a.txt", "lines:a.txt", "conllu:a.conllu", "iob:a.iob", "hf:hub", "hf:lists"),
        *("slots:a.tsv", "slots:a.conll", "slots:table.tsv", "slots:train"),
    ],
)
def test_every_reader_removes_and_counts_what_nobody_sees(texts, spec, monkeypatch):
    monkeypatch.chdir(texts)
    words, remarks = read(spec)
    assert words == [["Wörter"]]
    assert remarks[REMOVED] >= 4 and set(remarks) <= {REMOVED, BLANK} <= set(TEXT_REASONS)


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ("conllu:x", f"\ufeff# text = w\n{word(1)}\n\n"),
        ("conllu:x", f"\ufeff{word(1)}\n\n"),
        ("iob:x", "\ufeff# a comment\nw O\n\n"),
        ("slots:x", "\ufeff# intent: i\nw\tO\n\n"),
        ("slots:x", "\ufeffi\t\tw\n"),
    ],
)
def test_files_with_byte_order_marks_may_be_joined(tmp_path, monkeypatch, spec, text):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "x", text * 2)
    assert read(spec) == ([["w"], ["w"]], {})


def test_joiners_stay_and_so_does_the_digest_of_texts_without_such_characters(tmp_path):
    assert split_words("می\u200cخواهم क्\u200dष 👩\u200d👧") == ["می\u200cخواهم", "क्\u200dष", "👩\u200d👧"]
    plain, marked = (write(tmp_path / name, text) for name, text in (("a.txt", "A b."), ("b.txt", "A\u200b b.")))
    prints = {path: open_source(f"text:{path}").fingerprint for path in (plain, marked)}
    assert len(set(prints.values())) == 2


def test_a_zero_width_space_separates_words_of_scripts_without_spaces():
    assert split_words("ភាសា\u200bខ្មែរ wor\u200bld") == ["ភាសា", "ខ្មែរ", "world"]


def test_places_of_words_count_characters_that_are_removed():
    text = "a\u200b \u200eb\u00adc ខ\u200bម x"
    words = SegmentedText.of(text)
    assert words.words == ["a", "bc", "ខ", "ម", "x"]
    assert [words.span(text.index(c), text.index(c) + 1) for c in "abខx"] == [(0, 1), (1, 2), (2, 3), (4, 5)]


def test_two_spellings_of_a_word_are_counted_and_made_one(tmp_path):
    composed, decomposed = "caf\u00e9", "cafe\u0301"
    path = write(tmp_path / "a.txt", f"{composed} {decomposed} b.\n")
    assert read(f"text:{path}") == ([[composed, decomposed, "b", "."]], {NOT_NFC: 1})
    assert read(f"text:{path}?normalise=NFC") == ([[composed, composed, "b", "."]], {NORMALISED: 1})
    assert open_source(f"text:{path}").fingerprint != open_source(f"text:{path}?normalise=NFC").fingerprint
    [batch] = open_source(f"text:{path}?normalise=NFC").batches("train")
    assert batch.form.names == (composed, "b", ".")
    assert refused(open_source, f"text:{path}?normalise=NFD") == ("a.txt normalise", "unknown")
    tree = write(tmp_path / "a.conllu", word(1, decomposed))
    assert read(f"conllu:{tree}?normalise=NFC")[0] == [[composed]]
    assert {NOT_NFC, NORMALISED, WITHHELD, MISNUMBERED, DOC_LINES, JOINED} <= set(REASONS)


@pytest.mark.parametrize("more", ["", "?normalise=NFC"])
def test_tasks_count_and_unify_spellings_too(tmp_path, more):
    word, other = "caf\u00e9", "cafe\u0301"
    files = {
        "nli": write(tmp_path / "a.tsv", f"premise\thypothesis\tlabel\n{other}\u200b\tx\tneutral\n"),
        "ner": write(tmp_path / "a.iob", f"{other}\u200b O\n"),
        "qa": squad(tmp_path / "a.json", {"context": f"a {other}\u200b b", "qas": [question("1", (2, other))]}),
        "slots": write(tmp_path / "b.tsv", f"i\t0:5:x\t{other}\u200b\n"),
    }
    for task, path in files.items():
        [batch] = open_task(f"{task}:{path}{more}").batches("train")
        assert batch.counts == {REMOVED: 1, NORMALISED if more else NOT_NFC: 1}
        assert (word if more else other) in (batch.corpus.form.names or ())
    assert len(open_task(f"qa:{files['qa']}{more}").splits) == 1


def test_white_space_other_than_a_space_is_part_of_a_word(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for part, text in (("seq.in", "San\u00a0Juan \u3000x y\n"), ("seq.out", "B-LOC O O\n"), ("label", "i\n")):
        write(tmp_path / "train" / part, text)
    assert read("slots:train")[0] == [["San\u00a0Juan", "\u00a0x", "y"]]
    write(tmp_path / "a.iob", "San\u00a0Juan B-LOC\nNew\u3000York B-LOC\n")
    write(tmp_path / "b.iob", "San\u00a0Juan\tB-LOC\nNew\u3000York\tB-LOC\n")
    assert read("iob:a.iob")[0] == read("iob:b.iob")[0] == [["San\u00a0Juan", "New\u00a0York"]]
    row = {"text": "fly to\u3000rome", "slots": "O B-city"}
    write(tmp_path / "hub" / "train.jsonl", json.dumps(row) + "\n")
    [batch] = open_task("slots:hf:hub").batches("train")
    assert batch.corpus[0].columns == {"form": ["fly", "to\u00a0rome"], "slot": ["O", "B-city"]}


def test_aligned_text_has_the_words_that_an_alignment_counts(tmp_path):
    joint = write(tmp_path / "joint", "A \u3000 B ||| x – y\nNew\u00a0York\tis ||| a\u200b \u200e b\u2028c\r\n")
    text = read_joint(joint)
    assert text.left.lengths.tolist() == [3, 2] and text.right.lengths.tolist() == [3, 3]
    assert text.left[1].words == ["New\u00a0York", "is"] and text.right[1].words == ["a", "\u200e", "b\u00a0c"]
    assert text.counts == {REMOVED: 2}
    for name in ("left", "right"):
        write(tmp_path / name, "A \u00a0 B\n")
    assert read_parallel(tmp_path / "left", tmp_path / "right").left.lengths.tolist() == [3]
    assert read_parallel(tmp_path / "left", tmp_path / "right", "rules").left.lengths.tolist() == [2]


@pytest.mark.parametrize(
    ("text", "options", "expected"),
    [
        ("# text = Wir nehmen die U-Bahn\nWir O\n# O\n", "", [["Wir", "#"]]),
        ("# a comment B-X\n# B-X\nWir B-X\n", "", [["#", "Wir"]]),
        ("# text = Amager har S-baner\n1\tAmager\tB-LOC\tO\n2\thar\tO\tO\n", "?column=2&tag=3", [["Amager", "har"]]),
        ("#\thttp://x\t[2009]\n1\tAmager\tB-LOC\tO\n2\t#\tO\tO\n", "?column=2&tag=3", [["Amager", "#"]]),
        ("#\tO\na\tO\n#hash\tB-Y\n", "", [["#", "a", "#hash"]]),
        ("# O\n", "", [["#"]]),
    ],
)
def test_comments_are_no_words(tmp_path, text, options, expected):
    path = write(tmp_path / "x.tsv", text)
    assert read(f"iob:{path}{options}")[0] == expected


def test_comments_of_slots_may_have_tabs_and_look_like_tags(tmp_path):
    text = "# intent: i\n#\turl\tx\n# text = die U-Bahn\nWir\tO\n# note\ndie\tB-x\n"
    assert read(f"slots:{write(tmp_path / 'x.conll', text)}")[0] == [["Wir", "die"]]


WITHHELD_TREE = "\n".join([word(1, "_", 2), word(2, "_", 0), "", ""])


def test_withheld_words_are_no_corpus(tmp_path):
    path = write(tmp_path / "x.conllu", "# text = _\n" + WITHHELD_TREE)
    error = refusal(open_source, f"conllu:{path}")
    assert error.code == "empty" and "complete" in error.hint and WITHHELD in error.reason
    write(path, WITHHELD_TREE + word(1, "_", 2) + "\n" + word(2, "b") + "\n")
    assert read(f"conllu:{path}") == ([["_", "b"]], {WITHHELD: 1})
    skeleton = write(tmp_path / "x", "[WORD] O\n[WORD] B-X\n")
    assert refused(open_source, f"iob:{skeleton}") == ("x", "empty")
    rows = [{"words": ["_", "_"]}, {"words": ["a"]}]
    write(tmp_path / "hub" / "train.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    assert read(f"hf:{tmp_path / 'hub'}") == ([["a"]], {WITHHELD: 1})


@pytest.mark.parametrize(
    ("spec", "text", "line"),
    [
        ("iob:x.tsv", "a\tO\n\tO\n", 2),
        ("slots:x.tsv", "# intent: i\n1\ta\tx\tO\n2\t\tx\tO\n", 3),
        ("conllu:x.tsv", word(1, ""), 1),
        ("conllu:x.tsv", word(1, " "), 1),
    ],
)
def test_an_empty_word_is_refused(tmp_path, monkeypatch, spec, text, line):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "x.tsv", text)
    assert refused(read, spec) == (f"x.tsv:{line}", "format")


def numbered(scheme, count, *wrong):
    """Sentences of one word, each with the number 1 or, in ``wrong``, 3."""
    line = {"slots": "# intent: i\n{}\tw\ti\tO\n", "conllu": word("{}", "w") + "\n"}[scheme]
    return "\n".join(line.format(3 if at in wrong else 1) for at in range(count))


@pytest.mark.parametrize("scheme", ["slots", "conllu"])
def test_one_wrong_number_in_many_is_a_counted_sentence(tmp_path, scheme):
    path = write(tmp_path / "x.conllu", numbered(scheme, 300, 0, 250))
    words, remarks = read(f"{scheme}:{path}")
    assert (len(words), remarks) == (298, {MISNUMBERED: 2})
    for wrong in ((5,), (3, 4, 9)):  # of ten, and more than one in a hundred
        write(path, numbered(scheme, 10 if len(wrong) == 1 else 200, *wrong))
        assert refused(read, f"{scheme}:{path}")[1] == "format"


def test_a_wrong_tree_in_many_is_a_counted_sentence(tmp_path):
    good, bad = word(1, "w") + "\n\n", word(1, "w", 1) + "\n\n"
    path = write(tmp_path / "x.conllu", good * 60 + bad + good * 60)
    assert read(f"conllu:{path}")[1] == {MISNUMBERED: 1}


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("# sent_id = 1\n# text = a\n" + word(1, "a") + "\n", 3, "conllu:"),
        (word("1-2", "au", "_", "_", "_") + "\n", 1, "conllu:"),
        ('{"sentence_good": "Who ran?", "sentence_bad": "Who run?"}\n', 1, "hf:"),
        ('<?xml version="1.0"?>\n<a>b</a>\n', 1, "extract"),
        ('{\n  "data": []\n}\n', 1, "hf:"),
        ('[\n{"text": "a"},\n{"text": "b"}]\n', 1, "hf:"),
        ("EU NNP B-NP B-ORG\nrejects VBZ B-VP O\n\ncalls NNS B-NP O\n", 1, "iob:"),
        ("Anna\tB-PER\n\nran\tO\naway\tO\n", 1, "iob:"),
        ("a b ||| c d\n\ne ||| f\ng ||| h\n", 1, "a file of its own"),
    ],
)
def test_other_formats_are_no_text(tmp_path, text, line, words):
    path = write(tmp_path / "x.txt", text)
    for scheme in ("text", "lines"):
        error = refusal(open_source, f"{scheme}:{path}")
        assert (error.line, error.code) == (line, "format") and words in error.hint


@pytest.mark.parametrize(
    "text", ["{a} is\n[x]\n[{\n", "A B O\nWhat is this\nB O\n", "a ||| b\nc | d\ne f\n", "[ Music ]\n{ 1 }\nx\n"]
)
def test_text_that_looks_a_little_like_another_format_is_text(tmp_path, text):
    assert len(read(f"lines:{write(tmp_path / 'x.txt', text)}")[0]) == 3


def test_marks_of_corpora_are_removed(tmp_path):
    text = '<doc id="1" url="u" title="T">\nA state @-@ of @-@ the @-@ art, 1 @,@ 000 @ x.\n</doc>\n{a} is <doc>.\n'
    path = write(tmp_path / "x.txt", text)
    words, remarks = read(f"text:{path}")
    assert words == [
        ["A", "state-of-the-art", ",", "1,000", "@", "x", "."],
        ["{", "a", "}", "is", "<doc>", "."],
    ]
    assert remarks == {DOC_LINES: 2, JOINED: 4}
    assert [s.id for batch in open_source(f"lines:{path}").batches("train") for s in batch] == [1, 3]
    write(tmp_path / "hub" / "train.jsonl", json.dumps({"text": " 1 @,@ 000 \n"}) + "\n")
    assert read(f"hf:{tmp_path / 'hub'}") == ([["1,000"]], {JOINED: 1})


def test_words_of_trees_stay_even_if_nobody_sees_them():
    tree: dict[str, list[Any]] = {"form": ["a", "\u200b"], "head": [0, 1]}
    counts: Counter[str] = Counter()
    assert list(tidied([tree], counts)) == [tree]
    assert list(tidied([{"form": ["a", "\u200b"]}], counts)) == [{"form": ["a"]}]
    assert counts == {REMOVED: 1, BLANK: 1}
