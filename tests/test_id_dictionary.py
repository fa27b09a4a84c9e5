"""The dictionary of a run: drawn among pairs that occur in both texts, from copies or from files; saved and read."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from synthlang.config import parse
from synthlang.dictionary.command import natural_words, write_drawn
from synthlang.dictionary.ids import build_id_dictionary, read_id_dictionary
from synthlang.dictionary.words import DictionarySpec, draw_types, trained_types
from synthlang.errors import InputError
from synthlang.language import PARENT, parse_language
from synthlang.shards import read_shards, write_shards
from synthlang.sources import open_source
from synthlang.store import Store
from synthlang.vocabularies import OURS, IdSpace, LanguageTokenizer, VocabularySpec, build_id_space
from synthlang.vocabulary import train_tokenizer
from tests.real_data import DATA

SOURCE = "builtin:mini-english?types=500&sentences=300&dev=20&test=20"
NAMES = ("en", "trans", "half")


def members_of(root, source, spec, named):
    """The ids of languages of one source, and their training shards."""
    space, languages = build_id_space(spec, [(name, source, language) for name, language in named], Store(root / "s"))
    train = []
    for language, tokenizer in zip(languages, space.languages, strict=True):
        write_shards(source, "train", language, tokenizer, root / tokenizer.name)
        train.append(read_shards(root / tokenizer.name))
    return space, train


@pytest.fixture(scope="module")
def derived(tmp_path_factory):
    languages = [("en", PARENT), ("trans", parse_language("trans")), ("half", parse_language("trans:0.5+inv"))]
    return members_of(tmp_path_factory.mktemp("m"), open_source(SOURCE), VocabularySpec(size=500), languages)


def only(derived, *which):
    """The members of these numbers as a run of their own."""
    space, train = derived
    chosen = tuple(space.languages[i] for i in which)
    return replace(space, languages=chosen, offsets=tuple(space.offsets[i] for i in which)), [train[i] for i in which]


def occurring(space, train, member):
    """The pairs that a dictionary of (0, member) can hold, by a loop."""
    V = space.offsets[member]
    left, right = train[0].counts, train[member].counts
    return {(i, i + V) for i in range(5, space.copies) if left[i] and i + V < len(right) and right[i + V]}


def between(dictionary, member):
    """The pairs (0, member) as a set."""
    chosen = (dictionary.languages == [0, member]).all(axis=1)
    return {(a, b) for a, b in dictionary.pairs[chosen].tolist()}


def test_of_a_transliterated_language_the_types_are_drawn_that_always_were(derived, tmp_path):
    space, train = only(derived, 0, 1)
    spec = DictionarySpec(coverage=0.3, seed=2)
    found = build_id_dictionary(spec, space, train, Store(tmp_path))
    types = trained_types(train[0].counts)
    assert (
        found.pairs[:, 0].tolist() == types[draw_types(spec, types.astype(np.uint64), train[0].counts[types])].tolist()
    )
    assert (found.pairs[:, 1] - found.pairs[:, 0] == space.copies).all()
    assert found.languages.tolist() == [[0, 1]] * len(found)
    assert found.pairs.dtype == found.languages.dtype == np.int64


@pytest.mark.parametrize("settings", [{"coverage": 1.0}, {}, {"coverage": 0.6, "by": "token", "order": "frequent"}])
def test_the_same_types_are_drawn_for_every_language_and_each_pair_occurs(derived, tmp_path, settings):
    space, train = derived
    spec = DictionarySpec(**settings)
    found = build_id_dictionary(spec, space, train, Store(tmp_path))
    possible = {member: occurring(space, train, member) for member in (1, 2)}
    assert len(possible[2]) < len(possible[1]) == len(trained_types(train[0].counts))
    types = {a for a, _ in between(found, 1)}
    for member in (1, 2):
        assert between(found, member) == {(a, b) for a, b in possible[member] if a in types}
    if spec.by == "type":
        assert len(types) == round(spec.coverage * len(possible[1]))
    else:
        counts = Counter({a: int(train[0].counts[a]) for a, _ in possible[1]})
        held = sum(counts[a] for a in types)
        assert held >= spec.coverage * counts.total() > held - max(counts[a] for a in types)


def test_the_manifest_says_how_much_of_each_text_is_covered(derived, tmp_path):
    space, train = derived
    found = build_id_dictionary(DictionarySpec(coverage=0.4), space, train, Store(tmp_path))
    for member, name in enumerate(NAMES):
        held = (
            {p[0] for m in (1, 2) for p in between(found, m)} if member == 0 else {b for _, b in between(found, member)}
        )
        ids = [i for i in train[member].tokens.tolist() if i >= 5]
        shares = found.manifest["coverage"][name]
        assert shares["types"] == pytest.approx(len(held) / len(set(ids)))
        assert shares["tokens"] == pytest.approx(sum(i in held for i in ids) / len(ids))
    for member, name in ((1, "trans"), (2, "half")):
        entry = found.manifest["languages"][name]
        assert entry["pairs"] == len(between(found, member))
        assert entry["candidates"] == len(occurring(space, train, member))
    assert found.manifest["pairs"] == len(found)


def test_it_is_built_once_and_read_by_people(derived, tmp_path):
    space, train = derived
    found, again = (build_id_dictionary(DictionarySpec(), space, train, Store(tmp_path)) for _ in range(2))
    assert found.fingerprint == again.fingerprint
    assert np.array_equal(found.pairs, again.pairs) and np.array_equal(found.languages, again.languages)
    (folder,) = tmp_path.glob("dictionary-*")
    assert folder.name == f"dictionary-{found.fingerprint}"
    lines = [line.split("\t") for line in (folder / "dictionary.tsv").read_text().splitlines()]
    assert len(lines) == len(found) and {line[2] for line in lines} == {"trans", "half"}
    words = {(a, b) for a, b, _ in lines}
    tokens = [space.languages[0].tokenizer.decode([a]) for a in found.pairs[:, 0].tolist()]
    assert [a for a, _, _ in lines] == tokens
    assert all(a.isascii() and not b.isascii() for a, b in words)


def test_tokens_that_a_table_cannot_hold_are_written_out(tmp_path):
    tokenizer = train_tokenizer(["a"], 261)
    ids = np.arange(5, 261)
    member = LanguageTokenizer("x", tokenizer, np.arange(261))
    space = IdSpace("copied", 522, OURS, (member, replace(member, name="y")), (0, 0), 261)
    train: list[Any] = [SimpleNamespace(counts=np.ones(261, np.int64), fingerprint="f")] * 2
    pairs = np.stack([ids, ids], axis=1)
    object.__setattr__(space, "counterparts", lambda which, own_rows: pairs)
    build_id_dictionary(DictionarySpec(coverage=1.0), space, train, Store(tmp_path))
    (file,) = tmp_path.glob("dictionary-*/dictionary.tsv")
    lines = file.read_bytes().decode().split("\n")[:-1]
    assert len(lines) == 256 and all(line.count("\t") == 2 and line.split("\t")[0] for line in lines)


@pytest.mark.parametrize("name", ["pairs.npy", "languages.npy", "dictionary.tsv"])
def test_a_changed_or_missing_file_is_refused(derived, tmp_path, name):
    space, train = derived
    build_id_dictionary(DictionarySpec(), space, train, Store(tmp_path))
    (folder,) = tmp_path.glob("dictionary-*")
    with (folder / name).open("ab") as handle:
        handle.write(b" ")
    with pytest.raises(InputError, match=f"{name}: differs from its manifest"):
        read_id_dictionary(folder)
    (folder / name).unlink()
    with pytest.raises(InputError, match=f"{name}: differs from its manifest"):
        read_id_dictionary(folder)


@pytest.mark.parametrize("path", ["", {}, {"fr": ""}, 3, ["a"]])
def test_a_path_that_is_none(path):
    with pytest.raises(InputError, match="path"):
        parse(DictionarySpec, {"path": path})


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
    assert DictionarySpec(path="x").drawing == DictionarySpec().drawing
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
