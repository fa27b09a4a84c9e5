"""The commands about order models: show, fit, import, evaluate, compare; what they say about bad input."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from synthlang.order.model import load_model, read_model
from synthlang.order.model_commands import card_path, order_compare, order_evaluate, order_fit, show, stem
from synthlang.sources import open_source
from tests.order_cases import mixed, probabilities, random_corpus, random_model
from tests.refusals import refused

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


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A CoNLL-U file and the paths of two models of UD v1 labels."""
    folder = tmp_path_factory.mktemp("show")
    (folder / "x.conllu").write_text(CONLLU)
    for seed in (0, 1):
        random_model(seed, labels="ud1").save(folder / f"{seed}.json")
    return folder / "x.conllu", str(folder / "0.json"), str(folder / "1.json")


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
    head = {"index": 1, "word": 2, "form": "gave", "full": "@VERB&@", "tag": "@VERB", "arc": "@"}
    assert shown["items"][1] == head and shown["items"][3]["full"] == "NOUN&obj"
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
    ("sentence", "node", "options", "code"),
    [
        ("third", 1, {}, "missing"),
        ("1", 7, {}, "range"),
        ("1", 4, {}, "unsupported"),
        ("1", 1, {}, "empty"),
        ("1", 2, {"temperature": 0.0}, "range"),
        ("1", 2, {"substrate_weight": -0.1}, "range"),
        ("1", 2, {"substrate_weight": 1.5}, "range"),
        ("1", 2, {"substrate_weight": float("nan")}, "range"),
        ("1", 2, {"substrate": "none"}, "missing"),
        ("1", 2, {"corpus_labels": "v1"}, "unknown"),
    ],
)
def test_what_cannot_be_shown(files, sentence, node, options, code):
    call = {"model": files[1], "conllu": files[0], "sentence": sentence, "node": node, **options}
    assert refused(show, **call)[1] == code


@pytest.fixture(scope="module")
def bank(tmp_path_factory):
    """A treebank of random trees with splits train, dev and test, in a folder ``bank``."""
    folder = tmp_path_factory.mktemp("fit") / "bank"
    folder.mkdir()
    for number, split in enumerate(("train", "dev", "test")):
        lines = []
        for sentence in random_corpus(number, 60, 7):
            columns = (sentence.columns[c] for c in ("form", "upos", "head", "deprel"))
            for i, (form, upos, head, deprel) in enumerate(zip(*columns, strict=True), start=1):
                lines.append(f"{i}\t{form}\t_\t{upos}\t_\t_\t{head}\t{deprel}\t_\t_")
            lines.append("")
        (folder / f"x-ud-{split}.conllu").write_text("\n".join(lines) + "\n")
    return folder


def test_fit_writes_a_model_and_a_card(tmp_path, bank):
    treebank, out = f"conllu:{bank}", tmp_path / "deep" / "x.json.gz"
    seen = []
    options: dict[str, Any] = {"l2": (1.0, 9.0), "choose_on": ("dev",), "title": "T", "licence": "L", "most_items": 4}
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
    order_fit(treebank, out, **options)  # the card is replaced
    assert out.read_bytes() == once
    scores = order_evaluate(str(out), treebank, ("test",), ("train",), "faithful")
    assert scores == fit["held_out"]
    closer = order_compare(treebank, treebank, str(out), "dev", "test", enough=5)
    assert closer["relations"] == len(closer["pairs"]) > 0
    assert refused(order_compare, treebank, treebank, "klingon", "dev", "test") == ("model", "missing")
    assert refused(order_evaluate, str(out), treebank, ()) == ("held_out", "empty")


@pytest.mark.parametrize(
    ("options", "place", "code"),
    [
        ({"train": ("test",), "held_out": ("test",)}, "--train", "conflict"),
        ({"train": ("train", "dev", "train")}, "--train", "duplicate"),
        ({"held_out": ("dev", "dev")}, "--held-out", "duplicate"),
        ({"l2": (1.0, 2.0)}, "l2", "missing"),
        ({"l2": (1.0, 0.0)}, "l2", "range"),
        ({"out": Path("a" * 205)}, "a" * 205, "unsupported"),
        ({"treebank": "builtin:nothing"}, "", "unknown"),
        ({"treebank": "text:t.txt"}, "text:t.txt", "missing"),
        ({"choose_on": ("x",)}, "bank", "missing"),
    ],
)
def test_what_cannot_be_fitted(tmp_path, monkeypatch, bank, options, place, code):
    monkeypatch.chdir(tmp_path)
    Path("t.txt").write_text("a b\n")
    call = {"treebank": f"conllu:{bank}", "out": Path("x.json"), **options}
    assert refused(order_fit, **call) == (place, code)
    assert [p.name for p in tmp_path.iterdir()] == ["t.txt"]


def test_a_treebank_of_one_file_is_learnt_from_without_scores(tmp_path, bank):
    model = order_fit(f"conllu:{bank}/x-ud-dev.conllu", tmp_path / "x.orders", most_items=3)
    assert model.fit["splits"] == {"train": ["dev"], "held_out": [], "choose_on": []}
    assert "held_out" not in model.fit
    assert read_model(tmp_path / "x.orders").content == model.content


@pytest.mark.parametrize(
    ("name", "card"),
    [
        ("x.json.gz", "x.md"),
        ("x.json", "x.md"),
        ("v1.2.json.gz", "v1.2.md"),
        ("x.orders", "x.orders.md"),
    ],
)
def test_the_cards_name(tmp_path, name, card):
    assert card_path(tmp_path / name) == tmp_path / card
    assert stem(Path(name)) == card.removesuffix(".md")


@pytest.mark.parametrize(
    ("name", "place"),
    [
        *((name, f"{name} unsupported") for name in ("m.md", "m.MD", "m.md.json", ".gz", "folder")),
        ("my.md/deep/m.json", "m.json unsupported"),
        ("my.json", "my.md exists"),
        ("/proc/none/m.json", None),
    ],
)
def test_places_where_no_model_can_be_are_refused_before_the_fit(tmp_path, name, place, bank):
    (tmp_path / "folder").mkdir()
    (tmp_path / "my.md").write_text("\n# Order model x\n")
    found = refused(order_fit, f"conllu:{bank}", tmp_path / name)
    assert place is None or " ".join(found) == place
    assert (tmp_path / "my.md").read_text() == "\n# Order model x\n"
    assert {p.name for p in tmp_path.iterdir()} == {"folder", "my.md"}


def test_the_bytes_do_not_depend_on_how_the_path_is_written(tmp_path, monkeypatch, bank):
    monkeypatch.chdir(bank.parent)
    written = []
    for spec in ("bank", "./bank", str(bank), "bank/../bank//"):
        out = tmp_path / "my.model.json"
        order_fit(f"conllu:{spec}", out, most_items=2)
        written.append((out.read_bytes(), (tmp_path / "my.model.md").read_text()))
    assert len(set(written)) == 1
    model = read_model(out)
    assert (model.treebank, model.name) == ("bank", "my.model")
    assert "order fit conllu:bank --out my.model.json" in written[0][1]
    monkeypatch.chdir(bank)
    order_fit("conllu:.", out, most_items=2)
    assert out.read_bytes() == written[0][0]


def test_the_card_of_a_model_without_verbs(tmp_path):
    noun = "1\ta\t_\tDET\t_\t_\t2\tdet\t_\t_\n2\tb\t_\tNOUN\t_\t_\t0\troot\t_\t_\n\n"
    for split in ("train", "test"):
        (tmp_path / f"x-ud-{split}.conllu").write_text(noun * 5)
    assert order_fit(f"conllu:{tmp_path}", tmp_path / "m.json").classes == ("N",)
    card = (tmp_path / "m.md").read_text()
    assert "noun nodes" in card and "verb nodes" not in card
