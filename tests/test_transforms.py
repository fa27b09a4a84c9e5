"""Properties of every transform: strengths, compositions, wrong options, documentation, and adding a transform."""

import itertools
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synthlang.catalogue import find, names
from synthlang.config import parse
from synthlang.corpus import Column, Corpus
from synthlang.language import Language, bind_language, parse_language
from synthlang.sources import open_source
from synthlang.sources.base import word_counts
from synthlang.strict_yaml import parse_yaml
from synthlang.trees import Forest
from synthlang.vocabularies.build import with_added_forms
from synthlang.vocabulary import train_vocabulary
from tests.annotated import annotated
from tests.refusals import refused

ROOT = Path(__file__).parents[1]
STEPS: list[dict[str, Any]] = [
    {"kind": "transliterate", "strength": 0.6},
    {"kind": "transliterate", "strength": 0.5, "by": "token", "order": "frequent", "script": "hangul"},
    {"kind": "invert", "chunk": 4},
    {"kind": "permute", "window": 3, "strength": 0.5},
    {"kind": "typology", "order": "VOS", "adposition": "postposition", "article": "after"},
    {"kind": "typology", "head_direction": "final", "strength": 0.7},
    {"kind": "mark", "case": {"nsubj": "ka", "obj": "o"}, "as_words": True},
    {"kind": "mark", "agreement": {"NOUN": "t"}, "after_verb": {"word": "P"}, "separator": "~"},
    {"kind": "mark", "drop": ["articles"], "case": {"obl": "ni"}},
    {"kind": "code_switch", "batch_sentences": 50, "coverage": 0.5},
    {"kind": "reorder", "model": "fr"},
    {"kind": "shuffle", "permutation": "fixed", "draw": 21, "window": 5},
    {"kind": "shuffle", "permutation": "random"},
    {"kind": "reverse", "part": "after"},
]
FIRST = {"kind": "hop", "distance": 0, "room": 0}  # a step that cannot follow some of the others
ORDERS = st.lists(st.integers(0, len(STEPS) - 1), min_size=1, max_size=5, unique=True).filter(
    lambda order: not {0, 1} <= set(order)  # a language is transliterated at most once
)


@pytest.fixture(scope="module")
def source():
    return open_source("builtin:mini-english?types=500&sentences=1000&dev=0&test=0&feats&lemma")


@pytest.fixture(scope="module")
def batch(source):
    corpus = next(source.batches("train"))
    numbers = np.arange(len(corpus.form.codes), dtype=np.int32)
    return Corpus(corpus.offsets, {**corpus.columns, "number": Column(numbers)}, corpus.ids)


@pytest.fixture(scope="module")
def vocabulary(source):
    return train_vocabulary(source.batches("train"), 300)


def language_of(*steps, source=None, seed=0):
    language = parse_language({"name": "x", "seed": seed, "transforms": list(steps)})
    return language if source is None else bind_language(language, source)


@pytest.mark.parametrize("step", [*STEPS, FIRST], ids=lambda step: step["kind"])
def test_a_stronger_language_changes_what_a_weaker_one_changed_and_more(source, batch, step):
    before = [STEPS[0]] if step["kind"] == "code_switch" else []  # it puts back words that were transliterated
    plain = language_of(*before, source=source).derive(batch).texts()
    changed = []
    for strength in (0.0, 0.4, 0.8, 1.0):
        texts = language_of(*before, {**step, "strength": strength}, source=source).derive(batch).texts()
        changed.append({i for i, (a, b) in enumerate(zip(plain, texts, strict=True)) if a != b})
    assert not changed[0] and all(a <= b for a, b in itertools.pairwise(changed))
    if step["kind"] not in ("transliterate", "code_switch"):  # of the others it is the share of the sentences
        assert len(changed[1]) / len(changed[3]) == pytest.approx(0.4, abs=0.07)
        assert changed[1] < changed[2] < changed[3]


@pytest.mark.parametrize("step", [*STEPS, FIRST], ids=lambda step: step["kind"])
def test_columns_inverses_and_no_sentence(source, batch, step):
    language = language_of(step, source=source)
    assert len(language.derive(Corpus.of_words([]))) == 0
    if language.requires:
        assert refused(language.derive, Corpus.of_words([["a"]])) == ("", "missing")
    if not language.invertible:
        assert refused(language.invert, batch) == ("", "unsupported")


@settings(max_examples=30)
@given(ORDERS, st.integers(0, 3))
def test_labels_and_trees_follow_their_words(source, batch, order, seed):
    batch = batch.between(0, 100)
    language = language_of(*(STEPS[i] for i in order), source=source, seed=seed)
    rewrite = language.rewrite(batch)
    derived = rewrite.apply(batch)
    assert "parent" not in derived.columns and rewrite.source_rows is None
    number = derived.columns["number"].codes
    inserted = number == -1
    assert (inserted == (rewrite.source_index == -1)).all()
    parent_of = rewrite.source_index + np.repeat(batch.offsets[:-1], derived.lengths)
    assert (number[~inserted] == parent_of[~inserted]).all()
    assert len(set(number[~inserted].tolist())) == (~inserted).sum()  # no word twice
    for name in ("upos", "deprel"):
        values, before = derived.columns[name].values(), batch.columns[name].values()
        assert all(v == ("_" if n < 0 else before[n]) for v, n in zip(values, number.tolist(), strict=True))
    # the head of every word that is left is the same word as before, or the root if final punctuation had to move to it
    head, old = derived.columns["head"].codes, batch.columns["head"].codes
    rows = np.repeat(derived.offsets[:-1], derived.lengths) + head - 1
    old_rows = np.repeat(batch.offsets[:-1], batch.lengths) + old - 1
    assert (head[inserted] == -1).all() and (head[~inserted] >= 0).all()
    hanging = head > 0
    moved = np.flatnonzero(hanging)[number[rows[hanging]] != old_rows[number[hanging]]]
    assert all(derived.columns["upos"].values()[i] == "PUNCT" and head[rows[i]] == 0 for i in moved.tolist())
    assert ((head == 0)[~inserted] == (old[number[~inserted]] == 0)).all()
    # 50 divides 100, so a batch may be cut there
    parts = [s.words for i in (0, 50) for s in language.derive(batch.between(i, i + 50))]
    assert [s.words for s in derived] == parts
    if language.invertible:
        assert language.invert(derived).texts() == batch.texts()


def test_typology_moves_sentences_that_have_inserted_words(batch):
    """Words that ``mark`` inserted have no head, yet the sentence is still a tree to the next transform."""
    steps = [STEPS[6], {"kind": "typology", "order": "VSO"}]
    rewrite = language_of(*steps).rewrite(batch)
    assert rewrite.counts["typology: sentences laid out"] == len(batch)
    assert Forest.of(batch).is_projective.all()
    alone = language_of(steps[1]).rewrite(batch)
    assert rewrite.source_index[rewrite.source_index >= 0].tolist() == alone.source_index.tolist()


WRONG: list[tuple[Any, str, str]] = [
    ("trnas", "language trnas", "unknown"),
    ("trans+", "language trans+", "unknown"),
    ("trans:1.5", "language trans:1.5 strength", "range"),
    ("trans:1.2.3", "language trans:1.2.3", "unknown"),
    ("trans+trans", "language trans+trans", "conflict"),
    ("perm@9999999999", "language perm@9999999999 window", "range"),
    (f"perm@3+{'inv@9+' * 30}inv", f"language perm@3+{'inv@9+' * 30}inv", "format"),
    ("mark", "language mark", "unknown"),
    ("missing.yaml", "missing.yaml", "missing"),
    ({"name": "../x"}, "name", "format"),
    ({"name": "parent", "transforms": [{"kind": "invert"}]}, "name", "conflict"),
    ({"kind": "shufle"}, "transforms.0.kind", "unknown"),
    ({"kind": "shuffle"}, "transforms.0.permutation", "missing"),
    ({"kind": "shuffle", "permutation": "fixed"}, "transforms.0.draw", "missing"),
    ({"kind": "shuffle", "permutation": "random", "draw": 1}, "transforms.0.draw", "no_effect"),
    ({"kind": "shuffle", "permutation": "none", "shortest": 9, "longest": 8}, "transforms.0.longest", "range"),
    ({"kind": "reverse", "part": "none", "marker": "a b"}, "transforms.0.marker", "format"),
    ({"kind": "hop", "singular": "_"}, "transforms.0.singular", "format"),
    ({"kind": "hop", "distance": 5, "room": 4}, "transforms.0.room", "range"),
    ({"kind": "hop", "distance": 5}, "transforms.0.distance", "range"),
    ({"kind": "shuffle", "permutation": "none", "shortest": 400}, "transforms.0.shortest", "range"),
    ({"kind": "delay", "by": 0}, "transforms.0.by", "range"),
    ({"name": "x", "transforms": [{"kind": "transliterate"}, {"kind": "hop"}]}, "transforms", "conflict"),
    ({"name": "x", "transforms": [{"kind": "mark", "number": "s"}, {"kind": "hop"}]}, "transforms", "conflict"),
    ({"kind": "invert", "strength": -0.1}, "transforms.0.strength", "range"),
    ({"kind": "transliterate", "types": "FILE"}, "f.txt transforms.0.types", "missing"),
    ({"kind": "transliterate", "types": b""}, "f.txt transforms.0.types", "empty"),
    ({"kind": "transliterate", "types": b"\n\tNOUN\n"}, "f.txt:2 transforms.0.types", "format"),
    ({"kind": "transliterate", "types": b"a\ntwo words\n"}, "f.txt:2 transforms.0.types", "format"),
    ({"kind": "transliterate", "types": b"a\n\xff\n"}, "f.txt:2 transforms.0.types", "format"),
    ({"kind": "typology"}, "transforms.0", "no_effect"),
    ({"kind": "typology", "article": "after", "articles": []}, "transforms.0.articles", "range"),
    ({"kind": "mark"}, "transforms.0", "no_effect"),
    ({"kind": "mark", "case": {"obj": ""}}, "transforms.0.case.obj", "format"),
    ({"kind": "mark", "case": {"nsubjj": "ka"}}, "transforms.0.case", "unknown"),
    ({"kind": "mark", "case": {"obj": "a·b"}}, "transforms.0.case.obj", "conflict"),
    ({"kind": "mark", "case": {"obj": "a"}, "separator": ""}, "transforms.0.separator", "format"),
    ({"kind": "mark", "case": {"obj": "ab", "iobj": "b"}, "separator": "aa"}, "transforms.0", "conflict"),
    (
        {"kind": "mark", "case": {"obj": "ba", "iobj": "b"}, "separator": "aa", "place": "before"},
        "transforms.0",
        "conflict",
    ),
    ({"kind": "mark", "agreement": {"Foo": "x"}}, "transforms.0.agreement", "unknown"),
    ({"kind": "mark", "after_verb": {"word": "_"}}, "transforms.0.after_verb.word", "format"),
    ({"kind": "code_switch", "dictionary": "FILE"}, "f.txt transforms.0.dictionary", "missing"),
    ({"kind": "code_switch", "dictionary": b"a b\nword\n"}, "f.txt:2 transforms.0.dictionary", ""),
    ({"kind": "code_switch", "batch_sentences": 300}, "transforms.0.batch_sentences", "range"),
    ({"kind": "reorder", "model": "klingon"}, "transforms.0.model", ""),
    ({"kind": "reorder", "substrate": "klingon"}, "transforms.0.substrate", ""),
    ({"kind": "reorder", "nouns": False, "verbs": False}, "transforms.0", "no_effect"),
]


@pytest.mark.parametrize(("spec", "place", "code"), WRONG, ids=lambda value: str(value)[:40])
def test_wrong_specs(tmp_path, spec, place, code):
    file = tmp_path / "f.txt"
    if isinstance(spec, dict) and "kind" in spec:
        for value in (v for v in spec.values() if isinstance(v, bytes)):
            file.write_bytes(value)
        step = {k: str(file) if isinstance(v, bytes) or v == "FILE" else v for k, v in spec.items()}
        spec = {"name": "x", "transforms": [step]}
    found = refused(parse_language, spec)
    assert found == (place, code or found[1])  # no code: the error is that of another module


# --- the document on languages: every example is run

DOC = (ROOT / "docs" / "languages.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\S+)\n(.*?)^```$", DOC, re.DOTALL | re.MULTILINE)
EXAMPLES = [(a[1], b[1].strip()) for a, b in itertools.pairwise(BLOCKS) if (a[0], b[0]) == ("yaml", "text")]
SENTENCES = [(DOC.index(text), text) for name, text in BLOCKS if name == "sentence"]


class Sentences:
    """A source of a sentence of the document."""

    fingerprint = "document"
    splits = ("train",)

    def __init__(self, sentence: str) -> None:
        self.corpus = annotated(sentence.strip())
        self.columns = tuple(self.corpus.columns)

    def batches(self, split: str) -> Iterator[Corpus]:
        yield self.corpus


def test_examples_of_the_document_are_what_comes_out(tmp_path, monkeypatch):
    for name, content in BLOCKS:
        if "." in name:
            (tmp_path / name).write_text(content, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    kinds = set()
    assert len(EXAMPLES) >= 15
    for spec, expected in EXAMPLES:
        source = Sentences(
            [text for place, text in SENTENCES if place < DOC.index(f"{spec}```\n```text\n{expected}")][-1]
        )
        batch = source.corpus
        language = bind_language(parse_language(parse_yaml(spec, "the document")), source)
        derived = language.derive(batch)
        assert derived.texts() == [expected], spec
        assert not language.invertible or language.invert(derived).texts() == batch.texts(), spec
    for name, spec in BLOCKS:
        kinds |= {t.kind for t in parse_language(parse_yaml(spec, "doc")).transforms} if name == "yaml" else set()
    assert len(kinds) >= 7


@pytest.mark.parametrize("name", names("derived"))
def test_languages_of_the_catalogue(name, source, batch, vocabulary):
    language = parse_language(name)
    label = name.removesuffix("-like").removeprefix("impossible/").removesuffix("/paper")
    assert language == parse(Language, find("derived", name).data) and language.name == label
    language = bind_language(language, source, with_added_forms(vocabulary, [language], partial(word_counts, source)))
    rewrite = language.rewrite(batch)
    kept, derived = rewrite.source(batch), rewrite.apply(batch)
    if label != "no-shuffle":
        assert sum(a != b for a, b in zip(kept.texts(), derived.texts(), strict=True)) > 100
    if language.invertible:
        assert language.invert(derived).texts() == kept.texts()
    assert (rewrite.affected is not None) == language.flags_sentences == name.startswith("impossible/")


# --- adding one is a file and a line of the table: the diff in CONTRIBUTING.md, carried out

DIFF = re.compile(r"  --- synthlang/transforms/table.py\n(.*?)  ```", re.DOTALL)
USE = """
from synthlang.corpus import Corpus
from synthlang.language import parse_language
language = parse_language("trans+repeat@3")
assert language.transforms == parse_language({"name": "x", "transforms": [
    {"kind": "transliterate"}, {"kind": "repeat", "times": 3}]}).transforms
assert language.fingerprint != parse_language("trans+repeat").fingerprint
corpus = Corpus.of_words([["the", "cat"], ["aa"]])
derived = language.derive(corpus)
print(*derived.texts(), *language.invert(derived).texts(), *parse_language("repeat:0").derive(corpus).texts(), sep="|")
"""


def test_a_new_transform_is_a_file_and_a_line_of_the_table(tmp_path):
    shutil.copytree(ROOT / "synthlang", tmp_path / "synthlang", ignore=shutil.ignore_patterns("__pycache__"))
    folder = tmp_path / "synthlang" / "transforms"
    shutil.copy(ROOT / "tests" / "repeat_transform.py", folder / "repeat.py")
    found = DIFF.search((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"))
    assert found is not None and found[1].count("\n  +") == 2
    table = folder / "table.py"
    lines, at = table.read_text(encoding="utf-8").splitlines(), 0
    for row in found[1].splitlines():
        if row.startswith("  +"):
            lines.insert(at, row[3:])
            at += 1
        else:
            at = lines.index(row[3:], at) + 1
    table.write_text("\n".join(lines), encoding="utf-8")
    run = [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n{USE}"]
    done = subprocess.run(run, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert not done.returncode, done.stderr
    assert done.stdout == "тхетхетхе цатцатцат|аааааа|the cat|aa|the cat|aa\n"
