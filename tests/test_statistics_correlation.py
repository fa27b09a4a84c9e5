"""Correlations: values against SciPy, permutation p against enumeration, intervals against SciPy and by simulation."""

from itertools import permutations, product
from typing import Any

import numpy as np
import pytest
from scipy import stats

from probes import statistics
from probes.statistics import KINDS, correlations
from synthlang.errors import InputError

correlation: Any = statistics.correlation  # whose numbers may be None
SCIPY: dict[str, Any] = {"spearman": stats.spearmanr, "kendall": stats.kendalltau, "pearson": stats.pearsonr}


def _sample(n, seed, ties=False, slope=0.7):
    random = np.random.default_rng(seed)
    x = random.normal(size=n)
    y = slope * x + random.normal(size=n)
    return (np.round(x), np.round(y)) if ties else (x, y)


def plain(x, y, kind, blocks):
    """The statistic from its equation, one pair of rows after another."""
    names = sorted(set(blocks))
    if kind == "kendall":
        products, left, right = 0.0, 0.0, 0.0
        for i, j in product(range(len(x)), repeat=2):
            if blocks[i] == blocks[j]:
                a, b = np.sign(x[i] - x[j]), np.sign(y[i] - y[j])
                products, left, right = products + a * b, left + a * a, right + b * b
        return products / np.sqrt(left * right)
    u, v = np.array(x, float), np.array(y, float)
    for name in names:
        rows = [i for i, b in enumerate(blocks) if b == name]
        for side in (u, v):
            values = stats.rankdata(side[rows]) if kind == "spearman" else side[rows]
            side[rows] = values - np.mean(values)
    return u @ v / np.sqrt((u @ u) * (v @ v))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("n", "ties"), [(3, False), (7, True), (40, True), (300, False), (300, True)])
def test_without_blocks_it_is_scipys(kind, n, ties, monkeypatch):
    monkeypatch.setattr(correlations, "PERMUTATIONS", 10)
    x, y = _sample(n, n, ties)
    assert correlation(x, y, 0, kind).r == pytest.approx(SCIPY[kind](x, y).statistic, abs=1e-12)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(3))
def test_within_blocks_it_is_the_equation(kind, seed):
    x, y = _sample(30, seed, ties=seed > 0)
    blocks = np.random.default_rng(seed).integers(4, size=30).tolist()
    assert correlation(x, y, 0, kind, blocks=blocks).r == pytest.approx(plain(x, y, kind, blocks), abs=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_exact_p_is_the_share_of_all_permutations(kind):
    x, y = _sample(6, 4, ties=True)
    observed = abs(plain(x, y, kind, [0] * 6))
    every = [abs(plain(x, shuffled, kind, [0] * 6)) >= observed - 1e-9 for shuffled in permutations(y)]
    got = correlation(x, y, 0, kind)
    assert got.exact and got.p == pytest.approx(np.mean(every))


@pytest.mark.parametrize("kind", KINDS)
def test_exact_p_in_blocks_permutes_within_them(kind):
    x, y = _sample(9, 2)
    blocks = list("aabbbbccc")
    observed = abs(plain(x, y, kind, blocks))
    orders = product(permutations(range(2)), permutations(range(2, 6)), permutations(range(6, 9)))
    every = [abs(plain(x[list(a + b + c)], y, kind, blocks)) >= observed - 1e-9 for a, b, c in orders]
    got = correlation(x, y, 0, kind, blocks=blocks)
    assert len(every) == 288 and got.exact and got.p == pytest.approx(np.mean(every))


@pytest.mark.parametrize("kind", KINDS)
def test_random_p_is_close_to_scipys(kind):
    x, y = _sample(40, 5, slope=0.25)
    got = correlation(x, y, 11, kind)
    assert not got.exact and got.p == pytest.approx(SCIPY[kind](x, y).pvalue, abs=0.02)
    assert got == correlation(x, y, 11, kind) and got.p != correlation(x, y, 12, kind).p


@pytest.mark.parametrize("kind", KINDS)
def test_an_effect_within_blocks_against_the_trend_between_them(kind):
    """Simpson: better blocks have less x, but within each y grows with x."""
    random = np.random.default_rng(0)
    block = np.repeat(np.arange(4), 8)
    x = random.normal(size=32) - 10.0 * block
    y = x + 0.3 * random.normal(size=32) + 25.0 * block
    whole, within = correlation(x, y, 0, kind), correlation(x, y, 0, kind, blocks=block.tolist())
    assert whole.r < -0.5 and within.r > 0.7
    assert within.p == pytest.approx(1 / 10_001) and within.low > 0.5


def test_a_difference_between_blocks_alone_is_nothing():
    random = np.random.default_rng(1)
    block = np.repeat(np.arange(2), 12)
    x, y = random.normal(size=24) + 20 * block, random.normal(size=24) + 20 * block
    assert correlation(x, y, 0, "pearson").p < 0.001
    assert correlation(x, y, 0, "pearson", blocks=block.tolist()).p > 0.05


@pytest.mark.parametrize("kind", KINDS)
def test_intervals_are_scipys(kind, monkeypatch):
    monkeypatch.setattr(correlations, "BOOTSTRAP_ROUNDS", 4000)
    x, y = _sample(25, 0, slope=0.6)
    got = correlation(x, y, 3, kind)
    methods: dict[str, Any] = {
        "kendall": (_taus, "percentile"), "spearman": (_rhos, "percentile"), "pearson": (_cosines, "BCa"),
    }  # fmt: skip
    other = _interval(x, y, *methods[kind])
    assert (got.low, got.high) == pytest.approx((other.low, other.high), abs=0.03)


def _interval(x, y, statistic, method):
    def along(a, b, axis=-1):
        return statistic(a, b)

    found = stats.bootstrap((x, y), along, paired=True, n_resamples=4000, rng=1, method=method)
    return found.confidence_interval


def _cosines(a, b):
    a, b = a - a.mean(-1, keepdims=True), b - b.mean(-1, keepdims=True)
    return (a * b).sum(-1) / np.sqrt((a * a).sum(-1) * (b * b).sum(-1))


def _rhos(a, b):
    return _cosines(stats.rankdata(a, axis=-1), stats.rankdata(b, axis=-1))


def _taus(a, b):
    signs = [np.sign(s[..., :, None] - s[..., None, :]).reshape(*s.shape[:-1], -1) for s in np.broadcast_arrays(a, b)]
    return (signs[0] * signs[1]).sum(-1) / np.sqrt((signs[0] ** 2).sum(-1) * (signs[1] ** 2).sum(-1))


def test_an_interval_covers_about_as_often_as_it_says(monkeypatch):
    monkeypatch.setattr(correlations, "PERMUTATIONS", 1)
    monkeypatch.setattr(correlations, "BOOTSTRAP_ROUNDS", 500)
    hits = 0
    for seed in range(150):
        x, y = _sample(30, 1000 + seed, slope=0.75)
        got = correlation(x, y, seed, "pearson")
        hits += got.low <= 0.6 <= got.high  # 0.75 / √(0.75² + 1)
    assert 0.88 <= hits / 150 <= 0.98


@pytest.mark.parametrize("kind", KINDS)
def test_invariances(kind):
    x, y = _sample(20, 9)
    r = correlation(x, y, 0, kind).r
    assert correlation(y, x, 0, kind).r == pytest.approx(r)
    assert correlation(3 * x - 7, -2 * y, 0, kind).r == pytest.approx(-r)
    assert correlation(x, x, 0, kind).r == pytest.approx(1)
    if kind != "pearson":
        assert correlation(np.exp(x), y, 0, kind).r == pytest.approx(r)


@pytest.mark.parametrize(("x", "y", "blocks", "message"), [
    ([], [], None, "0 pairs: a correlation needs at least 3"),
    ([1, 2], [2, 1], None, "2 pairs"),
    ([1, 1, 1], [1, 2, 3], None, "the first side is constant"),
    ([1, 2, 3, 4], [5, 5, 6, 6], list("aabb"), "the second side is constant within every block"),
    ([1, 2, 3], [3, 2, 1], list("abc"), "the first side is constant within every block"),
])  # fmt: skip
def test_no_number_but_a_reason(x, y, blocks, message):
    got = correlation(x, y, 0, blocks=blocks)
    assert message in got.reason
    assert (got.r, got.p, got.low, got.high) == (None, None, None, None)


@pytest.mark.parametrize("wrong", [float("nan"), float("inf")])
def test_nan_is_refused(wrong):
    with pytest.raises(InputError, match="NaN or infinity"):
        correlation([1, 2, wrong], [1, 2, 3], 0)


def test_a_constant_that_is_no_round_number_is_constant():
    got = correlation([0.1] * 7 + [0.3] * 7, list(range(14)), 0, "pearson", blocks=["a"] * 7 + ["b"] * 7)
    assert got.reason is not None and got.r is None
