"""Batches: the same rows however they are split, fixed shapes, groups that tell the truth."""

import sys
from collections.abc import Callable
from itertools import pairwise
from types import FrameType
from typing import Any

import numpy as np
import pytest

from pretrain.build import sampling_weights
from pretrain.data.batch import RowSource, Span
from pretrain.data.batches import Batches
from pretrain.data.sources import ParallelRows, SentenceRows, StreamRows
from pretrain.objectives import NAMES
from synthlang.errors import InputError
from synthlang.vocabularies import OURS
from tests.data_cases import ShowingMasker, parallel_of, random_sentences, shards_of

LENGTH = 16
FIELDS = ("input_ids", "languages", "masked", "labels", "terms", "positions", "valid", "samples")
TEXTS = [random_sentences(n, 6, seed=n, low=low, shortest=1) for n, low in ((300, 10), (90, 100), (200, 200))]


def sources_of(kind):
    packing = StreamRows if "stream" in kind else SentenceRows
    sources: list[RowSource] = [packing(shards_of(t), i, LENGTH, OURS, str(i)) for i, t in enumerate(TEXTS)]
    if "tlm" in kind:
        sources.append(ParallelRows(parallel_of(TEXTS[0][:90], TEXTS[1]), 0.8, LENGTH, OURS, 0, "0+1"))
    return sources


def batches(kind="stream", seed=0, rows=12, exponent=0.7, masker=None):
    sources = sources_of(kind)
    weights = sampling_weights(sources[:3], [len(t) for t in TEXTS], exponent, sources[3:])
    return Batches(sources, weights, rows, masker or ShowingMasker(), seed)


KINDS = ["stream", "sentences", "stream tlm", "sentences tlm"]


def by_sample(parts):
    """All fields of all rows, in the order of their numbers."""
    samples = np.concatenate([p.samples for p in parts])
    order = np.argsort(samples)
    joined = {n: [getattr(p, n) for p in parts] for n in FIELDS}
    return {n: None if values[0] is None else np.concatenate(values)[order] for n, values in joined.items()}


@pytest.mark.parametrize("kind", KINDS)
def test_processes_and_micro_batches_split_the_same_rows(kind):
    data = batches(kind)
    for step in (0, 7, 1000):
        whole = by_sample([data.batch(step)])
        assert whole["samples"].tolist() == list(range(step * 12, step * 12 + 12))
        for parts in (1, 2, 3, 4, 6, 12):
            split = by_sample([batches(kind).batch(step, part, parts) for part in range(parts)])
            for name in FIELDS:
                assert np.array_equal(split[name], whole[name]), name


@pytest.mark.parametrize("kind", KINDS)
def test_shapes_are_the_same_for_every_batch(kind):
    data = batches(kind)
    shapes = {
        tuple(None if (a := getattr(data.batch(step, 1, 2), n)) is None else (a.shape, str(a.dtype)) for n in FIELDS)
        for step in range(30)
    }
    assert len(shapes) == 1
    described = dict(zip(FIELDS, next(iter(shapes)), strict=True))
    assert described["input_ids"] == ((6, LENGTH), "int64")
    assert described["valid"] == (((6, LENGTH), "bool") if kind != "stream" else None)
    assert described["positions"] == (((6, LENGTH), "int64") if "tlm" in kind else None)


@pytest.mark.parametrize("kind", KINDS)
def test_groups_cover_the_rows_and_their_spans_are_right(kind):
    data = batches(kind)
    orders = [source.spans for source in data.sources]
    for step in range(20):
        for part in range(2):
            batch = data.batch(step, part, 2)
            assert [g.start for g in batch.groups] == [0, *(g.stop for g in batch.groups[:-1])]
            assert batch.groups[-1].stop == 6
            assert [orders.index(g.spans) for g in batch.groups] == sorted(orders.index(g.spans) for g in batch.groups)
            for group in batch.groups:
                for start, stop, member in group.spans:
                    rows = slice(group.start, group.stop)
                    real = batch.input_ids[rows, start:stop] != OURS.pad
                    assert (batch.languages[rows, start:stop][real] == member).all()
                    # words of member m of the texts above stand in a range of their own
                    words = batch.input_ids[rows, start:stop]
                    words = words[words >= 5]
                    assert ((10, 100, 200)[member] <= words).all() and (words < (100, 200, 300)[member]).all()
                term = NAMES.index("tlm" if len(group.spans) == 2 else "mlm")
                assert (batch.terms[group.start : group.stop] == term).all()


def test_parts_have_their_share_of_every_source():
    data = batches("stream tlm")
    for step in range(20):
        sizes = []
        for part in range(3):
            groups = {g.spans: g.stop - g.start for g in data.batch(step, part, 3).groups}
            sizes.append([groups.get(source.spans, 0) for source in data.sources])
        assert (np.ptp(sizes, axis=0) <= 1).all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("parts", [1, 3])
def test_every_row_of_an_epoch_is_seen_once(kind, parts):
    """Counted from the batches alone, over two epochs of every source."""
    data = batches(kind)
    seen: dict[tuple[Span, ...], list[bytes]] = {source.spans: [] for source in data.sources}
    step = 0
    while any(len(seen[s.spans]) < 2 * s.rows for s in data.sources):
        pieces = [data.batch(step, part, parts) for part in range(parts)]
        found = [
            (number, group.spans, row.tobytes())
            for b in pieces
            for group in b.groups
            for number, row in zip(
                b.samples[group.start : group.stop], b.input_ids[group.start : group.stop], strict=True
            )
        ]
        for _, spans, row in sorted(found):
            seen[spans].append(row)
        step += 1
    for source in data.sources:
        expected = sorted(row.tobytes() for row in source.read(np.arange(source.rows)).ids)
        first, second = (seen[source.spans][e * source.rows : (e + 1) * source.rows] for e in range(2))
        assert sorted(first) == sorted(second) == expected
        assert first != second


def test_counts_of_sources_follow_their_weights():
    data = batches("stream tlm", exponent=0.3)
    total = np.zeros(4)
    sizes = np.asarray([len(t) for t in TEXTS]) ** 0.3
    rows = np.asarray([s.rows for s in data.sources])
    expected = np.append(sizes / sizes.sum() * rows[:3].sum(), rows[3]) / rows.sum()
    for step in range(200):
        for group in data.batch(step).groups:
            total[[s.spans for s in data.sources].index(group.spans)] += group.stop - group.start
        assert np.abs(total - (step + 1) * 12 * expected).max() <= 1


def test_seeds_differ_and_a_step_is_pure():
    data = batches()
    first = data.batch(3).input_ids
    data.batch(100)
    assert np.array_equal(data.batch(3).input_ids, first)
    assert not np.array_equal(batches(seed=1).batch(3).input_ids, first)


def test_an_epoch_may_be_smaller_than_a_step():
    source = StreamRows(shards_of([[5 + n] * 14 for n in range(5)]), 0, LENGTH, OURS, "x")
    data = Batches([source], [1], 32, ShowingMasker(), 0)
    words = np.concatenate([data.batch(step).input_ids[:, 1] for step in range(5)])
    assert all(sorted(words[i : i + 5]) == [5, 6, 7, 8, 9] for i in range(0, 160, 5))


def test_samples_of_any_numbers():
    data = batches("stream tlm")
    numbers = np.asarray([40, 3, 11, 12, 500])
    read = data.samples(numbers)
    assert sorted(read.samples) == sorted(numbers)
    for row, number in enumerate(read.samples):
        step = data.batch(int(number) // 12)
        assert np.array_equal(step.input_ids[step.samples == number][0], read.input_ids[row])
    assert data.epoch_rows == sum(s.rows for s in data.sources)
    assert all(a.stop == b.start for a, b in pairwise(read.groups))


def test_rows_that_do_not_split_are_an_error():
    with pytest.raises(InputError, match=r"batch.rows 12 cannot be split into 5 equal parts .*take a multiple of 5"):
        batches().batch(0, 0, 5)


def test_a_batch_of_the_papers_size_has_no_loop_over_words():
    """1 ms, as long as Python does not look at each of the 65,536 words, nor at each of about 1,600 sentences."""
    texts = [random_sentences(20_000, 40, seed=s) for s in (1, 2)]
    sources = [SentenceRows(shards_of(text), i, 512, OURS, "x") for i, text in enumerate(texts)]
    data = Batches(
        [*sources, ParallelRows(parallel_of(*texts), 0.5, 512, OURS, 0, "x")], [2, 2, 1], 128, ShowingMasker(), 0
    )
    data.batch(0)
    lines = 0

    def count(frame: FrameType, event: str, _: object) -> Callable[..., Any]:
        nonlocal lines
        lines += event == "line"
        return count

    before = sys.gettrace()
    sys.settrace(count)
    try:
        read = data.batch(1)
    finally:
        sys.settrace(before)
    assert read.input_ids.shape == (128, 512)
    assert 100 < lines < 1600
