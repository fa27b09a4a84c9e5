"""Transforms and their compositions: cases by hand, inverses, strengths, labels; and language files."""

from __future__ import annotations

import gzip
import itertools
import json
import shlex
import shutil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from probes.cli import app
from synthlang.corpus import Corpus
from synthlang.derive_command import derive_command
from synthlang.export import verify_manifest
from synthlang.language import PARENT, Language, parse_language
from synthlang.scripts import SCRIPTS, SPECIAL_TOKENS
from tests.refusals import refused
from tests.test_rewrite import sentences

NAMES = ["+".join(names) for size in (1, 2, 3) for names in itertools.permutations(["trans", "inv", "perm"], size)]


def steps(*kinds, **options):
    """A language of these kinds, the last one with options."""
    *first, last = kinds
    return {"name": "x", "transforms": [*({"kind": kind} for kind in first), {"kind": last, **options}]}


CASES = [  # language spec, sentence, derived sentence, origin
    ("inv", "he saw her .", "her saw he .", [2, 1, 0, 3]),
    ("inv", "he ran . she sat !", "ran he . sat she !", [1, 0, 2, 4, 3, 5]),
    ("inv", "no mark here", "here mark no", [2, 1, 0]),
    ("inv", ". . !", ". . !", [0, 1, 2]),
    ("inv", "e.g. this .", "this e.g. .", [1, 0, 2]),
    ("inv", "यह घर है । वह गया ।", "है घर यह । गया वह ।", [2, 1, 0, 3, 5, 4, 6]),  # marks of other scripts
    ("inv", "هل هو هنا ؟", "هنا هو هل ؟", [2, 1, 0, 3]),
    ("trans@hangul+inv", "去 我 。", "곦겈겑 곥겎겻 곣검겂", [1, 0, 2]),
    ("trans", "the cat .", "тхе цат Ѣ", [0, 1, 2]),
    ("trans", "He is a <mask>", "Хе ис а <mask>", [0, 1, 2, 3]),
    ("trans+inv", "the cat .", "цат тхе Ѣ", [1, 0, 2]),
    ("inv+trans", "the cat .", "цат тхе Ѣ", [1, 0, 2]),
    ("inv:0", "the cat .", "the cat .", [0, 1, 2]),
    ("parent", "the cat .", "the cat .", [0, 1, 2]),
    ("trans@hangul", "ab", "걡걢", [0]),
    ("inv@2", "a b c d e .", "b a d c e .", [1, 0, 3, 2, 4, 5]),
    (steps("invert", keep_final_punctuation=False), "a b .", ". b a", [2, 1, 0]),
    (steps("invert", chunk=3), "a b . c d e f .", "b a . e d c f .", [1, 0, 2, 5, 4, 3, 6, 7]),
    (steps("invert", chunk=3, keep_final_punctuation=False), "a b . c d e", ". b a e d c", [2, 1, 0, 5, 4, 3]),
    ("trans+switch:0+inv", "the cat .", "цат тхе Ѣ", [1, 0, 2]),
]


@pytest.mark.parametrize(("spec", "before", "after", "origin"), CASES, ids=lambda v: str(v)[:20])
def test_cases(spec, before, after, origin):
    language = parse_language(spec)
    corpus = Corpus.of_words([before.split()])
    rewrite = language.rewrite(corpus)
    assert rewrite.apply(corpus).texts() == [after]
    assert rewrite.source_index.tolist() == origin


@pytest.mark.parametrize("size", [2, 3, 5, 50])
@pytest.mark.parametrize("kind", ["invert", "permute"])
def test_pieces_stay_where_they_are_and_come_back(kind, size):
    """Every k words move among themselves; a window longer than the sentence is the sentence."""
    corpus = Corpus.of_words([[f"w{j}" for j in range(n)] for n in (0, 1, 7, 12, 30)] * 20)
    option = {"chunk": size} if kind == "invert" else {"window": size}
    language = parse_language(steps(kind, keep_final_punctuation=False, **option))
    rewrite = language.rewrite(corpus)
    assert (rewrite.source_index // size == corpus.position // size).all()
    assert language.invert(rewrite.apply(corpus)).texts() == corpus.texts()
    whole = parse_language(steps(kind, keep_final_punctuation=False)).rewrite(corpus)
    assert (size == 50) == (rewrite.source_index.tolist() == whole.source_index.tolist())
    if kind == "permute" and size == 3:  # each of the 6 orders of three words
        windows = rewrite.source_index[corpus.offsets[4] :][:30].reshape(-1, 3) % 3
        assert len(np.unique(windows, axis=0)) > 3


@settings(max_examples=60)
@given(
    st.lists(sentences(), min_size=1, max_size=6),
    st.sampled_from(NAMES),
    st.integers(0, 5),
    st.sampled_from([0.5, 1.0]),
)
def test_every_composition_comes_back(rows, name, seed, strength):
    corpus = Corpus.of(rows, first=17)
    transforms = tuple(t.model_copy(update={"strength": strength}) for t in parse_language(name).transforms)
    language = Language(name=name, seed=seed, transforms=transforms)
    back = language.invert(language.derive(corpus))
    for column in ("form", "upos", "head"):
        assert back.columns[column].values() == corpus.columns[column].values()


words = st.text(st.characters(exclude_categories=("Cs", "Zs", "Zl", "Zp", "Cc")), min_size=1).filter(
    lambda w: not w.isspace()
)


@settings(max_examples=100)
@given(words, st.sampled_from(sorted(SCRIPTS)))
def test_scripts_are_reversible(word, name):
    script = SCRIPTS[name]
    written = script.encode(word)
    assert script.decode(written) == word
    assert len(written) == len(word.encode()) or any(token in word for token in SPECIAL_TOKENS)
    assert not any(c.isspace() for c in written)


@pytest.mark.parametrize("name", sorted(SCRIPTS))
def test_a_script_has_256_letters(name):
    letters = SCRIPTS[name].letters
    assert len(set(letters)) == 256
    assert all(letters[byte].isalpha() for byte in range(256) if byte not in (0xC0, 0xC1, *range(0xF5, 256)))


def test_letters_that_spell_no_text_are_an_error():
    assert refused(SCRIPTS["cyrillic"].decode, SCRIPTS["cyrillic"].letters[0xFF]) == ("", "format")


def corpus_of(count, length=6):
    return Corpus.of_words([[f"w{(i * 7 + j * 3) % 50}" for j in range(length)] for i in range(count)])


def test_permutations_are_uniform():
    """Each of the 6 orders of three words is drawn about equally often."""
    origin = parse_language("perm").rewrite(Corpus.of_words([["a", "b", "c"]] * 6000)).source_index.reshape(-1, 3)
    _, counts = np.unique(origin, axis=0, return_counts=True)
    assert len(counts) == 6
    assert counts.min() > 850


def test_the_old_name_of_split_entities_is_read():
    spec = {"name": "x", "seed": 3, "transforms": [{"kind": "permute"}]}
    with pytest.warns(FutureWarning, match="split_entities"):
        old = parse_language({**spec, "torn_entities": "drop"})
    assert old == parse_language({**spec, "split_entities": "drop"})
    assert old.fingerprint == "fab7a9fbf9f398af", "exports under the old name are found"


def test_seeds_and_strengths_make_other_languages():
    prints = {parse_language(s).fingerprint for s in ("trans", "inv", "trans+inv", "inv+trans", "trans:0.5", "parent")}
    assert len(prints) == 6
    assert Language(name="a", seed=1).fingerprint != PARENT.fingerprint
    assert Language(name="other").fingerprint == PARENT.fingerprint


def test_a_source_written_in_the_script():
    """Every word transliterated: exact and reversible. A word that stays could not be told apart: its sentence goes."""
    corpus = Corpus.of_words([["слово", "word", "ли"], ["word"]])
    derived = parse_language("trans").derive(corpus)
    assert parse_language("trans").invert(derived).texts() == corpus.texts()
    rewrite = parse_language("inv+trans:0").rewrite(corpus)
    assert rewrite.apply(corpus).texts() == ["word"] and rewrite.apply(corpus).ids.tolist() == [1]
    reason = "transliterate: sentences dropped, a word that stays has letters of the script cyrillic"
    assert dict(rewrite.counts) == {reason: 1}
    assert parse_language("trans:0@hangul").derive(corpus).texts() == corpus.texts()


def test_strength_and_option_in_either_order():
    before, after = parse_language("trans:0.5@hangul+inv"), parse_language("trans@hangul:0.5+inv")
    assert before == after and before.name == "trans-hangul=0.5+inv"
    assert refused(parse_language, "trans:0.5@hangul:0.3") == ("language trans:0.5@hangul:0.3", "unknown")


SOURCE = "builtin:mini-english?types=500&sentences=200&dev=0&test=0"
SPEC = """name: with-files
transforms:
- {kind: reorder, model: mine.json}
- {kind: code_switch, dictionary: words.txt, probability: 1.0, cap: 1.0}
- {kind: transliterate, types: some/words.txt}
"""


@pytest.fixture
def folder(tmp_path):
    place = tmp_path / "a place"
    (place / "some").mkdir(parents=True)
    shipped = Path("synthlang/order/models/ga.json.gz")
    (place / "mine.json").write_bytes(gzip.decompress((Path(__file__).parents[1] / shipped).read_bytes()))
    (place / "words.txt").write_text("the le\nand et\n")
    (place / "some" / "words.txt").write_text("of\nto\nin\n")
    (place / "x.yaml").write_text(SPEC)
    return place


def test_files_are_looked_up_beside_the_language_first(folder, tmp_path, monkeypatch):
    beside = parse_language(str(folder / "x.yaml"))
    monkeypatch.chdir(folder)
    here = parse_language("x.yaml")
    assert here.fingerprint == beside.fingerprint
    other = tmp_path / "other"
    other.mkdir()
    shutil.copy("x.yaml", other / "x.yaml")
    assert parse_language(str(other / "x.yaml")).fingerprint == here.fingerprint  # from the working folder
    (other / "words.txt").write_text("the die\n")
    assert parse_language(str(other / "x.yaml")).fingerprint != here.fingerprint
    monkeypatch.chdir(tmp_path)
    assert refused(parse_language, str(other / "x.yaml"))[0] == "x.yaml transforms.0.model"


def test_the_card_makes_the_same_data_set_elsewhere(folder, tmp_path, monkeypatch):
    derive_command(SOURCE, str(folder / "x.yaml"), tmp_path / "d")
    manifest = verify_manifest(tmp_path / "d")
    text = (tmp_path / "d" / "README.md").read_text() + json.dumps(manifest)
    assert str(tmp_path) not in text
    shutil.rmtree(folder)
    monkeypatch.chdir((tmp_path / "d").rename(tmp_path / "elsewhere"))
    command = shlex.split(manifest["command"].replace("DIR", str(tmp_path / "again")))
    done = CliRunner().invoke(app, command[1:])
    assert done.exit_code == 0, done.output
    assert verify_manifest(tmp_path / "again") == manifest


def test_a_name_may_hold_a_path(folder):
    language = parse_language(f"trans+reorder@{folder / 'mine.json'}:0.5")
    assert language.name == "trans+reorder-mine.json=0.5"
    assert language.transforms[1].strength == 0.5
