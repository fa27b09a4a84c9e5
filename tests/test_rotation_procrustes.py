"""Orthogonal Procrustes against SciPy, planted maps, and one pass over many batches."""

import numpy as np
import pytest
import torch
from scipy.linalg import orthogonal_procrustes
from scipy.stats import ortho_group

from probes.rotation.procrustes import Fit, Fitter, LinearMap


def rows(count: int, width: int, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(count, width, generator=generator, dtype=torch.float64) * torch.linspace(0.5, 3, width)


def procrustes(x: torch.Tensor, y: torch.Tensor, centre: bool = False) -> Fit:
    fitter = Fitter(x.shape[1])
    fitter.update(x, y)
    return fitter.fit(centre)


def orthogonal(width: int, seed: int = 0) -> torch.Tensor:
    return torch.from_numpy(ortho_group.rvs(width, random_state=seed))


def is_orthogonal(matrix: torch.Tensor) -> bool:
    return torch.allclose(matrix.T @ matrix, torch.eye(len(matrix), dtype=torch.float64), atol=1e-12)


@pytest.mark.parametrize("centre", [False, True])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_it_is_scipys(seed, centre):
    x, y = rows(60, 7, seed) + 2.0, rows(60, 7, seed + 10) - 1.0
    fit = procrustes(x, y, centre)
    a, b = (x - x.mean(0), y - y.mean(0)) if centre else (x, y)
    expected, _ = orthogonal_procrustes(a.numpy(), b.numpy())  # its rows are mapped by x R
    np.testing.assert_allclose(fit.map.matrix.numpy(), expected.T, atol=1e-10)
    plain = np.square(a.numpy() @ expected - b.numpy()).sum(1).mean()
    assert fit.residual == pytest.approx(plain)
    assert fit.identity == pytest.approx(float((x - y).square().sum(1).mean()))
    assert float((fit.map.apply(x) - y).square().sum(1).mean()) == pytest.approx(fit.residual)
    assert fit.pairs == 60 and fit.rank == 7
    assert fit.orthogonality < 1e-12


@pytest.mark.parametrize("seed", [0, 1, 3])  # determinants of both signs
def test_a_planted_map_is_found(seed):
    turn, shift = orthogonal(6, seed), torch.arange(6, dtype=torch.float64) * 10
    x = rows(40, 6) + 5.0
    y = x @ turn.T + shift
    fit = procrustes(x, y, centre=True)
    torch.testing.assert_close(fit.map.matrix, turn, atol=1e-10, rtol=0)
    new = rows(9, 6, seed=7)
    torch.testing.assert_close(fit.map.apply(new), new @ turn.T + shift, atol=1e-9, rtol=0)
    assert fit.residual < 1e-9 < fit.identity
    turned = procrustes(x, x @ turn.T)
    torch.testing.assert_close(turned.map.matrix, turn, atol=1e-10, rtol=0)
    torch.testing.assert_close(turned.map.apply(new), new @ turn.T, atol=1e-9, rtol=0)
    assert procrustes(x, y).residual > 1.0  # without centring the shift cannot be undone: the control


@pytest.mark.parametrize("count", [1, 3, 8, 100])
@pytest.mark.parametrize("centre", [False, True])
def test_never_worse_than_no_map_and_always_orthogonal(count, centre):
    for seed in range(10):
        x, y = rows(count, 8, seed), rows(count, 8, seed + 50) + 1.0
        fit = procrustes(x, y, centre)
        assert fit.residual <= fit.identity + 1e-9
        assert is_orthogonal(fit.map.matrix)
        assert float((fit.map.apply(x) - y).square().sum(1).mean()) == pytest.approx(fit.residual, abs=1e-9)
        assert fit.rank == min(8, count - centre)


@pytest.mark.parametrize("centre", [False, True])
def test_batches_are_one_batch(centre):
    x, y = rows(101, 5) + 1000.0, rows(101, 5, 1) - 300.0
    fitter = Fitter(5)
    for start, stop in ((0, 1), (1, 40), (40, 40), (40, 99), (99, 101)):
        fitter.update(x[start:stop], y[start:stop])
    once, often = procrustes(x, y, centre), fitter.fit(centre)
    for name in ("matrix", "before", "after"):
        torch.testing.assert_close(getattr(often.map, name), getattr(once.map, name), atol=1e-8, rtol=1e-10)
    assert often.residual == pytest.approx(once.residual, rel=1e-8)
    assert (often.pairs, often.rank) == (once.pairs, once.rank) == (101, 5)
    before = often.map.before.clone()
    fitter.update(x, y * 2)
    assert torch.equal(often.map.before, before)  # a fit does not change when more is gathered
    assert fitter.fit(centre).pairs == 202


def test_open_directions_are_turned_as_little_as_possible():
    """Fewer words than dimensions, and states whose elements sum to 0 as after a LayerNorm: still exact, still I."""
    x = rows(5, 12)
    same = procrustes(x, x.clone())
    torch.testing.assert_close(same.map.matrix, torch.eye(12, dtype=torch.float64), atol=1e-10, rtol=0)
    assert same.rank == 5 and same.residual == pytest.approx(0.0, abs=1e-9)
    normed = torch.nn.functional.layer_norm(rows(400, 12).float(), (12,))
    fit = procrustes(normed, normed.clone(), centre=True)
    torch.testing.assert_close(fit.map.matrix, torch.eye(12, dtype=torch.float64), atol=1e-6, rtol=0)
    assert fit.rank == 11
    # a turn of the first two dimensions, seen in them only, leaves the others alone
    turn = torch.eye(4, dtype=torch.float64)
    turn[:2, :2] = orthogonal(2)
    flat = rows(20, 4) * torch.tensor([1.0, 1.0, 0.0, 0.0])
    torch.testing.assert_close(procrustes(flat, flat @ turn.T).map.matrix, turn, atol=1e-10, rtol=0)
    nothing = procrustes(torch.zeros(3, 4), torch.zeros(3, 4))
    assert torch.equal(nothing.map.matrix, torch.eye(4, dtype=torch.float64)) and nothing.rank == 0


def test_a_map_keeps_types_and_shapes():
    fit = procrustes(rows(30, 4), rows(30, 4, 1), centre=True)
    x = rows(6, 4).view(2, 3, 4)
    exact = fit.map.apply(x)
    assert exact.shape == (2, 3, 4) and exact.dtype == torch.float64
    for dtype, error in ((torch.float32, 1e-5), (torch.bfloat16, 0.1)):
        mapped = fit.map.apply(x.to(dtype))
        assert mapped.dtype == dtype
        torch.testing.assert_close(mapped.double(), exact, atol=error, rtol=error)
    moved = fit.map.to(torch.device("cpu"), torch.float32)
    assert moved.to(torch.device("cpu"), torch.float32) is moved
    assert isinstance(moved, LinearMap) and fit.map.matrix.dtype == torch.float64
    assert set(fit.to_json()) == {"pairs", "rank", "residual", "identity", "orthogonality"}
