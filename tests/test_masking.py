"""Masking: exact slots, 80/10/10, random words of the right language, a pure function of (seed, sample, column); and
DICT: shares of copies and of translations, several translations and languages."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from pretrain.build import build_masker
from pretrain.config import ObjectiveConfig, SharingConfig
from pretrain.data.batch import IGNORE, Rows
from pretrain.data.masking import masked_per_row
from pretrain.objectives.table import NAMES
from synthlang.dictionary.ids import Synonyms
from synthlang.vocabularies import OURS, Specials
from tests.masking_cases import (
    LENGTH,
    RATE,
    SIZE,
    WORDS,
    V,
    copies,
    dictionary_of,
    masked_by_a_loop,
    masker_of,
    monolingual,
    source_of,
    translated,
)

FIELDS = ("input_ids", "languages", "masked", "labels", "terms")


def equal(a, b):
    return all(np.array_equal(getattr(a, name), getattr(b, name)) for name in FIELDS)


def within(count, n, p, error=1e-6):
    """Return whether ``count`` is a likely number of hits with probability ``p`` among ``n``."""
    low, high = binom.interval(1 - error, n, p)
    return low <= count <= high


def test_every_row_has_exactly_k_slots_and_specials_have_none():
    rows = monolingual(500)
    masked = masker_of().mask(rows, source_of(), np.arange(500))
    k = masked_per_row(RATE, LENGTH)
    assert masked.masked.shape == masked.labels.shape == masked.terms.shape == (500, k)
    assert (np.diff(masked.masked, axis=1) > 0).all()
    assert not np.isin(masked.masked, [0, 9]).any()
    assert np.array_equal(masked.labels, np.take_along_axis(rows.ids, masked.masked, 1))
    outside = np.ones_like(rows.ids, bool)
    np.put_along_axis(outside, masked.masked, False, 1)
    assert not ((masked.input_ids != rows.ids) & outside).any()
    assert np.array_equal(masked.languages, rows.languages)
    assert (masked.terms == NAMES.index("mlm")).all()
    assert all(getattr(masked, name).dtype == np.int64 for name in FIELDS)


@pytest.mark.parametrize(("rate", "length", "k"), [(0.15, 512, 77), (0.3, 48, 14), (0.01, 12, 1), (0.99, 12, 12)])
def test_slots_of_a_row(rate, length, k):
    assert masked_per_row(rate, length) == k
    masked = masker_of(rate=rate, length=length).mask(monolingual(3, length=length), source_of(), np.arange(3))
    assert masked.masked.shape == (3, k)
    assert (masked.labels != IGNORE).sum(axis=1).tolist() == [min(k, length - 2)] * 3


@pytest.mark.parametrize("choice", ["all", "same-language", "source-only"])
def test_shares_are_80_10_10_and_random_words_come_from_where_they_should(choice):
    count = 4000
    for member in (0, 1):
        masked = masker_of(choice=choice).mask(monolingual(count, member), source_of(), np.arange(count))
        shown = np.take_along_axis(masked.input_ids, masked.masked, 1)
        n = shown.size
        allowed = {"all": np.concatenate(WORDS), "same-language": WORDS[member], "source-only": WORDS[0]}[choice]
        # a random word is the word itself now and then
        same = np.isin(WORDS[member], allowed).sum() / len(WORDS[member]) / len(allowed)
        words = shown[(shown != OURS.mask) & (shown != masked.labels)]
        assert within((shown == OURS.mask).sum(), n, 0.8)
        assert within((shown == masked.labels).sum(), n, 0.1 + 0.1 * same)
        assert within(len(words), n, 0.1 * (1 - same))
        assert set(words.tolist()) == set(allowed.tolist())
        if choice == "all":
            assert within((words >= V).sum(), len(words), 0.5, 1e-9)


def test_slots_are_uniform_over_words_and_independent_of_each_other():
    count, k = 6000, masked_per_row(RATE, LENGTH)
    masked = masker_of(seed=3).mask(monolingual(count), source_of(), np.arange(count))
    hit = np.zeros((count, LENGTH), bool)
    np.put_along_axis(hit, masked.masked, True, 1)
    hit = np.delete(hit, [0, 9], axis=1)
    p = k / (LENGTH - 2)
    assert np.abs(hit.sum(0) - count * p).max() < 5 * (count * p) ** 0.5
    together = hit.T.astype(int) @ hit
    pairs = together[~np.eye(LENGTH - 2, dtype=bool)]
    expected = count * p * (k - 1) / (LENGTH - 3)
    assert np.abs(pairs - expected).max() < 5.5 * expected**0.5


@pytest.mark.parametrize("valid", [None, np.ones((2, 8), bool)])
def test_a_row_with_few_words_fills_up_with_ignored_slots(valid):
    ids = np.full((2, 8), OURS.eos)
    ids[0, 3] = 7
    masked = masker_of(length=8, rate=0.4).mask(Rows(ids, np.zeros_like(ids), None, valid), source_of(), np.arange(2))
    assert sorted(masked.labels[0].tolist()) == [IGNORE, IGNORE, 7]
    assert (masked.labels[1] == IGNORE).all()
    assert (np.delete(masked.input_ids[0], 3) == OURS.eos).all() and (masked.input_ids[1] == OURS.eos).all()


def test_special_tokens_of_a_checkpoint():
    specials = Specials(bos=50, pad=51, eos=52, unk=53, mask=199)
    ids = np.tile(np.asarray([50, 0, 1, 2, 3, 4, 53, 52, 51, 7] * 2), (600, 1))
    masker = masker_of(specials=specials, length=20, rate=0.5)
    masked = masker.mask(Rows(ids, np.zeros_like(ids)), source_of(), np.arange(600))
    assert set(masked.labels.ravel().tolist()) == {0, 1, 2, 3, 4, 7}
    assert 199 in masked.input_ids and OURS.mask in ids


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"target": "label"},
        {"target": "label-or-copy"},
        {"target": "switched"},
        {"target": "label", "language_ids": False, "dict_rate": 0.9},
        {"rate": 0.5},
    ],
    ids=str,
)
@pytest.mark.parametrize(("rows", "term"), [(monolingual(60), "mlm"), (translated(60), "tlm")])
def test_masks_are_those_of_a_loop(rows, term, options):
    for array in (rows.ids, rows.languages):  # masking leaves the text as it is
        array.flags.writeable = False
    several = dictionary_of([(a, V + b) for a in range(5, 60) for b in range(5, 60) if (a * b) % 7 == 0])
    dictionary = several if "target" in options else None
    samples = np.arange(60) * 7 + 3
    masked = masker_of(dictionary, **options).mask(rows, source_of(term), samples)
    assert equal(masked, masked_by_a_loop(rows, samples, dictionary, term=term, **options))


@pytest.mark.parametrize("dictionary", [None, copies(0.5)])
def test_a_row_is_masked_alike_wherever_it_stands(dictionary):
    rows, samples = translated(10), np.arange(10) + 90
    whole = masker_of(dictionary).mask(rows, source_of("tlm"), samples)
    picked = np.asarray([7, 2, 5])
    assert rows.valid is not None
    part = Rows(rows.ids[picked], rows.languages[picked], None, rows.valid[picked])
    alone = masker_of(dictionary).mask(part, source_of("tlm"), samples[picked])
    assert all(np.array_equal(getattr(whole, name)[picked], getattr(alone, name)) for name in FIELDS)
    assert not equal(whole, masker_of(dictionary, seed=2).mask(rows, source_of("tlm"), samples))
    assert not equal(whole, masker_of(dictionary).mask(rows, source_of("tlm"), samples + 1))


COUNT = 6000
DICT = NAMES.index("dict")


def slots_of(masker, member=0, count=COUNT, **rows):
    """Return for every slot the word, the shown id, the label, the term and the language of the input."""
    text = monolingual(count, member, **rows)
    masked = masker.mask(text, source_of(), np.arange(count))
    at = [np.take_along_axis(a, masked.masked, 1).ravel() for a in (text.ids, masked.input_ids, masked.languages)]
    return SimpleNamespace(
        word=at[0], shown=at[1], language=at[2], label=masked.labels.ravel(), term=masked.terms.ravel()
    )


@pytest.mark.parametrize(
    ("target", "copies_without_entry"), [("switched", 0.375), ("label-or-copy", 0.375), ("label", 0.0)]
)
def test_at_a_quarter_of_the_types_a_third_of_the_slots_are_unmodified_copies(target, copies_without_entry):
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


@pytest.mark.parametrize(("member", "step"), [(0, V), (1, -V)])
def test_switched_words_move_in_both_directions_as_in_the_released_collator(member, step):
    """Half of the slots are of the term: an original id shows id + V, a derived id shows id − V, and labels stay."""
    slots = slots_of(masker_of(copies(1.0), "switched"), member)
    assert within((slots.term == DICT).sum(), len(slots.term), 0.5) and (slots.label == slots.word).all()
    moved = slots.term == DICT
    assert (slots.shown[moved] == slots.word[moved] + step).all() and (slots.language[moved] == 1 - member).all()


def test_synonyms_of_three_languages_in_one_vocabulary():
    """The same id is a word of two languages with different translations. Entries are separated by language."""
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
        validation=SimpleNamespace(mask_rate=None),
        seed=1,
    )


def test_the_masker_of_a_config():
    dictionary = copies(0.5)
    config = config_of(kind="dict_mlm", dict_rate=0.7, dict_target="label-or-copy", mask_rate=0.3)
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
