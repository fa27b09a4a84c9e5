from __future__ import annotations

import json

import numpy as np
import pytest
import torch

from pretrain.alignment import AlignmentScores, Retrieval, alignment
from synthlang.errors import InputError


def _random(n: int, d: int, seed: int, extra: int = 0) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """A noisy copy, a dictionary mask and further rows: scores far from both 0 and 100."""
    generator = torch.Generator().manual_seed(seed)
    parent = torch.randn(n, d, generator=generator)
    derived = parent + 1.5 * torch.randn(n, d, generator=generator)
    mask = torch.rand(n, generator=generator) < 0.3
    return parent, derived, mask, torch.randn(extra, d, generator=generator)


def _reference(
    parent: torch.Tensor, derived: torch.Tensor, mask: torch.Tensor, extra: torch.Tensor, k: int, csls: bool
) -> dict[str, tuple[float, float, int]]:
    """The definition, one pair of words at a time, in float64."""
    p, t = parent.double().numpy(), torch.cat([derived, extra]).double().numpy()
    n, m = len(p), len(t)
    cos = np.zeros((n, m))
    for i in range(n):
        for j in range(m):
            cos[i, j] = p[i] @ t[j] / (np.linalg.norm(p[i]) * np.linalg.norm(t[j]))
    r_p = [np.mean(sorted(cos[i])[::-1][:k]) for i in range(n)]
    r_t = [np.mean(sorted(cos[:, j])[::-1][:k]) for j in range(m)]
    s = np.array([[2 * cos[i, j] - r_p[i] - r_t[j] if csls else cos[i, j] for j in range(m)] for i in range(n)])
    forward = np.array([s[i].argmax() == i for i in range(n)])
    backward = np.array([s[:, i].argmax() == i for i in range(n)])
    result = {}
    for name, members in (("all", np.ones(n, bool)), ("in_dictionary", mask.numpy()), ("held_out", ~mask.numpy())):
        result[name] = (100 * forward[members].mean(), 100 * backward[members].mean(), int(members.sum()))
    return result


@pytest.mark.parametrize("extra", [0, 17])
@pytest.mark.parametrize("csls", [False, True])
@pytest.mark.parametrize("seed", [0, 1])
def test_equals_the_definition(seed: int, csls: bool, extra: int) -> None:
    parent, derived, mask, further = _random(60, 12, seed, extra)
    scores = alignment(parent, derived, mask, further if extra else None, k=5, chunk=7)
    for name, (forward, backward, n) in _reference(parent, derived, mask, further, 5, csls).items():
        subset = getattr(scores, name)
        got = subset.csls if csls else subset.cosine
        assert subset.n == n
        assert 0 < forward < 100 or name != "all"
        assert (got.forward, got.backward) == pytest.approx((forward, backward))
        assert got.mean == pytest.approx((forward + backward) / 2)


def test_a_planted_alignment_scores_100_and_random_rows_score_100_over_n() -> None:
    parent, _, mask, _ = _random(200, 32, 3)
    noise = torch.randn(200, 32, generator=torch.Generator().manual_seed(9))
    rotation = torch.linalg.qr(torch.randn(32, 32, generator=torch.Generator().manual_seed(4))).Q
    full = Retrieval(100.0, 100.0, 100.0)
    planted = alignment(parent, 3 * parent + 0.01 * noise, mask)
    assert planted.all and planted.held_out and planted.in_dictionary
    assert planted.all.cosine == planted.all.csls == planted.held_out.cosine == planted.in_dictionary.csls == full
    # Isometric but not shared: only the rotation separates them, so the score is chance.
    rotated = alignment(parent, parent @ rotation, mask)
    assert rotated.all and rotated.all.cosine.mean < 5
    means = []
    for seed in range(30):
        chance = alignment(*_random(50, 16, 100 + seed)[:1], torch.randn(50, 16), torch.ones(50, dtype=torch.bool))
        assert chance.all
        means.append(chance.all.cosine.forward)
    assert np.mean(means) == pytest.approx(2.0, abs=1.5)


def test_unchanged_by_chunks_rotation_and_the_length_of_rows() -> None:
    parent, derived, mask, further = _random(150, 24, 5, extra=20)
    expected = alignment(parent, derived, mask, further)
    for chunk in (5, 13, 150, 4096):
        assert alignment(parent, derived, mask, further, chunk=chunk) == expected
    rotation = torch.linalg.qr(torch.randn(24, 24, generator=torch.Generator().manual_seed(4))).Q
    lengths = torch.logspace(-30, 18, 150).unsqueeze(1)
    moved = alignment(lengths * (parent @ rotation), 0.1 * (derived @ rotation), mask, 7 * (further @ rotation))
    assert moved == expected


def test_the_directions_differ_and_swap() -> None:
    parent, derived, mask, _ = _random(80, 8, 6)
    there, back = alignment(parent, derived, mask).all, alignment(derived, parent, mask).all
    assert there and back
    assert there.cosine.forward == back.cosine.backward != there.cosine.backward
    assert there.csls.forward == pytest.approx(back.csls.backward)


def test_ties_count_their_share() -> None:
    nobody = torch.zeros(4, dtype=torch.bool)
    collapsed = alignment(torch.ones(4, 3), torch.ones(4, 3), nobody).all
    assert collapsed and collapsed.cosine == collapsed.csls == Retrieval(25.0, 25.0, 25.0)
    rows = torch.eye(4)
    derived = rows.clone()
    derived[1] = 2 * rows[0]  # word 0 ties with it; word 1 has cosine 0 to all four rows
    scores = alignment(rows, derived, nobody).all
    assert scores and scores.cosine.forward == 100 * (0.5 + 0.25 + 1 + 1) / 4
    assert scores.cosine.backward == 75.0


def test_rows_of_zeros_miss() -> None:
    parent, derived = torch.eye(4), torch.eye(4)
    parent[0] = 0
    derived[1] = 0
    scores = alignment(parent, derived, torch.tensor([True, False, False, False]))
    assert scores.all and scores.all.cosine == Retrieval(50.0, 50.0, 50.0)
    assert scores.in_dictionary and scores.in_dictionary.cosine.mean == 0


def test_empty_subsets_are_none_and_json_is_plain() -> None:
    rows = torch.eye(3)
    scores = alignment(rows, rows, torch.zeros(3, dtype=torch.bool))
    assert scores.in_dictionary is None and scores.held_out == scores.all
    whole = {"forward": 100.0, "backward": 100.0, "mean": 100.0}
    assert json.loads(json.dumps(scores.to_json()))["all"] == {"n": 3, "cosine": whole, "csls": whole}
    empty = alignment(rows[:0], rows[:0], torch.zeros(0, dtype=torch.bool), candidates=rows)
    assert empty == AlignmentScores(None, None, None)


def test_half_precision_input_needs_no_gradient() -> None:
    parent, derived, mask, _ = _random(30, 8, 7)
    half = alignment(parent.bfloat16().requires_grad_(), derived.bfloat16(), mask)
    assert half == alignment(parent.bfloat16().float(), derived.bfloat16().float(), mask)


def test_a_diverged_run_and_a_wrong_k_are_named() -> None:
    rows, nobody = torch.eye(3), torch.zeros(3, dtype=torch.bool)
    with pytest.raises(InputError, match="diverged"):
        alignment(rows * float("nan"), rows, nobody)
    with pytest.raises(InputError, match="at least 1"):
        alignment(rows, rows, nobody, k=0)
