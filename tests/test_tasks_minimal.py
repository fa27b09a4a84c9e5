"""Minimal pairs as a task: formats, what is left out and refused, and both sides in one rewrite."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from datasets import ClassLabel, Dataset, Features, Value

from synthlang.language import parse_language
from synthlang.tasks import derive_task, open_task
from synthlang.tasks.batch import RENAMED, join_batches
from synthlang.tasks.derive import EQUAL as BECAME_EQUAL
from synthlang.tasks.derive import NO_PARSE, ParsedTask
from synthlang.tasks.minimal import EQUAL, NO_WORD
from tests.refusals import refused
from tests.test_tasks import write
from tests.test_tasks_derive import Parser

GOOD, BAD = "Who should Derek hug?", "Who should Derek hugs?"
BLIMP = {"field": "syntax", "linguistics_term": "island", "UID": "adjunct", "simple_LM_method": True, "pairID": "0"}


def blimp(good=GOOD, bad=BAD, **more):
    return json.dumps({"sentence_good": good, "sentence_bad": bad, **BLIMP, **more}) + "\n"


def read(spec, split="test"):
    batch = join_batches(list(open_task(spec).batches(split)))
    label = [None] * len(batch) if batch.label is None else batch.label.values()
    found = zip(batch.ids, batch.strings(0), batch.strings(1), label, batch.extra["paradigm"], strict=True)
    return list(found), dict(batch.counts)


def test_blimp(tmp_path):
    write(tmp_path / "data" / "adjunct.jsonl", blimp() + blimp(pairID="1", sentence_bad="Who Derek should hug?"))
    write(tmp_path / "data" / "other.jsonl", blimp("a b", "b a", UID="other", linguistics_term="binding"))
    write(tmp_path / "data" / "README.md", "nothing")
    found, counts = read(f"minimal:{tmp_path / 'data'}")
    words = "Who should Derek hug ?"
    assert found == [
        ("adjunct-0", words, "Who should Derek hugs ?", "island", "adjunct"),
        ("adjunct-1", words, "Who Derek should hug ?", "island", "adjunct"),
        ("other-0", "a b", "b a", "binding", "other"),
    ]
    assert counts == {} and open_task(f"minimal:{tmp_path / 'data'}").labels == ("binding", "island")
    spaced, _ = read(f"minimal:{tmp_path / 'data' / 'adjunct.jsonl'}?words=spaces")
    assert spaced[0][1:3] == (GOOD, BAD)


def test_multiblimp_and_plain_columns(tmp_path):
    table = "sen\twrong_sen\tphenomenon\tfreq\nil dort\til dors\tSV-P\t3\nelle va\telle vont\tSV-#\t1\n"
    found, _ = read(f"minimal:{write(tmp_path / 'fra.tsv', table)}")
    assert found == [("0", "il dort", "il dors", "SV-P", ""), ("1", "elle va", "elle vont", "SV-#", "")]
    plain = write(tmp_path / "many" / "case.tsv", "she saw him\tshe saw he\n\nhe ran\thim ran\n")
    write(tmp_path / "many" / "order.txt", "a b\tb a\n")
    assert read(f"minimal:{plain}")[0] == [
        ("0", "she saw him", "she saw he", None, ""),
        ("2", "he ran", "him ran", None, ""),
    ]
    folder, _ = read(f"minimal:{tmp_path / 'many'}")  # files name the phenomenon where no column does
    assert [(row[0], row[3]) for row in folder] == [("case-0", "case"), ("case-2", "case"), ("order-0", "order")]


def test_a_data_set_of_the_hub(tmp_path):
    rows = [json.loads(blimp(pair_id=n)) for n in range(2)]
    (tmp_path / "data").mkdir()
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "data" / "train-00000.parquet")
    found, _ = read(f"minimal:hf:{tmp_path / 'data'}", "train")
    assert [row[0] for row in found] == ["0", "1"] and found[0][3:] == ("island", "adjunct")
    pq.write_table(pa.table({"sen": ["a"], "other": ["b"]}), tmp_path / "data" / "train-00000.parquet")
    assert refused(open_task, f"minimal:hf:{tmp_path / 'data'}") == ("data", "missing")


@pytest.mark.parametrize("lacking", [-1, None])
def test_a_pair_of_the_hub_without_a_class_label_has_no_phenomenon(tmp_path, lacking):
    names = ClassLabel(names=["case", "order"])
    rows = {"good": ["a b", "c d"], "bad": ["b a", "d c"], "phenomenon": [1, lacking]}
    data = Dataset.from_dict(rows, Features({"good": Value("string"), "bad": Value("string"), "phenomenon": names}))
    (tmp_path / "data").mkdir()
    data.to_parquet(str(tmp_path / "data" / "test-00000.parquet"))
    assert [row[3] for row in read(f"minimal:hf:{tmp_path / 'data'}")[0]] == ["order", ""]
    assert open_task(f"minimal:hf:{tmp_path / 'data'}").labels == ("case", "order", "")


def test_what_is_left_out_is_counted(tmp_path):
    rows = blimp() + blimp(bad=GOOD) + blimp(good=" ") + blimp(bad=None) + blimp(good="Who should", bad="Who  should ")
    found, counts = read(f"minimal:{write(tmp_path / 'a.jsonl', rows + blimp(bad='x y'))}")
    assert [row[0] for row in found] == ["adjunct-0", "adjunct-0#2"]
    assert counts == {EQUAL: 2, NO_WORD: 2, RENAMED: 1}


HEAD = "good\tbad\n"


@pytest.mark.parametrize(
    ("content", "place", "code"),
    [
        ("", "x.tsv", "empty"),
        ("a b\n", "x.tsv:1", "missing"),
        ("a,b\n", "x.tsv:1", "missing"),
        ("sen\tother\tmore\n", "x.tsv:1", "missing"),
        ("sen\twrong\na b\tb a\n", "x.tsv:1", "missing"),  # one name of two: a header, not a pair
        (HEAD, "x.tsv", "empty"),
        (HEAD + "a\ta\n", "x.tsv", "empty"),
        (HEAD + "a\t\n", "x.tsv", "empty"),
        (HEAD + "a\tb\nc\n", "x.tsv:3", "format"),
        ("good\tbad\tplace\na b\ta\t1\n", "x.tsv:2", "range"),
        ("good\tbad\tplace\na b\ta c\t-1\n", "x.tsv:2", "range"),
        ("good\tbad\tplace\na b\ta c\tb\n", "x.tsv:2", "range"),
        ("good\tbad\tplace\na b\ta c\t" + "9" * 5000 + "\n", "x.tsv:2", "range"),
        ("a\tb\nc\td\te\n", "x.tsv:2", "format"),
        ("a\tb\nc\n", "x.tsv:2", "format"),
        ('{"good": "a", "bad": "b"}\n{"good": "a"}\n', "x.tsv:2", "missing"),
        ('{"good": "a", "bad": ["b"]}\n', "x.tsv:1 bad", "type"),
        ('{"good": "a", "bad": "b"}\n{,}\n', "x.tsv:2", "format"),
        ('{"good": "a", "bad": "b"}\n[]\n', "x.tsv:2", "type"),
        (b"a\tb\nc\t\xff\n", "x.tsv:2", "format"),
    ],
)
def test_wrong_files(tmp_path, content, place, code):
    path = tmp_path / "x.tsv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    assert refused(lambda: list(open_task(f"minimal:{path}").batches("test"))) == (place, code)


def test_the_file_of_a_folder_with_a_wrong_place_is_named(tmp_path):
    for name, place in (("a", 1), ("b", 7)):
        write(tmp_path / f"{name}.tsv", f"good\tbad\tplace\na b\ta c\t{place}\n")
    assert refused(lambda: list(open_task(f"minimal:{tmp_path}").batches("test"))) == ("b.tsv:2", "range")


@pytest.mark.parametrize(
    ("spec", "place", "code"),
    [
        ("minimal:/no/such.tsv", "such.tsv", "missing"),
        ("minimal:{}?language=en", "x.tsv language", "unknown"),
        ("minimal:{}?words=rules", "x.tsv words", "unknown"),
        ("minimal:{}?words=spaces&cjk=characters", "x.tsv cjk", "conflict"),
        ("minimal:{}/..", "", "missing"),
    ],
)
def test_specs_that_name_no_pairs(tmp_path, spec, place, code):
    path = write(tmp_path / "x.tsv", "a\tb\n")
    spec = spec.replace("{}/..", str(tmp_path / "none")) if ".." in spec else spec.format(path)
    found = refused(open_task, spec)
    assert found[1] == code and (not place or found[0] == place)


def test_the_split_is_test(tmp_path):
    task = open_task(f"minimal:{write(tmp_path / 'x.tsv', 'a b' + chr(9) + 'b a')}")
    assert task.splits == ("test",) and task.paired and refused(task.check, "dev") == ("minimal:x.tsv"[-5:], "missing")


ORDERS = ("permute", "invert")


@pytest.mark.parametrize("kind", ORDERS)
@pytest.mark.parametrize("strength", [1.0, 0.5])
def test_both_sides_go_through_the_same_rewrite(kind, strength):
    """The words of both sides move alike, so that a replaced word is still the only difference."""
    task = open_task("minimal:builtin:mini-english?types=500&test=240")
    batch = join_batches(list(task.batches("test")))
    language = parse_language({"name": "x", "transforms": [{"kind": kind, "strength": strength}]})
    derived, _ = derive_task(batch, language)
    assert derived.ids == batch.ids and derived.paired
    moved = [good != one for good, one in zip(batch.strings(0), derived.strings(0), strict=True)]
    assert 220 < sum(moved) <= 240 if strength == 1.0 else 60 < sum(moved) < 180
    alike = differences(batch)
    assert differences(derived) == alike and all(len(found) in (1, 2) for found in alike if found is not None)
    # with ids of their own, the sides of many pairs move apart
    apart, _ = derive_task(replace(batch, paired=False), language)
    assert (differences(apart) == alike) == (kind == "invert" and strength == 1.0)


def differences(batch):
    """The sorted pairs of different words at equal places of both sides, or None for sides of different lengths."""
    sides = [(good.split(), bad.split()) for good, bad in zip(batch.strings(0), batch.strings(1), strict=True)]
    return [
        sorted((a, b) for a, b in zip(good, bad, strict=True) if a != b) if len(good) == len(bad) else None
        for good, bad in sides
    ]


def test_parsed_pairs_are_derived_alike_and_lose_both_sides_without_a_parse(tmp_path):
    path = write(tmp_path / "x.tsv", "a b c d e\ta b x d e\nno tree here\there no tree\n")
    task = ParsedTask(open_task(f"minimal:{path}"), lambda source: Parser(source, lambda s: "tree" in s.words[:2]))
    [batch] = task.batches("test")
    assert batch.ids == ("0",) and batch.paired and batch.counts[NO_PARSE] == 1
    derived, _ = derive_task(batch, parse_language({"name": "x", "transforms": [{"kind": "permute"}]}))
    assert differences(derived) == [[("c", "x")]]


def test_pairs_that_become_equal_are_dropped_and_counted(tmp_path):
    words = tmp_path / "words.txt"
    words.write_text("saw sah\nsees sah\n", encoding="utf-8")
    path = write(tmp_path / "x.tsv", "she saw him\tshe sees him\nshe saw him\tshe saw he\n")
    batch = join_batches(list(open_task(f"minimal:{path}").batches("test")))
    options = {"probability": 1.0, "cap": 1.0, "dictionary": str(words)}
    derived, counts = derive_task(
        batch, parse_language({"name": "x", "transforms": [{"kind": "code_switch", **options}]})
    )
    assert derived.ids == ("1",) and derived.strings(0) == ["she sah him"] and counts[BECAME_EQUAL] == 1
    assert np.array_equal(derived.texts, [[0, 1]]) and len(derived.corpus) == 2
