"""Rows of each kind equal a plain loop over sentences; the halves of pairs are translations of each other, and the
share of pairs is exact; bad input is one line."""

import numpy as np
import pytest

from pretrain.data.packing import fill, pack
from pretrain.data.sources import CopiesRows, ParallelRows, SentenceRows, StreamRows, told_rows
from synthlang.vocabularies import OURS, Specials
from tests.data_cases import packed, parallel_of, random_sentences, shards_of
from tests.refusals import place_and_code, refusal, refused

COUNT, LENGTH = 400, 32
LEFT = random_sentences(COUNT, 17, seed=1, shortest=2)
RIGHT = random_sentences(COUNT, 17, seed=2, low=100, shortest=2)


@pytest.mark.parametrize("length", [3, 4, 8, 31])
@pytest.mark.parametrize("longest", [1, 9, 60])
def test_a_stream_equals_a_loop(length, longest):
    sentences = random_sentences(200, longest)
    flat = [t for s in sentences for t in [*s, OURS.eos]]
    rows = StreamRows(shards_of(sentences), 0, length, OURS, "x")
    expected = [[OURS.bos, *flat[i : i + length - 1]] for i in range(0, len(flat) - length + 2, length - 1)]
    assert rows.read(np.arange(rows.rows)).ids.tolist() == expected
    some = np.random.default_rng(0).integers(0, rows.rows, 50)
    assert rows.read(some).ids.tolist() == [expected[n] for n in some]
    # the stream is the text: nothing is lost but the end that fills no row
    text = [t for row in expected for t in row[1:]]
    assert text == flat[: len(text)] and len(flat) - len(text) == rows.counts["tokens left over"] < length - 1


def test_the_specials_of_a_checkpoint_are_used():
    cased = Specials(bos=101, pad=0, eos=102, unk=100, mask=103)
    assert StreamRows(shards_of([[5], [6]]), 0, 5, cased, "x").read(np.asarray([0])).ids.tolist() == [
        [101, 5, 102, 6, 102]
    ]
    assert SentenceRows(shards_of([[5]]), 0, 5, cased, "x").read(np.asarray([0])).ids.tolist() == [[101, 5, 102, 0, 0]]


def rows_by_loop(sentences, length):
    """Next fit, one sentence after another."""
    rows: list[list[list[int]]] = []
    room = 0
    for sentence in sentences:
        if len(sentence) + 2 > length:
            continue
        if len(sentence) + 1 > room:
            rows.append([])
            room = length - 1
        rows[-1].append(sentence)
        room -= len(sentence) + 1
    return rows


@pytest.mark.parametrize("length", [3, 8, 33])
@pytest.mark.parametrize("longest", [1, 9, 60])
def test_sentence_rows_equal_a_loop(length, longest):
    sentences = random_sentences(300, longest)
    rows = SentenceRows(shards_of(sentences), 1, length, OURS, "x")
    expected = rows_by_loop(sentences, length)
    read = rows.read(np.arange(rows.rows))
    assert read.valid is not None
    assert read.ids.tolist() == [packed(row, length) for row in expected]
    assert read.valid.tolist() == [[i <= sum(map(len, row)) + len(row) for i in range(length)] for row in expected]
    assert rows.too_long == sum(len(s) + 2 > length for s in sentences)
    assert rows.size == len(sentences)
    assert (read.languages == 1).all()
    assert read.positions is None
    backwards = rows.read(np.arange(rows.rows)[::-1])
    assert np.array_equal(backwards.ids[::-1], read.ids)
    assert backwards.valid is not None
    assert np.array_equal(backwards.valid[::-1], read.valid)


@pytest.mark.parametrize(("long", "warned"), [(1, False), (2, True)])
def test_rows_that_leave_out_over_a_twentieth_of_the_sentences_are_a_warning(long, warned):
    sentences = [[5] * 9] * long + [[5] * 3] * (20 - long)
    rows = CopiesRows([SentenceRows(shards_of(sentences), 0, 8, OURS, "en")] * 2)
    line = f"en: {2 * (20 - long)} rows; sentences dropped, over 6 tokens: {2 * long}"
    more = f"; {5 * long} % of 40 do not fit into a row; raise batch.length"
    assert told_rows(rows) == (f"warning: {line}{more}" if warned else line)


@pytest.mark.parametrize("chunk", [1, 2, 3, 7, 50, 1000])
@pytest.mark.parametrize("sides", [1, 2])
def test_packing_never_depends_on_the_chunk(chunk, sides):
    costs = np.random.default_rng(0).integers(0, 6, (sides, 200))
    costs[:, 20:60] = 0  # longer than a chunk, and no row ends there
    rows = pack(lambda first, last: costs[:, first:last], 200, 7, "x", chunk=chunk)
    expected, used = [0], np.zeros(sides, int)
    for item, cost in enumerate(costs.T):
        if (used + cost > 7).any():
            expected.append(item)
            used[:] = 0
        used += cost
    assert rows.starts.tolist() == [*expected, 200]


def rows_by_best_fit(costs, capacity):
    """Best fit decreasing, one item after another: the fullest row that has room."""
    rooms: list[int] = []
    for cost in sorted((c for c in costs if c), reverse=True):
        fitting = [room for room in rooms if room >= cost]
        if fitting:
            rooms[rooms.index(min(fitting))] -= cost
        else:
            rooms.append(capacity - cost)
    return sorted(rooms)


@pytest.mark.parametrize("capacity", [5, 16, 48])
@pytest.mark.parametrize("items", [1, 7, 500])
def test_rows_are_filled_as_by_best_fit_decreasing(capacity, items):
    costs = np.random.default_rng(items).integers(0, capacity + 1, items)
    costs[-1] = capacity
    rows = fill(lambda first, last: costs[first:last], items, capacity, "x")
    item, row = rows.of(np.arange(len(rows)))
    assert sorted(item.tolist()) == np.flatnonzero(costs).tolist()
    used = np.bincount(row, weights=costs[item], minlength=len(rows))
    assert sorted((capacity - used).tolist()) == rows_by_best_fit(costs.tolist(), capacity)
    parts = fill(lambda first, last: costs[first:last], items, capacity, "x", chunk=100)
    item, row = parts.of(np.arange(len(parts)))
    assert sorted(item.tolist()) == np.flatnonzero(costs).tolist()
    assert np.bincount(row, weights=costs[item]).max() <= capacity


def alone(read, row, start=0, stop=None):
    """The sentences of a row, or of a part of it, each as it must be; what follows is padding."""
    ids, numbers, positions = (a[row, start:stop].tolist() for a in (read.ids, read.sentences, read.positions))
    found: list[list[int]] = []
    here = 0
    while here < len(ids) and numbers[here] >= 0:
        size = numbers[here:].count(numbers[here])
        sentence = ids[here : here + size]
        assert numbers[here : here + size] == [len(found)] * size
        assert positions[here : here + size] == list(range(size))
        assert (sentence[0], sentence[-1]) == (OURS.bos, OURS.eos)
        found.append(sentence[1:-1])
        here += size
    assert set(ids[here:]) <= {OURS.pad} and set(numbers[here:]) <= {-1}
    return found


def test_sentences_that_stand_alone():
    sentences = [*random_sentences(500, 20, seed=3), []]
    rows = SentenceRows(shards_of(sentences), 1, 16, OURS, "x", alone=True)
    read = rows.read(np.arange(rows.rows))
    assert read.valid is not None and read.sentences is not None
    assert np.array_equal(read.valid, read.sentences >= 0)
    assert (read.languages == 1).all()
    found = [alone(read, row) for row in range(rows.rows)]
    assert sorted(s for row in found for s in row) == sorted(s for s in sentences if 0 < len(s) <= 14)
    empty, long = sum(not s for s in sentences), sum(len(s) > 14 for s in sentences)
    assert rows.counts == {"sentences dropped, over 14 tokens": long, "sentences dropped, empty": empty}
    some = rows.read(np.asarray([5, 2, 2]))
    assert some.sentences is not None
    assert np.array_equal(some.ids, read.ids[[5, 2, 2]]) and np.array_equal(some.sentences, read.sentences[[5, 2, 2]])
    wide = SentenceRows(shards_of(sentences), 1, 64, OURS, "x", alone=True)
    wide_valid = wide.read(np.arange(wide.rows)).valid
    assert wide_valid is not None and wide_valid.mean() > 0.98  # hardly any padding


def test_pairs_that_stand_alone():
    pairs = list(zip(LEFT, RIGHT, strict=True))
    rows = ParallelRows(parallel_of(LEFT, RIGHT, members=(2, 5)), 1.0, LENGTH, OURS, 0, "x", alone=True)
    read = rows.read(np.arange(rows.rows))
    found = [
        pair for row in range(rows.rows) for pair in zip(alone(read, row, 0, 16), alone(read, row, 16), strict=True)
    ]
    assert sorted(found) == sorted((a, b) for a, b in pairs if len(a) <= 14 and len(b) <= 14)
    assert rows.too_long == len(pairs) - len(found)
    half = np.arange(32) < 16
    assert np.array_equal(read.languages, np.where(half | (read.ids == OURS.pad), 2, 5))


@pytest.mark.parametrize(
    ("kind", "sentences", "length", "place", "code"),
    [
        (StreamRows, [[5, 6]], 8, "language fr", "range"),
        (StreamRows, [[]] * 20, 8, "language fr", "range"),
        (SentenceRows, [[5] * 7, [5] * 9], 8, "language fr", "range"),
    ],
)
def test_too_little_text_is_an_error(kind, sentences, length, place, code):
    assert refused(kind, shards_of(sentences), 0, length, OURS, "fr") == (place, code)


def test_a_split_of_exactly_one_row_is_enough():
    assert StreamRows(shards_of([[5] * 6]), 0, 8, OURS, "x").rows == 1
    assert SentenceRows(shards_of([[5] * 6]), 0, 8, OURS, "x").rows == 1


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
    assert rows.size == COUNT
    assert rows.too_long == sum(not fits(pair) for pair in given.tolist()) > 0
    assert rows.empty == 0


@pytest.mark.parametrize("rate", [0.1, 0.25, 0.333, 0.5])
def test_the_share_of_pairs_is_exact_and_none_comes_twice(rate):
    rows = rows_of(rate)
    seen = [pair for row in pairs_of(rows) for pair in row]
    assert rows.size == round(rate * COUNT) == len(seen) + rows.too_long
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
    for seed in range(100):
        for pair in (p for row in pairs_of(rows_of(0.25, seed=seed)) for p in row):
            times[pair[0]] += 1
    usable = times[[fits((n, n)) for n in range(COUNT)]]
    # 100 draws at 1/4: mean 25, deviation 4.3
    assert usable.mean() == pytest.approx(25, abs=1)
    assert np.abs(usable - 25).max() < 5 * 4.3


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


def test_pairs_with_an_empty_side_are_dropped():
    parallel = parallel_of([[5], [], [6], [7]], [[15], [16], [], [17]])
    rows = ParallelRows(parallel, 1.0, 12, OURS, 0, "x")
    assert rows.read(np.asarray([0])).ids.tolist() == [[0, 5, 2, 7, 2, 1, 0, 15, 2, 17, 2, 1]]
    assert (rows.empty, rows.too_long) == (2, 0)
    assert set(rows.counts.values()) == {4, 0, 2}


@pytest.mark.parametrize(
    ("left", "right", "rate", "length", "place", "code", "hint"),
    [
        ([[5] * 3], [[6]], 1.0, 8, "languages en-fr", "empty", "raise batch.length"),
        ([[]], [[6]], 1.0, 8, "languages en-fr", "empty", "give pairs without an empty side"),
        ([[5]], [[6]], 0.1, 8, "languages en-fr", "empty", "raise objective.tlm_rate, or give more sentence pairs"),
    ],
)
def test_pairs_that_do_not_fit_are_refused(left, right, rate, length, place, code, hint):
    error = refusal(ParallelRows, parallel_of(left, right), rate, length, OURS, 0, "en-fr")
    assert (*place_and_code(error), error.hint) == (place, code, hint)
