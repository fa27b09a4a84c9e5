"""Numbers of samples of each source (exact, smooth and independent of the path to a step), and orders of rows."""

from fractions import Fraction
from itertools import combinations, pairwise
from math import floor
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import chisquare

import pretrain.data.quotas as module
from pretrain.build import sampling_weights
from pretrain.data.batches import Epochs
from pretrain.data.quotas import Draws, Quotas, Stages
from synthlang.rng import uniform

WEIGHTS: dict[str, list[Fraction | int]] = {
    "one": [1],
    "equal": [1, 1, 1],
    "thirds": [2, 1],
    "a tiny one": [1000, 1],
    "many tiny ones": [500, *[1] * 30],
    "large and tiny mixed": [300, 299, 1, 2, 150, 1, 1, 3],
    "irrational": [Fraction(float(n) ** 0.7) for n in (12_544, 2_019, 77, 1_000_003)],
    "golden": [Fraction((5**0.5 - 1) / 2), Fraction((3 - 5**0.5) / 2)],
    "more sources than rows": list(range(1, 41)),
}


def violation(counts, weights, rows):
    """Return an error in the counts [steps + 1, sources] of samples before each step, in exact arithmetic."""
    total = sum(Fraction(w) for w in weights)
    for step, row in enumerate(counts):
        n = step * rows
        if sum(row) != n:
            return f"step {step} has {sum(row)} samples before it"
        if any(abs(c - n * Fraction(w) / total) > 1 for c, w in zip(row, weights, strict=True)):
            return f"step {step}: a source is off by more than one"
    if any(b < a for one, two in pairwise(counts) for a, b in zip(one, two, strict=True)):
        return "a source loses samples"
    return None


@pytest.mark.parametrize("rows", [1, 7, 128])
@pytest.mark.parametrize("name", WEIGHTS)
def test_every_source_is_within_one_of_its_share_at_every_step(name, rows):
    quotas = Quotas(WEIGHTS[name], rows)
    counts = [quotas.before(step).tolist() for step in range(200)]
    assert violation(counts, WEIGHTS[name], rows) is None


def test_the_check_sees_simpler_ways_fail():
    """Rounding each share, rounding the running sums of shares, and taking turns are all caught."""
    weights, rows = WEIGHTS["large and tiny mixed"], 7
    p = np.asarray(weights) / sum(weights)
    n = rows * np.arange(400)[:, None]
    assert "samples before it" in violation(np.rint(n * p).astype(int).tolist(), weights, rows)
    sums = np.rint(n * np.concatenate([[0], np.cumsum(p)])).astype(int)
    assert violation(np.diff(sums, axis=1).tolist(), weights, rows) == "a source loses samples"
    turns = [[(rows * s + i) // len(weights) for i in range(len(weights))][::-1] for s in range(400)]
    assert "off by more than one" in violation(turns, weights, rows)


@pytest.mark.parametrize("name", ["thirds", "irrational", "many tiny ones"])
def test_a_step_is_the_same_however_it_is_reached(name, monkeypatch):
    whole = Quotas(WEIGHTS[name], 12)
    expected = [whole.before(step).tolist() for step in range(100)]
    monkeypatch.setattr(module, "BLOCK", 8)
    for step in (99, 0, 15, 16, 17, 64, 8, 7):
        assert Quotas(WEIGHTS[name], 12).before(step).tolist() == expected[step]
    back = Quotas(WEIGHTS[name], 12)
    assert [back.before(step).tolist() for step in reversed(range(100))] == expected[::-1]


def test_a_late_step_of_a_long_run():
    steps = 300_000
    for name in (
        "equal",
        "thirds",
        "a tiny one",
    ):  # these come back to whole numbers, so that no step is walked through
        counts, weights = Quotas(WEIGHTS[name], 128).before(steps), np.asarray(WEIGHTS[name])
        assert counts.sum() == steps * 128
        assert np.abs(counts - steps * 128 * weights / weights.sum()).max() < 1
    assert Quotas([1, 1], 128).before(10**12).tolist() == [64 * 10**12] * 2


@pytest.mark.parametrize("name", WEIGHTS)
def test_a_source_is_drawn_for_each_step_by_its_weight(name, monkeypatch):
    """Against drawing one step after another; however a step is reached; shares by a test that chance passes."""
    monkeypatch.setattr(module, "BLOCK", 64)
    weights = [Fraction(weight) for weight in WEIGHTS[name]]
    shares = [float(weight / sum(weights)) for weight in weights]
    draws, steps = Draws(WEIGHTS[name], 12, key=5), 3000
    counts, expected = np.zeros(len(weights), int), []
    for step in range(steps):
        expected.append(counts.copy())
        number, source = float(uniform(5, np.asarray([step]))[0]), 0
        while source + 1 < len(shares) and number >= sum(shares[: source + 1]):
            source += 1
        counts[source] += 12
    for step in (*range(70), 2999, 3, 64, 1000):
        assert draws.before(step).tolist() == expected[step].tolist()
    assert draws.before(steps).tolist() == counts.tolist()
    if len(weights) > 1:
        assert chisquare(counts / 12, np.asarray(shares) * steps).pvalue > 0.001
        assert Draws(WEIGHTS[name], 12, key=6).before(steps).tolist() != counts.tolist()


SCHEDULES: dict[str, tuple[list[int], list[list[Fraction | int]]]] = {
    "imbalance": ([0, 25, 50, 75], [[1, 9], [9, 1], [1, 1], [1, 1]]),
    "first, then second": ([0, 40], [[1, 0], [0, 1]]),
    "three languages": ([0, 10, 11, 63], [[3, 5, 7], [0, 1, 1], [1, 0, 0], [2, 0, 5]]),
    "a curriculum": (list(range(100)), [[100 - n, n, 7] for n in range(100)]),
    "irrational": ([0, 33], [[Fraction(2**0.5), Fraction(5**0.5), 1], [Fraction(0.1), 0, Fraction(0.9)]]),
    "one stage": ([0], [[2, 1]]),
}


def slow_totals(firsts, weights, steps, rows):
    """Samples of each source in each stage: of all roundings the one nearest to the sums of shares up to its end."""
    sources, due = range(len(weights[0])), [Fraction(0)] * len(weights[0])
    had, result = [0] * len(due), []
    for (first, stop), own in zip(pairwise([*firsts, steps]), weights, strict=True):
        exact = [Fraction(w) / sum(map(Fraction, own)) * (stop - first) * rows for w in own]
        due = [d + e for d, e in zip(due, exact, strict=True)]
        more = (stop - first) * rows - sum(map(floor, exact))
        broken = [i for i in sources if exact[i].denominator > 1]
        roundings = [[floor(exact[i]) + (i in up) for i in sources] for up in combinations(broken, more)]
        best = min(roundings, key=lambda given: sum((due[i] - had[i] - given[i]) ** 2 for i in sources))
        had = [h + g for h, g in zip(had, best, strict=True)]
        result.append(best)
    return result


@pytest.mark.parametrize("rows", [1, 7, 64])
@pytest.mark.parametrize("name", SCHEDULES)
def test_stages_have_the_samples_of_a_slow_computation(name, rows):
    firsts, weights = SCHEDULES[name]
    stages, steps = Stages(firsts, weights, 100, rows), 100
    counts = [stages.before(step).tolist() for step in range(steps + 1)]
    for (first, stop), total in zip(pairwise([*firsts, steps]), slow_totals(firsts, weights, steps, rows), strict=True):
        here = [[n - before for n, before in zip(row, counts[first], strict=True)] for row in counts[first : stop + 1]]
        assert here[-1] == total
        assert violation(here, total, rows) is None
        assert all(n == 0 for row in here for n, share in zip(row, total, strict=True) if share == 0)
    for stage, total in enumerate(slow_totals(firsts, weights, steps, rows)):
        assert all(n == 0 for n, weight in zip(total, weights[stage], strict=True) if weight == 0)


def test_short_stages_do_not_drift():
    """A hundred stages of one step, each with 0.48 samples of a source: 48 in all, where each for itself has none."""
    weights, rows = [Fraction(6, 100), Fraction(94, 100)], 8
    stages = Stages(list(range(100)), [weights] * 100, 100, rows)
    counts = [stages.before(step).tolist() for step in range(101)]
    assert violation(counts, weights, rows) is None and counts[-1] == [48, 752]
    alone = sum(Stages([0], [weights], 1, rows).before(1)[0] for _ in range(100))
    assert alone == 0


@pytest.mark.parametrize("key", [None, 5])
@pytest.mark.parametrize("name", SCHEDULES)
def test_a_step_of_a_stage_is_the_same_however_it_is_reached(name, key, monkeypatch):
    firsts, weights = SCHEDULES[name]
    whole = Stages(firsts, weights, 100, 12, key)
    expected = [whole.before(step).tolist() for step in range(100)]
    monkeypatch.setattr(module, "BLOCK", 8)
    for step in (99, 0, 39, 40, 41, 64, 8, 7):
        assert Stages(firsts, weights, 100, 12, key).before(step).tolist() == expected[step]
    back = Stages(firsts, weights, 100, 12, key)
    assert [back.before(step).tolist() for step in reversed(range(100))] == expected[::-1]


def test_one_stage_has_the_samples_of_quotas():
    stages, quotas = Stages([0], [[2, 1]], 3000, 12), Quotas([2, 1], 12)
    assert [stages.before(s).tolist() for s in range(3001)] == [quotas.before(s).tolist() for s in range(3001)]


def test_sources_are_drawn_by_the_shares_of_the_stage():
    stages = Stages([0, 2000, 4000], [[1, 3, 0], [1, 3, 0], [0, 1, 9]], 6000, 12, key=5)
    drawn = np.diff([stages.before(step) for step in range(6001)], axis=0) // 12
    assert (drawn.sum(axis=1) == 1).all()
    one, two, three = (drawn[first : first + 2000] for first in (0, 2000, 4000))
    assert one[:, 2].sum() == two[:, 2].sum() == three[:, 0].sum() == 0
    for stage, shares in ((one[:, :2], [0.25, 0.75]), (two[:, :2], [0.25, 0.75]), (three[:, 1:], [0.1, 0.9])):
        assert chisquare(stage.sum(axis=0), np.asarray(shares) * 2000).pvalue > 0.001
    assert not np.array_equal(one, two)
    again = Stages([0, 2000, 4000], [[1, 3, 0], [1, 3, 0], [0, 1, 9]], 6000, 12, key=6)
    assert again.before(2000).tolist() != stages.before(2000).tolist()


def rows(*counts):
    return [SimpleNamespace(rows=count) for count in counts]


def test_languages_are_weighted_by_sentences_to_the_exponent():
    assert sampling_weights(rows(10, 999), [100, 10_000], 0.0) == (Fraction(1, 2), Fraction(1, 2))
    assert sampling_weights(rows(10, 999), [100, 300], 1.0) == (Fraction(1, 4), Fraction(3, 4))
    p = sampling_weights(rows(1, 1, 1), [100, 10_000, 50], 0.7)
    expected = np.asarray([100, 10_000, 50]) ** 0.7
    assert np.asarray(p, float) == pytest.approx(expected / expected.sum(), rel=1e-14)
    assert sum(p) == 1
    assert sampling_weights(rows(10, 999), [3, 1], 1.0) == (Fraction(3, 4), Fraction(1, 4))  # by number


def test_pairs_are_mixed_in_by_their_rows():
    p = sampling_weights(rows(300, 100), [1, 1], 0.0, rows(80, 20))
    assert p == (Fraction(2, 5), Fraction(2, 5), Fraction(4, 25), Fraction(1, 25))
    assert sampling_weights([], [], 0.0, rows(80, 20)) == (Fraction(4, 5), Fraction(1, 5))


def test_every_epoch_has_every_row_once_in_a_new_order():
    epochs = Epochs(3, 1, 40)
    seen = epochs.rows_of(np.arange(120)).reshape(3, 40)
    assert (np.sort(seen, axis=1) == np.arange(40)).all()
    assert len({tuple(order) for order in seen.tolist()}) == 3
    assert not (seen == np.arange(40)).all(axis=1).any()
    shuffled = np.random.default_rng(0).permutation(120)
    assert np.array_equal(epochs.rows_of(shuffled), seen.ravel()[shuffled])
    for other in (Epochs(4, 1, 40), Epochs(3, 2, 40)):
        assert not np.array_equal(other.rows_of(np.arange(40)), seen[0])
