"""Readers of tasks on wrong, damaged and random files: one clear line, or counted; never a traceback."""

from __future__ import annotations

import contextlib
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synthlang.errors import InputError
from synthlang.language import parse_language
from synthlang.tasks import derive_task, open_task
from tests.fuzz import damaged
from tests.test_tasks import CONTEXT, question, squad, write

NLI = "sentence1\tsentence2\tlabel\n"
GOOD = {
    "nli": (NLI + "He ran. She sat.\tShe sat.\tentailment\nA dog.\tA cat .\tneutral\n" * 3).encode(),
    "ner": b"-DOCSTART- O\n\nen:Sioux\tB-ORG\nen:Falls\tI-ORG\n\nen:is\tO\nen:re:\tB-LOC\n",
    "pos": b"# x\n1\tHe\t_\tPRON\t_\t_\t2\tnsubj\t_\t_\n2\tran\t_\tVERB\t_\t_\t0\troot\t_\t_\n\n" * 2,
    "slots": b"set\t5:7:x\tWake me up.\ten\t{}\nget\t0:4:a,5:7:b\tWake me\ten\t{}\n",
    "qa": json.dumps(
        {
            "data": [
                {
                    "title": "T",
                    "paragraphs": [
                        {"context": CONTEXT, "qas": [question("a", (4, "old cat")), question("b", is_impossible=True)]}
                    ],
                }
            ]
        }
    ).encode(),
}
GOOD["parsing"] = GOOD["pos"]
NAMES = {"pos": "x.conllu", "parsing": "x.conllu", "nli": "x.tsv", "ner": "x.txt", "slots": "x.tsv", "qa": "x.json"}


@pytest.mark.parametrize("scheme", list(GOOD))
@given(data=st.data())
@settings(max_examples=150)
def test_damage_is_an_input_error_or_counted(tmp_path_factory, scheme, data):
    path = tmp_path_factory.getbasetemp() / NAMES[scheme]
    path.write_bytes(data.draw(damaged(GOOD[scheme])))
    with contextlib.suppress(InputError):
        for batch in open_task(f"{scheme}:{path}").batches("train"):
            derive_task(batch, parse_language("trans+inv"))
            assert all(count > 0 for count in batch.counts.values())


@pytest.mark.parametrize("scheme", list(GOOD))
def test_the_good_files_are_good(tmp_path, scheme):
    (tmp_path / NAMES[scheme]).write_bytes(GOOD[scheme])
    [batch] = open_task(f"{scheme}:{tmp_path / NAMES[scheme]}").batches("train")
    assert len(batch) == (6 if scheme == "nli" else 2)
    assert batch.counts == {}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"x.tsv:1: the header names no column for the premise \(premise or sentence1 or sentence_a\)"),
        ("sentence1\tsentence2\n", "the header names no column for the label"),
        (NLI, "holds no labelled pair"),
        (NLI + "a\tb\t-\n", r"holds no labelled pair \(pairs left out, no gold label: 1\)"),
        (NLI + "a\tb\tneutral\n\nc\td\n", "x.tsv:4: here are 2 columns, the header names 3"),
        (NLI + "a\tb\tneutral\textra\n", "x.tsv:2: here are 4 columns"),
    ],
)
def test_wrong_pairs(tmp_path, text, message):
    with pytest.raises(InputError, match=message):
        list(open_task(f"nli:{write(tmp_path / 'x.tsv', text)}").batches("train"))


def test_a_language_of_a_file_without_languages(tmp_path):
    path = write(tmp_path / "x.tsv", NLI + "a\tb\tneutral\n")
    with pytest.raises(InputError, match="has no column 'language' to choose from"):
        open_task(f"nli:{path}?language=de")


def paragraph(**changes):
    return {"context": CONTEXT, "qas": [question("a", (4, "old cat"))], **changes}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ([], "must hold a JSON object"),
        ({}, "the file: 'data' must be a list"),
        ({"data": []}, "holds no question"),
        ({"data": [3]}, r"data\[0\]: must be an object"),
        ({"data": [{"paragraphs": {}}]}, r"data\[0\]: 'paragraphs' must be a list"),
        (
            {"data": [{"paragraphs": [paragraph(context=3)]}]},
            r"data\[0\].paragraphs\[0\]: 'context' must be a text; it is '3'",
        ),
        ({"data": [{"paragraphs": [{"qas": []}]}]}, "'context' must be a text; there is none"),
        ({"data": [{"paragraphs": [paragraph(context=" ")]}]}, "holds no question"),
        ({"data": [{"paragraphs": [paragraph(context="\ud800")]}]}, "half of a surrogate pair"),
        ({"data": [{"paragraphs": [paragraph(qas=[{"id": 1}])]}]}, r"qas\[0\]: 'id' must be a text; it is '1'"),
        (
            {"data": [{"paragraphs": [paragraph(qas=[question("a", ("4", "old"))])]}]},
            "'answer_start' must be a whole number",
        ),
        (
            {"data": [{"paragraphs": [paragraph(qas=[question("a", (True, "old"))])]}]},
            "'answer_start' must be a whole number",
        ),
        (
            {"data": [{"paragraphs": [paragraph(qas=[question("a", is_impossible=1)])]}]},
            "'is_impossible' must be true or false",
        ),
    ],
)
def test_wrong_questions(tmp_path, content, message):
    path = write(tmp_path / "x.json", json.dumps(content))
    with pytest.raises(InputError, match=message):
        open_task(f"qa:{path}")


@pytest.mark.parametrize("start", [-1, 1000, 10**18])
def test_answers_outside_their_context(tmp_path, start):
    qas = [question("a", (start, "old")), question("b", (4, "old"))]
    [batch] = open_task(f"qa:{squad(tmp_path / 'x.json', paragraph(qas=qas))}").batches("train")
    assert batch.ids == ("b",)


def test_questions_that_are_all_left_out_say_why(tmp_path):
    qas = [question("a", (5, "old")), question("b", (6, "old"), (7, "old")), question("c", (7, " "), text=" ")]
    with pytest.raises(InputError) as info:
        open_task(f"qa:{squad(tmp_path / 'x.json', paragraph(qas=qas))}")
    assert str(info.value).endswith(
        "x.json: holds no question that can be used (answers left out, the context has another text at their place: 3;"
        " questions left out, no answer of theirs can be used: 2; answers left out, no word in them: 1;"
        " questions left out, without a word: 1)"
    )


def test_a_byte_order_mark_before_json(tmp_path):
    path = tmp_path / "x.json"
    path.write_bytes(b"\xef\xbb\xbf" + GOOD["qa"])
    [batch] = open_task(f"qa:{path}").batches("train")
    assert batch.ids == ("a", "b")
    (tmp_path / "y.json").write_bytes(b"{\n\xff}")
    with pytest.raises(InputError, match=r"y.json: not UTF-8"):
        open_task(f"qa:{tmp_path / 'y.json'}")
    (tmp_path / "z.json").write_text("{\n,}")
    with pytest.raises(InputError, match=r"z.json:2: not JSON"):
        open_task(f"qa:{tmp_path / 'z.json'}")


def test_ids_that_come_again_are_numbered(tmp_path):
    qas = [question(name, (4, "old")) for name in ("a", "a", "b", "a#2", "a")]
    task = open_task(f"qa:{squad(tmp_path / 'x.json', paragraph(qas=qas), paragraph(qas=qas[:1]))}")
    [batch] = task.batches("train")
    assert batch.ids == ("a", "a#2", "b", "a#2#2", "a#3", "a#4")
    assert batch.counts == {"ids numbered, another item has the same": 4}
    lines = "".join(f"{name}\ta\tb\tneutral\n" for name in "7787")
    path = write(tmp_path / "x.tsv", "index\tsentence1\tsentence2\tlabel\n" + lines)
    [batch] = open_task(f"nli:{path}").batches("train")
    assert batch.ids == ("7", "7#2", "8", "7#3")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("set\t1:2:x", "x.tsv:1: a line has at least intent, slots and utterance; here are 2"),
        ("\t1:2:x\tabc", "x.tsv:1: the intent is empty"),
        ("set\t1:2\tabc", "the slot '1:2' must be start:end:name"),
        ("set\t1:2:x,\tabc", "the slot '' must be start:end:name"),
        ("", "holds no utterance"),
        ("set\t0:9:x\tabc", r"x.tsv: holds no utterance \(utterances left out, a slot is not inside the text: 1\)"),
    ],
)
def test_wrong_utterances(tmp_path, line, message):
    with pytest.raises(InputError, match=message):
        open_task(f"slots:{write(tmp_path / 'x.tsv', line)}")
