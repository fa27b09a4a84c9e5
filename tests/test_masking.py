"""Masking: exact slots, 80/10/10, random words of the right language, a pure function of (seed, sample, column)."""

import numpy as np
import pytest
from scipy.stats import binom

from pretrain.data.batch import IGNORE, Rows
from pretrain.data.masking import masked_per_row, random_word_tables
from pretrain.objectives import NAMES
from synthlang.vocabularies import OURS, Specials
from tests.masking_cases import (
    LENGTH,
    RATE,
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
    """Whether ``count`` is a likely number of hits of probability ``p`` among ``n``."""
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


def test_random_words_follow_the_language_of_the_token():
    count = 3000
    rows = translated(count)
    masked = masker_of().mask(rows, source_of("tlm"), np.arange(count))
    shown = np.take_along_axis(masked.input_ids, masked.masked, 1)
    words = (shown != OURS.mask) & (masked.labels != IGNORE)
    second = masked.masked >= LENGTH // 2
    assert ((shown >= V) == second)[words].all()
    assert (words & second).sum() > 500 and (words & ~second).sum() > 500
    assert (masked.terms == NAMES.index("tlm")).all()


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


@pytest.mark.parametrize("rate", [0.05, 0.15, 0.5])
def test_a_padded_row_has_the_share_of_its_words(rate):
    rows = translated(400)
    masked = masker_of(rate=rate).mask(rows, source_of("tlm"), np.arange(400))
    assert rows.valid is not None
    words = ((rows.ids >= 5) & rows.valid).sum(axis=1)
    assert (words == 2).any()
    expected = [max(round(rate * int(n)), 1) for n in words]
    assert (masked.labels != IGNORE).sum(axis=1).tolist() == expected
    assert all(len(set(row)) == masked_per_row(rate, LENGTH) for row in masked.masked.tolist())
    ignored = masked.labels == IGNORE
    before, after = (np.take_along_axis(ids, masked.masked, 1) for ids in (rows.ids, masked.input_ids))
    assert np.array_equal(before[ignored], after[ignored])


def test_labelled_slots_of_a_padded_row_are_uniform_over_its_words():
    count = 20_000
    row = translated(1, seed=5)
    rows = Rows(*(np.repeat(a, count, axis=0) for a in (row.ids, row.languages, row.positions, row.valid)))
    masked = masker_of().mask(rows, source_of("tlm"), np.arange(count))
    columns = masked.masked[masked.labels != IGNORE]
    assert row.valid is not None
    words = np.flatnonzero((row.ids[0] >= 5) & row.valid[0])
    counts = np.bincount(columns, minlength=LENGTH)
    assert counts.sum() == counts[words].sum()
    assert np.abs(counts[words] - len(columns) / len(words)).max() < 5 * (len(columns) / len(words)) ** 0.5


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


@pytest.mark.parametrize("target", [None, "as-paper", "as-code", "corrected"])
@pytest.mark.parametrize(("rows", "term"), [(monolingual(60), "mlm"), (translated(60), "tlm")])
def test_masks_are_those_of_a_loop(rows, term, target):
    several = dictionary_of([(a, V + b) for a in range(5, 60) for b in range(5, 60) if (a * b) % 7 == 0])
    dictionary = several if target else None
    samples = np.arange(60) * 7 + 3
    options = {"target": target} if target else {}
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


def test_masking_leaves_the_text_as_it_is():
    rows = translated(5)
    before = rows.ids.copy(), rows.languages.copy()
    for array in (rows.ids, rows.languages):
        array.flags.writeable = False
    masker_of(copies(1.0)).mask(rows, source_of("tlm"), np.arange(5))
    assert np.array_equal(rows.ids, before[0]) and np.array_equal(rows.languages, before[1])


@pytest.mark.parametrize(
    ("choice", "expected"),
    [("all", ([5, 6, 25], [5, 6, 25])), ("same-language", ([5, 6], [6, 25])), ("source-only", ([5, 6], [5, 6]))],
)
def test_random_word_tables(choice, expected):
    tables = random_word_tables([np.asarray([5, 6]), np.asarray([6, 25])], choice)
    for member, words in enumerate(expected):
        random = (np.arange(len(words)) + 0.5) / len(words)
        assert tables.draw(np.full(len(words), member), random).tolist() == words
        assert tables.draw(np.asarray([member]), np.asarray([np.nextafter(1.0, 0.0)])).tolist() == words[-1:]
