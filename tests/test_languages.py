"""Transforms and their compositions: cases by hand, inverses, strengths, labels; and language files."""

from __future__ import annotations

import gzip
import itertools
import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synthlang.corpus import Corpus
from synthlang.derive import derive_command
from synthlang.errors import InputError
from synthlang.export import verify_manifest
from synthlang.language import PARENT, Language, parse_language
from synthlang.scripts import SCRIPTS, SPECIAL_TOKENS
from tests.annotated import annotated
from tests.test_rewrite import sentences

NAMES = ["+".join(names) for size in (1, 2, 3) for names in itertools.permutations(["trans", "inv", "perm"], size)]

TREE = "he/PRON/nsubj/2 saw/VERB/root/0 her/PRON/obj/2 ./PUNCT/punct/2"


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
    ("trans", "the cat .", "тхе цат Ѣ", [0, 1, 2]),
    ("trans", "He is a <mask>", "Хе ис а <mask>", [0, 1, 2, 3]),
    ("trans+inv", "the cat .", "цат тхе Ѣ", [1, 0, 2]),
    ("inv+trans", "the cat .", "цат тхе Ѣ", [1, 0, 2]),
    ("inv:0", "the cat .", "the cat .", [0, 1, 2]),
    ("parent", "the cat .", "the cat .", [0, 1, 2]),
    ("trans@hangul", "ab", "걡걢", [0]),
    ("inv@2", "a b c d e .", "b a d c e .", [1, 0, 3, 2, 4, 5]),
    ({"name": "x", "transforms": [{"kind": "invert", "keep_final_punctuation": False}]}, "a b .", ". b a", [2, 1, 0]),
    ({"name": "x", "transforms": [{"kind": "transliterate", "script": "hangul"}]}, "ab", "걡걢", [0]),
    (steps("invert", chunk=2), "a b c d e .", "b a d c e .", [1, 0, 3, 2, 4, 5]),
    (steps("invert", chunk=3), "a b . c d e f .", "b a . e d c f .", [1, 0, 2, 5, 4, 3, 6, 7]),
    (steps("invert", chunk=3, keep_final_punctuation=False), "a b . c d e", ". b a e d c", [2, 1, 0, 5, 4, 3]),
    (steps("invert", chunk=9), "a b c .", "c b a .", [2, 1, 0, 3]),
    (steps("permute", window=2, strength=0.0), "a b c .", "a b c .", [0, 1, 2, 3]),
    (steps("typology", order="SOV"), TREE, "he her saw .", [0, 2, 1, 3]),
    (steps("mark", case={"obj": "o"}), TREE, "he saw her·o .", [0, 1, 2, 3]),
    (steps("mark", case={"obj": "o"}, as_words=True), TREE, "he saw her o .", [0, 1, 2, -1, 3]),
    (steps("mark", drop=["pronouns"]), TREE, "saw her .", [1, 2, 3]),
    (steps("code_switch"), "the cat .", "the cat .", [0, 1, 2]),
    (steps("transliterate", "code_switch", probability=1.0, cap=1.0), "the cat .", "the cat .", [0, 1, 2]),
    ("trans+switch:0+inv", "the cat .", "цат тхе Ѣ", [1, 0, 2]),
]


@pytest.mark.parametrize(("spec", "before", "after", "origin"), CASES, ids=lambda v: str(v)[:20])
def test_cases(spec, before, after, origin):
    language = parse_language(spec)
    corpus = annotated(before) if "/" in before else Corpus.of_words([before.split()])
    rewrite = language.rewrite(corpus)
    assert rewrite.apply(corpus).texts() == [after]
    assert rewrite.origin.tolist() == origin


@pytest.mark.parametrize("size", [2, 3, 5, 50])
@pytest.mark.parametrize("kind", ["invert", "permute"])
def test_pieces_stay_where_they_are_and_come_back(kind, size):
    """Every k words move among themselves; a window longer than the sentence is the sentence."""
    corpus = Corpus.of_words([[f"w{j}" for j in range(n)] for n in (0, 1, 7, 12, 30)] * 20)
    option = {"chunk": size} if kind == "invert" else {"window": size}
    language = parse_language(steps(kind, keep_final_punctuation=False, **option))
    rewrite = language.rewrite(corpus)
    assert (rewrite.origin // size == corpus.position // size).all()
    assert language.invert(rewrite.apply(corpus)).texts() == corpus.texts()
    whole = parse_language(steps(kind, keep_final_punctuation=False)).rewrite(corpus)
    assert (size == 50) == (rewrite.origin.tolist() == whole.origin.tolist())
    if kind == "permute" and size == 3:  # each of the 6 orders of three words
        windows = rewrite.origin[corpus.offsets[4] :][:30].reshape(-1, 3) % 3
        assert len(np.unique(windows, axis=0)) > 3


@settings(max_examples=60)
@given(
    st.lists(sentences(), min_size=1, max_size=6),
    st.sampled_from(NAMES),
    st.integers(0, 5),
    st.sampled_from([0.5, 1.0]),
)
def test_inverse_and_labels_for_every_composition(rows, name, seed, strength):
    corpus = Corpus.of(rows, first=17)
    steps = [t.model_copy(update={"strength": strength}) for t in parse_language(name).transforms]
    language = Language(name=name, seed=seed, transforms=tuple(steps))
    derived = language.derive(corpus)
    back = language.invert(derived)
    for name_ in ("form", "upos", "head"):
        assert back.columns[name_].values() == corpus.columns[name_].values()
    # labels are on the words they belong to: each word of the parent carries its own number
    numbered = Corpus.of(
        [{**r, "number": [100 * i + j for j in range(len(r["form"]))]} for i, r in enumerate(rows)], first=17
    )
    moved, script = language.derive(numbered), SCRIPTS["cyrillic"]
    for sentence, row in zip(moved, rows, strict=True):
        for form, number, upos in zip(
            sentence.words, sentence.columns["number"], sentence.columns["upos"], strict=True
        ):
            assert script.decode(form) == row["form"][number % 100]
            assert upos == row["upos"][number % 100]
        # the tree is the same tree: the head of each word is the same word as before
        for number, head in zip(sentence.columns["number"], sentence.columns["head"], strict=True):
            before = row["head"][number % 100]
            after = 0 if head == 0 else sentence.columns["number"][head - 1] % 100 + 1
            assert after == before


words = st.text(st.characters(exclude_categories=("Cs", "Zs", "Zl", "Zp", "Cc")), min_size=1).filter(
    lambda w: not w.isspace()
)


@settings(max_examples=300)
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
    with pytest.raises(InputError, match="no word written in cyrillic"):
        SCRIPTS["cyrillic"].decode(SCRIPTS["cyrillic"].letters[0xFF])


def corpus_of(count, length=6):
    return Corpus.of_words([[f"w{(i * 7 + j * 3) % 50}" for j in range(length)] for i in range(count)])


@pytest.mark.parametrize("kind", ["inv", "perm"])
def test_strength_is_the_share_of_sentences_and_nested(kind):
    corpus = corpus_of(2000)
    changed = []
    for strength in (0.0, 0.25, 0.5, 0.75, 1.0):
        origin = parse_language(f"{kind}:{strength}").rewrite(corpus).origin.reshape(2000, 6)
        changed.append(set(np.flatnonzero((origin != np.arange(6)).any(1)).tolist()))
        # one in 720 shuffles is the identity
        assert len(changed[-1]) / 2000 == pytest.approx(strength, abs=0.03)
    assert all(a <= b for a, b in itertools.pairwise(changed))


def test_strength_of_transliteration_is_the_share_of_types_and_nested():
    corpus = Corpus.of_words([[f"w{i}" for i in range(3000)]])
    chosen = []
    for strength in (0.0, 0.3, 0.6, 1.0):
        forms = parse_language(f"trans:{strength}").derive(corpus)[0].words
        chosen.append({i for i, form in enumerate(forms) if form != f"w{i}"})
        assert len(chosen[-1]) / 3000 == pytest.approx(strength, abs=0.03)
    assert all(a <= b for a, b in itertools.pairwise(chosen))


def test_permutations_are_uniform():
    """Each of the 6 orders of three words is drawn about equally often."""
    origin = parse_language("perm").rewrite(Corpus.of_words([["a", "b", "c"]] * 6000)).origin.reshape(-1, 3)
    _, counts = np.unique(origin, axis=0, return_counts=True)
    assert len(counts) == 6
    assert counts.min() > 850


def test_a_sentence_is_derived_alike_in_every_batch():
    corpus = corpus_of(50)
    language = parse_language("perm:0.7+trans:0.5+inv:0.5")
    whole = language.derive(corpus)
    parts = [s for i in range(0, 50, 7) for s in language.derive(corpus.between(i, i + 7))]
    assert [s.words for s in whole] == [s.words for s in parts]


def test_seeds_and_strengths_make_other_languages():
    prints = {parse_language(s).fingerprint for s in ("trans", "inv", "trans+inv", "inv+trans", "trans:0.5", "parent")}
    assert len(prints) == 6
    assert Language(name="a", seed=1).fingerprint != PARENT.fingerprint
    assert Language(name="other").fingerprint == PARENT.fingerprint


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (steps("invert", chunk=1), "chunk: 1"),
        (steps("permute", window=0), "window: 0"),
        (steps("permute", chunk=3), "unknown key"),
        (steps("transliterate", by="word"), "by"),
        ("trnas", "'trnas' is none of trans, inv, perm"),
        ("trans+", "'' is none of trans, inv, perm"),
        ("trans:1.5", "strength"),
        ("trans:1.2.3", "the strength '1.2.3' is not a number"),
        ("trans+trans", "transliterated at most once"),
        ("perm@99999999999999999999", "window"),
        ("mark", "can be given in a YAML file"),
        ({"name": "x", "transforms": [{"kind": "invert", "chunk": 10**20}]}, "chunk"),
        ({"name": "x", "transforms": [{"kind": "mark", "after_verb": {"word": "x", "distance": 2**63}}]}, "distance"),
        ({"name": "x", "transforms": [{"kind": "mark", "case": {"nsubjj": "ka"}}]}, "'nsubjj' is no relation"),
        ({"name": "x", "transforms": [{"kind": "mark", "agreement": {"Foo": "x"}}]}, "'Foo' is neither a feature"),
        ({"name": "x", "transforms": [{"kind": "invert", "strength": -0.1}]}, "strength"),
        ({"name": "x", "transforms": [{"kind": "transliterate", "script": "runes"}]}, "cyrillic, syllabics, hangul"),
        ({"name": "x", "transforms": [{"kind": "shuffle"}]}, "kind"),
        ({"name": "../x"}, "name"),
        ("missing.yaml", "missing.yaml: no such file"),
    ],
)
def test_wrong_specs(spec, message):
    with pytest.raises(InputError, match=message):
        parse_language(spec)


def test_a_source_written_in_the_script():
    """Every word transliterated: exact and reversible. A word that stays could not be told apart: refused."""
    corpus = Corpus.of_words([["слово", "word", "ли"]])
    derived = parse_language("trans").derive(corpus)
    assert parse_language("trans").invert(derived)[0].words == ["слово", "word", "ли"]
    with pytest.raises(InputError, match="choose another script: syllabics, hangul"):
        parse_language("trans:0").derive(corpus)


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
    with pytest.raises(InputError, match=r"mine\.json"):
        parse_language(str(other / "x.yaml"))


def test_the_card_makes_the_same_data_set_elsewhere(folder, tmp_path):
    derive_command(SOURCE, str(folder / "x.yaml"), tmp_path / "d")
    manifest = verify_manifest(tmp_path / "d")
    text = (tmp_path / "d" / "README.md").read_text() + json.dumps(manifest)
    assert str(tmp_path) not in text
    shutil.rmtree(folder)
    moved = (tmp_path / "d").rename(tmp_path / "elsewhere")
    command = shlex.split(manifest["command"].replace("DIR", str(tmp_path / "again")))
    done = subprocess.run(
        [sys.executable, "-m", "probes.cli", *command[1:]],
        cwd=moved,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert verify_manifest(tmp_path / "again") == manifest


def test_task_sets_take_the_files_along_too(folder, tmp_path):
    (folder / "x.yaml").write_text(SPEC.replace("- {kind: reorder, model: mine.json}\n", ""))
    derive_command(f"nli:{SOURCE}", str(folder / "x.yaml"), tmp_path / "d")
    manifest = verify_manifest(tmp_path / "d")
    assert [step.get("dictionary") for step in manifest["language"]["transforms"]] == ["language/words.txt", None]
    again = parse_language(str(tmp_path / "d" / "language.yaml"))
    assert again.fingerprint == parse_language(str(folder / "x.yaml")).fingerprint
    assert (tmp_path / "d" / "language" / "1-words.txt").read_text() == "of\nto\nin\n"


def test_a_name_may_hold_a_path(folder):
    language = parse_language(f"trans+reorder@{folder / 'mine.json'}:0.5")
    assert language.name == "trans+reorder-mine.json=0.5"
    assert language.transforms[1].strength == 0.5
