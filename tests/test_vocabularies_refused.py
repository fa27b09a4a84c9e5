"""What a vocabulary cannot be: one clear line each."""

import pytest

from synthlang.config import parse
from synthlang.errors import InputError
from synthlang.language import PARENT, parse_language
from synthlang.sources.mini_english import MiniEnglish
from synthlang.sources.text import TextSource
from synthlang.store import Store
from synthlang.vocabularies import ExtendSpec, VocabularySpec, build_id_space

TOKENS = {"name": "t", "transforms": [{"kind": "invert", "unit": "token"}]}


@pytest.fixture(scope="module")
def mini():
    return MiniEnglish(types=500, sentences=50, dev=10, test=0)


@pytest.fixture
def build(tmp_path):
    return lambda kind, members: build_id_space(VocabularySpec(kind=kind, size=300), members, Store(tmp_path))


def test_copied_needs_one_source(build, mini):
    other = MiniEnglish(types=500, sentences=60, dev=10, test=0)
    with pytest.raises(InputError, match=r"but fr reads another one than en; choose joint, joined or prefixed"):
        build("copied", [("en", mini, PARENT), ("fr", other, parse_language("trans"))])
    same = MiniEnglish(types=500, sentences=50, dev=10, test=0)
    assert build("copied", [("en", mini, PARENT), ("fr", same, parse_language("trans"))])[0].size == 600


@pytest.mark.parametrize("kind", ["joint", "joined", "prefixed"])
def test_languages_of_tokens_are_copied_only(build, mini, kind):
    with pytest.raises(InputError, match=rf"vocabulary.kind {kind}: t has a transform with unit: token.*kind copied"):
        build(kind, [("en", mini, PARENT), ("t", mini, parse_language(TOKENS))])


@pytest.mark.parametrize("name", ["trans+inv", "e n", "ä", "x" * 33])
def test_prefixed_names(build, mini, name, monkeypatch):
    monkeypatch.setattr("synthlang.vocabularies.build.trained", None)  # refused before any training
    with pytest.raises(InputError, match="to be a prefix of tokens"):
        build("prefixed", [("en", mini, PARENT), (name, mini, parse_language("inv"))])


def test_members(build, mini, tmp_path):
    with pytest.raises(InputError, match="two languages of the run have the name 'en'"):
        build("joint", [("en", mini, PARENT), ("en", mini, parse_language("inv"))])
    with pytest.raises(InputError, match="at least one language"):
        build("joint", [])
    (tmp_path / "x-test.txt").write_text("a b", encoding="utf-8")
    only_test = TextSource(tmp_path)
    with pytest.raises(InputError, match="the source of x has no split 'train'; it has test"):
        build("joint", [("x", only_test, PARENT)])
    (tmp_path / "x-train.txt").write_text("a b", encoding="utf-8")
    with pytest.raises(InputError, match="needs the column 'upos'; the source of x has form"):
        build("joint", [("x", TextSource(tmp_path), parse_language("typology@SOV"))])


@pytest.mark.parametrize(
    ("model", "data", "message"),
    [
        (VocabularySpec, {"size": 260}, "size"),
        (VocabularySpec, {"kind": "shared"}, "kind"),
        (VocabularySpec, {"min_frequency": 0}, "min_frequency"),
        (VocabularySpec, {"size": "8k"}, "size"),
        (ExtendSpec, {}, "language"),
        (ExtendSpec, {"language": "de", "size": 0}, "size"),
        (ExtendSpec, {"language": "de", "initialise": "zero"}, "initialise"),
    ],
)
def test_settings(model, data, message):
    with pytest.raises(InputError, match=message):
        parse(model, data)
