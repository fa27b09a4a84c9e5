"""CKA where memory is short, where states say nothing, and where they are no numbers."""

import argparse
import json
import math

import pytest
import torch

from probes.bench import cka as bench
from probes.measures.cka.similarity import CKA
from probes.moments import Centre
from probes.spool import Spool
from synthlang.errors import InputError
from tests.test_cka import gathered, same, states


@pytest.mark.parametrize("memory", [1, 40_000, 90_000])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_short_memory_changes_nothing(memory, dtype, tmp_path):
    """One strip, a few, and all but a few at a time, from a file, against all at once."""
    left, right = states(5, 203, 24).to(dtype) + 3.0, states(4, 203, 16, seed=1).to(dtype)
    reports = []
    gather = CKA(5, 4, 24, 16, memory=memory, folder=tmp_path)
    assert gather._spool is not None
    for start in range(0, 203, 50):
        gather.update(left[:, start : start + 50], right[:, start : start + 50])
    found = gather.result(lambda task, done, total, note: reports.append((done, total)))
    same(found, gathered(left, right), atol=1e-11)
    assert reports == [(i + 1, len(reports)) for i in range(len(reports))]
    assert len(gather._groups) >= 2 and len(reports) % len(gather._groups) == 0
    assert list(tmp_path.iterdir()) == []  # the file has no name
    gather.update(left, right)
    same(gather.result(), gathered(torch.cat([left, left], 1), torch.cat([right, right], 1)), atol=1e-11)


def test_groups_fit_and_hold_every_job_once():
    for memory in (1, 50_000, 100_000, 200_000, 10**9):
        gather = CKA(5, 4, 24, 16, memory=memory)
        for group in gather._groups:
            held = sum(8 * 24 * 16 * 4 if job.side != job.other else 8 * (24, 16)[job.side] ** 2 for job in group)
            assert held <= memory or len(group) == 1
        jobs = [job for group in gather._groups for job in group]
        assert len(jobs) == len(set(jobs)) == 5 + 5 + 4
        assert [job.layer for job in jobs if job.side != job.other] == list(range(5))
    assert len(gather._groups) == 1 and gather._spool is None
    # what is promised for MEMORY
    assert CKA(13, 13, 768, 768)._spool is None
    assert CKA(25, 25, 1024, 1024)._spool is not None


def test_a_full_disk_is_a_clear_line(tmp_path, monkeypatch):
    spool = Spool(tmp_path)

    class Full:
        def seek(self, *_):
            return 0

        def tell(self):
            return 5 * 2**20

        def write(self, _):
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(spool, "_file", Full())
    with pytest.raises(InputError, match="5 MB so far: No space left on device; choose another folder"):
        spool.write(torch.zeros(2, 3), torch.zeros(2, 3))


@pytest.mark.parametrize("value", [0.0, 0.1, 1e5])
def test_a_layer_that_says_nothing(value):
    """All sentences alike: NaN in its row and a reason, the other layers as without it."""
    left, right = states(3, 30, 6).float(), states(2, 30, 6, seed=1).float()
    expected = gathered(left, right)
    left[1] = value
    found = gathered(left, right)
    assert found.undefined == ("left layer 1: all 30 sentences have the same vector",)
    assert bool(found.biased[1].isnan().all() and found.debiased[1].isnan().all())
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
    if n == 2:  # two points are a line: every layer is like every other
        torch.testing.assert_close(found.biased, torch.ones(2, 2, dtype=torch.float64))
    assert found.numbers("debiased") is None


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("side", ["left", "right"])
def test_states_that_are_no_numbers(bad, side):
    left, right = states(3, 20, 4), states(3, 20, 4, seed=1)
    broken = (left if side == "left" else right).clone()
    broken[2, 7, 1] = bad
    gather = CKA(3, 3, 4, 4)
    gather.update(left, right)
    with pytest.raises(InputError, match=f"{side} layer 2 gives NaN or infinity"):
        gather.update(*((broken, right) if side == "left" else (left, broken)))
    same(gather.result(), gathered(left, right), atol=0)  # none of the bad batch was taken


@pytest.mark.parametrize("scale", [1e-18, 1e18])
def test_no_overflow_and_no_underflow(scale):
    left, right = states(2, 30, 5).float(), states(2, 30, 5, seed=1).float()
    same(gathered(left * scale, right * scale), gathered(left, right), atol=1e-6)


def test_json():
    left, right = states(3, 30, 6), states(3, 30, 6, seed=1)
    left[1] = 2.0
    found = gathered(left, right)
    read = {name: json.loads(json.dumps(found.numbers(name), allow_nan=False)) for name in ("biased", "debiased")}
    assert found.n == 30 and len(found.undefined) == 1 and read["biased"][1] == [None] * 3
    assert read["debiased"][2][0] == pytest.approx(float(found.debiased[2, 0]), rel=1e-5)


def test_rows_about_a_point():
    rows = states(1, 50, 4)[0] + 1e6
    centre = Centre()
    less = torch.cat([centre.add(part) for part in rows.split(9)])
    torch.testing.assert_close(centre.mean, rows.mean(0), rtol=1e-14, atol=0)
    torch.testing.assert_close(centre.shift, less.mean(0), rtol=1e-12, atol=1e-12)
    assert torch.equal(centre.about(rows), less) and centre.count == 50
    assert float(less.abs().max()) < 50


def test_the_benchmark_measures():
    parser = argparse.ArgumentParser()
    bench.add_arguments(parser)
    full = parser.parse_args([])
    assert (full.cka_layers, full.cka_sentences, full.cka_width) == (9, 10_000, 768)
    for memory, ends in (("8", False), ("1000", True)):
        size = ["--cka-layers", "3", "--cka-sentences", "300", "--cka-width", "256", "--cka-memory", memory]
        found = bench.run_options(parser.parse_args(size))
        assert (CKA(3, 3, 256, 256, memory=int(memory) * 2**20)._spool is None) is ends
        assert found["seconds"] > 0 and found["peak_memory_mb"] > 10
        assert all(ratio > 0 for kinds in found["ratio_to_products"].values() for ratio in kinds.values())
        # half of the variance of each side is common, so that sides correlate with 0.5 in each direction
        assert found["debiased_average"] == pytest.approx(0.25, abs=0.05) and found["biased_average"] > 0.4
