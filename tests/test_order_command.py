"""The commands about order models: show, fit, import, evaluate, compare; what they say about bad input."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from synthlang.errors import InputError
from synthlang.order.command import card_path, order_compare, order_evaluate, order_fit, order_import, show, stem
from synthlang.order.model import load_model, read_model
from synthlang.sources import open_source
from tests.order_cases import random_corpus, random_model
from tests.order_reference import mixed, probabilities

CONLLU = """\
# sent_id = first
# text = x
1\tOK\t_\tINTJ\t_\t_\t0\troot\t_\t_

# a comment alone

# sent_id = 1
# text = he gave her the book .
1\the\t_\tPRON\t_\t_\t2\tnsubj\t_\t_
2-3\tgave_her\t_\t_\t_\t_\t_\t_\t_\t_
2\tgave\t_\tVERB\t_\t_\t0\troot\t_\t_
3\ther\t_\tPRON\t_\t_\t2\tiobj\t_\t_
4\tthe\t_\tDET\t_\t_\t5\tdet\t_\t_
5\tbook\t_\tNOUN\t_\t_\t2\tobj\t_\t_
6\t.\t_\tPUNCT\t_\t_\t2\tpunct\t_\t_
"""


@pytest.fixture
def files(tmp_path):
    """A CoNLL-U file and the paths of two models of UD v1 labels."""
    (tmp_path / "x.conllu").write_text(CONLLU)
    for seed in (0, 1):
        random_model(seed, labels="ud1").save(tmp_path / f"{seed}.json")
    return tmp_path / "x.conllu", str(tmp_path / "0.json"), str(tmp_path / "1.json")


ITEMS = [("PRON", "nsubj", False), ("VERB", "root", True), ("PRON", "iobj", False), ("NOUN", "obj", False)]
ITEMS.append(("PUNCT", "punct", False))


def test_show(files):
    path, model, other = files
    shown = show(model, path, "1", 2)  # a sent_id is looked for before a number
    json.dumps(shown)
    assert (shown["node"], shown["class"]) == (2, "V")
    assert [item["word"] for item in shown["items"]] == [1, 2, 3, 5, 6]
    assert [item["index"] for item in shown["items"]] == list(range(5))
    assert [item["form"] for item in shown["items"]] == ["he", "gave", "her", "book", "."]
    assert shown["items"][1] | {"form": 0} == {
        "index": 1, "word": 2, "form": 0, "full": "@VERB&@", "tag": "@VERB", "arc": "@"
    }  # fmt: skip
    assert shown["items"][3]["full"] == "NOUN&obj"
    weights = load_model(model).weights["V"]
    check(shown, probabilities(ITEMS, weights))
    both = show(model, path, "2", 2, substrate=other, substrate_weight=0.25, temperature=2.0)
    check(both, probabilities(ITEMS, mixed(weights, load_model(other).weights["V"], 0.25), 2.0))
    renamed = [("NOUN", "dobj", False) if i == ITEMS[3] else i for i in ITEMS]
    mapped = show(model, path, "2", 2, labels="mapped")
    check(mapped, probabilities(renamed, weights))
    assert mapped["items"][3]["arc"] == "dobj"


def check(shown, expected):
    """All orders are there, from the most probable on, with the right probabilities."""
    found = {tuple(entry["order"]): entry["p"] for entry in shown["orders"]}
    assert len(shown["orders"]) == len(expected) and set(found) == set(expected)
    for order, p in expected.items():
        assert abs(found[order] - p) < 1e-9
    keys = [(-entry["p"], entry["order"]) for entry in shown["orders"]]
    assert keys == sorted(keys)


@pytest.mark.parametrize(
    ("sentence", "node", "options", "reason"),
    [
        ("third", 1, {}, "no sentence 'third'.*1 to 2"),
        ("0", 1, {}, "no sentence '0'"),
        ("3", 1, {}, "no sentence '3'"),
        ("1", 7, {}, "words 1 to 6, not 7"),
        ("1", 0, {}, "words 1 to 6, not 0"),
        ("1", 4, {}, "word 4 is DET; the model orders the dependents of NOUN, PROPN, PRON, VERB only"),
        ("first", 1, {}, "word 1 is INTJ"),
        ("1", 1, {}, "word 1 has no dependents"),
        ("1", 2, {"temperature": 0.0}, "temperature"),
        ("1", 2, {"substrate": "fr", "substrate_weight": 2.0}, "from 0 to 1"),
        ("1", 2, {"substrate": "none"}, "none of"),
        ("1", 2, {"labels": "maped"}, "'maped' must be mapped or faithful"),
        ("1", 2, {"corpus_labels": "v1"}, "'v1' must be ud1 or ud2"),
    ],
)
def test_what_cannot_be_shown(files, sentence, node, options, reason):
    with pytest.raises(InputError, match=reason):
        show(files[1], files[0], sentence, node, **options)


def test_a_file_that_is_not_there(files, tmp_path):
    with pytest.raises(InputError, match="no such file"):
        show(files[1], tmp_path / "no.conllu", "1", 1)


def write_treebank(folder, seed=0):
    """A treebank of random trees with splits train, dev and test."""
    folder.mkdir()
    for number, split in enumerate(("train", "dev", "test")):
        lines = []
        for sentence in random_corpus(seed + number, 60, 7):
            columns = (sentence.columns[c] for c in ("form", "upos", "head", "deprel"))
            for i, (form, upos, head, deprel) in enumerate(zip(*columns, strict=True), start=1):
                lines.append(f"{i}\t{form}\t_\t{upos}\t_\t_\t{head}\t{deprel}\t_\t_")
            lines.append("")
        (folder / f"x-ud-{split}.conllu").write_text("\n".join(lines) + "\n")
    return f"conllu:{folder}"


def test_fit_writes_a_model_and_a_card(tmp_path):
    treebank = write_treebank(tmp_path / "bank")
    out = tmp_path / "deep" / "x.json.gz"
    seen = []
    options: dict[str, Any] = {
        "l2": (1.0, 9.0),
        "choose_on": ("dev",),
        "title": "T",
        "licence": "L",
    }
    model = order_fit(treebank, out, report=lambda *a: seen.append(a), **options)
    assert seen and read_model(out).content == model.content
    fit = read_model(out).fit
    assert fit["splits"] == {"train": ["train"], "held_out": ["test"], "choose_on": ["dev"]}
    assert fit["source"] == open_source(treebank).fingerprint and fit["l2"] in (1.0, 9.0)
    assert set(fit["held_out"]) == {"N", "V", "all"}
    card = (tmp_path / "deep" / "x.md").read_text()
    assert model.content in card and "Licence: L" in card
    assert f"conllu:bank --out x.json.gz --train train --held-out test --l2 {fit['l2']:g}" in card
    once = out.read_bytes()
    order_fit(treebank, out, **options)
    assert out.read_bytes() == once
    scores = order_evaluate(str(out), treebank, ("test",), ("train",), "faithful")
    assert scores == fit["held_out"]
    closer = order_compare(treebank, treebank, str(out), "dev", "test", enough=5)
    assert closer["relations"] == len(closer["pairs"]) > 0


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"train": ("test",), "held_out": ("test",)}, "cannot both be learnt from and be held out"),
        ({"train": ("train", "dev", "train")}, "--train names the split train twice"),
        ({"held_out": ("dev", "dev")}, "--held-out names the split dev twice"),
        ({"l2": (1.0, 2.0)}, "choose on"),
        ({"treebank": "builtin:nothing"}, "mini-english"),
        ({"treebank": "text:TEXT"}, "needs the column 'upos'"),
        ({"choose_on": ("x",)}, "no split 'x'"),
    ],
)
def test_what_cannot_be_fitted(tmp_path, options, reason):
    treebank = write_treebank(tmp_path / "bank")
    (tmp_path / "t.txt").write_text("a b\n")
    options = {"treebank": treebank, "out": "x.json", **options}
    options["treebank"] = options["treebank"].replace("TEXT", str(tmp_path / "t.txt"))
    with pytest.raises(InputError, match=reason):
        order_fit(options.pop("treebank"), tmp_path / options.pop("out"), **options)


def test_a_treebank_of_one_file_is_learnt_from_without_scores(tmp_path):
    write_treebank(tmp_path / "bank")
    model = order_fit(f"conllu:{tmp_path}/bank/x-ud-dev.conllu", tmp_path / "x.orders")
    assert model.fit["splits"] == {"train": ["dev"], "held_out": [], "choose_on": []}
    assert "held_out" not in model.fit
    assert read_model(tmp_path / "x.orders").content == model.content


def test_import(tmp_path):
    for node in "NV":
        (tmp_path / f"x@{node}.orm").write_text("PRE_a_b 1.0\n")
    order_import(tmp_path / "x@N.orm", tmp_path / "x@V.orm", tmp_path / "x.json", "x", licence="L")
    model = read_model(tmp_path / "x.json")
    assert (model.name, model.labels, model.licence) == ("x", "ud1", "L")
    assert model.weights == {"N": {"PRE_a_b": 1.0}, "V": {"PRE_a_b": 1.0}}


VERBLESS = "1\ta\t_\tDET\t_\t_\t2\tdet\t_\t_\n2\tb\t_\tNOUN\t_\t_\t0\troot\t_\t_\n\n"


@pytest.mark.parametrize(
    ("name", "card"),
    [
        ("x.json.gz", "x.md"),
        ("x.json", "x.md"),
        ("x.gz", "x.md"),
        ("x", "x.md"),
        ("my.model.json", "my.model.md"),
        ("v1.2.json.gz", "v1.2.md"),
        ("x.orders", "x.orders.md"),
        (".hidden.json", ".hidden.md"),
    ],
)
def test_the_cards_name(tmp_path, name, card):
    assert card_path(tmp_path / name) == tmp_path / card
    assert stem(Path(name)) == card.removesuffix(".md")


@pytest.mark.parametrize("name", ["m.md", "m.MD", "m.md.json", "m.md.gz", ".json", ".json.gz", ".gz", "folder"])
def test_names_that_no_model_can_have(tmp_path, name):
    (tmp_path / "folder").mkdir()
    with pytest.raises(InputError, match=r"name the model such as|needs the name of a file") as error:
        order_fit("conllu:no-such-treebank", tmp_path / name)
    assert str(tmp_path / name) in str(error.value)
    assert [p.name for p in tmp_path.iterdir()] == ["folder"]


@pytest.mark.parametrize("content", ["notes of mine\n", "", "# Order\n", "\n# Order model x\n"])
def test_a_file_that_is_no_card_is_not_overwritten(tmp_path, content):
    (tmp_path / "my.md").write_text(content)
    with pytest.raises(InputError, match=r"my\.md: would be the card of my\.json, but is no card"):
        order_fit("conllu:no-such-treebank", tmp_path / "my.json")
    assert (tmp_path / "my.md").read_text() == content and not (tmp_path / "my.json").exists()


def test_an_old_card_is_replaced_and_another_file_is_left(tmp_path):
    treebank = write_treebank(tmp_path / "bank")
    (tmp_path / "my.md").write_text("notes of mine\n")
    for _ in range(2):
        order_fit(treebank, tmp_path / "my.model.json", most_items=3)
    assert (tmp_path / "my.md").read_text() == "notes of mine\n"
    assert (tmp_path / "my.model.md").read_text().startswith("# Order model my.model\n")
    assert read_model(tmp_path / "my.model.json").name == "my.model"


def test_a_folder_that_cannot_be_written_to_is_seen_before_the_fit(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("x")
    with pytest.raises(InputError, match="file: cannot write"):
        order_fit("conllu:no-such-treebank", tmp_path / "file" / "deep" / "m.json")
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(InputError, match=f"{tmp_path}: cannot write"):
        order_fit("conllu:no-such-treebank", tmp_path / "new" / "m.json")
    assert not (tmp_path / "new").exists()


def test_the_bytes_do_not_depend_on_how_the_path_is_written(tmp_path, monkeypatch):
    write_treebank(tmp_path / "tb")
    monkeypatch.chdir(tmp_path)
    written = []
    for spec in ("tb", "tb/", "./tb", str(tmp_path / "tb"), "tb/../tb//"):
        order_fit(f"conllu:{spec}", Path("m.json"), most_items=3)
        written.append((Path("m.json").read_bytes(), Path("m.md").read_text()))
        shutil.move("m.json", "old.json")
    assert len(set(written)) == 1
    assert read_model(Path("old.json")).treebank == "tb" and "order fit conllu:tb --out m.json" in written[0][1]
    monkeypatch.chdir(tmp_path / "tb")
    order_fit("conllu:.", tmp_path / "m.json", most_items=3)
    assert (tmp_path / "m.json").read_bytes() == written[0][0]


def test_a_treebank_without_verbs(tmp_path):
    for split in ("train", "test"):
        (tmp_path / "bank").mkdir(exist_ok=True)
        (tmp_path / "bank" / f"x-ud-{split}.conllu").write_text(VERBLESS * 5)
    seen: list[str] = []
    model = order_fit(
        f"conllu:{tmp_path}/bank", tmp_path / "m.json", report=lambda task, done, total, n: seen.append(n)
    )
    assert model.classes == ("N",) and set(model.fit["held_out"]) == {"N", "all"}
    assert any("no node with a VERB head" in note for note in seen)
    card = (tmp_path / "m.md").read_text()
    assert "noun nodes" in card and "verb nodes" not in card
