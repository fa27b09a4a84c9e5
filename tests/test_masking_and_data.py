"""Masking and batches: exact slots, 80/10/10, pure functions of (seed, step, rank), packing by hand."""

import numpy as np
import pytest

from pretrain.data import Batches, Stream
from pretrain.masking import IGNORE, mask, random_word_tables, slots_per_row
from synthlang.errors import InputError
from synthlang.shards import Shards
from synthlang.vocabulary import BOS, EOS, MASK

TABLES = (np.arange(10, 20), np.arange(30, 40))


def rows_of(count, length=32):
    ids = np.random.default_rng(0).integers(5, 10, (count, length))
    ids[:, 0] = BOS
    ids[:, 9] = EOS
    return ids


def test_every_row_has_exactly_k_slots_and_specials_have_none():
    ids = rows_of(500)
    k = slots_per_row(0.15, 32)
    masked = mask(ids, np.zeros(500, np.int64), np.arange(500), k, TABLES, seed=1)
    assert masked.slots.shape == (500, k)
    assert all(len(set(row)) == k for row in masked.slots.tolist())
    assert not np.isin(masked.slots, [0, 9]).any()
    assert np.array_equal(masked.labels, np.take_along_axis(ids, masked.slots, 1))
    changed = masked.input_ids != ids
    outside = np.ones_like(changed)
    np.put_along_axis(outside, masked.slots, False, 1)
    assert not (changed & outside).any()


def test_shares_are_80_10_10_and_random_words_come_from_the_rows_language():
    ids = rows_of(4000)
    language = np.arange(4000) % 2
    masked = mask(ids, language, np.arange(4000), 5, TABLES, seed=1)
    shown = np.take_along_axis(masked.input_ids, masked.slots, 1)
    assert (shown == MASK).mean() == pytest.approx(0.8, abs=0.01)
    assert (shown == masked.labels).mean() == pytest.approx(0.1, abs=0.01)
    words = (shown != MASK) & (shown != masked.labels)
    assert set(shown[words & (language[:, None] == 0)].tolist()) == set(range(10, 20))
    assert set(shown[words & (language[:, None] == 1)].tolist()) == set(range(30, 40))


def test_slots_are_uniform_over_words():
    masked = mask(rows_of(6000), np.zeros(6000, np.int64), np.arange(6000), 5, TABLES, seed=3)
    counts = np.bincount(masked.slots.ravel(), minlength=32)
    expected = 6000 * 5 / 30
    assert np.abs(np.delete(counts, [0, 9]) - expected).max() < 5 * expected**0.5


def test_a_row_with_few_words_fills_up_with_ignored_slots():
    ids = np.full((1, 8), EOS)
    ids[0, 3] = 7
    masked = mask(ids, np.zeros(1, np.int64), np.zeros(1, np.int64), 3, TABLES, seed=0)
    assert sorted(masked.labels[0].tolist()) == [IGNORE, IGNORE, 7]
    assert (np.delete(masked.input_ids[0], 3) == EOS).all()


def test_a_row_is_masked_alike_wherever_it_stands():
    ids = rows_of(10)
    whole = mask(ids, np.zeros(10, np.int64), np.arange(10), 5, TABLES, seed=1)
    part = mask(ids[4:7], np.zeros(3, np.int64), np.arange(4, 7), 5, TABLES, seed=1)
    assert np.array_equal(whole.input_ids[4:7], part.input_ids)
    other = mask(ids, np.zeros(10, np.int64), np.arange(10), 5, TABLES, seed=2)
    assert not np.array_equal(whole.input_ids, other.input_ids)


@pytest.mark.parametrize(
    ("choice", "expected"),
    [("all", ([5, 6, 25], [5, 6, 25])), ("same-language", ([5, 6], [25])), ("source-only", ([5, 6], [5, 6]))],
)
def test_random_word_tables(choice, expected):
    tables = random_word_tables(np.asarray([5, 6]), np.asarray([25]), choice)
    assert tuple(t.tolist() for t in tables) == expected


def shards_of(sentences):
    lengths = [len(s) for s in sentences]
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    tokens = np.asarray([t for s in sentences for t in s], np.uint16)
    return Shards(tokens, offsets, np.bincount(tokens, minlength=60), {"fingerprint": "x"})


def test_packing_by_hand():
    stream = Stream(shards_of([[5, 6, 7], [], [8], [9, 10]]), length=5, name="x")
    # the stream is 5 6 7 </s> </s> 8 </s> 9 10 </s>: two rows of four, two tokens left over
    assert stream.rows == 2
    assert stream.read(np.asarray([0, 1])).tolist() == [[0, 5, 6, 7, 2], [0, 2, 8, 2, 9]]


def test_packing_equals_a_loop():
    rng = np.random.default_rng(0)
    sentences = [rng.integers(5, 50, rng.integers(0, 9)).tolist() for _ in range(200)]
    flat = [t for s in sentences for t in [*s, EOS]]
    stream = Stream(shards_of(sentences), length=8, name="x")
    expected = [[BOS, *flat[i : i + 7]] for i in range(0, len(flat) - 6, 7)]
    assert stream.read(np.arange(stream.rows)).tolist() == expected


def test_too_little_text_is_an_error():
    with pytest.raises(InputError, match="corpus x: 3 tokens do not fill one row of length 8"):
        Stream(shards_of([[5, 6]]), length=8, name="corpus x")


def batches(seed=0, rows=8):
    rng = np.random.default_rng(1)
    streams = tuple(
        Stream(shards_of([rng.integers(low, low + 10, 6).tolist() for _ in range(90)]), length=8, name="x")
        for low in (10, 40)
    )
    return Batches(streams, rows, 2, (np.arange(10, 20), np.arange(40, 50)), seed)


def test_ranks_and_micro_batches_split_the_same_batch():
    whole = batches().batch(5)
    for parts in (2, 4, 8):
        pieces = [batches().batch(5, part, parts) for part in range(parts)]
        for name in ("input_ids", "slots", "labels", "language"):
            assert np.array_equal(np.concatenate([getattr(p, name) for p in pieces]), getattr(whole, name))


def test_each_epoch_sees_every_row_once_in_a_new_order():
    data = batches()
    rows = data.streams[0].rows
    seen = []
    for epoch in range(2):
        numbers = (np.arange(rows) + epoch * rows) * 2
        seen.append([data._order(0, epoch)[i] for i in range(rows)])
        assert data.samples(numbers).language.tolist() == [0] * rows
    assert sorted(seen[0]) == sorted(seen[1]) == list(range(rows))
    assert seen[0] != seen[1]


def test_languages_take_turns_and_keep_to_their_words():
    batch = batches().batch(0)
    assert batch.language.tolist() == [0, 1] * 4
    labels = batch.labels
    assert (labels[0::2] < 20).all()
    assert (labels[1::2] >= 40).all()
