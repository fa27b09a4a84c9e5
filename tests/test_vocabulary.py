"""Tokenizers: the derived one is exact, decodes, and loads without this project."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synthlang.corpus import Corpus
from synthlang.language import bind_language, parse_language
from synthlang.scripts import SCRIPTS
from synthlang.sources.mini_english import MiniEnglish
from synthlang.vocabulary import Subwords, Vocabulary, encode_corpus, starts_word, train_tokenizer, train_vocabulary
from tests.refusals import refused

TEXT = [
    "the cat sat on the mat .",
    "a cat and a dog ran to the old house in town .",
    "don't say “naïve” 漢字 — 3.14 % of the time !",
    "the dogs' owner said : the cat is not a dog .",
] * 3
anything = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)


@pytest.fixture(scope="module")
def vocabulary():
    return train_vocabulary([Corpus.of_words([line.split() for line in TEXT])], 320)


def shifted(ids, size):
    return [i if i < 5 else i + size for i in ids]


@settings(max_examples=100, deadline=None)
@given(
    text=st.one_of(anything, st.sampled_from(TEXT), st.just("a<mask>b <unk> </s>c")),
    name=st.sampled_from(sorted(SCRIPTS)),
)
def test_encoding_the_derived_text_is_encoding_the_text_plus_v(vocabulary, text, name):
    script = SCRIPTS[name]
    words = text.split()
    derived = " ".join(script.encode(word) for word in words)
    parent_ids = vocabulary.parent.encode(" ".join(words)).ids
    tokenizer = vocabulary.tokenizer(script)
    assert tokenizer.encode(derived).ids == shifted(parent_ids, vocabulary.size)
    # the tokenizer of the derived language also reads words that were not transliterated
    if not any(script.pattern.search(word) for word in words):
        assert tokenizer.encode(" ".join(words)).ids == parent_ids


@pytest.mark.parametrize("script", [None, *sorted(SCRIPTS)])
def test_decoding_gives_the_text_back(vocabulary, script):
    chosen = SCRIPTS[script] if script else None
    tokenizer = vocabulary.tokenizer(chosen)
    for line in TEXT[:4]:
        text = " ".join(chosen.encode(w) for w in line.split()) if chosen else line
        assert tokenizer.decode(tokenizer.encode(text).ids) == text


def test_save_load_and_fingerprint(vocabulary, tmp_path):
    vocabulary.save(tmp_path / "v")
    assert Vocabulary.load(tmp_path / "v").fingerprint == vocabulary.fingerprint
    assert vocabulary.size_with(None) == vocabulary.size
    assert vocabulary.size_with(SCRIPTS["hangul"]) == 2 * vocabulary.size
    other = train_vocabulary([Corpus.of_words([["other", "text", "text"]])], 300)
    assert other.fingerprint != vocabulary.fingerprint


def test_bad_input(tmp_path):
    assert refused(train_vocabulary, [Corpus.of_words([["a"]])], 100) == ("", "range")
    assert refused(Vocabulary.load, tmp_path) == ("tokenizer.json", "missing")


def test_a_very_long_word_is_learned_in_pieces(monkeypatch):
    """As if they stood apart; what is as long as the limit, and a long text of short words, are learned whole."""
    monkeypatch.setattr("synthlang.vocabulary.LONGEST_LEARNED", 6)
    trained = partial(train_tokenizer, size=300)
    assert trained(["the abcabcabcabcdd cat"] * 3).to_str() == trained(["the abcabc abcabc dd cat"] * 3).to_str()
    whole = trained(["the abcabc cats and dogs"] * 3)
    monkeypatch.undo()
    assert trained(["the abcabc cats and dogs"] * 3).to_str() == whole.to_str()
    assert "Ġabcabc" in whole.get_vocab()


def test_a_parent_written_in_the_script_is_exact_too():
    """Russian text in the script cyrillic: tokens of the parent spell like copies, and still no id is wrong."""
    lines = ["мама мыла раму , а папа читал .", "the cat saw мама and папа ."] * 3
    vocabulary = train_vocabulary([Corpus.of_words([line.split() for line in lines])], 340)
    script = SCRIPTS["cyrillic"]
    tokenizer = vocabulary.tokenizer(script)
    for line in [*lines, "а б в г д", "ламра"]:
        derived = " ".join(script.encode(word) for word in line.split())
        assert tokenizer.encode(derived).ids == shifted(vocabulary.parent.encode(line).ids, vocabulary.size)
        assert tokenizer.decode(tokenizer.encode(derived).ids) == derived


TOKENS = {"name": "t", "transforms": [{"kind": "invert", "unit": "token", "keep_final_punctuation": False}]}


@pytest.fixture(scope="module")
def source():
    return MiniEnglish(types=500, sentences=300, dev=50, test=0)


@pytest.fixture(scope="module")
def mini_vocabulary(source):
    return train_vocabulary(source.batches("train"), 400)


def test_inversion_of_tokens_is_the_reversed_encoding(source, mini_vocabulary):
    language = bind_language(parse_language(TOKENS), source, mini_vocabulary)
    batch = next(source.batches("dev"))
    derived = language.derive(batch)
    encoded = language.encode(derived, mini_vocabulary)
    bounds = derived.offsets.tolist()
    broken = 0
    for row, text in enumerate(batch.texts()):
        ids = mini_vocabulary.parent.encode(text, add_special_tokens=False).ids
        assert encoded.ids[bounds[row] : bounds[row + 1]].tolist() == ids[::-1]
        broken += len(ids) > len(text.split())
    assert broken > 10  # else tokens would be words and the test would show nothing
    assert [s.words for s in language.invert(derived)] == [s.words for s in batch]
    assert [s.columns["head"] for s in language.invert(derived)] == [s.columns["head"] for s in batch]


@pytest.mark.parametrize("options", [{}, {"order": "frequent"}, {"by": "token"}, {"by": "token", "order": "frequent"}])
@pytest.mark.parametrize("strength", [0.4, 1.0])
def test_transliterated_tokens_move_by_the_size_of_the_vocabulary(source, mini_vocabulary, options, strength):
    """The share of ids that ALIGN-MLM's table 7 varies: each id is moved everywhere or nowhere."""
    step = {"kind": "transliterate", "unit": "token", "strength": strength, **options}
    language = bind_language(parse_language({"name": "t", "transforms": [step]}), source, mini_vocabulary)
    batch = next(source.batches("train"))
    derived = language.derive(batch)
    before = encode_corpus(mini_vocabulary.parent, batch).ids
    after = language.encode(derived, mini_vocabulary).ids
    moved = after != before
    assert (after[moved] == before[moved] + mini_vocabulary.size).all()
    chosen, stays = set(before[moved].tolist()), set(before[~moved].tolist())
    assert chosen.isdisjoint(stays)
    if strength == 1.0:
        assert moved.all()
    elif options.get("by") == "token":
        assert moved.mean() == pytest.approx(strength, abs=0.08)
    else:
        assert len(chosen) / len(chosen | stays) == pytest.approx(strength, abs=0.1)
    assert [s.words for s in language.invert(derived)] == [s.words for s in batch]


def test_labels_follow_their_tokens(source, mini_vocabulary):
    subwords = Subwords(mini_vocabulary, None)
    corpus = Corpus.of([{"form": ["zebras", "the"], "upos": ["NOUN", "DET"], "head": [2, 0], "ner": ["B-X", "I-X"]}])
    tokens = subwords.split(corpus).apply(corpus)
    pieces = len(tokens.form.codes) - 1
    assert pieces > 1
    assert tokens.columns["upos"].values() == ["NOUN"] * pieces + ["DET"]
    assert tokens.columns["ner"].values() == ["B-X"] + ["I-X"] * pieces
    assert tokens.columns["head"].values() == [pieces + 1] * pieces + [0]
    assert starts_word(tokens.form, None).tolist() == [True] + [False] * (pieces - 1) + [True]
    back = subwords.join(tokens)
    assert [s.columns for s in back] == [s.columns for s in corpus]


def test_what_tokens_need(source, mini_vocabulary):
    language = parse_language(TOKENS)
    assert refused(language.derive, next(source.batches("dev"))) == ("", "missing")
    assert refused(bind_language, language, source) == ("", "missing")
    assert refused(parse_language, {"name": "x", "transforms": [*TOKENS["transforms"], {"kind": "permute"}]}) == (
        "transforms",
        "conflict",
    )
    bound = bind_language(language, source, mini_vocabulary)
    assert bound.fingerprint != language.fingerprint
    assert np.array_equal(bound.keys, language.keys)
