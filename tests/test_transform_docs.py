"""The document on languages and the language files: every example is run, every option is named."""

import itertools
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from synthlang.catalogue import find, names
from synthlang.config import parse
from synthlang.corpus import Corpus
from synthlang.language import Language, bind_language, parse_language
from synthlang.sources import open_source
from synthlang.strict_yaml import parse_yaml
from synthlang.transforms import KINDS, SHORT_NAMES
from tests.annotated import annotated

ROOT = Path(__file__).parents[1]
DOC = (ROOT / "docs" / "languages.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\S+)\n(.*?)^```$", DOC, re.DOTALL | re.MULTILINE)
EXAMPLES = [(a[1], b[1].strip()) for a, b in itertools.pairwise(BLOCKS) if (a[0], b[0]) == ("yaml", "text")]


class Sentences:
    """A source of the sentence of the document."""

    fingerprint = "document"
    splits = ("train",)
    columns = ("form", "upos", "deprel", "head", "feats")

    def batches(self, split: str) -> Iterator[Corpus]:
        yield annotated(dict(BLOCKS)["sentence"].strip())


@pytest.fixture
def _files_of_the_document(tmp_path, monkeypatch):
    for name, content in BLOCKS:
        if "." in name:
            (tmp_path / name).write_text(content, encoding="utf-8")
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("_files_of_the_document")
@pytest.mark.parametrize(("spec", "expected"), EXAMPLES, ids=[str(i) for i in range(len(EXAMPLES))])
def test_examples_are_what_comes_out(spec, expected):
    source = Sentences()
    data = parse_yaml(spec, "the document")
    language = bind_language(parse_language(data), source)
    batch = next(source.batches("train"))
    derived = language.derive(batch)
    assert derived.texts() == [expected]
    if language.invertible:
        assert language.invert(derived).texts() == batch.texts()


@pytest.mark.usefixtures("_files_of_the_document")
def test_every_language_in_the_document_is_one():
    kinds = {
        t.kind for name, spec in BLOCKS if name == "yaml" for t in parse_language(parse_yaml(spec, "doc")).transforms
    }
    assert kinds == set(KINDS)


def test_every_kind_and_option_is_in_the_document():
    assert len(EXAMPLES) >= 15
    for name, kind in KINDS.items():
        assert f"## `{name}`" in DOC and f"| `{name}` |" in DOC
        part = DOC.split(f"## `{name}`")[1].split("\n## ")[0]
        fields = set(kind.model_fields) - {"kind", "strength"}
        missing = [f for f in fields if not re.search(rf"\b{f}\b", part)]
        assert not missing or name == "reorder", (name, missing)
    assert all(f"`{short}`" in DOC for short in SHORT_NAMES)


@pytest.fixture(scope="module")
def source():
    return open_source("builtin:mini-english?types=500&sentences=200&dev=0&test=0")


@pytest.mark.parametrize("name", names("derived"))
def test_languages_of_the_catalogue(name, source):
    language = parse_language(name)
    assert language == parse(Language, find("derived", name).data) and language.name == name.removesuffix("-like")
    language = bind_language(language, source)
    batch = next(source.batches("train"))
    rewrite = language.rewrite(batch)
    derived = rewrite.apply(batch)
    changed = sum(a != b for a, b in zip(batch.texts(), derived.texts(), strict=True))
    assert changed > 20
    assert language.derive(batch).texts() == derived.texts()
    if language.invertible:
        assert language.invert(derived).texts() == batch.texts()
