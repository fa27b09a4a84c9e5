"""Which rows compete for a word: all of the other language, in both directions, beside the definition."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from pretrain import nearest as search
from pretrain import nearest_lists
from pretrain.alignment import alignment, pair_credits
from pretrain.build import new_model
from pretrain.nearest import nearest
from pretrain.prepare import prepare
from pretrain.validation import Validation
from pretrain.word_pairs import alignment_of, credits_of, word_pairs
from synthlang.corpus import Corpus
from synthlang.errors import InputError
from synthlang.store import Store
from tests.test_natural import config_of, folder  # noqa: F401  a fixture
from tests.test_nearest import cases, cosines


def definition(x, y, pairs, k, barred=()):
    """{score: (forward, backward) credit of each pair}, one candidate at a time, in float64."""
    cos = cosines(x, y)
    for a, b in barred:
        cos[a, b] = -np.inf

    def near(row):
        kept = sorted(value for value in row if value > -np.inf)[::-1][:k]
        return sum(kept) / max(1, len(kept))

    r = [near(row) for row in cos], [near(column) for column in cos.T]
    csls = 2 * cos - np.array(r[0])[:, None] - np.array(r[1])[None]
    found = {}
    for name, s in (("cosine", cos), ("csls", csls)):
        ways = []
        for way, table in ((0, s), (1, s.T)):
            credit = []
            for pair in pairs:
                scores, own = table[pair[way]], table[pair[way]][pair[1 - way]]
                tied = (scores >= scores.max() - 1e-6).sum()
                zero = not np.asarray(x[pair[0]]).any() or not np.asarray(y[pair[1]]).any()
                credit.append(0.0 if zero or own < scores.max() - 1e-6 else 1 / tied)
            ways.append(credit)
        found[name] = ways
    return found


@pytest.mark.parametrize("tile", [7, 64, 8192])
@pytest.mark.parametrize("name", ["plain", "hubs", "zeros", "small"])
@pytest.mark.parametrize("listed", [1, 10])
def test_rows_that_are_no_candidates_of_each_other(name, tile, listed, monkeypatch):
    monkeypatch.setattr("pretrain.nearest.LISTED", listed)
    monkeypatch.setattr(search, "HELD", 300)
    monkeypatch.setattr(nearest_lists, "GROUP", 3)
    x, y, pairs = cases(name)
    some = min(len(x), len(y))
    barred = np.stack([np.arange(some), np.random.default_rng(1).permutation(some)], 1)[:: 1 if name == "small" else 2]
    x[barred[:, 0]] = y[barred[:, 1]]  # one row that stands in both sets: it would be its own nearest neighbour
    pairs = pairs[[(a, b) not in set(map(tuple, barred)) for a, b in pairs]]
    found = nearest(x, y, torch.from_numpy(pairs), barred=torch.from_numpy(barred), k=3, tile=tile, top=2)
    expected = definition(x, y, pairs, 3, barred)
    for score, ways in expected.items():
        for way, credit in zip((found.forward, found.backward), ways, strict=True):
            assert getattr(way, score).credit.numpy() == pytest.approx(credit), score
    for a, b in barred:
        assert b not in found.forward.cosine.indices[a] and a not in found.backward.csls.indices[b]
    without = nearest(x, y, torch.from_numpy(pairs), k=3)
    assert not torch.equal(without.forward.density, found.forward.density)


def test_a_row_whose_only_candidate_is_barred_finds_nothing():
    x = torch.eye(2)
    found = nearest(x, x[:1], torch.tensor([[0, 0], [1, 0]]), barred=torch.tensor([[0, 0]]), top=1)
    assert found.forward.cosine.credit.tolist() == found.forward.csls.credit.tolist() == [0, 1]
    assert found.forward.csls.indices.tolist() == [[-1], [0]]
    assert found.forward.density.tolist() == [0, 0]
    assert found.backward.cosine.credit.tolist() == [0, 1]


@pytest.mark.parametrize("seed", [0, 1])
def test_both_directions_have_candidates_of_their_own(seed):
    rng = np.random.default_rng(seed)
    parent = rng.normal(size=(50, 8))
    derived = parent + 0.7 * rng.normal(size=(50, 8))
    more = rng.normal(size=(30, 8)), rng.normal(size=(45, 8))
    sides = [torch.from_numpy(side).float() for side in (parent, derived, *more)]
    nobody = torch.zeros(50, dtype=torch.bool)
    scores = alignment(sides[0], sides[1], nobody, sides[3], parent_candidates=sides[2], k=5, chunk=11).all
    expected = definition(
        np.concatenate([parent, more[0]]), np.concatenate([derived, more[1]]), [(i, i) for i in range(50)], 5
    )
    for name, (there, back) in expected.items():
        got = getattr(scores, name)
        assert (got.forward, got.backward) == pytest.approx((100 * np.mean(there), 100 * np.mean(back)))
    few = alignment(sides[0], sides[1], nobody, k=5).all
    assert scores is not None and few is not None
    assert few.cosine.forward > scores.cosine.forward and few.cosine.backward > scores.cosine.backward


def test_errors_and_rows_of_zeros_name_the_sides():
    rows = torch.eye(4)
    rows[3] = 0
    pairs = torch.tensor([[0, 0]])
    assert pair_credits(rows, rows[:3], pairs).zeros == (1, 0)
    with pytest.raises(InputError, match="row 0 of the fr vectors holds NaN"):
        pair_credits(rows, rows * float("nan"), pairs, names=("en", "fr"))


CASES: dict[str, dict[str, Any]] = {
    "joint": {"vocabulary": {"kind": "joint", "size": 900, "min_frequency": 1}},
    "apart": {"vocabulary": {"kind": "prefixed", "size": 380, "min_frequency": 1}},
    "own rows": {"sharing": {"embeddings": "separate"}},
}


def occurring(config, artifacts, number, place):
    """The ids in the training text of a language, from its file, one word at a time."""
    member, found = artifacts.languages[number], set()
    text = (place / member.name / "train.txt").read_text().split()
    for word in dict.fromkeys(text):
        found |= set(member.tokenizer.encode(Corpus.of_words([[word]])).ids.tolist())
    return sorted(found - set(artifacts.id_space.specials.all))


@pytest.mark.parametrize("name", sorted(CASES))
def test_words_of_a_natural_pair_compete_with_all_that_was_trained(name, folder, tmp_path):  # noqa: F811
    config = config_of(folder, dictionary={"path": "HERE", "coverage": 0.5}, **CASES[name])
    artifacts = prepare(config, Store(tmp_path))
    model = new_model(config, artifacts)
    pairs = word_pairs(artifacts, 1)
    assert pairs is not None
    ids = [occurring(config, artifacts, number, folder) for number in (0, 1)]
    assert [side.tolist() for side in pairs.candidates] == ids
    assert len(ids[1]) > len(pairs.pairs) + 10, "else nothing more competes"
    with torch.no_grad():
        rows = [model.word_rows(torch.tensor(side), number) for number, side in enumerate(ids)]
        # an alignment to be found: each counterpart is moved next to its word
        where = [(ids[0].index(a), ids[1].index(b)) for a, b in pairs.pairs.tolist()]
        for (a, b), other in zip(where[::2], pairs.pairs[::2, 1].tolist(), strict=True):
            row = model.embeddings.rows(torch.tensor([other]), 1)
            model.embeddings.words[row] = rows[0][a] + 0.01 * rows[1][b]
        rows = [model.word_rows(torch.tensor(side), number).float() for number, side in enumerate(ids)]
    both = [] if name == "own rows" else sorted(set(ids[0]) & set(ids[1]))
    assert pairs.shared.tolist() == both and bool(both) == (name == "joint")
    barred = [(ids[0].index(i), ids[1].index(i)) for i in both]
    credits = credits_of(model, pairs, 1)
    for score, ways in definition(rows[0], rows[1], where, 10, barred).items():
        for got, expected in zip(getattr(credits, score), ways, strict=True):
            assert got.numpy() == pytest.approx(expected)
    scores = alignment_of(model, pairs, 1).all
    assert scores is not None and 20 < scores.cosine.mean < 80
    said = Validation(config, artifacts).measure(model)
    assert said["alignment/fr"] == pytest.approx(scores.cosine.mean, abs=1e-4)


def test_an_image_that_is_its_own_row_is_no_pair_but_competes(folder, tmp_path):  # noqa: F811
    place = tmp_path / "d.txt"
    place.write_text((folder / "dictionary.txt").read_text() + ". .\n")
    config = config_of(folder)
    config = config.model_copy(update={"dictionary": config.dictionary.model_copy(update={"path": str(place)})})
    artifacts = prepare(config, Store(tmp_path / "store"))
    pairs = word_pairs(artifacts, 1)
    assert pairs is not None
    point = artifacts.languages[0].tokenizer.encode(Corpus.of_words([["."]])).ids.item()
    assert pairs.same == 1 and point not in pairs.pairs
    assert point in pairs.shared and all(point in side for side in pairs.candidates)
