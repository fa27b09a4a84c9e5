"""Where a fitted model and its card go: what is refused, before any fitting, and that names do not change the file."""

import os
import shutil
from pathlib import Path

import pytest

from synthlang.errors import InputError
from synthlang.order.command import card_path, order_fit, stem
from synthlang.order.model import read_model
from tests.test_order_command import write_treebank

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
