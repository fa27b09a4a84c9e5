"""The search for nearest neighbours beside its definition: all similarities in float64, one pair at a time."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from pretrain import nearest as search
from pretrain import nearest_lists
from pretrain.nearest import nearest
from tests.refusals import refusal, refused

CPU = torch.device("cpu")


def cosines(x, y):
    a, b = (np.asarray(side, np.float64) for side in (x, y))
    lengths = [np.linalg.norm(side, axis=1, keepdims=True) for side in (a, b)]
    return (a / np.where(lengths[0] > 0, lengths[0], 1)) @ (b / np.where(lengths[1] > 0, lengths[1], 1)).T


def definition(x, y, pairs, k, barred=()):
    """{(direction, score): (credit of each pair, all scores)}, both directions as rows of queries."""
    cos, found = cosines(x, y), {}
    for a, b in barred:
        cos[a, b] = -np.inf

    def density(row):
        near = sorted(value for value in row if value > -np.inf)[::-1][:k]
        return sum(near) / max(1, len(near))

    r = [np.array([density(row) for row in table]) for table in (cos, cos.T)]
    csls = 2 * cos - r[0][:, None] - r[1][None]
    zero = [np.linalg.norm(np.asarray(side), axis=1) == 0 for side in (x, y)]
    for name, table in (("cosine", cos), ("csls", csls)):
        for way, s in enumerate((table, table.T)):
            credit = []
            for pair in pairs:
                scores, own = s[pair[way]], s[pair[way]][pair[1 - way]]
                lost = zero[0][pair[0]] or zero[1][pair[1]] or own < scores.max() - 1e-6
                credit.append(0.0 if lost else 1 / (scores >= scores.max() - 1e-6).sum())
            found[("forward", "backward")[way], name] = np.array(credit), s
    return found


def cases(name):
    """x, y, pairs; hubs: a few rows near to everything, and outliers, so that CSLS and the cosine disagree."""
    rng = np.random.default_rng(5)
    x = rng.normal(size=(90, 6))
    pairs = np.stack([rng.permutation(90)[:60], rng.integers(0, 70, 60)], 1)
    y = rng.normal(size=(70, 6))
    y[pairs[:, 1]] = x[pairs[:, 0]] + 0.6 * rng.normal(size=(60, 6))
    if name == "hubs":
        x, y = x + 2, y * np.exp(rng.normal(size=(70, 1))) + 2
    if name == "duplicates":
        y[10:30], x[5:9] = y[9], x[4]
    if name == "collapsed":
        x, y = np.ones((90, 6)), np.ones((70, 6))
    if name == "zeros":
        x[::4], y[::5] = 0, 0
    if name == "small":  # fewer rows than k
        pairs = np.array([[0, 1], [3, 1], [2, 2], [0, 0]])
        x, y = x[:4], np.stack([-x[1], x[0] + 0.1, x[2]])
    return torch.from_numpy(x).float(), torch.from_numpy(y).float(), pairs


@pytest.fixture
def blocks(monkeypatch):
    """Several blocks of exact scores, although there are few rows."""
    monkeypatch.setattr(search, "BLOCK_SCORES", 300)
    monkeypatch.setattr(search, "TAKEN", 16)
    monkeypatch.setattr(nearest_lists, "GROUP", 3)


@pytest.mark.parametrize("tile", [3, 7, 64, 8192])
@pytest.mark.parametrize("name", ["plain", "hubs", "duplicates", "collapsed", "zeros", "small"])
def test_credits_are_those_of_the_definition(name, tile, blocks):
    x, y, pairs = cases(name)
    found = nearest(x, y, torch.from_numpy(pairs), k=5, tile=tile)
    scores = set()
    for (way, score), (credit, _) in definition(x, y, pairs, 5).items():
        assert getattr(getattr(found, way), score).credit.numpy() == pytest.approx(credit), (way, score)
        scores.add(round(credit.mean(), 6))
    assert len(scores) > 1 or name == "collapsed"


@pytest.mark.parametrize("tile", [7, 8192])
@pytest.mark.parametrize("name", ["plain", "hubs", "zeros", "small"])
@pytest.mark.parametrize("listed", [1, 10])
def test_rows_that_are_no_candidates_of_each_other(name, tile, listed, blocks, monkeypatch):
    monkeypatch.setattr(search, "LISTED", listed)
    x, y, pairs = cases(name)
    some = min(len(x), len(y))
    barred = np.stack([np.arange(some), np.random.default_rng(1).permutation(some)], 1)[:: 1 if name == "small" else 2]
    x[barred[:, 0]] = y[barred[:, 1]]  # one row that stands in both sets: it would be its own nearest neighbour
    pairs = pairs[[(a, b) not in set(map(tuple, barred)) for a, b in pairs]]
    found = nearest(x, y, torch.from_numpy(pairs), barred=torch.from_numpy(barred), k=3, tile=tile, top=2)
    for (way, score), (credit, _) in definition(x, y, pairs, 3, barred).items():
        assert getattr(getattr(found, way), score).credit.numpy() == pytest.approx(credit), (way, score)
    for a, b in barred:
        assert b not in found.forward.cosine.indices[a] and a not in found.backward.csls.indices[b]
    without = nearest(x, y, torch.from_numpy(pairs), k=3)
    assert not torch.equal(without.forward.density, found.forward.density)


def test_a_row_whose_only_candidate_is_barred_finds_nothing():
    x = torch.eye(2)
    found = nearest(x, x[:1], torch.tensor([[0, 0], [1, 0]]), barred=torch.tensor([[0, 0]]), top=1)
    assert found.forward.cosine.credit.tolist() == found.forward.csls.credit.tolist() == [0, 1]
    assert found.forward.csls.indices.tolist() == [[-1], [0]]
    assert found.forward.density.tolist() == [0, 0]
    assert found.backward.cosine.credit.tolist() == [0, 1]


@pytest.mark.parametrize("listed", [1, 10, 200])
@pytest.mark.parametrize("name", ["plain", "hubs", "zeros", "small"])
def test_lists_of_nearest_rows_are_those_of_the_definition(name, listed, monkeypatch):
    """Short lists leave nearly all work to the exact scores, and long lists leave none. Both give the same rows."""
    monkeypatch.setattr(search, "LISTED", listed)
    monkeypatch.setattr(search, "BLOCK_SCORES", 500)
    x, y, pairs = cases(name)
    k, top = (10, 4) if listed == 200 else (2, 2)
    asking = torch.tensor([2, 0, 1]) if name == "small" else torch.randperm(70)[:33]
    some = nearest(x, y, top=top, k=k, queries=(None, asking), tile=16)
    for (way, score), (_, scores) in definition(x, y, pairs, k).items():
        got = getattr(getattr(some, way), score)
        rows = np.arange(len(x)) if way == "forward" else asking.numpy()
        expected = -np.sort(-scores[rows], axis=1)[:, :top]
        assert got.scores.numpy() == pytest.approx(expected, abs=2e-6)
        for number, (row, indices) in enumerate(zip(rows, got.indices.numpy(), strict=True)):
            if not (x if way == "forward" else y)[row].any():
                assert (indices == -1).all()
                continue
            assert len(set(indices)) == len(indices) == expected.shape[1]
            assert scores[row][indices] == pytest.approx(expected[number], abs=2e-6)


def test_a_planted_permutation_is_found_and_noise_is_at_chance():
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(400, 32, generator=generator)
    order = torch.randperm(400, generator=generator)
    pairs = torch.stack([order, torch.arange(400)], 1)
    planted = nearest(x, x[order] + 0.05 * torch.randn(400, 32, generator=generator), pairs, top=1)
    for way in (planted.forward, planted.backward):
        assert way.cosine.credit.mean() == way.csls.credit.mean() == 1
    assert (planted.backward.csls.indices[:, 0] == order).all()
    noise = nearest(x, torch.randn(400, 32, generator=generator), pairs)
    for way in (noise.forward, noise.backward):
        assert max(way.cosine.credit.mean(), way.csls.credit.mean()) < 0.02


def test_a_common_rotation_and_scales_change_nothing():
    x, y, pairs = cases("hubs")
    turn = torch.linalg.qr(torch.randn(6, 6, generator=torch.Generator().manual_seed(2))).Q
    lengths = torch.logspace(-30, 18, 90).unsqueeze(1)
    one = nearest(x, y, torch.from_numpy(pairs), top=3)
    other = nearest(lengths * (x @ turn), 0.01 * (y @ turn), torch.from_numpy(pairs), top=3)
    for way in ("forward", "backward"):
        for score in ("cosine", "csls"):
            a, b = (getattr(getattr(found, way), score) for found in (one, other))
            assert torch.equal(a.credit, b.credit) and torch.equal(a.indices, b.indices)


@pytest.mark.parametrize("noise", [0.3, 1.0])
def test_rounding_decides_nothing_where_cosines_are_near_one(noise):
    """As in trained models: all rows in a narrow cone, many dimensions, several tiles."""
    generator = torch.Generator().manual_seed(0)
    spectrum = torch.arange(1, 129).float() ** -0.5
    x = torch.randn(800, 128, generator=generator) * spectrum + 2 * spectrum
    y = x + noise * torch.randn(800, 128, generator=generator) * spectrum
    pairs = torch.arange(800).unsqueeze(1).expand(-1, 2)
    found = nearest(x, y, pairs, tile=300)
    for (way, score), (credit, _) in definition(x, y, pairs.numpy(), 10).items():
        assert getattr(getattr(found, way), score).credit.numpy() == pytest.approx(credit)
        assert credit.mean() > 0.7


@pytest.mark.parametrize("kind", ["float16", "float64", "map", "bfloat16"])
def test_any_float_type_and_mapped_files_are_read(kind, tmp_path):
    x, y, pairs = cases("plain")
    x, y = (side.bfloat16() if kind == "bfloat16" else side.half() for side in (x, y))
    expected = nearest(x.float(), y.float(), torch.from_numpy(pairs), top=2, tile=32)
    if kind == "map":
        np.save(tmp_path / "x.npy", x.numpy())
        x = np.load(tmp_path / "x.npy", mmap_mode="r")
    elif kind != "float16":
        x = x.double() if kind == "float64" else x.requires_grad_()
    found = nearest(x, y, torch.from_numpy(pairs), top=2, tile=32)
    assert torch.equal(found.forward.csls.indices, expected.forward.csls.indices)
    assert torch.equal(found.backward.cosine.credit, expected.backward.cosine.credit)


@pytest.mark.parametrize("empty", [0, 1, 2])
def test_an_empty_side_finds_nothing(empty):
    x, y = torch.ones(0 if empty != 1 else 3, 4), torch.ones(0 if empty else 3, 4)
    found = nearest(x, y, top=2)
    assert found.forward.csls.indices.shape == (len(x), min(2, len(y)))
    assert found.backward.density.shape == (len(y),)
    assert len(found.forward.cosine.credit) == 0


def test_bad_input_is_named():
    x, y, _ = cases("plain")
    y[17, 3] = float("nan")
    assert refusal(nearest, x, y).reason == "row 17 of the second vectors has NaN or infinity"
    assert refused(nearest, y.nan_to_num(float("inf")), x) == ("", "damaged")
    for wrong in ({"k": 0}, {"tile": 0}, {"top": -1}):
        assert refused(nearest, x, x, **wrong) == ("", "range")
