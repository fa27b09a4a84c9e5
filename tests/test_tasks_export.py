"""Exported task sets: the hub's columns, loadable with datasets alone, read back equal; which split is meant."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from typing import Any

import pytest
from typer.testing import CliRunner

from probes.cli import app
from synthlang.derive_command import derive_command
from synthlang.export import verify_manifest
from synthlang.fingerprint import sha256_file
from synthlang.language import parse_language
from synthlang.tasks import SCHEMES, choose, derive_task, open_task, split_for
from synthlang.tasks.batch import join_batches
from synthlang.tasks.export import answer_texts, export_task
from tests.hub_folders import datasets, offline  # noqa: F401  a fixture
from tests.refusals import place_and_code, refusal, refused
from tests.task_cases import labels_of
from tests.test_tasks import CONTEXT, only, question, squad, write

NLI = "nli:builtin:mini-english?types=500&sentences=1100&dev=5&test=4"
SMALL = "nli:builtin:mini-english?types=500&sentences=30&dev=5&test=4"
ALONE = """
import json, sys
from datasets import load_dataset
data = load_dataset(sys.argv[1])
assert not any(m.split(".")[0] in ("synthlang", "pretrain", "probes") for m in sys.modules)
print(json.dumps({split: list(data[split]) for split in data}))
"""


def load(folder, tmp_path):
    """Config → rows of each split and features; the rows are the same streamed."""
    cache = str(tmp_path / "cache")
    found = {}
    for config in datasets.get_dataset_config_names(str(folder)):
        data = datasets.load_dataset(str(folder), config, cache_dir=cache)
        streamed = datasets.load_dataset(str(folder), config, streaming=True)
        rows = {split: list(data[split]) for split in data}
        assert rows == {split: list(streamed[split]) for split in streamed}
        found[config] = {"rows": rows, "features": str(next(iter(data.values())).features)}
    return found


def test_pairs_in_three_configs(tmp_path, monkeypatch):
    task, language = open_task(NLI), parse_language("trans+inv")
    manifest = export_task(task, language, tmp_path / "d", fields=("hypothesis",), licence="CC-BY-4.0")
    sizes = {"train": 1100, "validation": 5, "test": 4}
    assert manifest["items"] == {"parent": sizes, "derived": sizes, "mixed": sizes}
    found = load(tmp_path / "d", tmp_path)
    assert list(found["parent"]["rows"]["train"][0]) == ["id", "premise", "hypothesis", "label"]
    assert "ClassLabel(names=['entailment', 'neutral', 'contradiction'])" in found["parent"]["features"]
    batches = list(task.batches("train"))
    derived = [derive_task(batch, language)[0] for batch in batches]
    labels = [task.labels.index(label) for batch in batches for label in labels_of(batch)]
    for config in found:
        assert [row["label"] for row in found[config]["rows"]["train"]] == labels
        for field, name in enumerate(task.fields):
            side = derived if config == "derived" or (config == "mixed" and name == "hypothesis") else batches
            assert [row[name] for row in found[config]["rows"]["train"]] == [t for b in side for t in b.strings(field)]
    monkeypatch.setenv("HF_DATASETS_CACHE", str(tmp_path / "alone"))
    run = [sys.executable, "-c", ALONE, tmp_path / "d"]
    alone = json.loads(subprocess.run(run, check=True, capture_output=True, text=True, cwd=tmp_path).stdout)
    assert alone == found["derived"]["rows"]  # the default config, without this project
    card = (tmp_path / "d" / "README.md").read_text()
    assert "license: cc-by-4.0" in card and "default: true" in card
    for path, digest in manifest["sha256"].items():
        assert sha256_file(tmp_path / "d" / path) == digest


def test_a_split_that_loses_every_item(tmp_path):
    write(tmp_path / "s" / "train", "a B-X\nb I-X\n! I-X\nc I-X\n\nx O\n")
    write(tmp_path / "s" / "test", "a B-X\nb I-X\nc O\n! B-X\nc I-X\n")
    task = open_task(f"ner:{tmp_path / 's'}")
    spec = {"name": "x", "seed": 0, "transforms": [{"kind": "permute", "keep_final_punctuation": False}]}
    torn = parse_language({**spec, "split_entities": "drop"})
    seeds = (parse_language({**spec, "split_entities": "drop", "seed": seed}) for seed in range(100))
    gone = next(la for la in seeds if not any(len(derive_task(b, la)[0]) for b in task.batches("test")))
    manifest = export_task(task, gone, tmp_path / "d")
    assert manifest["items"]["derived"]["test"] == 0
    found = load(tmp_path / "d", tmp_path)
    assert set(found["parent"]["rows"]) == {"train", "test"}
    assert set(found["derived"]["rows"]) == {"train"}
    only_test = open_task(f"ner:{tmp_path / 's' / 'test'}")
    error = refusal(export_task, only_test, gone, tmp_path / "e")
    assert error.code == "empty" and "mention" in error.reason
    assert not (tmp_path / "e").exists()
    assert torn.fingerprint != parse_language(spec).fingerprint


def test_the_manifest_vouches_for_every_file(tmp_path):
    """The language has a file of its own, and the set can be pushed."""
    write(tmp_path / "words.txt", "dog\n")
    language = {"name": "x", "transforms": [{"kind": "transliterate", "types": str(tmp_path / "words.txt")}]}
    manifest = export_task(open_task(SMALL), parse_language(language), tmp_path / "d")
    assert verify_manifest(tmp_path / "d") == manifest
    assert {"README.md", "language.yaml", "language/words.txt"} <= set(manifest["sha256"])
    (tmp_path / "d" / "README.md").write_text("changed")
    assert refused(verify_manifest, tmp_path / "d") == ("README.md", "damaged")


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
    elif scheme == "minimal":
        write(folder / "order.tsv", 'He said "Go" .\tHe "Go" said .\nShe left!\tLeft she!\n')
        write(folder / "case.tsv", "she saw him\tshe saw he\n")
    else:
        write(folder / "train.conllu", TREE * 3)
        write(folder / "dev.conllu", TREE)
    return f"{scheme}:{folder}"


def read_items(task, split, language=None):
    """Everything there is to know of the items of a split, in plain values; sentences are cut as readers see fit."""
    batches = list(task.batches(split))
    batch = join_batches([derive_task(b, language)[0] for b in batches] if language is not None else batches)
    columns = {"slots": ("slot",), "pos": ("upos",), "parsing": ("upos", "head", "deprel"), "ner": ("ner",)}
    return {
        "ids": batch.ids,
        "texts": [batch.strings(field) for field in range(len(task.fields))],
        "labels": None if batch.label is None else batch.label.values(),
        "answers": list(zip(batch.answers.item.tolist(), *answer_texts(batch), strict=True)),
        "extra": dict(batch.extra),
        "tags": {n: batch.corpus.columns[n].values() for n in columns.get(task.name.partition(":")[0], ())},
    }


def about(task):
    return task.kind, task.fields, task.tags, task.label_name, task.labels, task.splits


LANGUAGES: dict[str, Any] = {
    "trans+inv": "trans+inv",
    "perm": {"name": "x", "seed": 3, "transforms": [{"kind": "permute"}], "split_entities": "drop"},
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


def test_labels_of_a_treebank(tmp_path):
    path = write(tmp_path / "x-dev.conllu", TREE)
    for spec in (f"pos:{path}", f"pos:conllu:{path}"):
        task = open_task(spec)
        assert about(task) == ("words", ("text",), "upos", "intent", (), ("dev",))
        assert only(task, "dev").corpus.columns["upos"].values() == ["DET", "NOUN", "VERB", "PUNCT"]
    for spec in (f"ner:{path}", f"ner:conllu:{path}"):
        assert only(open_task(spec), "dev").corpus.columns["ner"].values() == ["O", "B-PET", "O", "O"]
    assert open_task(f"parsing:{path}").tags == "deprel"
    assert open_task(f"pos:{path}").fingerprint != open_task(f"parsing:{path}").fingerprint


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

    def split_of(spec, wanted):
        plain, chosen = choose(spec)
        return split_for(open_task(plain), wanted, chosen, plain)

    assert [split_of(s, "train") for s in (spec, f"{spec}#dev", f"{spec}#train")] == ["train", "dev", "train"]
    assert split_of(f"{spec}/dev.conllu", "test") == "dev"  # the only one
    error = refusal(split_of, spec, "test")
    assert place_and_code(error) == ("a#b", "missing") and error.hint == f"choose one of its splits, as in {spec}#dev"
    assert refused(split_of, f"{spec}#test", "dev") == ("a#b", "missing")
    assert refused(split_of, f"{spec}/dev.conllu#train", "dev") == ("dev.conllu", "missing")


def test_the_command_and_that_of_the_card_make_the_same_bytes(tmp_path, capsys, monkeypatch):
    out = tmp_path / "new" / "d"
    derive_command(SMALL, "trans", out, fields=("premise",), counts=SMALL[4:])
    assert "derived: train 30 items" in capsys.readouterr().err
    card = (out / "README.md").read_text()
    assert "license: apache-2.0" in card
    [command] = re.findall(r"^synthlang derive .*$", card, re.MULTILINE)
    assert (
        command
        == f"synthlang derive '{SMALL}' --language language.yaml --counts '{SMALL[4:]}' --field premise --out DIR"
    )
    words = shlex.split(command.replace("language.yaml", str(out / "language.yaml")))
    words[words.index("DIR")] = str(tmp_path / "e")
    result = CliRunner().invoke(app, words[1:])
    assert result.exit_code == 0, result.output
    files = [{p.name: p.read_bytes() for p in folder.rglob("*") if p.is_file()} for folder in (out, tmp_path / "e")]
    assert files[0] == files[1]
    bad = write(tmp_path / "in" / "x.tsv", "premise\thypothesis\tlabel\n" + "a\tb\tneutral\n" * 5 + "a\tb\n")
    monkeypatch.setattr(type(parse_language("inv").transforms[0]), "requires", ("tree",))
    for spec, language, options, code in (
        (SMALL, "trans", {"fields": ("x",)}, "unknown"),
        (SMALL, "trans", {"licence": "no licence"}, "format"),
        (SMALL, "inv", {}, "missing"),
        (f"nli:{bad}", "trans", {}, "format"),
    ):
        assert refused(derive_command, spec, language, tmp_path / "f" / "g", **options)[1] == code
        assert not (tmp_path / "f").exists()
    assert refused(derive_command, SMALL, "perm", out) == (out.name, "exists")
