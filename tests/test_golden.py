"""Comparing with golden files: exact but for floats, and a failure says where."""

from __future__ import annotations

import pytest

from tests import golden
from tests.golden import check_golden, differences, digest


@pytest.mark.parametrize(
    ("kept", "value", "told"),
    [
        ({"a": 1}, {"a": 2}, ["['a']: kept 1, now 2"]),
        ({"a": 1}, {"b": 1}, ["['a']: kept 1, now gone", "['b']: new, 1"]),
        ([1, [2]], [1, [3], 4], ["(all): kept 2 entries, now 3", "[1][0]: kept 2, now 3"]),
        ({"a": [{"b": "x"}]}, {"a": [{"b": "y"}]}, ["['a'][0]['b']: kept 'x', now 'y'"]),
        (1, 1.0, ["(all): kept 1, now 1.0"]),
        (1, True, ["(all): kept 1, now True"]),
        (100.0, 100.2, ["(all): kept 100.0, now 100.2"]),
        (float("inf"), 1.0, ["(all): kept inf, now 1.0"]),
        (100.0, 100.05, []),
        ({"a": [1, "x", None, float("nan")]}, {"a": (1, "x", None, float("nan"))}, []),
    ],
)
def test_differences(kept, value, told):
    assert list(differences(kept, value, rtol=1e-3)) == told


def test_floats_are_exact_unless_a_tolerance_is_named():
    assert list(differences(1.0, 1.0 + 1e-15))
    assert not list(differences(0.0, 1e-9, atol=1e-8))


def test_it_writes_and_compares(tmp_path, monkeypatch):
    monkeypatch.setattr(golden, "FOLDER", tmp_path)
    monkeypatch.delenv("SYNTHLANG_GOLDEN", raising=False)
    with pytest.raises(AssertionError, match="is missing"):
        check_golden("more/x", {"a": [1.5, "é"]})
    monkeypatch.setenv("SYNTHLANG_GOLDEN", "write")
    check_golden("more/x", {"a": [1.5, "é"]})
    monkeypatch.delenv("SYNTHLANG_GOLDEN")
    check_golden("more/x", {"a": [1.5, "é"]})
    with pytest.raises(AssertionError, match=r"2 entries differ from x\.json:\n  \['a'\]\[0\]: kept 1\.5, now 2\.5"):
        check_golden("more/x", {"a": [2.5, "e"]})


def test_a_digest_knows_no_order_of_keys():
    assert digest({"a": 1, "b": [2]}) == digest({"b": [2], "a": 1}) != digest({"a": 1, "b": [3]})
