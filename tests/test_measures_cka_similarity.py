"""CKA against its definition with n × n kernels, invariances, controls, bounded memory, and states that say nothing."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import ortho_group

from probes import layer_cache
from probes.measures.cka import similarity
from probes.measures.cka.similarity import CKA
from synthlang.errors import InputError


def states(layers: int, n: int, width: int, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    scales = torch.linspace(0.3, 2.0, width, dtype=torch.float64) ** 2
    return torch.randn(layers, n, width, generator=generator, dtype=torch.float64) * scales


def gathered(left, right, sizes=None, **settings_of):
    gather = CKA(left.shape[0], right.shape[0], left.shape[2], right.shape[2], **settings_of)
    for a, b in zip(left.split(sizes or left.shape[1], 1), right.split(sizes or left.shape[1], 1), strict=True):
        gather.update(a, b)
    return gather.result()


def of_kernels(x: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """Biased and debiased CKA of [n, d] and [n, d'], as Kornblith et al. and Song et al. write them."""
    n = len(x)
    kernels = x @ x.T, y @ y.T
    centring = np.eye(n) - np.ones((n, n)) / n

    def biased(a, b):
        return np.trace(a @ centring @ b @ centring) / (n - 1) ** 2

    def debiased(a, b):
        a, b = (kernel - np.diag(np.diag(kernel)) for kernel in (a, b))
        one = np.ones(n)
        sums = (one @ a @ one) * (one @ b @ one) / ((n - 1) * (n - 2))
        return (np.trace(a @ b) + sums - 2 / (n - 2) * (one @ a @ b @ one)) / (n * (n - 3))

    def ratio(hsic):
        a, b = kernels
        return hsic(a, b) / math.sqrt(hsic(a, a) * hsic(b, b))

    return ratio(biased), ratio(debiased)


def same(found, expected, atol=1e-9):
    torch.testing.assert_close(found.biased, expected.biased, atol=atol, rtol=0)
    torch.testing.assert_close(found.debiased, expected.debiased, atol=atol, rtol=0)
    assert found.n == expected.n


@pytest.mark.parametrize("n", [4, 5, 12, 60])
@pytest.mark.parametrize("away", [0.0, 4.0])
def test_it_is_the_one_of_kernels(n, away):
    """Other numbers of layers, other widths, more and fewer sentences than dimensions, means away from 0."""
    left, right = states(3, n, 7) + away, states(2, n, 11, seed=1)
    right[1, :, :5] += left[2, :, :5]
    found = gathered(left, right)
    for i in range(3):
        for j in range(2):
            biased, debiased = of_kernels(left[i].numpy(), right[j].numpy())
            assert float(found.biased[i, j]) == pytest.approx(biased, abs=1e-10)
            assert float(found.debiased[i, j]) == pytest.approx(debiased, abs=1e-9)
    assert found.n == n and not found.undefined
    assert found.biased.shape == found.debiased.shape == (3, 2)


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    n=st.integers(4, 40),
    widths=st.tuples(st.integers(2, 9), st.integers(2, 9)),
    scale=st.floats(1e-3, 1e3),
)
def test_turns_scales_moves_and_orders_change_nothing(seed, n, widths, scale):
    left, right = states(2, n, widths[0], seed), states(2, n, widths[1], seed + 1)
    right[..., :2] += left[..., :2]
    expected = gathered(left, right)
    turn = torch.from_numpy(ortho_group.rvs(widths[0], random_state=seed))
    order = torch.randperm(n, generator=torch.Generator().manual_seed(seed))
    same(gathered(left @ turn, right), expected)
    same(gathered(left * scale, right * -2.0), expected)
    same(gathered(left + scale, right - 3.0), expected, atol=1e-8)
    same(gathered(left[:, order], right[:, order]), expected)
    mirrored = gathered(right, left)
    torch.testing.assert_close(mirrored.biased.T, expected.biased, atol=1e-10, rtol=0)
    torch.testing.assert_close(mirrored.debiased.T, expected.debiased, atol=1e-9, rtol=0)
    assert bool((expected.biased >= 0).all() and (expected.biased <= 1 + 1e-12).all())
    assert bool((expected.debiased <= 1 + 1e-9).all())
    if n > 20:  # what it is not invariant to: rows that no longer belong together, and a map that is not orthogonal
        other = gathered(left[:, order], right)
        stretched = gathered(left * torch.linspace(0.1, 5, widths[0], dtype=torch.float64), right)
        assert not torch.allclose(other.biased, expected.biased, atol=1e-6)
        assert not torch.allclose(stretched.biased, expected.biased, atol=1e-6)


def test_controls():
    """Unrelated states with d > n are alike to the biased one only; the more of a shared signal, the larger."""
    few = gathered(states(3, 40, 200), states(3, 40, 200, seed=5))
    assert float(few.biased.min()) > 0.5 > 0.1 > float(few.debiased.abs().max())
    many = gathered(states(2, 5000, 10), states(2, 5000, 10, seed=5))
    assert float(many.biased.max()) < 0.02 and float(many.debiased.abs().max()) < 0.01
    signal, noise, mate = states(1, 60, 120), states(1, 60, 120, seed=1), states(1, 60, 120, seed=2)
    found = [float(gathered(a * signal + noise, a * signal + mate).debiased) for a in (0.0, 0.5, 1.0, 2.0, 8.0)]
    assert found == sorted(found)
    assert abs(found[0]) < 0.1 and found[2] > 0.2 and found[-1] > 0.9


def test_the_debiased_one_is_unbiased_over_draws():
    """Its mean over 200 draws of few unrelated sentences is 0 within 4 standard errors. The biased mean is not."""
    draws = [gathered(states(1, 8, 6, 2 * i), states(1, 8, 6, 2 * i + 1)) for i in range(200)]
    debiased = np.array([float(draw.debiased) for draw in draws])
    assert abs(debiased.mean()) < 4 * debiased.std() / math.sqrt(200)
    assert np.mean([float(draw.biased) for draw in draws]) > 0.2


@pytest.mark.parametrize(("memory", "groups"), [(1, 29), (100_000, 3), (10**9, 1)])
@pytest.mark.parametrize("sizes", [1, 7, 101])
def test_batches_and_memory_change_not_a_bit(sizes, memory, groups, monkeypatch):
    """One pair of layers at a time, some, or all as the states come."""
    monkeypatch.setattr(similarity, "ROWS", 32)
    monkeypatch.setattr(layer_cache, "ROWS", 20)
    left, right = states(5, 101, 24) + 10.0, states(4, 101, 16, seed=1)
    once, gather, heard = gathered(left, right), CKA(5, 4, 24, 16, memory=memory), []
    assert len(gather.groups) == groups and len({pair for group in gather.groups for pair in group}) == 5 * 4 + 5 + 4
    for a, b in zip(left.split(sizes, 1), right.split(sizes, 1), strict=True):
        gather.update(a, b)
    gather.update(left[:, :0], right[:, :0])  # no sentences are no sentences
    same(gather.result(lambda task, done, total, note: heard.append((done, total))), once, atol=0)
    assert heard == [(done, groups) for done in range(1, groups + 1)]


@pytest.mark.parametrize("memory", [100_000, 10**9])
def test_a_result_may_come_at_any_time(memory, monkeypatch):
    monkeypatch.setattr(similarity, "ROWS", 32)
    left, right = states(5, 101, 24) + 10.0, states(4, 101, 16, seed=1)
    gather = CKA(5, 4, 24, 16, memory=memory)
    for start in range(0, 101, 10):
        gather.update(left[:, start : start + 10], right[:, start : start + 10])
        same(gather.result(), gathered(left[:, : start + 10], right[:, : start + 10]), atol=1e-12)


def test_a_first_block_unlike_the_rest(monkeypatch):
    """Sentences in an order with a trend, so that the points are far from the means."""
    monkeypatch.setattr(similarity, "ROWS", 16)
    left, right = states(1, 400, 6), states(1, 400, 6, seed=1)
    left[:, :16] += 1e4
    right += torch.linspace(0, 50, 400, dtype=torch.float64)[:, None]
    found = gathered(left, right)
    biased, debiased = of_kernels(*((side[0] - side[0].mean(0)).numpy() for side in (left, right)))
    assert float(found.biased) == pytest.approx(biased, abs=1e-9)
    assert float(found.debiased) == pytest.approx(debiased, abs=1e-9)


@pytest.mark.parametrize("away", [1e3, 1e6])
def test_a_mean_far_away_costs_no_digits(away, monkeypatch):
    """Shifted rows lose only the digits that the shift itself rounds off."""
    monkeypatch.setattr(similarity, "ROWS", 16)
    grid = [(side * 64).round() / 64 for side in (states(2, 120, 6), states(2, 120, 40, seed=1))]
    expected = gathered(*grid)
    same(gathered(grid[0] + away, grid[1] - 2 * away), expected, atol=1e-11)
    naive = of_kernels((grid[0][0] + 1e6).numpy(), grid[1][0].numpy())[1]
    assert abs(naive - float(expected.debiased[0, 0])) > 1e-9  # the kernels as such lose them: the control


@pytest.mark.parametrize("value", [0.0, 0.1, 1e5])
def test_a_layer_that_says_nothing(value):
    """All sentences alike: NaN in its row and a reason, the other layers as without it."""
    left, right = states(3, 30, 6).float(), states(2, 30, 6, seed=1).float()
    expected = gathered(left, right)
    left[1] = value
    found = gathered(left, right)
    assert found.undefined == ("left layer 1: all 30 sentences have the same vector",)
    assert bool(found.biased[1].isnan().all() and found.debiased[1].isnan().all())
    assert found.numbers("biased")[1] == [None] * 2
    torch.testing.assert_close(found.biased[[0, 2]], expected.biased[[0, 2]])
    torch.testing.assert_close(found.debiased[[0, 2]], expected.debiased[[0, 2]])
    both = gathered(right, left)
    assert both.undefined == ("right layer 1: all 30 sentences have the same vector",)
    assert bool(both.biased[:, 1].isnan().all()) and not bool(both.biased[:, [0, 2]].isnan().any())


def test_rounding_is_no_signal():
    """Sentences that differ in the last bit of float32 only are the same."""
    left = torch.full((1, 30, 6), 0.7)
    left[0, ::2, 0] = torch.nextafter(left[0, ::2, 0], torch.tensor(1.0))
    assert left.unique().numel() == 2
    assert gathered(left, states(1, 30, 6)).undefined
    assert not gathered(left + states(1, 30, 6).float() * 1e-4, states(1, 30, 6)).undefined


def test_sentences_equally_far_from_each_other():
    """One-hot rows, turned and moved or not: like themselves by the biased one, and nothing to the debiased one."""
    simplex = torch.eye(9, dtype=torch.float64)[None]
    found = gathered(simplex, torch.cat([simplex, states(1, 9, 9)]))
    assert float(found.biased[0, 0]) == pytest.approx(1.0)
    assert bool(found.debiased[0].isnan().all())
    assert found.undefined == (
        "left layer 0, debiased: all 9 sentences are equally far from each other",
        "right layer 0, debiased: all 9 sentences are equally far from each other",
    )
    assert gathered(simplex.float() * 0.1 + 5.0, states(1, 9, 9)).undefined


@pytest.mark.parametrize("n", [2, 3])
def test_too_few_sentences_for_the_debiased_one(n):
    found = gathered(states(2, n, 5), states(2, n, 5, seed=1))
    assert found.debiased is None
    assert bool(found.biased.isfinite().all())
    assert found.numbers("debiased") is None
    if n == 2:  # two points are a line: every layer is like every other
        torch.testing.assert_close(found.biased, torch.ones(2, 2, dtype=torch.float64))
    for few, said in ((0, "none"), (1, "only one")):
        with pytest.raises(InputError, match=f"at least 2 sentences .* there is {said}"):
            gathered(states(1, few, 4), states(1, few, 4))


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("side", ["left", "right"])
def test_states_that_are_no_numbers(bad, side):
    left, right = states(3, 20, 4), states(3, 20, 4, seed=1)
    broken = (left if side == "left" else right).clone()
    broken[2, 7, 1] = bad
    gather = CKA(3, 3, 4, 4)
    gather.update(left, right)
    with pytest.raises(InputError, match=rf"contain NaN or infinity \({side} layer 2\)"):
        gather.update(*((broken, right) if side == "left" else (left, broken)))
    same(gather.result(), gathered(left, right), atol=0)  # none of the bad batch was taken


@pytest.mark.parametrize("scale", [1e-18, 1e18])
def test_no_overflow_and_no_underflow(scale):
    left, right = states(2, 30, 5).float(), states(2, 30, 5, seed=1).float()
    same(gathered(left * scale, right * scale), gathered(left, right), atol=1e-6)
