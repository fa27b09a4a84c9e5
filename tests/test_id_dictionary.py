"""The dictionary of a run: drawn among pairs that occur in both texts, from copies or from files; saved and read."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from synthlang.dictionary.draw_command import natural_words, write_drawn
from synthlang.dictionary.ids import build_id_dictionary, read_id_dictionary
from synthlang.dictionary.word_dictionary import DictionarySpec, trained_types
from synthlang.language import PARENT, parse_language
from synthlang.shards import read_shards, write_shards
from synthlang.sources import open_source
from synthlang.store import Store
from synthlang.vocabularies import OURS, IdSpace, LanguageTokenizer, VocabularySpec, build_id_space
from synthlang.vocabulary import train_tokenizer
from tests.refusals import refused

SOURCE = "builtin:mini-english?types=500&sentences=300&dev=20&test=20"
NAMES = ("en", "trans", "half")


def run_of(root, spec, named):
    """The ids of languages (name, source, language), and their training shards."""
    space, languages = build_id_space(spec, named, Store(root / "s"))
    train = []
    for (name, source, _), language, tokenizer in zip(named, languages, space.languages, strict=True):
        write_shards(source, "train", language, tokenizer, root / name)
        train.append(read_shards(root / name))
    return space, train


def only(run, *numbers):
    """The languages of these numbers as a run of their own."""
    space, train = run
    offsets = space.offsets and tuple(space.offsets[i] for i in numbers)
    languages = tuple(space.languages[i] for i in numbers)
    return replace(space, languages=languages, offsets=offsets), [train[i] for i in numbers]


def built(run, folder, coverage=1.0, **settings):
    space, train = run
    return build_id_dictionary(DictionarySpec(coverage=coverage, **settings), space, train, Store(folder / "built"))


@pytest.fixture(scope="module")
def derived(tmp_path_factory):
    languages = zip(NAMES, (PARENT, parse_language("trans"), parse_language("trans:0.5+inv")), strict=True)
    named = [(name, open_source(SOURCE), language) for name, language in languages]
    return run_of(tmp_path_factory.mktemp("m"), VocabularySpec(size=500), named)


def occurring(run, number):
    """The pairs that a dictionary of the languages 0 and ``number`` can hold, by a loop."""
    space, train = run
    V = space.offsets[number]
    left, right = train[0].counts, train[number].counts
    return {(i, i + V) for i in range(5, space.copies) if left[i] and i + V < len(right) and right[i + V]}


def between(dictionary, number):
    """The pairs of the languages 0 and ``number`` as a set."""
    chosen = (dictionary.languages == [0, number]).all(axis=1)
    return {(a, b) for a, b in dictionary.pairs[chosen].tolist()}


@pytest.mark.parametrize("settings", [{}, {"coverage": 0.25}, {"coverage": 0.6, "by": "token", "order": "frequent"}])
def test_the_same_types_are_drawn_for_every_language_and_each_pair_occurs(derived, tmp_path, settings):
    train, found = derived[1], built(derived, tmp_path, **settings)
    possible = {number: occurring(derived, number) for number in (1, 2)}
    # of a partial transliteration only some types have a copy in the text
    assert 0.3 < len(possible[2]) / len(possible[1]) < 0.95 and len(possible[1]) == len(
        trained_types(train[0].counts, OURS.all)
    )
    types = {a for a, _ in between(found, 1)}
    for number in (1, 2):
        assert between(found, number) == {(a, b) for a, b in possible[number] if a in types}
    if "by" not in settings:
        assert len(types) == round(settings.get("coverage", 1.0) * len(possible[1]))
    else:
        counts = Counter({a: int(train[0].counts[a]) for a, _ in possible[1]})
        covered = sum(counts[a] for a in types)
        assert covered >= 0.6 * counts.total() > covered - max(counts[a] for a in types)


def test_the_manifest_says_how_much_of_each_text_is_covered(derived, tmp_path):
    found = built(derived, tmp_path, 0.4)
    for number, name in enumerate(NAMES):
        pairs = [p for n in (1, 2) for p in between(found, n) if number in (0, n)]
        covered = {p[min(number, 1)] for p in pairs}
        ids = [i for i in derived[1][number].tokens.tolist() if i >= 5]
        shares = found.manifest["coverage"][name]
        assert shares["types"] == pytest.approx(len(covered) / len(set(ids)))
        assert shares["tokens"] == pytest.approx(sum(i in covered for i in ids) / len(ids))
        if number:
            entry = found.manifest["languages"][name]
            assert (entry["pairs"], entry["candidates"]) == (len(pairs), len(occurring(derived, number)))
    assert found.manifest["pairs"] == len(found)
    assert found.manifest["languages"]["half"]["left_out"]["not in the text of half"] > 20


def test_it_is_built_once_read_by_people_and_refused_if_changed(derived, tmp_path):
    found, again = (built(derived, tmp_path, 0.25) for _ in range(2))
    assert found.fingerprint == again.fingerprint
    assert np.array_equal(found.pairs, again.pairs) and np.array_equal(found.languages, again.languages)
    (folder,) = tmp_path.glob("built/dictionary-*")
    assert folder.name == f"dictionary-{found.fingerprint}"
    lines = [line.split("\t") for line in (folder / "dictionary.tsv").read_text().splitlines()]
    assert len(lines) == len(found) and {line[2] for line in lines} == {"trans", "half"}
    tokens = [derived[0].languages[0].tokenizer.decode([a]) for a in found.pairs[:, 0].tolist()]
    assert [a for a, _, _ in lines] == tokens
    assert all(a.isascii() and not b.isascii() for a, b, _ in lines)
    for name in ("dictionary.tsv", "languages.npy", "pairs.npy"):
        whole = (folder / name).read_bytes()
        (folder / name).write_bytes(whole + b" ")
        assert refused(read_id_dictionary, folder) == (name, "damaged")
        (folder / name).unlink()
        assert refused(read_id_dictionary, folder) == (name, "damaged")
        (folder / name).write_bytes(whole)


def test_tokens_that_a_table_cannot_hold_are_written_out(tmp_path):
    tokenizer = train_tokenizer(["a"], 261)
    language = LanguageTokenizer("x", tokenizer, np.arange(261))
    space = IdSpace("copied", 522, OURS, (language, replace(language, name="y")), (0, 0), 261)
    train: list[Any] = [SimpleNamespace(counts=np.ones(261, np.int64), fingerprint="f")] * 2
    pairs = np.stack([np.arange(5, 261)] * 2, axis=1)
    object.__setattr__(space, "translations", lambda which, own_rows: pairs)
    built((space, train), tmp_path)
    (file,) = tmp_path.glob("built/dictionary-*/dictionary.tsv")
    lines = file.read_bytes().decode().split("\n")[:-1]
    assert len(lines) == 256 and all(line.count("\t") == 2 and line.split("\t")[0] for line in lines)


# --- from files

TEXT = {
    "en": "the cat sees the dog . the dog sees . unseenword",
    "fr": "le chat voit le chien . le chat voit .",
    "de": "die katze sieht den hund . the hund sieht .",
}
LINES = {
    "fr": [("the", "le"), ("cat", "chat"), ("dog", "chien"), ("zebra", "le"), ("sees", "zèbre"), ("<mask>", "<s>")],
    "de": [("the", "die"), ("the", "den"), ("dog", "hund"), ("cat", "hund")],
}
FRENCH = {(1, "the", "le"), (1, "cat", "chat"), (1, "dog", "chien")}
GERMAN = {(2, "the", "die"), (2, "the", "den"), (2, "dog", "hund"), (2, "cat", "hund")}


@pytest.fixture(scope="module")
def natural(tmp_path_factory):
    """Three languages with a joined vocabulary in which each word but ``unseenword`` is a token; their files."""
    root = tmp_path_factory.mktemp("n")
    named, files = [], {}
    for name, text in TEXT.items():
        (root / f"{name}.txt").write_text("\n".join([text.replace("unseenword", "")] * 8 + [text]) + "\n")
        named.append((name, open_source(f"text:{root / name}.txt"), PARENT))
    for name, pairs in LINES.items():
        files[name] = str(root / f"en-{name}.dict")
        Path(files[name]).write_text("".join(f"{a} {b}\n" for a, b in pairs))
    return run_of(root, VocabularySpec(kind="joined", size=400), named), files


def words_of(run, dictionary):
    """(language, word, translation) of each pair."""
    decode = [language.tokenizer.decode for language in run[0].languages]
    rows = zip(dictionary.pairs.tolist(), dictionary.languages[:, 1].tolist(), strict=True)
    return {(number, decode[0]([a]), decode[number]([b])) for (a, b), number in rows}


def test_words_of_files(natural, tmp_path):
    run, files = natural
    two = only(run, 0, 1)
    found = built(two, tmp_path, path=files["fr"])
    assert words_of(two, found) == FRENCH
    assert found.manifest["languages"]["fr"]["left_out"] == {
        "source word is several tokens": 1,
        "target word is several tokens": 1,
        "both words are several tokens": 1,  # or special ones
    }
    assert len(built(two, tmp_path, 0.34, path=files["fr"])) == 1
    both = built(run, tmp_path, path=files)
    assert words_of(run, both) == GERMAN | FRENCH
    assert words_of(run, built(run, tmp_path, path={"de": files["de"]})) == GERMAN
    drawn = built(run, tmp_path, 0.34, path=files)  # a drawn word keeps all its translations
    (word,) = {w for _, w, _ in words_of(run, drawn)}
    assert words_of(run, drawn) == {entry for entry in GERMAN | FRENCH if entry[1] == word}
    write_drawn(natural_words(Path(files["fr"])), DictionarySpec(coverage=1.0), tmp_path / "folder")
    same = built(two, tmp_path, path=str(tmp_path / "folder"))
    assert same.fingerprint == found.fingerprint


def test_words_that_no_text_has_are_no_pairs(natural, tmp_path):
    space, train = run = only(natural[0], 0, 2)
    (tmp_path / "d").write_text("the the\nthe die\nhund die\n")
    # "the" of the German text is the same id, and a pair: separate embeddings have two rows for it
    assert words_of(run, built(run, tmp_path, path=str(tmp_path / "d"))) == {(1, "the", "the"), (1, "the", "die")}
    counts = train[1].counts.copy()
    counts[space.languages[1].tokenizer.token_to_id("Ġdie")] = 0
    without = space, [train[0], replace(train[1], counts=counts, manifest={"fingerprint": "other"})]
    found = built(without, tmp_path, path=str(tmp_path / "d"))
    assert words_of(run, found) == {(1, "the", "the")}
    assert found.manifest["languages"]["de"]["left_out"]["not in the text of de"] == 1


def test_the_fingerprint_is_of_all_that_matters_and_nothing_else(derived, natural, tmp_path):
    run, files = natural
    two = only(run, 0, 1)
    (tmp_path / "other").write_text("the le\n")
    (tmp_path / "copy").write_text(Path(files["fr"]).read_text())
    specs = [{"path": files["fr"]}, {"path": files["fr"], "seed": 1}, {"path": str(tmp_path / "other")}]
    cases: list[Any] = [(spec, two) for spec in specs] + [({"path": {"fr": files["fr"]}}, run)]
    cases += [({}, derived), ({"coverage": 0.5}, derived), ({}, only(derived, 0, 1)), ({}, only(derived, 0, 2))]
    names = [built(which, tmp_path, **spec).fingerprint for spec, which in cases]
    assert len(set(names)) == len(names)
    assert built(two, tmp_path, path=str(tmp_path / "copy")).fingerprint == names[0]


# malformed lines of a MUSE file are in test_dictionaries
WRONG: list[tuple[dict[str, Any], tuple[int, ...], str]] = [
    ({}, (0,), "dictionary"),
    ({}, (0, 1), "dictionary"),
    ({"path": "fr"}, (0, 1, 2), "dictionary.path"),
    ({"path": {"it": "fr"}}, (0, 1), "dictionary.path.it"),
    ({"path": {"en": "fr"}}, (0, 1), "dictionary.path.en"),
    ({"path": "none"}, (0, 1), "none dictionary.path"),
    ({"path": b"\n"}, (0, 1), "f"),
    ({"path": "zebra zèbre\n".encode()}, (0, 1), "dictionary"),
    ({"path": "."}, (0, 1), "dictionary.txt"),
    ({"coverage": 0.0, "path": "fr"}, (0, 1), "dictionary.coverage"),
]


@pytest.mark.parametrize(("settings", "numbers", "place"), WRONG)
def test_what_cannot_be_a_dictionary(natural, tmp_path, settings, numbers, place):
    run, files = natural
    path = settings.get("path")
    if isinstance(path, bytes):
        (tmp_path / "f").write_bytes(path)
        path = "f"
    if isinstance(path, dict):
        path = {name: files[file] for name, file in path.items()}
    elif path is not None:
        path = files.get(path, str(tmp_path / path))
    assert refused(built, only(run, *numbers), tmp_path, **{**settings, "path": path})[0] == place
    assert not list((tmp_path / "built").glob("dictionary-*"))
