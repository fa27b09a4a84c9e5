"""Conversions of downloaded files: what they write is what the readers of studies read."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter

from synthlang.data.conversions import Conversion
from synthlang.data.conversions.base import Given
from synthlang.data.reading import contents
from synthlang.errors import InputError
from tests.refusals import refused
from tests.test_data_fetch import parquet

ANSWERS = [{"text": ["cat"], "answer_start": [2]}] * 3
UTTERANCES = [
    {"partition": "train", "intent": "alarm_set", "annot_utt": "wake me at [time : nine am] on [date : friday]"},
    {"partition": "dev", "intent": "play", "annot_utt": "play [song name : yesterday]"},
    {"partition": "test", "intent": "play", "annot_utt": "stop"},
    {"partition": "test", "intent": "play", "annot_utt": "a [broken"},
]
TAGS = ["O", "B-PER", "I-PER"]
SPLITS = {"train": "a", "dev": "b"}
WIKI = parquet(text=["= A =\nOne cat .\n\nTwo\tcats .", "Three cats .", "", "Four cats ."])
BLIMP = ("sentence_good", "sentence_bad", "linguistics_term", "UID", "pair_id")
PAIR: dict[str, list[Any]] = {
    "sentence_good": ["Who left ?"],
    "sentence_bad": ["Whom left\t?"],
    "linguistics_term": ["case"],
    "pair_id": [7],
}
CASES: list[tuple[dict[str, Any], dict[str, bytes], list[str], dict[str, str], str, dict[str, int]]] = [
    (
        {"kind": "text", "splits": {"train": "a*"}, "held_out": 2, "documents": 3},
        {"a1": WIKI},
        [],
        {"train.txt": "= A =\nOne cat .\nTwo cats .\n", "valid.txt": "Three cats .\n"},
        "text",
        {"documents without text": 1},
    ),
    (
        {"kind": "tags", "splits": SPLITS, "names": TAGS},
        dict.fromkeys("ab", parquet(tokens=[["Ann", "Lee", "", "is in"], ["No"]], ner_tags=[[1, 2, 0, 0], [0]])),
        [],
        {"train.tsv": "Ann\tB-PER\nLee\tI-PER\nis_in\tO\n\nNo\tO\n\n"},
        "ner",
        {"words left out because they are empty": 2},
    ),
    (
        {"kind": "columns", "splits": {"train": "a"}, "word": 2, "tag": 3},
        {"a": b"0\tAnn\tB-PER\n1\truns\tO\n\n0\tNo\tO\n"},
        [],
        {"train.tsv": "Ann\tB-PER\nruns\tO\n\nNo\tO\n\n"},
        "ner",
        {},
    ),
    (
        {"kind": "questions", "splits": {"dev": "a"}, "prefix": "en-"},
        {
            "a": parquet(
                id=["en-1", "en-2", "fr-1"], context=["A cat.", "A cat.", "B"], question=["Q?"] * 3, answers=ANSWERS
            )
        },
        [],
        {},
        "qa",
        {},
    ),
    (
        {"kind": "massive", "file": "a"},
        {"a": "\n".join(map(json.dumps, UTTERANCES)).encode()},
        [],
        {"train/seq.out": "O O O B-time I-time O B-date\n", "valid/seq.out": "O B-song_name\n", "test/label": "play\n"},
        "slots",
        {"utterances left out because their brackets are not slots": 1},
    ),
    (
        {"kind": "pairs", "left": "a", "right": "b", "sentences": 2},
        {"a": b"le chat.\n\nun chat.\nun chien.\n", "b": b"the cat.\nno\na cat.\na dog.\n"},
        ["x.fr", "x.en"],
        {"x.fr": "le chat .\nun chat .\n", "x.en": "the cat .\na cat .\n"},
        "pairs",
        {"pairs left out because a side has no word": 1},
    ),
    (
        {"kind": "pair_table", "table": "a", "left": "one", "right": "two", "where": {"label": "1"}, "words": "spaces"},
        {"a": b"id\tone\ttwo\tlabel\n1\ta b\tb a\t1\n2\tc\td\t0\n"},
        ["x.a", "x.b"],
        {"x.a": "a b\n", "x.b": "b a\n"},
        "pairs",
        {},
    ),
    (
        {"kind": "vectors", "file": "a", "words": 2},
        {"a": b"9 3\nthe 1 2 3\nof 1 2 3\nand 1 2"},
        ["en.vec"],
        {"en.vec": "2 3\nthe 1 2 3\nof 1 2 3\n"},
        "vectors",
        {},
    ),
    (
        {"kind": "minimal", "splits": {"test": "*/train-*"}},
        {"wh/train-0": parquet(**PAIR, UID=["wh"]), "npi/train-0": parquet(**PAIR, UID=["npi"])},
        [],
        {
            "test.tsv": "\t".join(BLIMP)
            + "\nWho left ?\tWhom left ?\tcase\tnpi\t7\nWho left ?\tWhom left ?\tcase\twh\t7\n"
        },
        "minimal",
        {},
    ),
    (
        {"kind": "copy", "files": {"train.conll": "a.gz", "test.conll": "b"}},
        {"a.gz": gzip.compress(b"Ann\tB-PER\n"), "b": b"Lee\tB-PER\n"},
        [],
        {"train.conll": "Ann\tB-PER\n"},
        "ner",
        {},
    ),
]


def converted(settings: dict[str, Any], files: dict[str, bytes], names: list[str], folder: Path) -> dict[str, int]:
    """Convert files into FOLDER/out."""
    conversion: Conversion = TypeAdapter(Conversion).validate_python(settings)
    (folder / "out").mkdir(parents=True)
    for name, content in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(content)
    given = Given({name: folder / name for name in files}, folder, names=names)
    return conversion.run(given, folder / "out")


@pytest.mark.parametrize(("settings", "files", "names", "expected", "layout", "omitted"), CASES)
def test_what_is_written_is_what_studies_read(settings, files, names, expected, layout, omitted, tmp_path):
    assert converted(settings, files, names, tmp_path) == omitted
    for name, text in expected.items():
        assert (tmp_path / "out" / name).read_text(encoding="utf-8") == text
    paths = [tmp_path / "out" / name for name in names] or [tmp_path / "out"]
    found = contents(layout, paths)
    assert found and all(content.items for content in found.values())


def test_questions_keep_their_answers(tmp_path):
    settings, files, *_ = next(case for case in CASES if case[0]["kind"] == "questions")
    converted(settings, files, [], tmp_path)
    [article] = json.loads((tmp_path / "out" / "dev.json").read_text())["data"]
    assert [one["id"] for one in article["paragraphs"][0]["qas"]] == ["en-1", "en-2"]
    assert str(contents("qa", [tmp_path / "out"])["dev"]) == "2 items"


REFUSALS = [
    ({"kind": "text", "splits": {"train": "a"}, "column": "body"}, {"a": WIKI}, ("a", "missing")),
    ({"kind": "text", "splits": {"train": "a"}}, {"a": WIKI[:90]}, ("a", "damaged")),
    ({"kind": "text", "splits": {"train": "b"}}, {"a": WIKI}, ("", "missing")),
    ({"kind": "tags", "splits": {"train": "a"}, "names": ["O"]}, CASES[1][1], ("", "range")),
    ({"kind": "columns", "splits": {"train": "a"}, "tag": 3}, {"a": b"Ann O\n"}, ("a:1", "format")),
    ({**CASES[3][0], "prefix": "de-"}, CASES[3][1], ("a", "empty")),
    ({"kind": "minimal", "splits": {"test": "a"}}, {"a": parquet(sentence_good=["a"])}, ("a", "missing")),
    ({"kind": "massive", "file": "a"}, {"a": b"{}\n"}, ("a:1", "missing")),
    ({"kind": "massive", "file": "a"}, {"a": b"{\n"}, ("a:1", "damaged")),
    (
        {"kind": "massive", "file": "a"},
        {"a": b'{"partition": "x", "annot_utt": "", "intent": ""}\n'},
        ("a:1 partition", "unknown"),
    ),
    ({"kind": "pairs", "left": "a", "right": "b"}, {"a": b"x\ny\n", "b": b"x\n"}, ("a:2", "damaged")),
    ({"kind": "pairs", "left": "a", "right": "b"}, {"a": b"x\n\xe9\n", "b": b"x\ny\n"}, ("a:2", "format")),
    (
        {"kind": "columns", "splits": {"train": "a"}, "tag": 2},
        {"a": b"Ann B-PER\n" * 2000 + b"\xe9 O\n"},
        ("a:2001", "format"),
    ),
    ({**CASES[6][0], "left": "three"}, CASES[6][1], ("a:1", "missing")),
    ({"kind": "vectors", "file": "a", "words": 3}, CASES[7][1], ("a:4", "damaged")),
    ({"kind": "vectors", "file": "a"}, {"a": b"the 1 2 3\n"}, ("a:1", "format")),
]


@pytest.mark.parametrize(("settings", "files", "expected"), REFUSALS)
def test_files_of_another_layout_are_refused(settings, files, expected, tmp_path):
    names = ["x.fr", "x.en"] if "pair" in settings["kind"] else ["en.vec"]
    assert refused(converted, settings, files, names, tmp_path) == expected


def test_a_held_out_part_needs_the_training_set_alone():
    settings = {"kind": "text", "splits": {"train": "a", "test": "b"}, "held_out": 2}
    with pytest.raises((InputError, ValueError), match="only split"):
        TypeAdapter(Conversion).validate_python(settings)
