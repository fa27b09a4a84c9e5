"""A vocabulary without anchors: ids of one language are its own, and encoding is what it was."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, models

from synthlang.corpus import Corpus
from synthlang.errors import InputError
from synthlang.scripts import SCRIPTS, SPECIAL_TOKENS
from synthlang.vocabularies.build import prefixed
from synthlang.vocabulary import Vocabulary, encode_corpus, save_tokenizer, train_tokenizer

ENGLISH = ["the cat sat on the mat .", "a cat and a dog ran to the old house in town .", "don't say “naïve” 漢字 !"] * 3
GERMAN = ["die katze saß auf der matte .", "der hund und die katze lief in das alte haus am tor ."] * 3
TEXTS = [*ENGLISH, *GERMAN, "len: en: den:x <mask> b", "Ġen:the Ġ", "en:the", "  a \t b  ", ""]
anything = st.one_of(st.text(st.characters(exclude_categories=["Cs"]), max_size=30), st.sampled_from(TEXTS))


@pytest.fixture(scope="module")
def parents():
    return {"en": train_tokenizer(ENGLISH, 330), "de": train_tokenizer(GERMAN, 320), "d": train_tokenizer(GERMAN, 300)}


@pytest.fixture(scope="module")
def joint(parents):
    return prefixed(parents)


@settings(max_examples=150)
@given(text=anything)
def test_encoding_is_that_of_each_language_under_its_own_ids(parents, joint, text):
    start = 5
    for name, parent in parents.items():
        own = parent.encode(text).ids
        ids = joint[name].encode(text).ids
        assert ids == [i if i < 5 else i - 5 + start for i in own]
        assert joint[name].decode(ids) == parent.decode(own)
        start += parent.get_vocab_size() - 5


def test_ids_of_the_first_language_are_unchanged_and_no_others_are_shared(parents, joint):
    for text in TEXTS:
        assert joint["en"].encode(text).ids == parents["en"].encode(text).ids
    sizes = [t.get_vocab_size() - 5 for t in parents.values()]
    vocabularies = [t.get_vocab() for t in joint.values()]
    assert vocabularies[0] == vocabularies[1] == vocabularies[2]
    by_id = {i: token for token, i in vocabularies[0].items()}
    assert sorted(by_id) == list(range(len(by_id)))
    assert tuple(by_id[i] for i in range(5)) == SPECIAL_TOKENS
    starts = np.cumsum([5, *sizes])
    for name, a, b in zip(joint, starts[:-1].tolist(), starts[1:].tolist(), strict=True):
        assert all(by_id[i].removeprefix("Ġ").startswith(f"{name}:") for i in range(a, b))
    # what is left is never emitted: the space and the beginnings of the prefixes
    assert {by_id[i] for i in range(int(starts[-1]), len(by_id))} == {"Ġ", "Ġe", "Ġen", "Ġd", "Ġde"}


def test_words_of_a_corpus_and_names_of_tokens(joint, parents):
    corpus = Corpus.of_words([line.split() for line in ENGLISH])
    expected = encode_corpus(parents["en"], corpus)
    found = encode_corpus(joint["en"], corpus)
    assert (found.ids == expected.ids).all() and (found.word_offsets == expected.word_offsets).all()
    assert joint["en"].encode("the cats").tokens == ["<s>", "Ġen:the", "Ġen:cat", "en:s", "</s>"]


def test_it_loads_without_this_project(joint, tmp_path):
    from transformers import AutoTokenizer

    for name, tokenizer in joint.items():
        save_tokenizer(tokenizer, tmp_path / name)
        loaded = AutoTokenizer.from_pretrained(tmp_path / name)
        assert len(loaded) == tokenizer.get_vocab_size()
        for text in TEXTS:
            assert loaded(text)["input_ids"] == tokenizer.encode(text).ids
        ids = loaded("der alte hund")["input_ids"]
        assert loaded.decode(ids, skip_special_tokens=True) == "der alte hund"


def test_one_language_and_none(parents):
    alone = prefixed({"en": parents["en"]})["en"]
    assert alone.encode("the cat").ids == parents["en"].encode("the cat").ids
    assert prefixed({}) == {}


@pytest.mark.parametrize("name", ["", "e n", "ä", "en:", "x" * 33])
def test_names_that_are_no_prefix(parents, name):
    with pytest.raises(InputError, match="to be a prefix of tokens"):
        prefixed({name: parents["en"]})


def test_other_tokenizers_are_refused(parents):
    prefix = prefixed({"en": parents["en"]})["en"]
    other_ids = json.loads(parents["en"].to_str())
    other_ids["added_tokens"] = []
    vocab = other_ids["model"]["vocab"]
    vocab["<s>"], vocab["<pad>"] = vocab["<pad>"], vocab["<s>"]
    for wrong in (
        Vocabulary(parents["en"]).tokenizer(SCRIPTS["cyrillic"]),
        prefix,
        Tokenizer(models.WordLevel({"a": 0}, unk_token="a")),
        Tokenizer(models.BPE()),
        Tokenizer.from_str(json.dumps(other_ids)),
    ):
        with pytest.raises(InputError, match="the tokenizer of x is not a byte-level BPE"):
            prefixed({"x": wrong})
