"""Exported task sets: loadable with datasets alone, whole, streamed, with the hub's columns."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from probes.cli import app
from synthlang.derive import derive_task_command
from synthlang.errors import InputError
from synthlang.export import push_to_hub, verify_manifest
from synthlang.fingerprint import sha256_file
from synthlang.language import parse_language
from synthlang.scripts import SCRIPTS
from synthlang.tasks import derive_task, open_task
from synthlang.tasks.export import answer_texts, export_task
from tests.task_cases import labels_of
from tests.test_tasks import CONTEXT, question, squad, write

NLI = "nli:builtin:mini-english?types=500&sentences=1100&dev=5&test=4"

ALONE = """
import json, sys
from datasets import load_dataset
data = load_dataset(sys.argv[1])
assert not any(m.split(".")[0] in ("synthlang", "pretrain", "probes") for m in sys.modules)
print(json.dumps({split: list(data[split]) for split in data}))
"""


def load(folder, tmp_path):
    """Config → rows of each split and features; the rows are the same streamed."""
    datasets = pytest.importorskip("datasets")
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


def test_questions(tmp_path):
    qas = [question("a", (4, "old cat"), (0, "The")), question("b"), question("c", (12, "saw her. It"))]
    task = open_task(f"qa:{squad(tmp_path / 'dev.json', {'context': CONTEXT, 'qas': qas})}")
    manifest = export_task(task, parse_language("inv"), tmp_path / "d")
    rows = {c: v["rows"]["validation"] for c, v in load(tmp_path / "d", tmp_path).items()}
    assert list(rows["derived"][0]) == ["id", "title", "question", "context", "answers"]
    assert [r["id"] for r in rows["parent"]] == ["a", "b", "c"]
    assert [(r["id"], r["answers"]) for r in rows["derived"]] == [
        ("a", {"text": ["cat old", "The"], "answer_start": [8, 16]}),
        ("b", {"text": [], "answer_start": []}),
    ]
    for row in [*rows["parent"], *rows["derived"]]:
        for text, start in zip(row["answers"]["text"], row["answers"]["answer_start"], strict=True):
            assert row["context"][start : start + len(text)] == text
    lost = {"answers torn apart": 1, "items dropped, no answer is in one piece": 1}
    assert manifest["changes"] == {"derived": {"validation": lost}}
    assert "| derived | validation | answers torn apart | 1 |" in (tmp_path / "d" / "README.md").read_text()


def test_words_with_tags_and_intents(tmp_path):
    for split, words, tags in (("train", "fly to new york", "O O B-to I-to"), ("test", "go", "O")):
        write(tmp_path / "s" / split / "seq.in", f"{words}\n")
        write(tmp_path / "s" / split / "seq.out", f"{tags}\n")
        write(tmp_path / "s" / split / "label", f"{split}#é\n")
    export_task(open_task(f"slots:{tmp_path / 's'}"), parse_language("trans+inv"), tmp_path / "d")
    found = load(tmp_path / "d", tmp_path)
    assert "ClassLabel(names=['test#é', 'train#é'])" in found["derived"]["features"]
    assert found["parent"]["rows"]["test"] == [{"id": "0", "tokens": ["go"], "slots": ["O"], "intent": 0}]
    [row] = found["derived"]["rows"]["train"]
    script = SCRIPTS["cyrillic"]
    assert row["tokens"] == [script.encode(word) for word in ("york", "new", "to", "fly")]
    assert (row["slots"], row["intent"]) == (["B-to", "I-to", "O", "O"], 1)


def test_a_split_that_loses_every_item(tmp_path):
    write(tmp_path / "s" / "train", "a B-X\nb I-X\n! I-X\nc I-X\n\nx O\n")
    write(tmp_path / "s" / "test", "a B-X\nb I-X\nc O\n! B-X\nc I-X\n")
    task = open_task(f"ner:{tmp_path / 's'}")
    spec = {"name": "x", "seed": 0, "transforms": [{"kind": "permute", "keep_final_punctuation": False}]}
    torn = parse_language({**spec, "torn_entities": "drop"})
    seeds = (parse_language({**spec, "torn_entities": "drop", "seed": seed}) for seed in range(100))
    gone = next(la for la in seeds if not any(len(derive_task(b, la)[0]) for b in task.batches("test")))
    manifest = export_task(task, gone, tmp_path / "d")
    assert manifest["items"]["derived"]["test"] == 0
    found = load(tmp_path / "d", tmp_path)
    assert set(found["parent"]["rows"]) == {"train", "test"}
    assert set(found["derived"]["rows"]) == {"train"}
    only_test = open_task(f"ner:{tmp_path / 's' / 'test'}")
    with pytest.raises(InputError, match=r"no item is left in the config 'derived': .*mention"):
        export_task(only_test, gone, tmp_path / "e")
    assert not (tmp_path / "e").exists()
    assert torn.fingerprint != parse_language(spec).fingerprint


def test_the_same_bytes_and_a_fingerprint_of_all_that_matters(tmp_path):
    small = NLI.replace("1100", "30")
    cases = [("trans", None), ("trans", None), ("inv", None), ("trans", ("premise",)), ("trans", ("hypothesis",))]
    names = []
    for number, (language, fields) in enumerate(cases):
        manifest = export_task(open_task(small), parse_language(language), tmp_path / str(number), fields=fields)
        names.append(manifest["fingerprint"])
    assert len(set(names)) == 4
    files = [{p.name: p.read_bytes() for p in (tmp_path / n).rglob("*") if p.is_file()} for n in "01"]
    assert files[0] == files[1]


def test_a_language_that_needs_columns_the_task_has_not(tmp_path, monkeypatch):
    monkeypatch.setattr(type(parse_language("inv").transforms[0]), "requires", ("head",))
    path = write(tmp_path / "x.txt", "a O\n")
    with pytest.raises(InputError, match="the language inv needs the column 'head'; the source has form, ner"):
        export_task(open_task(f"ner:{path}"), parse_language("inv"), tmp_path / "d")


def test_the_command(tmp_path, capsys):
    spec = NLI.replace("1100", "30")
    manifest = derive_task_command(
        spec, "inv", tmp_path / "d", fields=("premise",), counts_source=spec.removeprefix("nli:")
    )
    shown = capsys.readouterr().err
    assert "derived: train 30 items" in shown
    card = (tmp_path / "d" / "README.md").read_text()
    assert "license: apache-2.0" in card
    assert f"synthlang derive '{spec}' --language language.yaml --counts " in card
    assert "--field premise --out DIR" in card
    again = derive_task_command(spec, str(tmp_path / "d" / "language.yaml"), tmp_path / "e", fields=("premise",))
    assert again["fingerprint"] == manifest["fingerprint"]
    assert {k: v for k, v in again["sha256"].items() if k != "README.md"} == {
        k: v for k, v in manifest["sha256"].items() if k != "README.md"
    }
    with pytest.raises(InputError, match="exists already"):
        derive_task_command(spec, "inv", tmp_path / "d")
    with pytest.raises(InputError, match="there is no field 'x'"):
        derive_task_command(spec, "inv", tmp_path / "f", fields=("x",))
    with pytest.raises(InputError, match="licence"):
        derive_task_command(spec, "inv", tmp_path / "f", licence="no licence")
    assert not (tmp_path / "f").exists()


def test_the_manifest_vouches_for_every_file(tmp_path):
    """The language has a file of its own, and the set can be pushed."""
    write(tmp_path / "words.txt", "dog\n")
    language = {"name": "x", "transforms": [{"kind": "transliterate", "types": str(tmp_path / "words.txt")}]}
    manifest = export_task(open_task(NLI.replace("1100", "30")), parse_language(language), tmp_path / "d")
    assert verify_manifest(tmp_path / "d") == manifest
    assert {"README.md", "language.yaml", "language/words.txt"} <= set(manifest["sha256"])
    sent = []

    class Api:
        def create_repo(self, name, **options):
            return f"https://hub/{name}"

        def upload_folder(self, **options):
            sent.append(options["folder_path"])

    assert push_to_hub(tmp_path / "d", "me/x", api=Api()) == "https://hub/me/x"
    assert sent == [str(tmp_path / "d")]
    (tmp_path / "d" / "README.md").write_text("changed")
    with pytest.raises(InputError, match=r"README.md: differs from the manifest"):
        verify_manifest(tmp_path / "d")


@pytest.mark.parametrize("licence", [None, "CC-BY-4.0"])
def test_the_command_of_the_card_makes_the_same_bytes(tmp_path, licence):
    spec = NLI.replace("1100", "30")
    derive_task_command(spec, "trans", tmp_path / "d", fields=("premise",), counts_source=spec[4:], licence=licence)
    [command] = re.findall(r"^synthlang derive .*$", (tmp_path / "d" / "README.md").read_text(), re.MULTILINE)
    words = shlex.split(command.replace("language.yaml", str(tmp_path / "d" / "language.yaml")))
    words[words.index("DIR")] = str(tmp_path / "e")
    result = CliRunner().invoke(app, words[1:])
    assert result.exit_code == 0, result.output
    files = [{p.name: p.read_bytes() for p in (tmp_path / n).rglob("*") if p.is_file()} for n in "de"]
    assert files[0] == files[1]


def test_leftovers_of_a_killed_run_and_folders_of_a_wrong_one(tmp_path, monkeypatch):
    spec = NLI.replace("1100", "30")
    others = [tmp_path / ".tmp-d-dev-0123abcd", tmp_path / ".tmp-d2-0123abcd"]
    for folder in (tmp_path / ".tmp-d-0123abcd", *others):
        (folder / "data").mkdir(parents=True)
    derive_task_command(spec, "inv", tmp_path / "d")
    assert sorted(tmp_path.iterdir()) == sorted([*others, tmp_path / "d"])
    bad = write(tmp_path / "in" / "x.tsv", "premise\thypothesis\tlabel\n" + "a\tb\tneutral\n" * 5 + "a\tb\n")
    with pytest.raises(InputError, match=r"x.tsv:7: here are 2 columns"):
        derive_task_command(f"nli:{bad}", "inv", tmp_path / "p" / "q" / "r")
    assert not (tmp_path / "p").exists()


def test_answers_against_a_search_by_words(tmp_path):
    """Where each word stands in the text, by walking over it."""
    qas = [question("a", (12, "saw"), (35, "$5 house")), question("b", (0, "The"))]
    [batch] = open_task(f"qa:{squad(tmp_path / 'q.json', {'context': CONTEXT, 'qas': qas})}").batches("train")
    derived, _ = derive_task(batch, parse_language("trans"))
    texts, starts = answer_texts(derived)
    for item, text, start in zip(derived.answers.item.tolist(), texts, starts, strict=True):
        context = derived.strings(1)[item]
        assert context[start : start + len(text)] == text
        assert start == 0 or context[start - 1] == " "
