"""Rows of sentence pairs: the halves are translations of each other, the share of pairs is exact."""

import numpy as np
import pytest

from pretrain.data.sources import ParallelRows
from synthlang.errors import InputError
from synthlang.vocabularies import OURS
from tests.data_cases import packed, parallel_of, random_sentences

COUNT, LENGTH = 400, 32
LEFT = random_sentences(COUNT, 17, seed=1, shortest=2)
RIGHT = random_sentences(COUNT, 17, seed=2, low=100, shortest=2)


def halves(ids):
    """The sentences of a half row of ids; the half is <s> sentences </s> padding and nothing else."""
    text = ids[1 : ids.index(OURS.pad)] if OURS.pad in ids else ids[1:]
    sentences: list[list[int]] = []
    current: list[int] = []
    for token in text:
        if token == OURS.eos:
            sentences.append(current)
            current = []
        else:
            current.append(token)
    assert ids == packed(sentences, len(ids))
    return sentences


def pairs_of(rows):
    """The pairs of sentence numbers of each row, read off the ids."""
    number = [{tuple(s): n for n, s in enumerate(side)} for side in (LEFT, RIGHT)]
    assert len(number[0]) == len(number[1]) == COUNT, "sentences are told apart by their tokens"
    found = []
    for row in rows.read(np.arange(rows.rows)).ids.tolist():
        left, right = halves(row[: LENGTH // 2]), halves(row[LENGTH // 2 :])
        assert len(left) == len(right)
        found.append([(number[0][tuple(a)], number[1][tuple(b)]) for a, b in zip(left, right, strict=True)])
    return found


def fits(pair):
    return max(len(LEFT[pair[0]]), len(RIGHT[pair[1]])) + 2 <= LENGTH // 2


def rows_of(rate, rows=None, seed=0):
    return ParallelRows(parallel_of(LEFT, RIGHT, rows, (2, 5)), rate, LENGTH, OURS, seed, "en+fr")


@pytest.mark.parametrize("crossed", [False, True])
def test_all_pairs_are_packed_as_a_loop_packs_them(crossed):
    order = np.random.default_rng(0).permutation(COUNT) if crossed else np.arange(COUNT)
    given = np.stack([np.arange(COUNT), order], axis=1)
    expected: list[list[tuple[int, ...]]] = []
    used = np.asarray([LENGTH, LENGTH])
    for pair in map(tuple, given.tolist()):
        cost = np.asarray([len(LEFT[pair[0]]) + 1, len(RIGHT[pair[1]]) + 1])
        if fits(pair):
            if (used + cost > LENGTH // 2 - 1).any():
                expected.append([])
                used = np.zeros(2, int)
            expected[-1].append(pair)
            used = used + cost
    rows = rows_of(1.0, given)
    assert pairs_of(rows) == expected
    assert rows.drawn == COUNT
    assert rows.too_long == sum(not fits(pair) for pair in given.tolist()) > 0
    assert rows.empty == 0


@pytest.mark.parametrize("rate", [0.1, 0.25, 0.333, 0.5])
def test_the_share_of_pairs_is_exact_and_none_comes_twice(rate):
    rows = rows_of(rate)
    seen = [pair for row in pairs_of(rows) for pair in row]
    assert rows.drawn == round(rate * COUNT) == len(seen) + rows.too_long
    assert len(set(seen)) == len(seen)
    assert all(a == b for a, b in seen)
    assert seen == sorted(seen)


def test_a_smaller_share_is_part_of_a_larger_one_and_seeds_differ():
    small, large, other = (
        {p for row in pairs_of(rows_of(*args)) for p in row} for args in ((0.2,), (0.5,), (0.5, None, 1))
    )
    assert small < large
    assert large != other


def test_pairs_are_drawn_uniformly():
    times = np.zeros(COUNT)
    for seed in range(200):
        for pair in (p for row in pairs_of(rows_of(0.25, seed=seed)) for p in row):
            times[pair[0]] += 1
    usable = times[[fits((n, n)) for n in range(COUNT)]]
    # 200 draws at 1/4: mean 50, deviation 6.1
    assert usable.mean() == pytest.approx(50, abs=1)
    assert np.abs(usable - 50).max() < 5 * 6.1


def test_positions_languages_and_padding():
    rows = rows_of(1.0)
    assert rows.spans == ((0, 16, 2), (16, 32, 5))
    assert rows.languages == (2, 5)
    assert rows.term == "tlm"
    read = rows.read(np.arange(rows.rows))
    assert (read.positions == [*range(16), *range(16)]).all()
    assert np.array_equal(read.valid, read.ids != OURS.pad)
    assert not read.valid.all()
    half = np.arange(32) < 16
    assert np.array_equal(read.languages, np.where(half | ~read.valid, 2, 5))


def test_any_rows_in_any_order():
    rows = rows_of(0.5)
    whole = rows.read(np.arange(rows.rows))
    some = np.asarray([3, 0, 3, rows.rows - 1])
    part = rows.read(some)
    for name in ("ids", "languages", "positions", "valid"):
        assert np.array_equal(getattr(part, name), getattr(whole, name)[some])


def test_pairs_with_an_empty_side_are_dropped():
    parallel = parallel_of([[5], [], [6], [7]], [[15], [16], [], [17]])
    rows = ParallelRows(parallel, 1.0, 12, OURS, 0, "x")
    assert rows.read(np.asarray([0])).ids.tolist() == [[0, 5, 2, 7, 2, 1, 0, 15, 2, 17, 2, 1]]
    assert (rows.empty, rows.too_long) == (2, 0)
    assert set(rows.counts.values()) == {4, 0, 2}


@pytest.mark.parametrize(
    ("left", "right", "rate", "length", "message"),
    [
        ([[5]], [[6]], 1.0, 9, "en-fr: TLM needs an even batch.length, a half for each language; it is 9"),
        ([[5] * 3], [[6]], 1.0, 8, "no usable pair: 1 of 1 drawn, of these 1 have a side of over 2 tokens"),
        ([[5]] * 3, [[6]] * 3, 0.1, 8, "no usable pair: 0 of 3 drawn"),
        ([[]], [[6]], 1.0, 8, "no usable pair.*1 an empty side"),
        ([[5]], [[6]], 1.0, 2, "no usable pair"),
    ],
)
def test_what_cannot_be_is_one_line(left, right, rate, length, message):
    with pytest.raises(InputError, match=message) as caught:
        ParallelRows(parallel_of(left, right), rate, length, OURS, 0, "en-fr")
    assert "\n" not in str(caught.value)


def test_no_pairs_at_all():
    with pytest.raises(InputError, match="no usable pair: 0 of 0 drawn"):
        ParallelRows(parallel_of([[5]], [[6]], np.zeros((0, 2), np.int64)), 1.0, 8, OURS, 0, "x")
