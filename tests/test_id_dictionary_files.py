"""The dictionary of a run from MUSE files and word dictionaries: natural languages, several of them, bad input."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from synthlang.dictionary.command import natural_words, write_drawn
from synthlang.dictionary.ids import build_id_dictionary, id_pairs
from synthlang.dictionary.words import DictionarySpec, WordDictionary, trained_types
from synthlang.errors import InputError
from synthlang.language import PARENT
from synthlang.shards import read_shards, write_shards
from synthlang.sources import open_source
from synthlang.store import Store
from synthlang.vocabularies import VocabularySpec, build_id_space
from synthlang.vocabulary import train_tokenizer
from tests.real_data import DATA

TEXT = {
    "en": "the cat sees the dog . the dog sees . unseenword",
    "fr": "le chat voit le chien . le chat voit .",
    "de": "die katze sieht den hund . the hund sieht .",
}
LINES = {
    "fr": [("the", "le"), ("cat", "chat"), ("dog", "chien"), ("zebra", "le"), ("sees", "zèbre"), ("<mask>", "<s>")],
    "de": [("the", "die"), ("the", "den"), ("dog", "hund"), ("cat", "hund")],
}


def shards_of(named, languages, space, root):
    train = []
    for (name, source, _), language, tokenizer in zip(named, languages, space.languages, strict=True):
        write_shards(source, "train", language, tokenizer, root / name)
        train.append(read_shards(root / name))
    return train


@pytest.fixture(scope="module")
def natural(tmp_path_factory):
    """Three languages with a joined vocabulary in which each word but ``unseenword`` is a token; their files."""
    root = tmp_path_factory.mktemp("n")
    sources, files = {}, {}
    for name, text in TEXT.items():
        (root / f"{name}.txt").write_text("\n".join([text.replace("unseenword", "")] * 8 + [text]) + "\n")
        sources[name] = open_source(f"text:{root / name}.txt")
    for name, pairs in LINES.items():
        files[name] = root / f"en-{name}.dict"
        files[name].write_text("".join(f"{a} {b}\n" for a, b in pairs))
    named = [(name, source, PARENT) for name, source in sources.items()]
    space, languages = build_id_space(VocabularySpec(kind="joined", size=400), named, Store(root / "s"))
    train = shards_of(named, languages, space, root)
    return space, train, {name: str(path) for name, path in files.items()}


def pair_of(space, train, *members):
    return replace(space, languages=tuple(space.languages[m] for m in members)), [train[m] for m in members]


def words_of(space, dictionary):
    """(language, word, translation) of each pair."""
    rows = zip(dictionary.pairs.tolist(), dictionary.languages[:, 1].tolist(), strict=True)
    return {
        (m, space.languages[0].tokenizer.decode([a]), space.languages[m].tokenizer.decode([b])) for (a, b), m in rows
    }


def test_two_natural_languages_from_a_file(natural, tmp_path):
    space, train, files = natural
    space, train = pair_of(space, train, 0, 1)
    found = build_id_dictionary(DictionarySpec(coverage=1.0, path=files["fr"]), space, train, Store(tmp_path))
    assert words_of(space, found) == {(1, "the", "le"), (1, "cat", "chat"), (1, "dog", "chien")}
    assert found.manifest["languages"]["fr"]["left_out"] == {
        "source word is several tokens": 1,
        "target word is several tokens": 1,
        "both words are several tokens": 1,  # or special ones
    }
    part = build_id_dictionary(DictionarySpec(coverage=0.34, path=files["fr"]), space, train, Store(tmp_path))
    assert len(part) == 1


def test_a_file_for_each_language(natural, tmp_path):
    space, train, files = natural
    spec = DictionarySpec(coverage=1.0, path=files)
    found = build_id_dictionary(spec, space, train, Store(tmp_path))
    german = {(2, "the", "die"), (2, "the", "den"), (2, "dog", "hund"), (2, "cat", "hund")}
    assert words_of(space, found) == german | {(1, "the", "le"), (1, "cat", "chat"), (1, "dog", "chien")}
    one = build_id_dictionary(replace_path(spec, {"de": files["de"]}), space, train, Store(tmp_path))
    assert words_of(space, one) == german
    drawn = build_id_dictionary(spec.model_copy(update={"coverage": 0.34}), space, train, Store(tmp_path))
    (word,) = {w for _, w, _ in words_of(space, drawn)}
    assert words_of(space, drawn) == {entry for entry in words_of(space, found) if entry[1] == word}


def replace_path(spec, path):
    return spec.model_copy(update={"path": path})


def test_words_that_no_text_has_are_no_pairs(natural, tmp_path):
    space, train, _ = natural
    (tmp_path / "d").write_text("the the\nthe die\nhund die\n")
    space, train = pair_of(space, train, 0, 2)
    found = build_id_dictionary(DictionarySpec(coverage=1.0, path=str(tmp_path / "d")), space, train, Store(tmp_path))
    # "the" of the German text is the same id, and a pair: separate embeddings have two rows for it
    assert words_of(space, found) == {(1, "the", "the"), (1, "the", "die")}
    counts = train[1].counts.copy()
    counts[space.languages[1].tokenizer.token_to_id("Ġdie")] = 0
    without = [train[0], replace(train[1], counts=counts, manifest={"fingerprint": "other"})]
    found = build_id_dictionary(DictionarySpec(coverage=1.0, path=str(tmp_path / "d")), space, without, Store(tmp_path))
    assert words_of(space, found) == {(1, "the", "the")}
    assert found.manifest["languages"]["de"]["left_out"]["not in the text of de"] == 1


def test_the_folder_of_a_word_dictionary(natural, tmp_path):
    space, train, files = natural
    space, train = pair_of(space, train, 0, 1)
    folder = tmp_path / "w"
    write_drawn(natural_words(Path(files["fr"])), DictionarySpec(coverage=1.0), folder)
    specs = [DictionarySpec(coverage=1.0, path=path) for path in (files["fr"], str(folder))]
    found = [build_id_dictionary(spec, space, train, Store(tmp_path / "s")) for spec in specs]
    assert found[0].fingerprint == found[1].fingerprint
    assert words_of(space, found[1]) == {(1, "the", "le"), (1, "cat", "chat"), (1, "dog", "chien")}


def test_the_fingerprint_is_of_all_that_matters_and_nothing_else(natural, tmp_path):
    space, train, files = natural
    two = pair_of(space, train, 0, 1)
    (tmp_path / "other").write_text("the le\n")
    (tmp_path / "copy").write_text(Path(files["fr"]).read_text())
    specs = [{"path": files["fr"]}, {"path": files["fr"], "seed": 1}, {"path": str(tmp_path / "other")}]
    cases = [(spec, two) for spec in specs] + [({"path": {"fr": files["fr"]}}, (space, train))]
    names = [_built(tmp_path, members, **spec).fingerprint for spec, members in cases]
    assert len(set(names)) == len(names)
    assert _built(tmp_path, two, path=str(tmp_path / "copy")).fingerprint == names[0]


def _built(tmp_path, members, coverage=1.0, **settings):
    return build_id_dictionary(
        DictionarySpec(coverage=coverage, **settings), members[0], members[1], Store(tmp_path / "s")
    )


def test_special_tokens_of_a_checkpoint_are_no_words():
    tokenizer = train_tokenizer(["cat chat cat chat"] * 3, 300)
    words = WordDictionary.of([("cat", "chat")])
    pairs, _ = id_pairs(words, tokenizer, tokenizer)
    assert len(pairs) == 1
    for special in pairs[0].tolist():
        none, counts = id_pairs(words, tokenizer, tokenizer, specials=(special,))
        assert len(none) == 0 and counts["pairs"] == 0
    assert trained_types(np.asarray([1, 1, 0, 3]), (1,)).tolist() == [0, 3]


def test_what_cannot_be_a_dictionary(natural, tmp_path):
    space, train, files = natural
    one, two = pair_of(space, train, 0), pair_of(space, train, 0, 1)
    (tmp_path / "empty").write_text("\n")
    (tmp_path / "bad").write_text("the le\nthe le la\n")
    (tmp_path / "strange").write_text("zebra zèbre\n")
    (tmp_path / "folder").mkdir()
    cases: list[tuple[dict[str, Any], Any, str]] = [
        ({}, one, "pairs two languages; this run has one"),
        ({}, two, "no language has copies of the first one's tokens; set dictionary.path"),
        ({"path": files["fr"]}, (space, train), "one file pairs two languages; here name it as {fr: FILE, de: FILE}"),
        ({"path": {"it": files["fr"]}}, two, "'it' is no language beside the first; there is fr"),
        ({"path": {"en": files["fr"]}}, two, "'en' is no language beside the first"),
        ({"path": str(tmp_path / "none")}, two, "none: dictionary.path: no such file; name a MUSE file or"),
        ({"path": str(tmp_path / "empty")}, two, "empty: holds no pair of words"),
        ({"path": str(tmp_path / "bad")}, two, "bad:2: a line holds a source word and a target word"),
        ({"path": str(tmp_path / "strange")}, two, r"no pair of ids .* \(both words are several tokens: 1\)"),
        ({"path": str(tmp_path / "folder")}, two, "manifest.json"),
        ({"coverage": 0.0, "path": files["fr"]}, two, "coverage 0.0 of 3 types gives an empty dictionary"),
    ]
    for settings, members, message in cases:
        with pytest.raises(InputError, match=message):
            _built(tmp_path, members, **settings)
    assert not list((tmp_path / "s").glob("dictionary-*"))


@pytest.mark.skipif(not (DATA / "muse_dict").is_dir(), reason=f"needs the test data muse_dict in {DATA}")
def test_a_real_pair_of_languages(tmp_path):
    named = [(name, open_source(f"text:{DATA}/multi30k/val.{name}"), PARENT) for name in ("en", "fr")]
    space, languages = build_id_space(VocabularySpec(kind="joint", size=3000), named, Store(tmp_path))
    train = shards_of(named, languages, space, tmp_path)
    spec = DictionarySpec(coverage=1.0, path=str(DATA / "muse_dict" / "en-fr.0-5000.txt"))
    found = build_id_dictionary(spec, space, train, Store(tmp_path))
    words = words_of(space, found)
    assert {(1, "man", "homme"), (1, "street", "rue")} <= words
    lines = {tuple(line.split()) for line in (DATA / "muse_dict" / "en-fr.0-5000.txt").read_text().splitlines()}
    assert {(a, b) for _, a, b in words} <= lines
    for side in (0, 1):
        assert np.isin(found.pairs[:, side], train[side].tokens).all()
    assert len(found) > 200
