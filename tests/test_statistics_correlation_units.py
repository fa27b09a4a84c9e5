"""Clusters: what a permutation moves and what a bootstrap draws."""

from itertools import permutations
from typing import Any

import numpy as np
import pytest
from scipy import stats

from probes import statistics
from probes.statistics import KINDS, correlations
from probes.statistics.correlations import Units, arrangements, drawn_weights, every_arrangement, groups_of

correlation: Any = statistics.correlation  # whose numbers may be None


def _cells(cells, seeds, seed, noise=0.2):
    """x of each cell on all its seeds, y of each seed; nothing to do with each other."""
    random = np.random.default_rng(seed)
    x = np.repeat(random.normal(size=cells), seeds)
    y = np.repeat(random.normal(size=cells), seeds) + noise * random.normal(size=cells * seeds)
    return x, y, np.repeat(np.arange(cells), seeds).tolist()


def test_p_is_the_share_of_all_orders_of_the_cells():
    x, y, cell = _cells(5, 3, 1)
    of_cell = x[::3]
    observed = abs(stats.pearsonr(x, y).statistic)
    every = [abs(stats.pearsonr(np.repeat(order, 3), y).statistic) for order in permutations(of_cell)]
    got = correlation(x, y, 0, "pearson", clusters=cell)
    assert got.clusters == 5 and got.exact
    assert got.r == pytest.approx(stats.pearsonr(x, y).statistic)
    assert got.p == pytest.approx(np.mean([value >= observed - 1e-9 for value in every]))


def test_cells_of_other_numbers_of_seeds_exchange_their_one_x():
    x, y, cell = _cells(5, 3, 2)
    keep = [i for i in range(15) if i not in (4, 5, 14)]  # cells of 3, 1, 3, 3 and 2 seeds
    cells = [cell[i] for i in keep]
    of_cell = x[::3]
    observed = abs(stats.spearmanr(x[keep], y[keep]).statistic)
    every = [abs(stats.spearmanr([order[c] for c in cells], y[keep]).statistic) for order in permutations(of_cell)]
    expected = np.mean([value >= observed - 1e-9 for value in every])
    assert correlation(x[keep], y[keep], 0, clusters=cells).p == pytest.approx(expected)
    assert correlation(y[keep], x[keep], 0, clusters=cells).p == pytest.approx(expected)


def test_runs_whose_checkpoints_differ_move_as_wholes_and_only_to_the_same_length():
    random = np.random.default_rng(3)
    sizes = [4, 4, 4, 2, 2]
    cluster = np.repeat(np.arange(5), sizes)
    x, y = random.normal(size=16), random.normal(size=16)
    parts = np.split(x, np.cumsum(sizes)[:-1])
    observed = abs(stats.pearsonr(x, y).statistic)
    every = []
    for long in permutations(range(3)):
        for short in permutations((3, 4)):
            moved = np.concatenate([parts[i] for i in (*long, *short)])
            every.append(abs(stats.pearsonr(moved, y).statistic) >= observed - 1e-9)
    got = correlation(x, y, 0, "pearson", clusters=cluster.tolist())
    assert len(every) == 12 and got.exact and got.p == pytest.approx(np.mean(every))


def test_cells_that_are_in_several_blocks_move_with_all_their_rows():
    """Tasks as blocks: a cell has a row in each, and all of them get the alignment of another cell."""
    random = np.random.default_rng(4)
    of_cell, y = random.normal(size=4), random.normal(size=8)
    task, cell = ["pos", "ner"] * 4, np.repeat(np.arange(4), 2)

    def within(x):
        u, v = x.copy(), y.copy()
        for part in (slice(0, 8, 2), slice(1, 8, 2)):
            u[part] -= u[part].mean()
            v[part] -= v[part].mean()
        return abs(u @ v) / np.sqrt((u @ u) * (v @ v))

    observed = within(of_cell[cell])
    expected = np.mean([within(np.array(order)[cell]) >= observed - 1e-9 for order in permutations(of_cell)])
    got = correlation(of_cell[cell], y, 0, "pearson", blocks=task, clusters=cell.tolist())
    assert got.exact and got.p == pytest.approx(expected)


def test_clusters_that_cannot_change_places_have_no_p():
    random = np.random.default_rng(5)
    got = correlation(random.normal(size=6), random.normal(size=6), 0, clusters=list("aaabbc"))
    assert got.r is not None and got.p is None and "nothing can change places" in got.no_p
    assert got.low is None and "3 clusters" in got.no_interval


def test_seeds_taken_as_independent_find_what_is_not_there(monkeypatch):
    """Without clusters the p of 5 % is far more frequent than 5 %; with them it is not."""
    monkeypatch.setattr(correlations, "PERMUTATIONS", 400)
    monkeypatch.setattr(correlations, "SMALLEST_BOOTSTRAP", 1000)
    found = {True: 0, False: 0}
    for seed in range(100):
        x, y, cell = _cells(10, 4, seed)
        for clustered in found:
            p = correlation(x, y, seed, "pearson", clusters=cell if clustered else None).p
            found[clustered] += p <= 0.05
    assert found[True] / 100 <= 0.12 < 0.25 < found[False] / 100


def test_the_interval_of_clusters_covers_and_is_wider(monkeypatch):
    monkeypatch.setattr(correlations, "PERMUTATIONS", 1)
    monkeypatch.setattr(correlations, "BOOTSTRAP_ROUNDS", 200)
    hits = {True: 0, False: 0}
    for seed in range(100):
        random = np.random.default_rng(seed)
        own = random.normal(size=24)
        x = np.repeat(own, 4)
        y = np.repeat(0.6 * own + 0.8 * random.normal(size=24), 4)
        for clustered in hits:
            got = correlation(
                x, y, seed, "pearson", clusters=np.repeat(np.arange(24), 4).tolist() if clustered else None
            )
            hits[clustered] += got.low <= 0.6 <= got.high
    assert hits[True] / 100 >= 0.86 > 0.75 > hits[False] / 100


@pytest.mark.parametrize("kind", KINDS)
def test_the_interval_of_clusters_with_strong_ranks_holds_the_estimate(kind):
    """Twelve cells in two blocks, two seeds each, nearly in order: the bounds must not fall together beside r."""
    random = np.random.default_rng(0)
    cell = np.repeat(np.arange(12), 2)
    y = -2.0 * cell + random.normal(size=24)
    got = correlation(cell, y, 0, kind, blocks=(cell // 6).tolist(), clusters=cell.tolist())
    assert got.low <= got.r <= got.high and got.high - got.low > 0.01


def test_every_arrangement_is_there_once():
    units = Units.of(np.array([0, 0, 0, 1, 1, 1]), np.arange(6))
    groups = units.groups(np.arange(6.0))
    rows = np.concatenate(list(every_arrangement(groups, 6)))
    assert arrangements(groups) == len(rows) == len({tuple(row) for row in rows.tolist()}) == 36
    assert (np.sort(rows[:, :3], axis=1) == [0, 1, 2]).all() and (np.sort(rows[:, 3:], axis=1) == [3, 4, 5]).all()


def test_draws_keep_the_number_of_clusters_of_a_block():
    block, cluster = np.array([0, 0, 0, 0, 1, 1, 2]), np.array([0, 0, 1, 2, 3, 4, 5])
    units = Units.of(block, cluster)
    weights = drawn_weights(units, 50, np.random.default_rng(0))
    assert (weights[:, 0] == weights[:, 1]).all()  # a cell comes with all its seeds
    assert (weights[:, [0, 2, 3]].sum(1) == 3).all() and (weights[:, [4, 5]].sum(1) == 2).all()
    assert (weights[:, 6] == 1).all() and len(np.unique(weights, axis=0)) > 10


def test_groups_of_nothing():
    assert groups_of(np.array([], np.intp)) == ()
