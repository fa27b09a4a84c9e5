"""What task specs name, which split is meant, and that an exported task set reads back equal."""

from __future__ import annotations

import json
from typing import Any

import pytest

from synthlang.errors import InputError
from synthlang.language import parse_language
from synthlang.tasks import FORMS, SCHEMES, choose, derive_task, is_task, open_split, open_task, split_for
from synthlang.tasks.batch import join_batches
from synthlang.tasks.derive import ParsedTask
from synthlang.tasks.export import answer_texts, export_task
from tests.hub_folders import datasets, offline  # noqa: F401  a fixture
from tests.real_data import DATA
from tests.test_tasks import CONTEXT, only, question, squad, write
from tests.test_tasks_derive import Parser

MINI = "builtin:mini-english?types=500&sentences=60&dev=7&test=0"
TREE = """\
1\tThe\t_\tDET\t_\t_\t2\tdet\t_\tNER=O
2\tcat\t_\tNOUN\t_\t_\t3\tnsubj\t_\tNER=B-PET
3\tran\t_\tVERB\t_\t_\t0\troot\t_\tNER=O
4\t.\t_\tPUNCT\t_\t_\t3\tpunct\t_\tNER=O

"""
CONLL_2003 = "-DOCSTART- -X- -X- O\n\nEU NNP B-NP B-ORG\nrejects VBZ B-VP O\n\nPeter NNP B-NP B-PER\nB NNP I-NP I-PER\n"


def write_task(folder, scheme):
    """A small task of each scheme in files; returns its spec."""
    if scheme == "nli":
        rows = ['7\tHe said "Go". She left!\tShe left.\tentailment', "7\tA b\tDon't!\tneutral", "9\tC\tD 3.5\tweird"]
        head = "index\tsentence1\tsentence2\tlabel\n"
        write(folder / "train.tsv", head + "\n".join(rows))
        write(folder / "dev.tsv", head + rows[0])
    elif scheme == "qa":
        qas = [question("a", (4, "old cat"), (0, "The")), question("b"), question("a", (12, "saw her. It"))]
        other = {"context": "He (B.) paid $5.", "qas": [question("c", (3, "(B.) paid"), text="Who? Why?")]}
        squad(folder / "train.json", {"context": CONTEXT, "qas": qas}, other)
    elif scheme == "slots":
        for split, words, tags in (("train", "fly to new york\ngo", "O O B-to I-to\nO"), ("valid", "go", "B-x")):
            write(folder / split / "seq.in", f"{words}\n")
            write(folder / split / "seq.out", f"{tags}\n")
            write(folder / split / "label", f"{split}\nother\n" if split == "train" else f"{split}\n")
    elif scheme == "ner":
        write(folder / "train.txt", CONLL_2003)
    else:
        write(folder / "train.conllu", TREE * 3)
        write(folder / "dev.conllu", TREE)
    return f"{scheme}:{folder}"


def items(task, batch):
    """Everything there is to know of the items of a batch, in plain values; sentences are cut as readers see fit."""
    texts, starts = answer_texts(batch)
    answers = list(zip(batch.answers.item.tolist(), texts, starts, strict=True))
    columns = {"slots": ("slot",), "pos": ("upos",), "parsing": ("upos", "head", "deprel"), "ner": ("ner",)}
    labels = None if batch.label is None else batch.label.values()
    return {
        "ids": batch.ids,
        "texts": [batch.strings(field) for field in range(len(task.fields))],
        "labels": labels,
        "answers": answers,
        "extra": dict(batch.extra),
        "tags": {n: batch.corpus.columns[n].values() for n in columns.get(task.name.partition(":")[0], ())},
    }


def read_items(task, split, language=None):
    batches = list(task.batches(split))
    if language is not None:
        batches = [derive_task(batch, language)[0] for batch in batches]
    return items(task, join_batches(batches))


def about(task):
    return task.kind, task.fields, task.tags, task.label_name, task.labels, task.splits


LANGUAGES: dict[str, Any] = {
    "trans+inv": "trans+inv",
    "perm": {"name": "x", "seed": 3, "transforms": [{"kind": "permute"}], "torn_entities": "drop"},
    "marked": {"name": "x", "transforms": [{"kind": "mark", "case": {"nsubj": "ka"}, "as_words": True}]},
}


@pytest.mark.parametrize(
    ("scheme", "source", "language"),
    [
        (scheme, source, language)
        for scheme in SCHEMES
        for source in ("file", "mini")
        for language in LANGUAGES
        if language != "marked" or source == "mini" or scheme in ("pos", "parsing")  # it needs trees
    ],
)
def test_what_was_exported_reads_back_equal(tmp_path, scheme, source, language):
    task = open_task(f"{scheme}:{MINI}" if source == "mini" else write_task(tmp_path / "in", scheme))
    spoken = parse_language(LANGUAGES[language])
    manifest = export_task(task, spoken, tmp_path / "d")
    for config, change in (("parent", None), ("derived", spoken)):
        again = open_task(f"{scheme}:hf:{tmp_path / 'd'}:{config}")
        left = {"dev" if s == "validation" else s for s, n in manifest["items"][config].items() if n}
        assert about(again) == (*about(task)[:-1], tuple(s for s in task.splits if s in left))
        for split in again.splits:
            assert read_items(again, split) == read_items(task, split, change)
            assert next(again.batches(split)).counts == {}


def test_the_languages_of_the_round_trip_do_something(tmp_path):
    """Words are inserted and items lost, so that the test above means something."""
    task = open_task(f"parsing:{MINI}")
    heads = read_items(task, "train", parse_language(LANGUAGES["marked"]))["tags"]["head"]
    assert -1 in heads
    task = open_task(f"ner:{MINI}")
    kept = read_items(task, "train", parse_language(LANGUAGES["perm"]))["ids"]
    assert kept != tuple(map(str, range(len(kept))))


def test_parts_of_speech_and_trees(tmp_path):
    path = write(tmp_path / "x-dev.conllu", TREE)
    for spec in (f"pos:{path}", f"pos:conllu:{path}"):
        task = open_task(spec)
        assert about(task) == ("words", ("text",), "upos", "intent", (), ("dev",))
        assert only(task, "dev").corpus.columns["upos"].values() == ["DET", "NOUN", "VERB", "PUNCT"]
    task = open_task(f"parsing:{path}")
    assert (task.tags, task.kind) == ("deprel", "words")
    derived, _ = derive_task(only(task, "dev"), parse_language("inv"))
    assert dict(derived.corpus[0].columns) | {"ner": []} == {
        "form": ["ran", "cat", "The", "."],
        "upos": ["VERB", "NOUN", "DET", "PUNCT"],
        "head": [0, 1, 2, 1],
        "deprel": ["root", "nsubj", "det", "punct"],
        "ner": [],
    }
    assert only(open_task(f"ner:conllu:{path}"), "dev").corpus.columns["ner"].values() == ["O", "B-PET", "O", "O"]
    assert open_task(f"pos:{path}").fingerprint != task.fingerprint


def test_the_columns_of_conll_2003(tmp_path):
    batch = only(open_task(f"ner:{write(tmp_path / 'eng.testa.txt', CONLL_2003)}"))
    assert [s.words for s in batch.corpus] == [["EU", "rejects"], ["Peter", "B"]]
    assert [s.columns["ner"] for s in batch.corpus] == [["B-ORG", "O"], ["B-PER", "I-PER"]]


def test_a_split_of_no_size_is_none():
    assert open_task(f"pos:{MINI}").splits == open_task(f"nli:{MINI}").splits == ("train", "dev")
    with pytest.raises(InputError, match=r"has no split 'test'; it has train, dev$"):
        open_task(f"ner:{MINI}").batches("test")


def test_gold_tags_stay_and_gold_trees_want_no_parser():
    task = open_task(f"pos:{MINI}")
    parsed = ParsedTask(task, Parser)
    [before], [after] = list(task.batches("train")), list(parsed.batches("train"))
    assert after.corpus.columns["upos"].values() == before.corpus.columns["upos"].values()
    assert set(after.corpus.columns["deprel"].values()) == {"dep"}  # the parser's
    with pytest.raises(InputError, match=r"trees are the labels here; a parser would replace them"):
        ParsedTask(open_task(f"parsing:{MINI}"), Parser)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("pos:lines:{x}", "the task needs the column 'upos'; pos:lines:.* has form. A parser gives trees"),
        ("parsing:iob:{x}", "the task needs the column 'deprel'"),
        ("pos:{x}.conllu", "no such file or folder"),
        ("pos:builtin:other", "the only built-in one is mini-english"),
        ("parsing:builtin:mini-english?bytes=3", "unknown option 'bytes'"),
        ("slots:{x}?language=de", "no such file or folder"),
        ("nli:hf:x?lang=de", r"after \? there must be language=… and not 'lang=de'"),
    ],
)
def test_specs_without_what_the_task_needs(tmp_path, spec, message):
    path = write(tmp_path / "x.txt", "a O\n")
    with pytest.raises(InputError, match=message) as info:
        open_task(spec.replace("{x}", str(path)))
    assert "\n" not in str(info.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "x.conllu: holds no sentence"),
        (TREE.replace("\t0\troot", "\t9\troot"), "x.conllu:3: the head 9 of word 3 is out of range"),
        (TREE.replace("\tVERB", ""), "x.conllu:3: a word has 10 columns"),
    ],
)
def test_wrong_treebanks(tmp_path, text, message):
    for scheme in ("pos", "parsing"):
        with pytest.raises(InputError, match=message):
            list(open_task(f"{scheme}:{write(tmp_path / 'x.conllu', text)}").batches("train"))


def test_which_split_is_meant(tmp_path):
    cases = ["a#dev", "a#test", "nli:hf:x:y#train", "a#b", "a#devs", "a#dev/x", "#dev", "a#dev#test", "a#validation"]
    assert [choose(spec) for spec in cases] == [
        ("a", "dev"), ("a", "test"), ("nli:hf:x:y", "train"), ("a#b", None), ("a#devs", None), ("a#dev/x", None),
        ("#dev", None), ("a#dev", "test"), ("a#validation", None),
    ]  # fmt: skip
    folder = tmp_path / "a#b"
    write(folder / "train.conllu", TREE)
    write(folder / "dev.conllu", TREE)
    spec = f"pos:{folder}"
    assert [open_split(s, "train")[1] for s in (spec, f"{spec}#dev", f"{spec}#train")] == ["train", "dev", "train"]
    one, split = open_split(f"{spec}/dev.conllu", "test")  # the only one
    assert (split, split_for(one, "train", None, "x")) == ("dev", "dev")
    with pytest.raises(InputError, match=r"has no split 'test'; it has train, dev; choose one, as in pos:.*a#b#train$"):
        open_split(spec, "test")
    for wrong in (f"{spec}#test", f"{spec}/dev.conllu#train"):
        with pytest.raises(InputError, match=r"has no split '(test|train)'; it has (train, )?dev$"):
            open_split(wrong, "dev")


def test_which_specs_are_tasks_and_where_they_are_listed():
    assert [is_task(f"{scheme}:x") for scheme in SCHEMES] == [True] * 6
    assert all(f"{scheme}:PATH" in FORMS for scheme in SCHEMES)


@pytest.mark.skipif(not (DATA / "qa").exists(), reason="the real data is not here")
@pytest.mark.parametrize(
    ("scheme", "path", "n"),
    [("qa", "qa/xquad/xquad.es.json", 1190), ("slots", "slots/snips/test", 700), ("nli", "nli/xnli/dev.de.tsv", 2495),
     ("parsing", "ud2/tr_imst", 2200), ("pos", "ud2/ja_gsd", 1068)],
)  # fmt: skip
def test_real_data_reads_back_equal(tmp_path, scheme, path, n):
    task, language = open_task(f"{scheme}:{DATA / path}"), parse_language("trans+inv")
    manifest = export_task(task, language, tmp_path / "d")
    assert sum(manifest["items"]["parent"].values()) == n
    for config, change in (("parent", None), ("derived", language)):
        again = open_task(f"{scheme}:hf:{tmp_path / 'd'}:{config}")
        assert about(again) == about(task)
        for split in task.splits:
            assert read_items(again, split) == read_items(task, split, change)
    assert json.loads((tmp_path / "d" / "manifest.json").read_text())["task"] == task.name
