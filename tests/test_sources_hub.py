from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from synthlang.errors import InputError
from synthlang.sources import open_source
from synthlang.sources.base import Source
from synthlang.sources.hub_data import by_split
from tests import hub_folders
from tests.hub_folders import datasets, jsonl, offline  # noqa: F401  a fixture

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


def test_a_changed_folder_is_read_again(tmp_path):
    read = [rows(open_source(f"hf:{jsonl(tmp_path / 'd', train={'text': [text]})}")) for text in ("One.", "Two.")]
    assert read == [[{"form": ["One", "."]}], [{"form": ["Two", "."]}]]


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
    ("columns", "message"),
    [
        ({"title": ["x"], "n": [1]}, "text in text or sentence; it has title (string), n (int64)"),
        ({"tokens": [[1, 2]]}, "it has tokens (list of int64)"),
        ({"text": ["", " "]}, "the split train holds no word"),
        ({"tokens": [["a", ""]]}, "row 1 of the split train: word 2 is empty"),
        ({"tokens": [["a"], ["b", None]]}, "row 2 of the split train: word 2 is empty"),
        ({"tokens": [["a"]], "upos": [["X", "Y"]]}, "row 1 of the split train: 1 words but 2 values in 'upos'"),
        ({"tokens": [["a"], ["b"]], "upos": [["X"], [None]]}, "row 2 of the split train has no label in 'upos'"),
        ({"tokens": [["a"]], "head": [[1]]}, "row 1 of the split train: the sentence has no root"),
        ({"tokens": [["a"]], "head": [["x"]]}, "row 1 of the split train: a head must be an integer"),
        *(
            ({"tokens": [["a"], ["b", "c"]], "ner": [["B-PER"], ["O", tag]]},
             f"row 2 of the split train: 'ner': the tag {tag!r} must be O, or B- or I- and")
            for tag in ("b-per", "PER", "B-", "o", "", "X-PER", "B PER")
        ),
        # inserted words (-1) excuse no other tree
        *(({"tokens": [["a", "b", "c"]], "head": [head]}, "row 1 of the split train: ")
          for head in ([-1, 3, 2], [0, 0, -1], [-2, 0, 2], [-1, 4, 0])),
    ],
)  # fmt: skip
def test_wrong_data(tmp_path, columns, message):
    with pytest.raises(InputError) as info:
        rows(open_source(f"hf:{jsonl(tmp_path / 'd', train=columns)}"))
    assert message in str(info.value)
    assert "\n" not in str(info.value)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nobody/nothing", "hf:nobody/nothing: cannot load the data set: "),
        ("nobody/nothing:en", "hf:nobody/nothing:en: cannot load the data set: "),
        ("/no/such/folder", "/no/such/folder: no such file or folder"),
        ("./no:en", "no: no such file or folder"),
    ],
)
def test_what_cannot_be_reached(name, message):
    with pytest.raises(InputError) as info:
        open_source(f"hf:{name}")
    assert message in str(info.value)
    assert "\n" not in str(info.value)


def test_a_file_is_no_data_set(tmp_path):
    (tmp_path / "x.jsonl").write_text("{}")
    with pytest.raises(InputError, match=r"is a file; name the folder"):
        open_source(f"hf:{tmp_path / 'x.jsonl'}")


@pytest.mark.parametrize(
    ("splits", "message"),
    [
        (["unsupervised"], "hf:x: no split is named train, validation or test; it has unsupervised"),
        (["validation", "dev"], "hf:x: several splits stand for dev: validation, dev"),
    ],
)
def test_splits_of_other_names(splits, message):
    with pytest.raises(InputError, match=message):
        by_split(dict.fromkeys(splits), "hf:x")


def test_code_in_a_folder_is_not_run(tmp_path):
    folder = tmp_path / "evil"
    folder.mkdir()
    (folder / "evil.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    with pytest.raises(InputError, match=r"cannot load the data set"):
        open_source(f"hf:{folder}")
    assert not (tmp_path / "ran").exists()


def test_without_the_library(monkeypatch):
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(InputError, match=r"need the library datasets: pip install 'datasets>=4'"):
        open_source("hf:x")


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
