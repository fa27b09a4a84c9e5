"""Maps between normalised spaces: planted rotations, SciPy, streams of many layers."""

from typing import get_args

import numpy as np
import pytest
import torch
from scipy.linalg import orthogonal_procrustes
from scipy.stats import ortho_group

from probes.rotation.fitted import MapFitter, NormalisedMap, fit_layers, fit_map
from probes.rotation.normalise import Normaliser
from probes.rotation.procrustes import Fit, Fitter
from probes.rotation.settings import Method
from tests.refusals import refused

WIDTH = 8


def rows(count: int, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    scales, shift = torch.logspace(-0.5, 0.5, WIDTH), torch.linspace(2, -1, WIDTH)
    return (torch.randn(count, WIDTH, generator=generator, dtype=torch.float64) * scales + shift).float()


def turn(seed: int = 0) -> torch.Tensor:
    return torch.from_numpy(ortho_group.rvs(WIDTH, random_state=seed)).float()


def plain_fit(x: torch.Tensor, y: torch.Tensor, centre: bool) -> Fit:
    fitter = Fitter(WIDTH)
    fitter.update(x, y)
    return fitter.fit(centre)


def found(fitted: NormalisedMap, x: torch.Tensor, y: torch.Tensor) -> float:
    """Share of rows of ``x`` whose nearest row of ``y`` by cosine is their own."""
    a, b = (torch.nn.functional.normalize(side, dim=1) for side in (fitted.apply(x), fitted.apply_right(y)))
    return float(((a @ b.T).argmax(1) == torch.arange(len(x))).float().mean())


@pytest.mark.parametrize("method", get_args(Method))
def test_a_planted_rotation_is_found(method):
    x, new = rows(300), rows(50, seed=3)
    w = turn()
    fitted = fit_map(x, x @ w.T, method)
    torch.testing.assert_close(fitted.fit.map.matrix.float(), w, atol=1e-5, rtol=0)
    torch.testing.assert_close(fitted.apply(new), fitted.apply_right(new @ w.T), atol=1e-5, rtol=0)
    assert fitted.fit.residual < 1e-10 < 0.1 < fitted.fit.identity
    assert found(fitted, new, new @ w.T) == 1.0 > 0.5 > found(fit_map(x, x, method), new, new @ w.T)


def test_lengths_are_undone_by_iterations_and_shifts_by_centring():
    """Positive control of each normalisation: what the plain rotation gets wrong, it gets right."""
    x, w = rows(300), turn(2)
    shifted = x @ w.T + torch.linspace(-30, 50, WIDTH)
    plain, centred = fit_map(x, shifted), fit_map(x, shifted, "centre")
    torch.testing.assert_close(centred.fit.map.matrix.float(), w, atol=1e-5, rtol=0)
    assert float((plain.fit.map.matrix.float() - w).abs().max()) > 0.1
    stretched = (x @ w.T) * torch.logspace(-2, 2, 300)[
        :, None
    ]  # each vector its own length: only the direction is kept
    iterated = fit_map(x, stretched, "iterative")
    torch.testing.assert_close(iterated.fit.map.matrix.float(), w, atol=1e-4, rtol=0)
    assert float((fit_map(x, stretched, "centre").fit.map.matrix.float() - w).abs().max()) > 0.05


@pytest.mark.parametrize("method", get_args(Method))
def test_it_is_scipys_on_normalised_rows(method):
    x, y = rows(100), rows(100, seed=1) @ turn(3)
    fitted = fit_map(x, y, method)
    a, b = (Normaliser.fit(side, method).apply(side.double()).numpy() for side in (x, y))
    expected, _ = orthogonal_procrustes(a, b)
    np.testing.assert_allclose(fitted.fit.map.matrix.numpy(), expected.T, atol=1e-10)
    assert fitted.fit.residual == pytest.approx(np.square(a @ expected - b).sum(1).mean())


def test_without_normalisation_it_is_the_map_of_before():
    """Kulshreshtha et al. 2020, equation 5, from both ways to centre."""
    x, y, new = rows(60), rows(60, seed=1), rows(9, seed=2)
    for centre in (False, True):
        old, fitted = plain_fit(x, y, centre), fit_map(x, y, centre=centre)
        torch.testing.assert_close(fitted.fit.map.matrix, old.map.matrix, atol=1e-12, rtol=0)
        torch.testing.assert_close(fitted.apply(new), old.map.apply(new))
        torch.testing.assert_close(fitted.linear().apply(new), old.map.apply(new))
    centred = fit_map(x, y, "centre")
    x_mean, y_mean = x.double().mean(0), y.double().mean(0)
    by_hand = (new.double() - x_mean) @ centred.fit.map.matrix.T + y_mean
    torch.testing.assert_close(centred.linear().apply(new.double()), by_hand)
    torch.testing.assert_close(plain_fit(x, y, centre=True).map.apply(new.double()), by_hand)
    both = fit_map(x, y, "centre", centre=True)
    torch.testing.assert_close(both.linear().apply(new.double()), by_hand)
    assert refused(fit_map(x, y, "iterative").linear) == ("", "conflict")


def test_means_of_whole_vocabularies():
    """As Zhang et al. have it: normalised on all words, turned by those of a dictionary."""
    x, w = rows(500), turn(4)
    y = x @ w.T + 4.0
    sides = Normaliser.fit(x, "iterative"), Normaliser.fit(y + 0.0, "iterative")
    fitter = MapFitter(*sides)
    fitter.update(x[:40], y[:40])
    fitted = fitter.fit()
    assert fitted.left is sides[0] and fitted.left.rows == 500 and fitted.fit.pairs == 40
    assert not torch.allclose(fitted.left.means, fit_map(x[:40], y[:40], "iterative").left.means)


@pytest.mark.parametrize("method", get_args(Method))
def test_layers_in_one_stream_are_maps_one_by_one(method, monkeypatch):
    """However the pairs come, and whatever the size of a block."""
    monkeypatch.setattr("probes.layer_cache.ROWS", 32)
    x = torch.stack([rows(101, seed) for seed in range(3)])
    y = torch.stack([rows(101, seed + 9) for seed in range(3)])
    x[1, 7] = 0.0
    cuts = [(0, 30), (30, 30), (30, 101)]
    maps = fit_layers(((x[:, a:b], y[:, a:b]) for a, b in cuts), 3, WIDTH, method, 3)
    for layer, saved in enumerate(maps):
        expected = fit_map(x[layer], y[layer], method, rounds=3)
        torch.testing.assert_close(saved.fit.map.matrix, expected.fit.map.matrix, atol=1e-9, rtol=0)
        torch.testing.assert_close(saved.left.means, expected.left.means, atol=1e-12, rtol=0)
        assert saved.zeros == expected.zeros == (layer == 1) and saved.fit.pairs == 101 - saved.zeros
        torch.testing.assert_close(saved.apply(x[layer, :5]), expected.apply(x[layer, :5]), atol=1e-5, rtol=0)


@pytest.mark.parametrize("method", get_args(Method))
def test_zeros_are_left_out_and_stay(method):
    x, y = rows(60), rows(60, seed=1)
    a, b = torch.cat([x, x[:2], torch.zeros(1, WIDTH)]), torch.cat([y, torch.zeros(2, WIDTH), y[:1]])
    fitted = fit_map(a, b, method)
    assert (fitted.zeros, fitted.fit.pairs) == (3, 60) and fitted.to_json()["zeros"] == 3
    moved = fit_map(x, y, method, centre=True).apply(a)
    assert torch.equal(moved[-1], torch.zeros(WIDTH)) and bool((moved[:-1] != 0).any(1).all())


X, NAN = rows(10), rows(10).index_fill(0, torch.tensor([3]), float("nan"))


REFUSED = [
    (X, X[:, :4], "none", "conflict"),
    (X, X[:, :4], "iterative", "conflict"),
    (X[:, :4], X, "centre", "conflict"),
    (X, NAN, "none", "damaged"),
    (NAN, X, "iterative", "damaged"),
    (X[:0], X[:0], "none", "empty"),
    (X[:0], X[:0], "iterative", "empty"),
    (X, torch.zeros(10, WIDTH), "none", "empty"),
    (X[:1], X[1:2], "iterative", "empty"),
]


@pytest.mark.parametrize(("x", "y", "method", "code"), REFUSED)
def test_bad_pairs_are_refused(x, y, method, code):
    assert refused(fit_map, x, y, method) == ("", code)
    assert refused(fit_layers, [(x[None], y[None])], 1, x.shape[1], method) == ("", code)
    one = fit_map(X[:1], X[1:2], "centre")  # one sentence: the numbers say that it means nothing
    assert one.fit.pairs == 1 and one.fit.rank == 0 and torch.equal(one.fit.map.matrix.float(), torch.eye(WIDTH))
