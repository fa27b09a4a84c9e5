"""Correlations: values against SciPy, p against enumeration, intervals against SciPy and by simulation; clusters."""

from itertools import permutations, product
from typing import Any

import numpy as np
import pytest
from scipy import stats

from probes import statistics
from probes.statistics import COEFFICIENTS, correlations
from synthlang.errors import InputError

correlation: Any = statistics.correlation  # whose numbers may be None
SCIPY: dict[str, Any] = {"spearman": stats.spearmanr, "kendall": stats.kendalltau, "pearson": stats.pearsonr}
each_kind = pytest.mark.parametrize("kind", COEFFICIENTS)


def _sample(n, seed, ties=False, slope=0.7):
    random = np.random.default_rng(seed)
    x = random.normal(size=n)
    y = slope * x + random.normal(size=n)
    return (np.round(x), np.round(y)) if ties else (x, y)


def _cells(cells, seeds, seed, noise=0.2):
    """x of each cell on all its seeds, y of each seed; nothing to do with each other."""
    random = np.random.default_rng(seed)
    x = np.repeat(random.normal(size=cells), seeds)
    y = np.repeat(random.normal(size=cells), seeds) + noise * random.normal(size=cells * seeds)
    return x, y, np.repeat(np.arange(cells), seeds).tolist()


def plain(x, y, kind, blocks):
    """The statistic from its equation, one pair of rows after another."""
    if kind == "kendall":
        products, left, right = 0.0, 0.0, 0.0
        for i, j in product(range(len(x)), repeat=2):
            if blocks[i] == blocks[j]:
                a, b = np.sign(x[i] - x[j]), np.sign(y[i] - y[j])
                products, left, right = products + a * b, left + a * a, right + b * b
        return products / np.sqrt(left * right)
    u, v = np.array(x, float), np.array(y, float)
    for name in set(blocks):
        rows = [i for i, b in enumerate(blocks) if b == name]
        for side in (u, v):
            values = stats.rankdata(side[rows]) if kind == "spearman" else side[rows]
            side[rows] = values - np.mean(values)
    return u @ v / np.sqrt((u @ u) * (v @ v))


def share_of(found, x, y, kind, blocks=None):
    """Return the share of the x in ``found`` that reach the |r| of x itself."""
    blocks = [0] * len(y) if blocks is None else blocks
    observed = abs(plain(x, y, kind, blocks))
    return pytest.approx(np.mean([abs(plain(np.array(one), y, kind, blocks)) >= observed - 1e-9 for one in found]))


@each_kind
@pytest.mark.parametrize(("n", "ties"), [(3, False), (7, True), (40, True), (300, False), (300, True)])
def test_without_blocks_it_is_scipys(kind, n, ties, monkeypatch):
    monkeypatch.setattr(correlations, "PERMUTATIONS", 10)
    x, y = _sample(n, n, ties)
    assert correlation(x, y, 0, kind).r == pytest.approx(SCIPY[kind](x, y).statistic, abs=1e-12)


@each_kind
@pytest.mark.parametrize("seed", range(3))
def test_within_blocks_it_is_the_equation(kind, seed):
    x, y = _sample(30, seed, ties=seed > 0)
    blocks = np.random.default_rng(seed).integers(4, size=30).tolist()
    assert correlation(x, y, 0, kind, blocks=blocks).r == pytest.approx(plain(x, y, kind, blocks), abs=1e-12)


@each_kind
def test_exact_p_is_the_share_of_all_permutations_within_blocks(kind):
    x, y = _sample(6, 4, ties=True)
    got = correlation(x, y, 0, kind)
    assert got.exact and got.p == share_of(permutations(x), x, y, kind)
    x, y = _sample(9, 2)
    blocks = list("aabbbbccc")
    orders = product(permutations(range(2)), permutations(range(2, 6)), permutations(range(6, 9)))
    every = [x[list(a + b + c)] for a, b, c in orders]
    got = correlation(x, y, 0, kind, blocks=blocks)
    assert len(every) == 288 and got.exact and got.p == share_of(every, x, y, kind, blocks)


@each_kind
def test_random_p_is_close_to_scipys(kind):
    x, y = _sample(40, 5, slope=0.25)
    got = correlation(x, y, 11, kind)
    assert not got.exact and got.p == pytest.approx(SCIPY[kind](x, y).pvalue, abs=0.02)
    assert got == correlation(x, y, 11, kind) and got.p != correlation(x, y, 12, kind).p


def test_positive_control_and_no_correlation():
    x = np.arange(12.0)
    got = correlation(x, -np.exp(x), 1)
    assert (got.r, got.p) == pytest.approx((-1, 1 / 10_001))
    assert correlation(x[:6], x[:6], 1).p == pytest.approx(2 / 720)  # the identity and its reverse
    random = np.random.default_rng(6)
    drawn = [correlation(random.normal(size=6), random.normal(size=6), 0).p for _ in range(200)]
    assert np.mean([p <= 0.1 for p in drawn]) == pytest.approx(0.1, abs=0.06)


@each_kind
def test_an_effect_within_blocks_against_the_trend_between_them(kind):
    """Simpson: better blocks have less x, but within each y grows with x."""
    random = np.random.default_rng(0)
    block = np.repeat(np.arange(4), 8)
    x = random.normal(size=32) - 10.0 * block
    y = x + 0.3 * random.normal(size=32) + 25.0 * block
    whole, within = correlation(x, y, 0, kind), correlation(x, y, 0, kind, blocks=block.tolist())
    assert whole.r < -0.5 and within.r > 0.7
    assert within.p == pytest.approx(1 / 10_001) and within.low > 0.5


def _cosines(a, b):
    a, b = a - a.mean(-1, keepdims=True), b - b.mean(-1, keepdims=True)
    return (a * b).sum(-1) / np.sqrt((a * a).sum(-1) * (b * b).sum(-1))


def _rhos(a, b):
    return _cosines(stats.rankdata(a, axis=-1), stats.rankdata(b, axis=-1))


def _taus(a, b):
    signs = [np.sign(s[..., :, None] - s[..., None, :]).reshape(*s.shape[:-1], -1) for s in np.broadcast_arrays(a, b)]
    return (signs[0] * signs[1]).sum(-1) / np.sqrt((signs[0] ** 2).sum(-1) * (signs[1] ** 2).sum(-1))


@pytest.mark.parametrize(
    ("kind", "statistic", "method"),
    [("kendall", _taus, "percentile"), ("spearman", _rhos, "percentile"), ("pearson", _cosines, "BCa")],
)
def test_intervals_are_scipys(kind, statistic, method, monkeypatch):
    monkeypatch.setattr(correlations, "BOOTSTRAP_ROUNDS", 4000)
    x, y = _sample(25, 0, slope=0.6)
    got = correlation(x, y, 3, kind)

    def along(a, b, axis=-1):
        return statistic(a, b)

    other = stats.bootstrap((x, y), along, paired=True, n_resamples=4000, rng=1, method=method).confidence_interval
    assert (got.low, got.high) == pytest.approx((other.low, other.high), abs=0.03)
    assert correlation(x[:4], y[:4], 2, kind).low is None


@pytest.mark.parametrize(("x", "y", "blocks", "message"), [
    ([], [], None, "0 pairs: a correlation needs at least 3"),
    ([1, 2], [2, 1], None, "2 pairs"),
    ([1, 1, 1], [1, 2, 3], None, "the first variable is constant"),
    ([1, 2, 3, 4], [5, 5, 6, 6], list("aabb"), "the second variable is constant within every block"),
    ([1, 2, 3], [3, 2, 1], list("abc"), "the first variable is constant within every block"),
    ([0.1] * 7 + [0.3] * 7, range(14), list("aaaaaaabbbbbbb"), "the first variable is constant"),  # no round numbers
])  # fmt: skip
def test_no_number_but_a_reason(x, y, blocks, message):
    got = correlation(x, y, 0, "pearson", blocks=blocks)
    assert message in got.reason
    assert (got.r, got.p, got.low, got.high) == (None, None, None, None)


@pytest.mark.parametrize("wrong", [float("nan"), float("inf")])
def test_nan_is_refused(wrong):
    with pytest.raises(InputError, match="NaN or infinity"):
        correlation([1, 2, wrong], [1, 2, 3], 0)


# --- clusters: one point each ---


def means(values, cluster):
    """Return the mean of each cluster, in order of names."""
    return np.array(
        [np.mean([v for v, c in zip(values, cluster, strict=True) if c == name]) for name in sorted(set(cluster))]
    )


@each_kind
def test_a_cluster_counts_as_the_means_of_its_rows(kind):
    """Of 3, 1, 3, 3 and 2 rows; p is the share of all orders of the means; the order of the rows changes nothing."""
    random = np.random.default_rng(1)
    x, y, cell = random.normal(size=15), random.normal(size=15), np.repeat(np.arange(5), 3)
    kept = [i for i in range(15) if i not in (4, 5, 14)]
    x, y, cell = x[kept], y[kept], cell[kept].tolist()
    of_x, of_y = means(x, cell), means(y, cell)
    got = correlation(x, y, 0, kind, clusters=cell)
    assert (got.n, got.clusters, got.exact) == (12, 5, True)
    assert got.r == pytest.approx(SCIPY[kind](of_x, of_y).statistic)
    assert got.p == share_of(permutations(of_x), of_x, of_y, kind)
    alone = correlation(of_x, of_y, 0, kind)
    assert (got.p, got.low, got.high) == pytest.approx((alone.p, alone.low, alone.high))
    order = random.permutation(12)
    mixed = correlation(x[order], y[order], 0, kind, clusters=[cell[i] for i in order])
    assert (mixed.r, mixed.p) == pytest.approx((got.r, got.p))


def test_equal_numbers_of_unlike_many_rows_stay_equal():
    """(0.1 + 0.1 + 0.1) / 3 is not 0.1, which would make ranks of a tie."""
    x, cell = [0.1] * 3 + [0.1] * 2 + [0.7, 0.9], [0, 0, 0, 1, 1, 2, 3]
    y = [1.0, 1.0, 1.0, 2.0, 2.0, 3.0, 4.0]
    expected = stats.spearmanr([0.1, 0.1, 0.7, 0.9], [1, 2, 3, 4]).statistic
    assert expected < 0.99 and correlation(x, y, 0, clusters=cell).r == pytest.approx(expected)


def test_clusters_that_are_in_several_blocks_move_with_all_their_points():
    """Tasks as blocks: a cell has two seeds in each, and all of them get the alignment of another cell."""
    random = np.random.default_rng(4)
    of_cell, y = random.normal(size=4), random.normal(size=16)
    task, cell = ["pos", "pos", "ner", "ner"] * 4, np.repeat(np.arange(4), 4)
    points, tasks = y.reshape(8, 2).mean(1), ["pos", "ner"] * 4
    every = (np.repeat(order, 2) for order in permutations(of_cell))
    got = correlation(of_cell[cell], y, 0, "pearson", blocks=task, clusters=cell.tolist())
    assert got.exact and got.p == share_of(every, np.repeat(of_cell, 2), points, "pearson", tasks)


def test_only_clusters_of_the_same_blocks_change_places():
    random = np.random.default_rng(3)
    x, y = random.normal(size=8), random.normal(size=8)
    block, cell = list("aaababab"), [0, 1, 2, 3, 4, 4, 5, 5]  # three are in a, one in b, two in both
    orders = product(permutations((0, 1, 2)), permutations(((4, 5), (6, 7))))
    every = [x[[*alone, 3, *both[0], *both[1]]] for alone, both in orders]
    got = correlation(x, y, 0, "pearson", blocks=block, clusters=cell)
    assert len(every) == 12 and got.exact and got.p == share_of(every, x, y, "pearson", block)


def test_clusters_that_cannot_change_places_have_no_p():
    random = np.random.default_rng(5)
    x, y = random.normal(size=6), random.normal(size=6)
    got = correlation(x, y, 0, blocks=list("aababc"), clusters=list("uvvwww"))
    assert got.r is not None and got.p is None and "so there is no permutation" in got.no_p


def test_what_rises_between_conditions_and_falls_within_them_rises():
    """12 conditions of 3 seeds: over rows it falls, and p of conditions that were moved as wholes was that of no
    correlation; over conditions it rises."""
    x = np.repeat(np.arange(12.0), 3) + np.tile([-30.0, 0.0, 30.0], 12)
    y = np.repeat(np.arange(12.0), 3) + np.tile([30.0, 0.0, -30.0], 12)
    got = correlation(x, y, 0, clusters=np.repeat(np.arange(12), 3).tolist())
    assert stats.spearmanr(x, y).statistic < -0.5
    assert (got.r, got.p) == pytest.approx((1.0, 1 / 10_001))


def conditions(random, slope, within, count=12, seeds=3):
    """x and y of seeds of conditions: ``slope`` between conditions, ``within`` between the seeds of one."""
    between, noise = random.normal(size=(2, count, 1)), random.normal(size=(2, count, seeds))
    x = between[0] + noise[0]
    y = slope * between[0] + between[1] + within * noise[0] + noise[1]
    return x.ravel(), y.ravel(), np.repeat(np.arange(count), seeds).tolist()


@pytest.mark.parametrize(("slope", "within", "rounds", "low", "high"), [(0, -3, 300, 0.02, 0.09), (4, 0, 100, 0.8, 1)])
def test_size_and_power(slope, within, rounds, low, high, monkeypatch):
    """5 % where conditions have nothing to do with each other but seeds do; nearly always with an effect."""
    monkeypatch.setattr(correlations, "PERMUTATIONS", 400)
    monkeypatch.setattr(correlations, "SMALLEST_BOOTSTRAP", 1000)
    random, found = np.random.default_rng(7), []
    for seed in range(rounds):
        x, y, cell = conditions(random, slope, 0)
        if within:  # the seeds of a condition differ about means that they leave alone
            own = np.tile([-1.0, 0.0, 1.0], 12)
            x, y = np.repeat(means(x, cell), 3) + own, np.repeat(means(y, cell), 3) + within * own
        found.append(correlation(x, y, seed, clusters=cell).p <= 0.05)
    assert low <= np.mean(found) <= high


def test_seeds_taken_as_independent_find_what_is_not_there(monkeypatch):
    """Without clusters the p of 5 % is far more frequent than 5 %; with them it is not."""
    monkeypatch.setattr(correlations, "PERMUTATIONS", 400)
    monkeypatch.setattr(correlations, "SMALLEST_BOOTSTRAP", 1000)
    found = {True: 0, False: 0}
    for seed in range(100):
        x, y, cell = _cells(10, 4, seed)
        for clustered in found:
            found[clustered] += correlation(x, y, seed, "pearson", clusters=cell if clustered else None).p <= 0.05
    assert found[True] / 100 <= 0.12 < 0.25 < found[False] / 100


def test_the_interval_of_clusters_covers_and_is_wider(monkeypatch):
    monkeypatch.setattr(correlations, "PERMUTATIONS", 1)
    monkeypatch.setattr(correlations, "BOOTSTRAP_ROUNDS", 200)
    hits, cell = {True: 0, False: 0}, np.repeat(np.arange(24), 4).tolist()
    for seed in range(100):
        random = np.random.default_rng(seed)
        own = random.normal(size=24)
        x, y = np.repeat(own, 4), np.repeat(0.6 * own + 0.8 * random.normal(size=24), 4)
        for clustered in hits:
            got = correlation(x, y, seed, "pearson", clusters=cell if clustered else None)
            hits[clustered] += got.low <= 0.6 <= got.high
    assert hits[True] / 100 >= 0.86 > 0.75 > hits[False] / 100


@each_kind
def test_the_interval_of_clusters_with_strong_ranks_holds_the_estimate(kind):
    """Twelve cells in two blocks, two seeds each, nearly in order: the bounds must not fall together beside r."""
    random = np.random.default_rng(0)
    cell = np.repeat(np.arange(12), 2)
    y = -1.0 * cell + 1.5 * random.normal(size=24)
    got = correlation(cell, y, 0, kind, blocks=(cell // 6).tolist(), clusters=cell.tolist())
    assert got.low <= got.r <= got.high and got.high - got.low > 0.01
