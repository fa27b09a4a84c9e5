"""Rows of each kind equal a plain loop over sentences; bad input is one line."""

import numpy as np
import pytest

from pretrain.data.packing import pack, ranges
from pretrain.data.sources import SentenceRows, StreamRows
from synthlang.errors import InputError
from synthlang.vocabularies import OURS, Specials
from tests.data_cases import packed, random_sentences, shards_of


def test_a_stream_by_hand():
    rows = StreamRows(shards_of([[5, 6, 7], [], [8], [9, 10]]), 3, 5, OURS, "x")
    # the stream is 5 6 7 </s> </s> 8 </s> 9 10 </s>: two rows of four, two tokens left over
    assert rows.rows == 2
    assert rows.counts == {"tokens left over": 2}
    read = rows.read(np.asarray([1, 0]))
    assert read.ids.tolist() == [[0, 2, 8, 2, 9], [0, 5, 6, 7, 2]]
    assert (read.languages == 3).all()
    assert read.positions is None
    assert read.valid is None
    assert rows.spans == ((0, 5, 3),)


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
    assert rows.dropped == sum(len(s) + 2 > length for s in sentences)
    assert (read.languages == 1).all()
    assert read.positions is None
    backwards = rows.read(np.arange(rows.rows)[::-1])
    assert np.array_equal(backwards.ids[::-1], read.ids)
    assert backwards.valid is not None
    assert np.array_equal(backwards.valid[::-1], read.valid)


def test_no_sentence_is_cut_and_padding_comes_last():
    """From the ids alone: what stands between <s> and padding is whole sentences, each of them once and in order."""
    sentences = random_sentences(300, 20, shortest=1)
    rows = SentenceRows(shards_of(sentences), 0, 16, OURS, "x")
    seen = []
    for row in rows.read(np.arange(rows.rows)).ids.tolist():
        text = row[1 : row.index(OURS.pad)] if OURS.pad in row else row[1:]
        assert row == [OURS.bos, *text] + [OURS.pad] * (15 - len(text))
        assert text[-1] == OURS.eos
        sentence: list[int] = []
        for token in text:
            if token == OURS.eos:
                seen.append(sentence)
                sentence = []
            else:
                sentence.append(token)
    assert seen == [s for s in sentences if len(s) <= 14]
    assert 0 < rows.dropped == len(sentences) - len(seen)


@pytest.mark.parametrize("chunk", [1, 2, 3, 7, 50, 1000])
@pytest.mark.parametrize("sides", [1, 2])
def test_packing_never_depends_on_the_chunk(chunk, sides):
    costs = np.random.default_rng(0).integers(0, 6, (sides, 200))
    costs[:, 20:60] = 0  # longer than a chunk, and no row ends there
    starts = pack(lambda first, last: costs[:, first:last], 200, 7, "x", chunk=chunk)
    expected, used = [0], np.zeros(sides, int)
    for item, cost in enumerate(costs.T):
        if (used + cost > 7).any():
            expected.append(item)
            used[:] = 0
        used += cost
    assert starts.tolist() == [*expected, 200]


def test_packing_reports_its_progress():
    heard = []
    pack(lambda a, b: np.ones((1, b - a), int), 10, 3, "pack x", lambda *report: heard.append(report[:3]), chunk=4)
    assert heard[0] == ("pack x", 0, 10)
    assert heard[-1] == ("pack x", 10, 10)
    assert [done for _, done, _ in heard] == sorted({done for _, done, _ in heard})


def test_ranges():
    numbers, which = ranges(np.asarray([3, 9, 5]), np.asarray([5, 9, 8]))
    assert numbers.tolist() == [3, 4, 5, 6, 7]
    assert which.tolist() == [0, 0, 2, 2, 2]


@pytest.mark.parametrize(
    ("kind", "sentences", "length", "message"),
    [
        (StreamRows, [[5, 6]], 8, "fr: 3 tokens do not fill one row of length 8"),
        (StreamRows, [[]] * 20, 8, "fr: 20 tokens do not fill one row"),
        (SentenceRows, [[5] * 7, [5] * 9], 8, "fr: none of 2 sentences fits into a row of length 8"),
    ],
)
def test_too_little_text_is_an_error(kind, sentences, length, message):
    with pytest.raises(InputError, match=message):
        kind(shards_of(sentences), 0, length, OURS, "fr")


def test_a_split_of_exactly_one_row_is_enough():
    assert StreamRows(shards_of([[5] * 6]), 0, 8, OURS, "x").rows == 1
    assert SentenceRows(shards_of([[5] * 6]), 0, 8, OURS, "x").rows == 1
