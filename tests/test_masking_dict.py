"""DICT's three targets: shares of copies and of translations, language ids, several translations and languages."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from pretrain.build import build_masker
from pretrain.config import ObjectiveConfig, SharingConfig
from pretrain.data.batch import IGNORE
from pretrain.objectives import NAMES
from synthlang.dictionary.ids import Synonyms
from synthlang.vocabularies import OURS
from tests.masking_cases import LENGTH, SIZE, WORDS, V, copies, dictionary_of, masker_of, monolingual, source_of
from tests.test_masking import within

COUNT = 6000
DICT = NAMES.index("dict")


def slots_of(masker, member=0, count=COUNT, **rows):
    """Of every slot: the word, what is shown, its label, its term, the language of the input."""
    text = monolingual(count, member, **rows)
    masked = masker.mask(text, source_of(), np.arange(count))
    at = [np.take_along_axis(a, masked.masked, 1).ravel() for a in (text.ids, masked.input_ids, masked.languages)]
    return SimpleNamespace(
        word=at[0], shown=at[1], language=at[2], label=masked.labels.ravel(), term=masked.terms.ravel()
    )


def covered_by(dictionary, words):
    return np.isin(words, dictionary.pairs)


@pytest.mark.parametrize(
    ("target", "copies_without_entry"), [("as-code", 0.375), ("as-paper", 0.375), ("corrected", 0.0)]
)
def test_at_a_quarter_of_the_types_a_third_of_the_released_slots_are_unmodified_copies(target, copies_without_entry):
    """Half of the slots are dictionary slots, and three quarters of these have no entry."""
    dictionary = copies(0.25)
    slots = slots_of(masker_of(dictionary, target))
    n, share = len(slots.word), len(dictionary) / len(WORDS[0])
    assert 0.24 < share < 0.26
    untouched = (slots.term == DICT) & (slots.shown == slots.word) & (slots.label == slots.word)
    assert within(untouched.sum(), n, 0.5 * (1 - share) if copies_without_entry else 0.0)
    assert abs(untouched.mean() - copies_without_entry) < 0.02
    # ordinary slots that stay as they are come on top: a tenth of them, and a random word that is the word
    ordinary = (slots.term != DICT) & (slots.shown == slots.word)
    assert within(ordinary.sum(), (slots.term != DICT).sum(), 0.1 + 0.1 / len(WORDS[0]))


@pytest.mark.parametrize("member", [0, 1])
def test_as_code_shows_the_translation_and_predicts_the_word(member):
    dictionary = copies(0.5)
    slots = slots_of(masker_of(dictionary, "as-code"), member)
    assert (slots.label == slots.word).all()
    known = covered_by(dictionary, slots.word)
    other = slots.word + (V if member == 0 else -V)
    on, flipped = slots.term == DICT, slots.language != member
    assert within(on.sum(), len(on), 0.5)
    assert (slots.shown[on & known] == other[on & known]).all()
    assert (slots.shown[on & ~known] == slots.word[on & ~known]).all()
    assert np.array_equal(flipped, on & known)


@pytest.mark.parametrize("target", ["as-paper", "corrected"])
@pytest.mark.parametrize("member", [0, 1])
def test_the_other_two_predict_the_translation(target, member):
    dictionary = copies(0.5)
    slots = slots_of(masker_of(dictionary, target), member)
    known = covered_by(dictionary, slots.word)
    other = slots.word + (V if member == 0 else -V)
    on = slots.term == DICT
    assert within((on & known).sum(), known.sum(), 0.5)
    assert (slots.label == np.where(on & known, other, slots.word)).all()
    # the input of a translated slot is noise as usual
    shown, word = slots.shown[on & known], slots.word[on & known]
    assert within((shown == OURS.mask).sum(), len(shown), 0.8)
    assert within((shown == word).sum(), len(shown), 0.1 + 0.1 / len(WORDS[0]))
    if target == "as-paper":
        assert within(on.sum(), len(on), 0.5)
        assert (slots.shown == slots.word)[on & ~known].all()
        assert (slots.language == member).all()
    else:
        assert not (on & ~known).any()
        assert np.array_equal(slots.language != member, on & known)


def test_language_ids_follow_the_label_only_if_there_are_any():
    dictionary = copies(0.5)
    off = slots_of(masker_of(dictionary, "corrected", language_ids=False))
    on = slots_of(masker_of(dictionary, "corrected"))
    assert (off.language == 0).all()
    assert np.array_equal(on.language, on.label // V)
    for name in ("shown", "label", "term"):
        assert np.array_equal(getattr(on, name), getattr(off, name))


@pytest.mark.parametrize("rate", [0.25, 1.0])
def test_the_share_of_dictionary_slots(rate):
    slots = slots_of(masker_of(copies(1.0), "corrected", dict_rate=rate))
    assert within((slots.term == DICT).sum(), len(slots.term), rate)


def test_a_dictionary_changes_only_its_slots():
    plain, with_dictionary = slots_of(masker_of()), slots_of(masker_of(copies(0.5), "corrected"))
    ordinary = with_dictionary.term != DICT
    for name in ("word", "shown", "label", "language"):
        assert np.array_equal(getattr(plain, name)[ordinary], getattr(with_dictionary, name)[ordinary])


def test_one_of_several_translations_each_alike():
    pairs = [(10, 110), (10, 111), (10, 112), (11, 110)]
    slots = slots_of(masker_of(dictionary_of(pairs), dict_rate=1.0), low=10, high=12)
    labels = slots.label[slots.word == 10]
    counts = {label: int((labels == label).sum()) for label in (110, 111, 112)}
    assert sum(counts.values()) == len(labels)
    assert all(within(count, len(labels), 1 / 3) for count in counts.values())
    assert (slots.label[slots.word == 11] == 110).all()
    back = slots_of(masker_of(dictionary_of(pairs), dict_rate=1.0), member=1, low=10, high=11)
    assert within((back.label == 10).sum(), len(back.label), 0.5) and set(back.label.tolist()) == {10, 11}


def test_synonyms_of_three_languages_in_one_vocabulary():
    """The same id is a word of two languages with other translations; entries are kept apart by language."""
    synonyms = Synonyms.of(dictionary_of([(7, 8), (7, 7), (9, 8)], [(0, 1), (0, 2), (0, 2)]), 3, 20)

    def entry(member, word):
        found = set()
        for u in np.linspace(0, 0.999, 50):
            known, ids, members = synonyms.draw(np.asarray([member]), np.asarray([word]), np.asarray([u]))
            found.add((bool(known[0]), int(members[0]), int(ids[0])))
        return found

    assert entry(0, 7) == {(True, 1, 8), (True, 2, 7)}
    assert entry(1, 8) == {(True, 0, 7)}
    assert entry(2, 8) == {(True, 0, 9)}
    assert entry(2, 7) == {(True, 0, 7)}
    assert entry(1, 7) == {(False, 1, 7)}
    assert entry(0, 19) == {(False, 0, 19)}


def artifacts_of(dictionary) -> Any:
    """Members whose training text has every second word."""
    members = [SimpleNamespace(train=SimpleNamespace(counts=_counts(words[::2]))) for words in WORDS]
    space = SimpleNamespace(specials=OURS, size=SIZE)
    return SimpleNamespace(id_space=space, languages=members, dictionary=dictionary)


def _counts(words):
    counts = np.zeros(words[-1] + 1, np.int64)  # no longer than it must be
    counts[words] = 1
    counts[: len(OURS.all)] = 9
    return counts


def config_of(sharing=None, **objective) -> Any:
    return SimpleNamespace(
        objective=ObjectiveConfig(**objective),
        sharing=SharingConfig(**(sharing or {})),
        batch=SimpleNamespace(length=LENGTH),
        seed=1,
    )


def test_the_masker_of_a_config():
    dictionary = copies(0.5)
    config = config_of(kind="dict_mlm", dict_rate=0.7, dict_target="as-paper", mask_rate=0.3)
    slots = slots_of(build_masker(config, artifacts_of(dictionary)))
    assert within((slots.term == DICT).sum(), len(slots.term), 0.7)
    assert len(slots.term) == COUNT * round(0.3 * LENGTH)
    dev = slots_of(build_masker(config, artifacts_of(dictionary), for_dev=True))
    assert (dev.term == NAMES.index("mlm")).all() and (dev.label == dev.word).all()
    assert IGNORE not in dev.label


@pytest.mark.parametrize(
    ("sharing", "random_words", "expected"),
    [
        ({}, "all", np.concatenate([w[::2] for w in WORDS])),
        ({}, "source-only", WORDS[0][::2]),
        ({"layers": [1]}, "all", np.concatenate([w[::2] for w in WORDS])),
        ({"embeddings": "separate"}, "all", WORDS[1][::2]),
        ({"softmax": "language"}, "source-only", WORDS[1][::2]),
    ],
)
def test_random_words_occur_in_training_and_keep_to_their_language_where_it_has_its_own(
    sharing, random_words, expected
):
    masker = build_masker(config_of(sharing, random_words=random_words), artifacts_of(None))
    slots = slots_of(masker, member=1)
    words = slots.shown[(slots.shown != OURS.mask) & (slots.shown != slots.word)]
    assert set(words.tolist()) == set(expected.tolist())
