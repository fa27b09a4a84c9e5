"""Word dictionaries: of a derived language, of a natural pair; drawn, covered, saved; and as ids."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from synthlang.corpus import Corpus
from synthlang.dictionary import word_dictionary
from synthlang.dictionary.draw_command import derived_words, dictionary_command, natural_words, write_drawn
from synthlang.dictionary.word_dictionary import (
    NO_SOURCE,
    NO_TARGET,
    DictionarySpec,
    WordDictionary,
    read_muse,
    read_words,
    write_muse,
)
from synthlang.language import parse_language
from synthlang.scripts import SCRIPTS
from synthlang.sources import open_source
from synthlang.sources.base import word_counts
from synthlang.sources.words import visible
from tests.refusals import refusal, refused
from tests.task_cases import Chain, Noise

SOURCE = "builtin:mini-english?types=500&sentences=400&dev=20&test=20"
PAIRS = [("a", "x"), ("a", "y"), ("b", "x"), ("c", "z"), ("d", "w")]
COUNTS = Counter({"a": 50, "b": 30, "c": 15, "d": 4, "e": 1})


class Listed:
    """A source of given sentences."""

    splits, columns, fingerprint = ("dev", "train"), ("form",), "f"

    def __init__(self, *sentences):
        self.sentences = sentences

    def batches(self, split):
        yield Corpus.of_words([s.split() for s in self.sentences[:1]])
        yield Corpus.of_words([s.split() for s in self.sentences[1:]], 1)


@pytest.fixture(scope="module")
def source():
    return open_source(SOURCE)


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"coverage": 0.25, "order": "frequent"}, "a"),
        ({"coverage": 0.5, "order": "frequent"}, "ab"),
        ({"coverage": 1.0}, "abcd"),
        ({"coverage": 0.0}, ""),
        # of the 99 running words that the dictionary knows, a has 50
        ({"coverage": 0.5, "by": "token", "order": "frequent"}, "a"),
        ({"coverage": 0.51, "by": "token", "order": "frequent"}, "ab"),
        ({"coverage": 1.0, "by": "token", "order": "frequent"}, "abcd"),
    ],
)
def test_draws_by_hand(spec, expected):
    drawn = WordDictionary.of(PAIRS).draw(DictionarySpec(**spec), COUNTS)
    assert drawn.pairs == [pair for pair in PAIRS if pair[0] in expected]
    if spec.get("by") == "token" or spec.get("order") == "frequent":
        assert refused(drawn.draw, DictionarySpec(**spec), None)[1] == "missing"


def test_coverage_by_hand():
    words = WordDictionary.of(PAIRS[:3])
    assert words.coverage(COUNTS) == {"types": 2 / 5, "tokens": 80 / 100}
    assert words.coverage(Counter({"x": 3, "q": 1}), "target") == {"types": 0.5, "tokens": 0.75}
    assert WordDictionary.of([]).coverage(Counter()) == {"types": 0.0, "tokens": 0.0}


def test_a_uniform_draw_is_seeded_nested_and_knows_nothing_of_other_words():
    words = WordDictionary.of([(f"w{i}", f"v{i}") for i in range(1000)])
    small, large, other = (
        set(words.draw(DictionarySpec(coverage=c, seed=s), None).source) for c, s in ((0.2, 0), (0.4, 0), (0.2, 1))
    )
    assert (len(small), len(large)) == (200, 400)
    assert small < large
    assert small != other
    reversed_words = WordDictionary.of(words.pairs[::-1])
    assert set(reversed_words.draw(DictionarySpec(coverage=0.2), None).source) == small


def test_restriction_to_two_texts():
    kept, left_out = WordDictionary.of(PAIRS).restrict({"a": 1, "c": 0, "d": 2}, {"y": 1})
    assert kept.pairs == [("a", "y")]
    assert left_out == {
        NO_SOURCE: 2,
        NO_TARGET: 2,
    }


def test_a_derived_language_by_its_own_words(source):
    language = parse_language("trans:0.5+inv")
    found = derived_words(source, language)
    assert found.source == word_counts(source)
    script = SCRIPTS["cyrillic"]
    assert [script.decode(b) for b in found.words.target] == list(found.words.source)
    assert set(found.words.source) == set(found.source)
    share = np.mean([a != b for a, b in found.words.pairs])
    assert 0.35 < share < 0.65
    counts = [found.source[w] for w in found.words.source]
    assert counts == sorted(counts, reverse=True)


def test_a_language_of_several_forms_a_word_against_a_loop(monkeypatch):
    text = Listed("a b a", "b c", "a\u00a0b a d")
    chain: Any = Chain(Noise(1, drop=0.0, delete=0.3, insert=0.3), parse_language("trans:0.5"))
    pairs: Counter[tuple[str, str]] = Counter()
    for batch in text.batches("train"):
        rewrite = chain.rewrite(batch)
        words = rewrite.apply(batch)
        for row, sentence in enumerate(words):
            for at, form in enumerate(sentence.words):
                origin = rewrite.source_index[rewrite.offsets[row] + at]
                if origin != -1:
                    pairs[batch[row].words[origin], form] += 1
    chain.name, chain.fingerprint, chain.requires = "c", "c", ()
    monkeypatch.setattr("synthlang.dictionary.draw_command.bind_language", lambda language, source, name: language)
    found = derived_words(text, chain)
    assert set(found.words.pairs) == {p for p in pairs if "\u00a0" not in p[0]}
    assert sum("\u00a0" in a for a, _ in pairs) == sum(found.left_out.values())


@pytest.mark.parametrize("coverage", [0.0, 0.3, 1.0])
def test_a_saved_dictionary_is_read_back(source, tmp_path, coverage):
    candidates = derived_words(source, parse_language("trans"))
    spec = DictionarySpec(coverage=coverage, by="token", order="frequent")
    manifest = write_drawn(candidates, spec, tmp_path / "d")
    words, read = read_words(tmp_path / "d")
    assert read == manifest
    assert words == candidates.words.draw(spec, candidates.source)
    shares = manifest["coverage"]["source"]
    assert shares == manifest["coverage"]["target"]
    assert shares["tokens"] >= coverage
    assert manifest["parents"] == {"source": source.fingerprint, "language": parse_language("trans").fingerprint}


def test_a_changed_file_is_refused(source, tmp_path):
    write_drawn(derived_words(source, parse_language("trans")), DictionarySpec(), tmp_path / "d")
    with (tmp_path / "d" / "dictionary.txt").open("a") as handle:
        handle.write("a b\n")
    assert refused(read_words, tmp_path / "d") == ("dictionary.txt", "damaged")
    (tmp_path / "d" / "dictionary.txt").unlink()
    assert refused(read_words, tmp_path / "d") == ("dictionary.txt", "missing")


def test_the_fingerprint_is_of_all_that_matters(source, tmp_path):
    muse = tmp_path / "m.txt"
    muse.write_text("the le\nthe a\n")
    cases = [
        (derived_words(source, parse_language("trans")), DictionarySpec()),
        (derived_words(source, parse_language("trans")), DictionarySpec(seed=1)),
        (derived_words(source, parse_language("trans:0.5")), DictionarySpec()),
        (natural_words(muse), DictionarySpec()),
        (natural_words(muse, source), DictionarySpec()),
        (natural_words(muse, source, source), DictionarySpec()),
    ]
    names = [write_drawn(c, s, tmp_path / str(i))["fingerprint"] for i, (c, s) in enumerate(cases)]
    assert len(set(names)) == len(names)


def test_the_command(tmp_path, capsys):
    manifest = dictionary_command("trans", SOURCE, tmp_path / "d", coverage=0.5)
    assert manifest["pairs"] == len(read_muse(tmp_path / "d" / "dictionary.txt"))
    assert "of the types" in capsys.readouterr().err
    texts = tmp_path / "parent.txt", tmp_path / "derived.txt"
    texts[0].write_text("the cat the zebra\n")
    texts[1].write_text("тхе цат цат\n")
    both: dict[str, Any] = {"source": f"text:{texts[0]}", "target_source": f"text:{texts[1]}"}
    (tmp_path / "s.txt").write_text("the тхе\ncat кат\ncat цат\ndog дог\n")
    natural = dictionary_command(str(tmp_path / "s.txt"), out=tmp_path / "n", coverage=1.0, by="token", **both)
    assert "2 of 4 pairs of the dictionary are used (50 %)" in capsys.readouterr().err
    assert natural["coverage"] == {"source": {"types": 2 / 3, "tokens": 0.75}, "target": {"types": 1.0, "tokens": 1.0}}
    assert read_muse(tmp_path / "n" / "dictionary.txt") == [("the", "тхе"), ("cat", "цат")]
    muse = str(tmp_path / "d" / "dictionary.txt")
    error = refusal(dictionary_command, muse, SOURCE, tmp_path / "e", target_source=SOURCE)
    assert error.code == "empty" and NO_TARGET in error.reason
    (tmp_path / "w.txt").write_text("the San\u00a0Juan\n", encoding="utf-8")
    assert refused(dictionary_command, str(tmp_path / "w.txt"), None, tmp_path / "e", coverage=1.0) == (
        "w.txt",
        "format",
    )
    without = dictionary_command(str(tmp_path / "d" / "dictionary.txt"), None, tmp_path / "o", coverage=1.0)
    assert (without["pairs"], without["coverage"]) == (manifest["pairs"], {})


@pytest.mark.parametrize(
    ("arguments", "options", "place"),
    [
        (("trans", None), {}, "--source"),
        (("trans", SOURCE), {"target_source": SOURCE}, "--target-source"),
        (("nothing", SOURCE), {}, "language nothing"),
        (("trans", SOURCE), {"coverage": 1.5}, "--coverage"),
        (("trans", SOURCE), {"by": "word"}, "--by"),
    ],
)
def test_wrong_commands(tmp_path, arguments: Any, options: Any, place):
    assert refused(dictionary_command, arguments[0], arguments[1], tmp_path / "d", **options)[0] == place
    assert list(tmp_path.iterdir()) == []


def test_a_spec_that_is_no_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("folder").mkdir()
    Path("trans").mkdir()  # an output that has the name of a language
    for spec in ("nofile.txt", "no/file", "./en-fr.0-5000.txt"):
        assert refused(dictionary_command, spec, None, tmp_path / "d") == (Path(spec).name, "missing")
    assert refused(dictionary_command, "folder", None, tmp_path / "d") == ("folder", "type")
    dictionary_command("trans", SOURCE, tmp_path / "d")
    assert str(refusal(dictionary_command, "d", None, tmp_path / "e")) == (
        "d: is a folder, not a file; name a file in the MUSE format (d/dictionary.txt) or a language"
    )


WORD = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=6)
WORD = WORD.filter(lambda w: w.split() == [w] and visible(w) == w)


@given(st.lists(st.tuples(WORD, WORD), min_size=1, max_size=20, unique=True))
def test_pairs_are_read_back(tmp_path_factory, pairs):
    path = tmp_path_factory.getbasetemp() / "muse.txt"
    write_muse(pairs, path)
    assert read_muse(path) == pairs


def test_words_have_any_white_space_but_spaces_and_tabs(tmp_path):
    """A character that nobody sees makes no other word; U+00A0 and U+3000 are parts of a word, as in any text."""
    path = tmp_path / "d.txt"
    path.write_text("San\u00a0Juan\tSaint\u3000Jean\n\u200bcat\u200e cha\u00adt\n", encoding="utf-8")
    assert read_muse(path) == [("San\u00a0Juan", "Saint\u00a0Jean"), ("cat", "chat")]
    path.write_text("a\u3000b\n", encoding="utf-8")
    assert refused(read_muse, path) == ("d.txt:1", "format")


@pytest.mark.parametrize(
    "text",
    ["the le\nthe la\ncat chat\n", "the\tle\nthe\tla\ncat\tchat", "\ufeffthe  le\r\n\r\n the la \nthe le\ncat chat\n"],
)
def test_spaces_tabs_blank_lines_and_repeats(tmp_path, text):
    path = tmp_path / "d.txt"
    path.write_bytes(text.encode())
    assert read_muse(path) == [("the", "le"), ("the", "la"), ("cat", "chat")]


@pytest.mark.parametrize(
    ("data", "place"),
    [
        (b"the le\ncat\n", "d.txt:2"),
        (b"the le\nNew York\tNew York\n", "d.txt:2"),
        (b"the le 0.5\n", "d.txt:1"),
        (b"", "d.txt"),
        (b"\n \n", "d.txt"),
        (b"the le\ncaf\xe9 caf\xe9\n", "d.txt:2"),
        (None, "d.txt"),
    ],
)
def test_damaged_lines(tmp_path, data, place):
    path = tmp_path / "d.txt"
    if data is not None:
        path.write_bytes(data)
    assert refused(read_muse, path)[0] == place


@pytest.mark.parametrize("word", ["", "New York", "a\u00a0b", "a\n"])
def test_words_that_no_line_can_hold(tmp_path, word):
    for pair in ((word, "b"), ("a", word)):
        assert refused(write_muse, [("x", "y"), pair], tmp_path / "d.txt") == ("", "format")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("used", "total", "swapped", "line"),
    [
        (3, 4, 1, "3 of 4 pairs of the dictionary are used (75 %)"),
        (1, 4, 1, "1 of 4 pairs of the dictionary are used (25 %)"),
        (1, 5, 0, "warning: only 1 of 5 pairs of the dictionary are used (20 %)"),
        (
            148,
            10872,
            1592,
            "warning: only 148 of 10,872 pairs of the dictionary are used (1 %); 1,592 if its columns are swapped, "
            "so check their order",
        ),
    ],
)
def test_the_line_on_used_pairs_warns_and_suspects_swapped_columns(used, total, swapped, line):
    assert word_dictionary.told_use(used, total, swapped) == line
