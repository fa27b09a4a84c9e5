"""Which types a dictionary draws."""

import numpy as np
import pytest

from synthlang.dictionary.words import DictionarySpec, draw

COUNTS = np.asarray([9, 9, 9, 9, 9, 100, 50, 0, 25, 25, 0, 10, 5, 1])


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"coverage": 0.25, "by": "type", "order": "frequent"}, [5, 6]),
        ({"coverage": 0.0}, []),
        ({"coverage": 1.0}, [5, 6, 8, 9, 11, 12, 13]),
        # 216 running tokens: 100 are 46 %, 150 are 69 %
        ({"coverage": 0.45, "by": "token", "order": "frequent"}, [5]),
        ({"coverage": 0.5, "by": "token", "order": "frequent"}, [5, 6]),
        ({"coverage": 1.0, "by": "token", "order": "frequent"}, [5, 6, 8, 9, 11, 12, 13]),
    ],
)
def test_dictionaries_by_hand(spec, expected):
    assert draw(DictionarySpec(**spec), COUNTS).tolist() == expected


def test_a_uniform_dictionary_is_uniform_seeded_and_nested():
    counts = np.ones(2000, np.int64)
    small, large = (set(draw(DictionarySpec(coverage=c), counts).tolist()) for c in (0.25, 0.5))
    assert len(small) == round(0.25 * 1995)
    assert small < large
    assert small != set(draw(DictionarySpec(coverage=0.25, seed=1), counts).tolist())
    assert abs(np.mean(sorted(small)) - 1002) < 80
