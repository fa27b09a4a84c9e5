"""Counter-based randomness against an independent scalar version and its distribution."""

import numpy as np
from scipy import stats

from synthlang.rng import key_of, permutation, random_bits, uniform

MASK64 = 2**64 - 1
GOLDEN = 0x9E3779B97F4A7C15


def mix(z):
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK64
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK64
    return z ^ (z >> 31)


def test_the_mixer_is_splitmix64():
    """First outputs of SplitMix64 with seed 0, as published with the reference implementation."""
    assert mix(GOLDEN) == 0xE220A8397B1DCDAF
    assert mix((2 * GOLDEN) & MASK64) == 0x6E789E6AA1B965F4


def test_bits_equal_the_scalar_definition():
    key = key_of("a", 1)
    for i in (0, 1, 7, 10**12):
        for j in (0, 3):
            state = mix((key + GOLDEN) & MASK64)
            for counter in (i, j):
                state = mix((state + (counter + 1) * GOLDEN) & MASK64)
            assert int(random_bits(key, i, j)[0]) == state
            assert int(random_bits(key, np.asarray([i]), j)[0]) == state


def test_uniform_is_uniform_and_uncorrelated():
    values = uniform(key_of("u"), np.arange(20000))
    assert stats.kstest(values, "uniform").pvalue > 0.001
    assert abs(np.corrcoef(values[:-1], values[1:])[0, 1]) < 0.03


def test_keys_tell_types_and_borders_apart():
    assert len({key_of("a", "b"), key_of("ab"), key_of("a", 1), key_of("a", "1"), key_of("b", "a")}) == 5


def test_permutation_is_one_and_depends_on_the_key():
    assert sorted(permutation(3, 100)) == list(range(100))
    assert list(permutation(3, 100)) != list(permutation(4, 100))
