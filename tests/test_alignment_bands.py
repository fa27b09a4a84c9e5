from __future__ import annotations

import json

import numpy as np
import pytest
import torch

from pretrain.alignment import alignment, word_credits
from pretrain.config import PretrainConfig
from probes.measures.words.alignment import BANDS, band_scores, check_bands, frequency_ranks, probe_fingerprint
from synthlang.config import parse
from synthlang.errors import InputError
from tests.tiny import PRETRAIN


def test_ranks_count_from_the_most_frequent_type_and_leave_others_out():
    counts = np.array([99, 0, 5, 7, 5, 1, 0, 7, 2])  # 0 is a special
    ranks = frequency_ranks(counts, np.array([2, 3, 4, 5, 7, 8]))
    assert ranks.tolist() == [0, 0, 3, 1, 4, 6, 0, 2, 5]


def _rows(n, well):
    """Rows of n words, of which ``well`` (bool) lie by their counterparts and the others anywhere."""
    generator = torch.Generator().manual_seed(4)
    parent = torch.randn(n, 24, generator=generator)
    derived = torch.where(well[:, None], parent + 0.1 * torch.randn(n, 24, generator=generator), 0)
    return parent, derived + (~well[:, None]) * torch.randn(n, 24, generator=generator)


def test_bands_have_the_scores_of_their_words():
    n = 300
    ranks = np.random.default_rng(0).permutation(2 * n)[:n] + 1  # half of the ranks have no counterpart
    well = torch.from_numpy(ranks <= 100)
    parent, derived = _rows(n, well)
    inside = torch.rand(n, generator=torch.Generator().manual_seed(1)) < 0.5
    found = band_scores(word_credits(parent, derived), inside, ranks, (100, 250))
    assert [(band["from"], band["to"]) for band in found] == [(1, 100), (101, 250), (251, None)]
    assert sum(band["types"] for band in found) == n
    for band, members in zip(found, (ranks <= 100, (ranks > 100) & (ranks <= 250), ranks > 250), strict=True):
        for key, subset in (
            ("all", members),
            ("in_dictionary", members & inside.numpy()),
            ("held_out", members & ~inside.numpy()),
        ):
            expected = alignment(parent, derived, torch.from_numpy(subset)).in_dictionary
            assert json.loads(json.dumps(band["scores"][key])) == json.loads(
                json.dumps(expected.__dict__, default=vars)
            )
    assert found[0]["scores"]["all"]["csls"]["mean"] == 100
    assert found[1]["scores"]["all"]["csls"]["mean"] < 10


def test_a_band_without_words_has_no_scores_and_wrong_bands_are_named():
    parent, derived = _rows(6, torch.ones(6, dtype=torch.bool))
    credits = word_credits(parent, derived)
    first, rest = band_scores(credits, torch.zeros(6, dtype=torch.bool), np.arange(5, 11), (4,))
    assert (first["types"], rest["types"]) == (0, 6)
    assert first["scores"] == {"all": None, "in_dictionary": None, "held_out": None}
    (whole,) = band_scores(credits, torch.zeros(6, dtype=torch.bool), np.arange(5, 11), ())
    assert whole["scores"] == rest["scores"]
    check_bands(BANDS)
    for wrong in ((0, 5), (5, 5), (10, 3), (-1,)):
        with pytest.raises(InputError, match="must be at least 1 and grow"):
            check_bands(wrong)


def test_other_bands_are_another_result():
    config = parse(PretrainConfig, PRETRAIN)
    assert probe_fingerprint("run", config) == probe_fingerprint("run", config, list(BANDS))
    assert probe_fingerprint("run", config) != probe_fingerprint("run", config, (10,))
