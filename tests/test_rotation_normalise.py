"""Normalisation of vectors against plain NumPy, its fixed point, and what it does with rows of zeros."""

from typing import get_args

import numpy as np
import pytest
import torch

from probes.rotation.normalise import Normaliser, fit_normaliser
from probes.rotation.settings import Method
from tests.refusals import refused


def rows(count: int = 200, width: int = 6, seed: int = 0) -> torch.Tensor:
    """Anisotropic and far from 0, as the states of a language model are."""
    generator = torch.Generator().manual_seed(seed)
    scales, shift = torch.logspace(-1, 1, width), torch.linspace(3, -1, width)
    return torch.randn(count, width, generator=generator) * scales + shift


def plainly(x, method, rounds):
    """Step by step on the whole matrix in float64, without any zeros."""

    def unit(a):
        return a / np.sqrt((a**2).sum(1, keepdims=True))

    def centre(a):
        return a - a.mean(0)

    x = x.astype(np.float64)
    if method == "centre":
        return centre(x)
    if method == "unit":
        return unit(x)
    if method == "unit-centre-unit":
        return unit(centre(unit(x)))
    if method.startswith("iterative"):
        for _ in range(rounds):
            x = centre(unit(x))
        return unit(x) if method == "iterative" else x
    return x


@pytest.mark.parametrize("method", get_args(Method))
@pytest.mark.parametrize("rounds", [1, 5])
def test_it_is_what_plain_numpy_does(method, rounds):
    x = rows()
    fitted = Normaliser.fit(x, method, rounds)
    expected = plainly(x.numpy(), method, rounds)
    np.testing.assert_allclose(fitted.apply(x.double()).numpy(), expected, atol=1e-12)
    np.testing.assert_allclose(fitted.apply(x).numpy(), expected, atol=2e-5 if method == "centre" else 2e-6)
    assert (fitted.rows, fitted.zeros) == (200, 0)
    if method != "none":
        assert float(np.abs(expected - x.numpy()).max()) > 0.1  # the control: something was done
    new = rows(7, seed=9)
    torch.testing.assert_close(fitted.apply(new), torch.cat([fitted.apply(row[None]) for row in new]))
    cut = fit_normaliser(lambda: [x[:1], x[1:150], x[150:150], x[150:]], 6, method, rounds)
    torch.testing.assert_close(cut.means, fitted.means, atol=1e-12, rtol=0)


def test_iterations_come_to_unit_rows_with_mean_zero():
    x = rows().double()
    lengths = []
    for rounds in (1, 2, 5, 30):
        normal = Normaliser.fit(x, "iterative", rounds).apply(x)
        torch.testing.assert_close(normal.norm(dim=1), torch.ones(200, dtype=torch.float64), atol=1e-12, rtol=0)
        lengths.append(float(normal.mean(0).norm()))
    assert lengths == sorted(lengths, reverse=True)
    assert lengths[0] > 0.02 and lengths[2] < 2e-3 and lengths[3] < 1e-7
    printed = Normaliser.fit(x, "iterative-as-printed", 30).apply(x)
    assert float(printed.mean(0).norm()) < 1e-14
    torch.testing.assert_close(printed.norm(dim=1), torch.ones(200, dtype=torch.float64), atol=1e-6, rtol=0)
    means = Normaliser.fit(x, "iterative", 5).to_json()["means"]
    assert len(means) == 5 and means[0] > 0.4 > 0.01 > means[4]


@pytest.mark.parametrize("method", get_args(Method))
def test_rows_of_zeros_are_counted_and_stay(method):
    x = rows()
    with_zeros = torch.cat([torch.zeros(3, 6), x, torch.zeros(2, 6)])
    fitted = Normaliser.fit(with_zeros, method)
    assert (fitted.rows, fitted.zeros) == (200, 5)
    torch.testing.assert_close(fitted.means, Normaliser.fit(x, method).means)
    normal = fitted.apply(with_zeros)
    assert int((normal == 0).all(1).sum()) == 5 and bool((normal[:3] == 0).all())
    torch.testing.assert_close(normal[3:-2], fitted.apply(x))


def test_tiny_and_huge_rows_keep_their_direction():
    x = torch.tensor([[3e-30, 4e-30], [3e30, 4e30], [0.0, 1e-44]])
    normal = Normaliser("unit", 1, torch.zeros(0, 2)).apply(x)
    torch.testing.assert_close(normal, torch.tensor([[0.6, 0.8], [0.6, 0.8], [0.0, 1.0]]))


def test_a_row_on_the_mean_is_nothing_and_not_rounding():
    directions = torch.tensor([[1.0, 0, 0], [0, 1.0, 0], [0, 0, 1.0]])
    x = torch.cat([directions, torch.ones(1, 3)])
    fitted = Normaliser.fit(directions * 7, "unit-centre-unit")
    on_the_mean = torch.full((1, 3), 1 / 3)
    centre_only = Normaliser("iterative-as-printed", 1, fitted.means, 3, 0)
    assert not bool((fitted.apply(x) == 0).all(1).any())
    # mean of length 1 in the direction of a row: that row is left with nothing
    pointed = Normaliser("unit-centre-unit", 1, torch.ones(1, 3, dtype=torch.float64) / 3**0.5, 3, 0)
    assert torch.equal(pointed.apply(on_the_mean), torch.zeros(1, 3))
    assert float(centre_only.apply(directions).sum(0).abs().max()) < 1e-6


@pytest.mark.parametrize("method", ["unit-centre-unit", "iterative", "iterative-as-printed"])
def test_rows_that_all_point_the_same_way_are_refused(method):
    for same in (torch.ones(1, 4), torch.arange(1.0, 6)[:, None] * torch.tensor([[0.3, 0.1, -0.7, 0.2]])):
        assert refused(Normaliser.fit, same, method) == ("", "empty")
    assert torch.equal(Normaliser.fit(torch.ones(1, 4), "centre").means, torch.ones(1, 4, dtype=torch.float64))


@pytest.mark.parametrize("method", get_args(Method))
def test_bad_rows_are_refused_and_types_kept(method):
    cases = [(torch.zeros(0, 3), "empty")]
    cases += [(rows().index_fill(0, torch.tensor([5]), bad), "damaged") for bad in (float("nan"), float("inf"))]
    cases += [(torch.zeros(4, 3), "empty")] if method != "none" else []
    for bad, code in cases:
        assert refused(Normaliser.fit, bad, method) == ("", code)
    x, fitted = rows(), Normaliser.fit(rows(), method, 3)
    exact, scale = fitted.apply(x.double()), max(1.0, float(x.abs().max()))
    for dtype, error in ((torch.float32, 1e-5), (torch.bfloat16, 0.05)):
        normal = fitted.apply(x.to(dtype).view(2, 100, 6))
        assert normal.dtype == dtype and normal.shape == (2, 100, 6)
        torch.testing.assert_close(normal.double().view(200, 6), exact, atol=error * scale, rtol=0)
    assert ("rounds" in fitted.to_json()) == method.startswith("iterative")
