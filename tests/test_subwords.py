"""Transforms of tokens: the ids of the parent's encoding, moved; labels on the right token; exact inverse."""

import numpy as np
import pytest

from synthlang.corpus import Corpus
from synthlang.errors import InputError
from synthlang.language import bind_language, parse_language
from synthlang.sources.mini_english import MiniEnglish
from synthlang.vocabulary import Subwords, encode_corpus, starts_word, train_vocabulary

TOKENS = {"name": "t", "transforms": [{"kind": "invert", "unit": "token", "keep_final_punctuation": False}]}


@pytest.fixture(scope="module")
def source():
    return MiniEnglish(types=500, sentences=300, dev=50, test=0)


@pytest.fixture(scope="module")
def vocabulary(source):
    return train_vocabulary(source.batches("train"), 400)


def test_inversion_of_tokens_is_the_reversed_encoding(source, vocabulary):
    language = bind_language(parse_language(TOKENS), source, vocabulary)
    batch = next(source.batches("dev"))
    derived = language.derive(batch)
    encoded = language.encode(derived, vocabulary)
    bounds = derived.offsets.tolist()
    broken = 0
    for row, text in enumerate(batch.texts()):
        ids = vocabulary.parent.encode(text, add_special_tokens=False).ids
        assert encoded.ids[bounds[row] : bounds[row + 1]].tolist() == ids[::-1]
        broken += len(ids) > len(text.split())
    assert broken > 10  # else tokens would be words and the test would show nothing
    assert [s.words for s in language.invert(derived)] == [s.words for s in batch]
    assert [s.columns["head"] for s in language.invert(derived)] == [s.columns["head"] for s in batch]


def test_the_final_mark_is_a_token_too(source, vocabulary):
    spec = {"name": "t", "transforms": [{"kind": "transliterate"}, {"kind": "invert", "unit": "token"}]}
    language = bind_language(parse_language(spec), source, vocabulary)
    batch = next(source.batches("dev"))
    derived = language.derive(batch)
    ids = language.encode(derived, vocabulary).ids
    for row, text in enumerate(batch.texts()):
        expected = [i + vocabulary.size for i in vocabulary.parent.encode(text, add_special_tokens=False).ids]
        assert text.endswith((".", "?", "!"))
        found = ids[derived.offsets[row] : derived.offsets[row + 1]].tolist()
        assert found == [*expected[:-1][::-1], expected[-1]]
    assert [s.words for s in language.invert(derived)] == [s.words for s in batch]


@pytest.mark.parametrize("options", [{}, {"order": "frequent"}, {"by": "token"}, {"by": "token", "order": "frequent"}])
@pytest.mark.parametrize("strength", [0.4, 1.0])
def test_transliterated_tokens_move_by_the_size_of_the_vocabulary(source, vocabulary, options, strength):
    """The share of ids that ALIGN-MLM's table 7 varies: each id is moved everywhere or nowhere."""
    step = {"kind": "transliterate", "unit": "token", "strength": strength, **options}
    language = bind_language(parse_language({"name": "t", "transforms": [step]}), source, vocabulary)
    batch = next(source.batches("train"))
    derived = language.derive(batch)
    before = encode_corpus(vocabulary.parent, batch).ids
    after = language.encode(derived, vocabulary).ids
    moved = after != before
    assert (after[moved] == before[moved] + vocabulary.size).all()
    chosen, stays = set(before[moved].tolist()), set(before[~moved].tolist())
    assert chosen.isdisjoint(stays)
    if strength == 1.0:
        assert moved.all()
    elif options.get("by") == "token":
        assert moved.mean() == pytest.approx(strength, abs=0.08)
    else:
        assert len(chosen) / len(chosen | stays) == pytest.approx(strength, abs=0.1)
    assert [s.words for s in language.invert(derived)] == [s.words for s in batch]


def test_labels_follow_their_tokens(source, vocabulary):
    subwords = Subwords(vocabulary, None)
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


def test_special_tokens_are_words(vocabulary):
    subwords = Subwords(vocabulary, None)
    corpus = Corpus.of_words([["the", "<mask>", "the"]])
    tokens = subwords.split(corpus).apply(corpus)
    assert subwords.join(tokens)[0].words == ["the", "<mask>", "the"]


def test_what_tokens_need(source, vocabulary):
    language = parse_language(TOKENS)
    with pytest.raises(InputError, match="needs a vocabulary"):
        language.derive(next(source.batches("dev")))
    with pytest.raises(InputError, match="needs a vocabulary"):
        bind_language(language, source)
    with pytest.raises(InputError, match="put those with unit: token last"):
        parse_language({"name": "x", "transforms": [*TOKENS["transforms"], {"kind": "permute"}]})
    bound = bind_language(language, source, vocabulary)
    assert bound.fingerprint != language.fingerprint
    assert np.array_equal(bound.keys, language.keys)
