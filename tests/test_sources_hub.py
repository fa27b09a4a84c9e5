from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from synthlang.sources import open_source
from synthlang.sources.base import Source
from synthlang.sources.hub_data import by_split
from synthlang.sources.segmentation import split_words
from tests import hub_folders
from tests.hub_folders import datasets, jsonl, offline  # noqa: F401  a fixture
from tests.refusals import place_and_code, refusal, refused

TAGS = datasets.ClassLabel(names=["O", "B-PER"])
TOKENS: dict[str, list[Any]] = {
    "tokens": [["Anna", "ran"], ["10 000"]],
    "ner_tags": [[1, 0], [0]],
    "head": [[2, 0], [0]],
}
FEATURES = {
    "tokens": datasets.List(datasets.Value("string")),
    "ner_tags": datasets.List(TAGS),
    "head": datasets.List(datasets.Value("int32")),
}


def parquet(folder: Path, features: dict[str, Any] = FEATURES, **splits: dict[str, list[Any]]) -> Path:
    return hub_folders.parquet(folder, features, **splits)


def rows(source: Source, split: str = "train") -> list[dict[str, Any]]:
    return [dict(sentence.columns) for batch in source.batches(split) for sentence in batch]


def test_words_with_class_labels(tmp_path):
    source = open_source(f"hf:{parquet(tmp_path / 'd', train=TOKENS, validation=TOKENS)}")
    assert source.splits == ("train", "dev")
    assert source.columns == ("form", "head", "ner")
    [batch] = source.batches("dev")
    assert tuple(batch.columns) == source.columns
    assert rows(source, "dev") == [
        {"form": ["Anna", "ran"], "head": [2, 0], "ner": ["B-PER", "O"]},
        {"form": ["10\u00a0000"], "head": [0], "ner": ["O"]},
    ]


def test_a_number_without_a_name_is_no_label(tmp_path):
    folder = parquet(tmp_path / "d", train={**TOKENS, "ner_tags": [[-1, 0], [0]]})
    error = refusal(open_source, f"hf:{folder}")
    assert place_and_code(error) == ("d train.row 1.ner_tags", "range")
    assert error.reason == "the label -1 has no name in this column"


def test_a_file_that_the_library_cannot_read(tmp_path):
    (tmp_path / "train.jsonl").write_text("{bad\n")
    error = refusal(open_source, f"hf:{tmp_path}")
    assert "JSON parse error" in error.reason and "connection" not in error.hint


def test_words_with_labels_as_strings_and_heads_as_digits(tmp_path):
    columns = {"words": [["a"], [], ["b", "c"]], "upos": [["X"], [], ["Y", "X"]], "head": [["0"], [], ["0", "1"]]}
    source = open_source(f"hf:{jsonl(tmp_path / 'd', train={**columns, 'deprel': columns['upos']})}")
    assert rows(source) == [
        {"form": ["a"], "upos": ["X"], "head": [0], "deprel": ["X"]},
        {"form": ["b", "c"], "upos": ["Y", "X"], "head": [0, 1], "deprel": ["Y", "X"]},
    ]
    assert [batch.ids.tolist() for batch in source.batches("train")] == [[0, 1]]


@pytest.mark.parametrize("column", ["text", "sentence"])
def test_text_goes_through_the_rules_for_words(tmp_path, column):
    texts = ["He left. She didn't!\nThe end", "", None, "Next."]
    source = open_source(f"hf:{jsonl(tmp_path / 'd', test={column: texts, 'label': [0, 1, 2, 3]})}")
    assert source.splits == ("test",)
    assert source.columns == ("form",)
    found = [" ".join(row["form"]) for row in rows(source, "test")]
    assert found == ["He left .", "She didn't !", "The end", "Next ."]
    chinese = open_source(f"hf:{jsonl(tmp_path / 'zh', test={column: ['我在Linux上']})}?cjk=characters")
    assert [row["form"] for row in rows(chinese, "test")] == [[*list("我在"), "Linux", "上"]]


def test_labels_without_names_are_no_column(tmp_path):
    source = open_source(f"hf:{jsonl(tmp_path / 'd', train={'tokens': [['a']], 'ner_tags': [[3]]})}")
    assert source.columns == ("form",)


def test_fingerprint_is_of_the_values(tmp_path):
    def mark(name: str, values=TOKENS, features=FEATURES, split="train"):
        return open_source(f"hf:{parquet(tmp_path / name, features, **{split: values})}").fingerprint

    first, text = mark("a"), datasets.Value("string")
    assert mark("b", {**TOKENS, "id": ["x", "y"]}, {**FEATURES, "id": text}) == first
    named = {**FEATURES, "ner_tags": datasets.List(datasets.ClassLabel(names=["O", "B-LOC"]))}
    assert first not in (
        mark("c", {**TOKENS, "tokens": [["Anna", "run"], ["10 000"]]}),
        mark("d", {**TOKENS, "ner_tags": [[0, 0], [0]]}),
        mark("e", {**TOKENS, "head": [[0, 1], [0]]}),
        mark("f", features=named),
        mark("g", split="validation"),
    )
    texts = {"text": ["One.", "Two."]}  # the format of the files is no part of it
    assert mark("h", texts, {"text": text}) == open_source(f"hf:{jsonl(tmp_path / 'i', train=texts)}").fingerprint


SCHEMES = {
    "IOB2": ["B-PER", "I-PER", "B-PER", "O", "B-LOC"],
    "IOB1": ["I-PER", "I-PER", "B-PER", "O", "I-LOC"],
    "IOBES": ["B-PER", "E-PER", "S-PER", "O", "S-LOC"],
    "BILOU": ["B-PER", "L-PER", "U-PER", "O", "U-LOC"],
}


@pytest.mark.parametrize("scheme", list(SCHEMES))
@pytest.mark.parametrize("named", [False, True])
def test_tags_of_any_scheme_become_iob2(tmp_path, scheme, named):
    tags, words = SCHEMES[scheme], datasets.List(datasets.Value("string"))
    names = sorted(set(tags))
    features = {"tokens": words, "ner_tags": datasets.List(datasets.ClassLabel(names=names)) if named else words}
    values = [names.index(tag) for tag in tags] if named else tags
    folder = parquet(tmp_path / "d", features, train={"tokens": [["a", "b", "c", "d", "e"]], "ner_tags": [values]})
    source = open_source(f"hf:{folder}")
    assert rows(source) == [{"form": ["a", "b", "c", "d", "e"], "ner": SCHEMES["IOB2"]}]


@pytest.mark.parametrize(
    ("columns", "place", "code"),
    [
        ({"title": ["x"], "n": [1]}, "d", "missing"),
        ({"tokens": [[1, 2]]}, "d", "missing"),
        ({"text": ["", " "]}, "d train", "empty"),
        ({"tokens": [["a", ""]]}, "d train.row 1", "format"),
        ({"tokens": [["a"], ["b", None]]}, "d train.row 2", "format"),
        ({"tokens": [["a"]], "upos": [["X", "Y"]]}, "d train.row 1.upos", "format"),
        ({"tokens": [["a"], ["b"]], "upos": [["X"], [None]]}, "d train.row 2.upos", "missing"),
        ({"tokens": [["a"]], "head": [[1]]}, "d train.row 1.head", "format"),
        ({"tokens": [["a"]], "head": [["x"]]}, "d train.row 1.head", "type"),
        *(
            ({"tokens": [["a"], ["b", "c"]], "ner": [["B-PER"], ["O", tag]]}, "d train.row 2.ner", "format")
            for tag in ("b-per", "B-", "X-PER")
        ),
        # words that a language inserted (-1) do not excuse what is no tree
        *(({"tokens": [["a", "b", "c"]], "head": [head]}, "d train.row 1.head", "format")
          for head in ([-1, 3, 2], [0, 0, -1], [-2, 0, 2], [-1, 4, 0])),
    ],
)  # fmt: skip
def test_wrong_data(tmp_path, columns, place, code):
    folder = jsonl(tmp_path / "d", train=columns)
    assert refused(lambda: rows(open_source(f"hf:{folder}"))) == (place, code)


@pytest.mark.parametrize(
    ("name", "place", "code"),
    [
        ("nobody/nothing", "nothing", "failed"),
        ("nobody/nothing:en", "nothing:en", "failed"),
        ("/no/such/folder", "folder", "missing"),
        ("./no:en", "no", "missing"),
    ],
)
def test_what_cannot_be_reached(name, place, code):
    assert refused(open_source, f"hf:{name}") == (place, code)


def test_several_configurations_and_other_columns_are_named(tmp_path):
    for name in ("en", "de"):
        jsonl(tmp_path / "two", **{name: {"text": ["a b"]}})
    files = "".join(f"- config_name: {name}\n  data_files: {name}.jsonl\n" for name in ("en", "de"))
    (tmp_path / "two" / "README.md").write_text(f"---\nconfigs:\n{files}---\n")
    error = refusal(open_source, f"hf:{tmp_path}/two")
    assert error.code == "missing" and error.hint == f"name one, as in hf:{tmp_path}/two:en"
    jsonl(tmp_path / "other", train={"text": ["a"]}, test={"text": ["a"], "more": ["b"]})
    assert "a file has the column 'more'" in refusal(open_source, f"hf:{tmp_path}/other").reason


def test_a_file_is_no_data_set(tmp_path):
    (tmp_path / "x.jsonl").write_text("{}")
    assert refused(open_source, f"hf:{tmp_path / 'x.jsonl'}") == ("x.jsonl", "type")


@pytest.mark.parametrize(("splits", "code"), [(["unsupervised"], "missing"), (["validation", "dev"], "duplicate")])
def test_splits_of_other_names(splits, code):
    assert refused(by_split, dict.fromkeys(splits), "hf:x") == ("hf:x", code)


def test_code_in_a_folder_is_not_run(tmp_path):
    folder = tmp_path / "evil"
    folder.mkdir()
    (folder / "evil.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    assert refused(open_source, f"hf:{folder}") == ("evil", "failed")
    assert not (tmp_path / "ran").exists()


def test_without_the_library(monkeypatch):
    monkeypatch.setitem(sys.modules, "datasets", None)
    assert refused(open_source, "hf:x") == ("", "extra")


def test_words_of_a_treebank_that_are_no_syntactic_ones(tmp_path):
    """Ranges and empty nodes have no head; heads count without them."""
    columns = {
        "tokens": [["du", "de", "le", "chat", "e", "!"], ["du"]],
        "upos": [["_", "ADP", "DET", "NOUN", "_", "_"], ["_"]],
        "head": [["None", "3", "3", "0", "None", "3"], ["None"]],
        "deprel": [["_", "case", "det", "root", "_", "punct"], ["_"]],
    }
    assert rows(open_source(f"hf:{jsonl(tmp_path / 'd', train=columns)}")) == [
        {
            "form": ["de", "le", "chat", "!"],
            "upos": ["ADP", "DET", "NOUN", "_"],
            "head": [3, 3, 0, 3],
            "deprel": ["case", "det", "root", "punct"],
        }
    ]


@pytest.mark.parametrize("head", [[2, 0, -1], [-1, 1, 1], [-1, -1, 1], [3, -1, 0]])
def test_inserted_words_hang_nowhere(tmp_path, head):
    source = open_source(f"hf:{jsonl(tmp_path / 'd', train={'tokens': [['a', 'b', 'c']], 'head': [head]})}")
    assert rows(source) == [{"form": ["a", "b", "c"], "head": head}]


def csv_folder(folder: Path, *texts: str) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "train.csv").write_text("".join(f"{text},1\n" for text in ("text", *texts)), encoding="utf-8")
    return folder


def test_words_of_a_table_that_look_like_missing_values_are_words(tmp_path):
    words = ["null", "NA", "nan", "None", "N/A", "cat"]
    source = open_source(f"hf:{csv_folder(tmp_path / 'd', *words)}")
    assert [row["form"] for row in rows(source)] == [[*split_words(word)] for word in words]


@pytest.mark.parametrize("name", ["csv", "text"])
def test_a_folder_named_like_a_format_is_the_only_one_read(tmp_path, monkeypatch, name):
    """To the library, ``csv`` is a format, and it would read every file of the working directory."""
    monkeypatch.chdir(tmp_path)
    csv_folder(tmp_path / "other", "cow")
    assert refused(open_source, f"hf:{name}") == (name, "missing")
    csv_folder(tmp_path / name, "cat")
    assert [row["form"] for row in rows(open_source(f"hf:{name}"))] == [["cat"]]


def test_changed_content_is_read_again_whatever_the_time_of_the_file(tmp_path):
    folder = csv_folder(tmp_path / "d", "cat", "dog")
    before = (folder / "train.csv").stat()
    assert [row["form"] for row in rows(open_source(f"hf:{folder}"))] == [["cat"], ["dog"]]
    csv_folder(folder, "cow", "pig")
    os.utime(folder / "train.csv", ns=(before.st_atime_ns, before.st_mtime_ns))
    assert [row["form"] for row in rows(open_source(f"hf:{folder}"))] == [["cow"], ["pig"]]


def test_a_path_with_signs_of_a_pattern_is_named(tmp_path):
    folder = tmp_path / "a[1]"
    folder.mkdir()
    (folder / "train.jsonl").write_text('{"text": "a b"}\n')
    assert refused(open_source, f"hf:{folder}") == ("a[1]", "unsupported")
