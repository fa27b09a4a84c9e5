"""Numbers of samples of each source (exact, smooth and independent of the path to a step), and orders of rows."""

from fractions import Fraction
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import chisquare

import pretrain.data.quotas as module
from pretrain.build import sampling_weights
from pretrain.data.batches import Epochs
from pretrain.data.quotas import Draws, Quotas
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
