"""Ids of several languages in one space: copied at an offset, joint, joined, prefixed."""

from __future__ import annotations

from typing import Any, Literal
from unittest.mock import Mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synthlang.corpus import Corpus
from synthlang.language import PARENT, bind_language, parse_language
from synthlang.scripts import SPECIAL_TOKENS
from synthlang.sources.base import word_counts
from synthlang.sources.mini_english import MiniEnglish
from synthlang.sources.text import TextSource
from synthlang.store import Store
from synthlang.vocabularies import OURS, VocabularySpec, build, build_id_space
from synthlang.vocabularies.build import prefixed, stored_counts
from synthlang.vocabularies.grow import with_forms
from synthlang.vocabulary import Vocabulary, train_tokenizer
from tests.refusals import refused
from tests.tokenizer_folders import encoded_by

ENGLISH = ["the cat sat on the mat .", "a cat and a dog ran to the old house in town .", "don't say “naïve” 漢字 !"] * 3
GERMAN = ["die katze saß auf der matte .", "der hund und die katze lief in das alte haus am tor ."] * 3
LINES = [*ENGLISH, *GERMAN]
anything = st.one_of(st.text(st.characters(exclude_categories=["Cs"]), max_size=40), st.sampled_from(LINES))
KINDS: tuple[Literal["copied", "joint", "joined", "prefixed"], ...] = ("copied", "joint", "joined", "prefixed")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("vocabularies")


@pytest.fixture(scope="module")
def store(folder):
    return Store(folder / "store")


@pytest.fixture(scope="module")
def mini():
    return MiniEnglish(types=500, sentences=300, dev=50, test=0)


@pytest.fixture(scope="module")
def natural(folder):
    """Two natural languages, a text file each."""
    for name, lines in (("en", ENGLISH), ("de", GERMAN)):
        (folder / f"{name}.txt").write_text("\n".join(lines), encoding="utf-8")
    return [(name, TextSource(folder / f"{name}.txt"), PARENT) for name in ("en", "de")]


@pytest.fixture(scope="module")
def family(mini):
    """A parent and derived languages in two scripts and in none."""
    names = {"trans": "trans", "hangul": "trans@hangul+inv", "half": "trans@syllabics:0.5", "inv": "inv"}
    derived = [(name, mini, parse_language(spec)) for name, spec in names.items()]
    return [("en", mini, PARENT), *derived]


def test_the_words_of_a_text_are_counted_once_for_each_store(mini, tmp_path, monkeypatch):
    """Two languages need counts, and one has forms of its own. The result is that of counts made on the spot."""
    names = {"half": "trans@syllabics:0.5", "quarter": "trans:0.25", "marked": "impossible/partial-reverse"}
    languages = [("en", mini, PARENT), *((name, mini, parse_language(spec)) for name, spec in names.items())]
    counting = Mock(wraps=word_counts)
    monkeypatch.setattr(build, "word_counts", counting)
    spec, kept = VocabularySpec(size=400), Store(tmp_path)
    space, bound = build_id_space(spec, languages, kept)
    again, bound_again = build_id_space(spec, languages, kept)
    assert counting.call_count == 1
    assert again.fingerprint == space.fingerprint and [b.fingerprint for b in bound_again] == [
        b.fingerprint for b in bound
    ]
    assert list(stored_counts(mini, kept).items()) == list(word_counts(mini).items()), "order is kept, too"
    batch = next(mini.batches("dev"))
    for (_, source, language), own in zip(languages, bound_again, strict=True):
        if language.needs_counts:
            assert own.derive(batch).texts() == bind_language(language, source).derive(batch).texts()


@pytest.mark.parametrize("kind", KINDS)
def test_every_id_of_a_member_is_among_its_ids(kind, family, store):
    space, languages = build_id_space(VocabularySpec(kind=kind, size=400), family, store)
    assert space.specials == OURS
    for member, language, (name, source, _) in zip(space.languages, languages, family, strict=True):
        assert member.name == name
        assert (np.diff(member.ids) > 0).all() and set(OURS.all) <= set(member.ids.tolist())
        assert member.size == member.ids[-1] + 1 <= space.size
        batch = language.derive(next(source.batches("dev")))
        encoded = member.encode(batch)
        assert np.isin(encoded.ids, member.ids).all()
        text = batch.texts()[0]
        expected = member.tokenizer.encode(text, add_special_tokens=False).ids
        assert encoded.ids[: encoded.word_offsets[batch.offsets[1]]].tolist() == expected


def test_copies_of_two_scripts_stand_at_v_and_2v(family, store, mini):
    space, languages = build_id_space(VocabularySpec(size=400), family, store)
    assert space.size == 4 * 400
    for which, ids in enumerate([400, 800, 1200, 1600]):  # a file of a vocabulary names every id below its largest
        assert sorted(space.languages[which].tokenizer.get_vocab().values()) == list(range(ids))
    batch = next(mini.batches("dev"))
    parent = space.languages[0].encode(batch).ids
    assert (space.languages[1].encode(languages[1].derive(batch)).ids == parent + 400).all()
    assert set(space.languages[2].encode(languages[2].derive(batch)).ids.tolist()) == set((parent + 800).tolist())
    half = space.languages[3].encode(languages[3].derive(batch)).ids
    moved = half != parent
    assert 0 < moved.sum() < len(parent) and (half[moved] == parent[moved] + 1200).all()
    assert [len(m.ids) for m in space.languages] == [400, 400, 400, 400 + 395, 400]
    assert space.languages[1].ids.tolist() == [*OURS.all, *range(405, 800)]
    for which, offset in ((1, 400), (2, 800), (3, 1200)):
        pairs = space.translations(which)
        assert (
            pairs is not None
            and (pairs[:, 0] == np.arange(5, 400)).all()
            and (pairs[:, 1] - pairs[:, 0] == offset).all()
        )
    assert space.translations(0) is None and space.translations(4) is None
    other = build_id_space(VocabularySpec(kind="joined", size=400), family, store)[0]
    assert all(other.translations(i) is None for i in range(5))


def test_the_same_script_is_the_same_ids_and_order_does_not_matter(mini, store):
    named = [("x", mini, parse_language("trans")), ("en", mini, PARENT), ("y", mini, parse_language("trans+inv"))]
    space, _ = build_id_space(VocabularySpec(size=400), named, store)
    assert space.size == 800 and space.languages[0].fingerprint == space.languages[2].fingerprint
    assert space.translations(2) is None
    pairs = space.translations(1)  # the first member is the one in a script
    assert (
        pairs is not None and (pairs[:, 0] - pairs[:, 1] == 400).all() and pairs[:, 1].tolist() == list(range(5, 400))
    )


@pytest.mark.parametrize(
    ("after", "whole"), [([], True), ([{"kind": "invert"}], True), ([{"kind": "mark", "case": {"nsubj": "ka"}}], False)]
)
def test_words_that_are_put_in_after_transliteration_are_no_copies(mini, store, after, whole):
    step = {"kind": "transliterate"}
    language = parse_language({"name": "x", "transforms": [step, *after]})
    space, _ = build_id_space(VocabularySpec(size=400), [("en", mini, PARENT), ("x", mini, language)], store)
    size = space.languages[0].size
    assert len(space.languages[1].ids) == (size if whole else 2 * size - len(OURS.all))
    before = parse_language({"name": "x", "transforms": [*after, step]})
    space, _ = build_id_space(VocabularySpec(size=400), [("en", mini, PARENT), ("x", mini, before)], store)
    assert len(space.languages[1].ids) == space.languages[0].size


def test_languages_of_tokens_in_the_second_script(mini, store):
    invert = {"kind": "invert", "unit": "token", "keep_final_punctuation": False}
    steps = [{"kind": "transliterate", "script": "hangul"}, invert]
    named = [("en", mini, PARENT), ("trans", mini, parse_language("trans"))]
    named += [("t", mini, parse_language({"name": "t", "transforms": steps}))]
    space, languages = build_id_space(VocabularySpec(size=400), named, store)
    batch = next(mini.batches("dev"))
    derived = languages[2].derive(batch)
    encoded = space.languages[2].encode(derived)
    for row, text in enumerate(batch.texts()):
        expected = [i + 800 for i in space.languages[0].tokenizer.encode(text, add_special_tokens=False).ids]
        part = encoded.ids[encoded.word_offsets[derived.offsets[row]] : encoded.word_offsets[derived.offsets[row + 1]]]
        assert part.tolist() == expected[::-1]
    assert np.isin(encoded.ids, space.languages[2].ids).all()


ROLES = {"nsubj": "ka", "obj": "o", "nmod": "no"}
MARKS: list[list[dict[str, Any]]] = [
    [{"kind": "mark", "case": ROLES}],
    [{"kind": "transliterate"}, {"kind": "mark", "case": ROLES, "drop": ["articles"]}, {"kind": "permute"}],
    [{"kind": "mark", "case": ROLES, "separator": "::"}, {"kind": "transliterate", "script": "hangul"}],
    [{"kind": "mark", "agreement": {"NOUN": "ää", "PRON": "ät"}, "case": {"obj": "ät"}, "separator": "漢"}],
    [{"kind": "mark", "case": ROLES, "as_words": True, "after_verb": {"word": "¶"}}],
]


def language_of(steps):
    return parse_language({"name": "x", "transforms": steps})


@pytest.mark.parametrize("steps", MARKS, ids=lambda steps: str(steps[-1])[:50])
def test_a_marker_is_one_token_and_the_source_keeps_its_ids(steps, mini, store):
    spec, mark = VocabularySpec(size=2000), next(step for step in steps if step["kind"] == "mark")
    named = [("en", mini, PARENT), ("x", mini, language_of(steps))]
    alone = build_id_space(spec, named[:1], store)[0].languages[0]
    space, languages = build_id_space(spec, named, store)
    batch = next(mini.batches("train"))
    source = alone.encode(batch)
    assert (source.ids == space.languages[0].encode(batch).ids).all()
    assert alone.tokenizer.get_vocab().items() <= space.languages[0].tokenizer.get_vocab().items()
    rewrite = languages[1].rewrite(batch)
    derived = rewrite.apply(batch)
    lengths = np.diff(space.languages[1].encode(derived).word_offsets)
    script = languages[1].script
    words = [script.decode(word) if script else word for word in derived.form.values()]
    marks = np.asarray([word.count(mark.get("separator", "·")) for word in words])
    inserted = rewrite.source_index < 0
    assert (lengths[inserted] == 1).all() and inserted.any() == mark.get("as_words", False) != marks.any()
    row = rewrite.source_index + np.repeat(batch.offsets[:-1], np.diff(rewrite.offsets))
    assert (lengths[~inserted] == (np.diff(source.word_offsets)[row] + marks)[~inserted]).all()


def test_a_marker_before_its_word_is_one_token():
    language = language_of([{"kind": "mark", "case": ROLES, "number": "pl", "place": "before"}])
    tokenizer = with_forms(Vocabulary(train_tokenizer(LINES, 300)), language.added_forms(())).parent
    for word, marks in {"ka·cat": ["Ġka·"], "pl·cat": ["Ġpl·"], "o·pl·cat": ["Ġo·", "pl·"]}.items():
        found = tokenizer.encode(word, add_special_tokens=False).tokens
        assert [token.replace("Â", "") for token in found[: len(marks)]] == marks


@given(st.lists(st.text("abc ", min_size=1, max_size=9).filter(lambda form: form.find(" ", 1) < 0), max_size=8))
def test_forms_that_share_parts_are_one_token_each(forms):
    tokenizer = with_forms(Vocabulary(train_tokenizer(["abc cab aab"] * 3, 265)), forms).parent
    for form in forms:
        assert len(tokenizer.model.tokenize(form.replace(" ", "Ġ"))) == 1


def test_translations_of_a_dictionary_are_tokens_only_of_words_in_the_text(mini, store, tmp_path):
    (tmp_path / "muse.txt").write_text("the überdies\nthe des\nunseen Ungesehenes\n", encoding="utf-8")
    step = {"kind": "code_switch", "dictionary": str(tmp_path / "muse.txt")}
    spec = VocabularySpec(size=400)
    tokenizer = build_id_space(spec, [("x", mini, language_of([step]))], store)[0].languages[0].tokenizer
    lengths = [len(tokenizer.encode(word, add_special_tokens=False).ids) for word in ("überdies", "des", "Ungesehenes")]
    assert lengths[0] == 1 < min(lengths[1:])
    assert tokenizer.get_vocab_size() < 400 + len("überdies".encode())
    plain = build_id_space(spec, [("en", mini, PARENT)], store)[0]
    parent = build_id_space(spec, [("x", mini, language_of([{"kind": "code_switch"}]))], store)[0]
    assert parent.fingerprint == plain.fingerprint  # words of the source are no new forms


def test_joint_is_one_bpe_of_all_texts_derived_ones_too(mini, store):
    named = [("en", mini, PARENT), ("trans", mini, parse_language("trans:0.5+inv"))]
    space, languages = build_id_space(VocabularySpec(kind="joint", size=350), named, store)
    texts = [t for language in languages for batch in mini.batches("train") for t in language.derive(batch).texts()]
    assert space.languages[0].tokenizer.to_str() == train_tokenizer(texts, 350).to_str()
    assert space.languages[0].fingerprint == space.languages[1].fingerprint
    batch = next(mini.batches("dev"))
    assert (space.languages[0].encode(batch).ids == space.languages[1].encode(batch).ids).all()


@pytest.fixture(scope="module")
def own_bpes(natural):
    """Return the BPE of each of the two natural languages."""
    texts = [[text for batch in source.batches("train") for text in batch.texts()] for _, source, _ in natural]
    return [train_tokenizer(lines, 320, 1) for lines in texts]


@pytest.fixture(scope="module")
def joined(natural, store):
    return build_id_space(VocabularySpec(kind="joined", size=320, min_frequency=1), natural, store)[0]


def test_joined_shares_exactly_the_strings_that_both_have(joined, own_bpes):
    own = [set(tokenizer.get_vocab()) for tokenizer in own_bpes]
    names = {index: token for token, index in joined.languages[1].tokenizer.get_vocab().items()}
    found = [{names[i] for i in member.ids.tolist()} for member in joined.languages]
    assert found == own
    shared = np.intersect1d(joined.languages[0].ids, joined.languages[1].ids)
    assert {names[i] for i in shared.tolist()} == own[0] & own[1]
    assert set(SPECIAL_TOKENS) < {names[i] for i in shared.tolist()}
    assert own[0] - own[1] and own[1] - own[0]
    assert joined.size == len(own[0] | own[1])
    assert {i: names[i] for i in OURS.all} == dict(enumerate(SPECIAL_TOKENS))


@settings(max_examples=60)
@given(text=anything)
def test_joined_cuts_as_each_members_own_bpe(joined, own_bpes, text):
    for member, own in zip(joined.languages, own_bpes, strict=True):
        assert member.tokenizer.encode(text).tokens == own.encode(text).tokens
        assert member.tokenizer.decode(member.tokenizer.encode(text).ids) == own.decode(own.encode(text).ids)


def test_saved_folders_give_transformers_the_same_ids(natural, mini, store, tmp_path):
    pair = [("en", mini, PARENT), ("trans", mini, parse_language("trans")), ("h", mini, parse_language("trans@hangul"))]
    asked, expected = [], []
    for kind in KINDS:
        spec = VocabularySpec(kind=kind, size=330)
        space, languages = build_id_space(spec, pair if kind == "copied" else natural, store)
        for member, language in zip(space.languages, languages, strict=True):
            member.save(tmp_path / kind / member.name)
            (tmp_path / kind / member.name / "config.json").write_text('{"model_type": "roberta"}', encoding="utf-8")
            corpus = language.derive(Corpus.of_words([line.split() for line in LINES]))
            words = list(corpus.form.names or ())
            asked.append((tmp_path / kind / member.name, words))
            expected.append((member, words))
    for (member, words), found in zip(expected, encoded_by(asked), strict=True):
        encoded = member.encode(Corpus.of_words([words]))
        apart = [i.tolist() for i in np.split(encoded.ids, encoded.word_offsets[1:-1])]
        assert found["apart"] == apart
        assert found["text"] == [0, *(i for ids in apart for i in ids), 2]
        assert found["specials"] == list(OURS.all)


def test_fingerprints_cover_what_ids_depend_on_and_nothing_else(mini, natural, store):
    spec = VocabularySpec(size=400)
    alone = build_id_space(spec, [("en", mini, PARENT)], store)[0]
    pair = build_id_space(spec, [("parent", mini, PARENT), ("x", mini, parse_language("trans"))], store)[0]
    # shards of the parent serve every run on the source
    assert alone.languages[0].fingerprint == pair.languages[0].fingerprint and alone.fingerprint != pair.fingerprint
    texts = [("en", mini, PARENT), ("x", mini, parse_language("trans:0.5"))]
    seeded = parse_language({"name": "x", "seed": 1, "transforms": [{"kind": "transliterate", "strength": 0.5}]})
    spec = VocabularySpec(kind="joint", size=400)
    first = build_id_space(spec, texts, store)[0]
    assert first.fingerprint != build_id_space(spec, [texts[0], ("x", mini, seeded)], store)[0].fingerprint
    assert first.fingerprint == build_id_space(spec, [("a", mini, PARENT), ("b", *texts[1][1:])], store)[0].fingerprint


TEXTS = [*ENGLISH, *GERMAN, "len: en: den:x <mask> b", "Ġen:the Ġ", "en:the", "  a \t b  ", ""]
any_text = st.one_of(st.text(st.characters(exclude_categories=["Cs"]), max_size=30), st.sampled_from(TEXTS))


@pytest.fixture(scope="module")
def parents():
    return {"en": train_tokenizer(ENGLISH, 330), "de": train_tokenizer(GERMAN, 320), "d": train_tokenizer(GERMAN, 300)}


@pytest.fixture(scope="module")
def prefixed_tokenizers(parents):
    return prefixed(parents)


@settings(max_examples=60)
@given(text=any_text)
def test_encoding_is_that_of_each_language_under_its_own_ids(parents, prefixed_tokenizers, text):
    start = 5
    for name, parent in parents.items():
        own = parent.encode(text).ids
        ids = prefixed_tokenizers[name].encode(text).ids
        assert ids == [i if i < 5 else i - 5 + start for i in own]
        assert prefixed_tokenizers[name].decode(ids) == parent.decode(own)
        first, start_of_next = start, start + parent.get_vocab_size() - 5
        named = prefixed_tokenizers[name]
        assert all(
            named.id_to_token(i).removeprefix("Ġ").startswith(f"{name}:") for i in range(first, start_of_next, 40)
        )
        start += parent.get_vocab_size() - 5


def test_artifacts_are_read_not_trained_again(family, store, monkeypatch):
    built = {kind: build_id_space(VocabularySpec(kind=kind, size=400), family, store)[0] for kind in KINDS}
    monkeypatch.setattr(build, "train_vocabulary", None)
    for kind, space in built.items():
        again = build_id_space(VocabularySpec(kind=kind, size=400), family, store)[0]
        assert again.fingerprint == space.fingerprint
    with pytest.raises(TypeError):  # trained again
        build_id_space(VocabularySpec(kind="joint", size=399), family, store)


TOKENS = {"name": "t", "transforms": [{"kind": "invert", "unit": "token"}]}
OTHER = MiniEnglish(types=500, sentences=60, dev=10, test=0)
WRONG: list[tuple[Any, list[tuple[str, Any, Any]], str, str]] = [
    ("copied", [("en", None, "parent"), ("fr", OTHER, "trans")], "vocabulary.kind", "conflict"),
    *(
        (kind, [("en", None, "parent"), ("t", None, TOKENS)], "vocabulary.kind", "conflict")
        for kind in ("joint", "joined", "prefixed")
    ),
    *(
        ("prefixed", [("en", None, "parent"), (name, None, "inv")], "", "format")
        for name in ("trans+inv", "e n", "ä", "", "x" * 33)
    ),
    ("joint", [("en", None, "parent"), ("en", None, "inv")], "", "duplicate"),
    ("joint", [("x", "x-test.txt", "parent")], "the source of x", "missing"),
    ("joint", [("x", "x-train.txt", "typology@SOV")], "the source of x", "missing"),
]


@pytest.mark.parametrize(("kind", "named", "place", "code"), WRONG)
def test_what_cannot_be_is_refused_before_any_training(kind, named, place, code, mini, tmp_path, monkeypatch):
    monkeypatch.setattr(build, "trained", None)

    def source(wanted):
        if not isinstance(wanted, str):
            return wanted or mini
        (tmp_path / wanted).write_text("a b", encoding="utf-8")
        return TextSource(tmp_path)

    languages = [(name, source(wanted), parse_language(language)) for name, wanted, language in named]
    assert refused(build_id_space, VocabularySpec(kind=kind, size=300), languages, Store(tmp_path)) == (place, code)
