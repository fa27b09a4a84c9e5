"""Scores of words by their neighbours, which rows compete, and bands of frequency."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
import torch

from pretrain.alignment import AlignmentScores, Retrieval, pair_credits
from pretrain.build import new_model
from pretrain.config import PretrainConfig
from pretrain.prepare import prepare
from pretrain.validation import Validation
from pretrain.word_pairs import WordPairs, credits_of, word_pairs
from synthlang.config import parse
from synthlang.corpus import Corpus
from synthlang.dictionary.ids import all_candidates, word_files
from synthlang.store import Store
from tests.masking_cases import WORDS
from tests.objective_cases import model_of
from tests.refusals import refused
from tests.test_natural import config_of, folder  # noqa: F401  a fixture
from tests.test_nearest import definition
from tests.tiny import PRETRAIN, changed


def credits(parent, derived, **settings):
    """Return the credit of each word, whose rows are the first rows of each side."""
    return pair_credits(
        parent, derived, torch.arange(min(len(parent), len(derived)))[:, None].expand(-1, 2), **settings
    )


def scores_of(parent, derived, inside=None, **settings):
    found = credits(parent, derived, **settings)
    return found.scores(torch.zeros(len(found), dtype=torch.bool) if inside is None else inside)


def noisy(n, d, seed):
    """Rows, a noisy copy and a dictionary mask: scores far from both 0 and 100."""
    generator = torch.Generator().manual_seed(seed)
    parent = torch.randn(n, d, generator=generator)
    return parent, parent + 1.5 * torch.randn(n, d, generator=generator), torch.rand(n, generator=generator) < 0.3


@pytest.mark.parametrize("more", [(0, 0), (0, 17), (30, 45)])
@pytest.mark.parametrize("seed", [0, 1])
def test_scores_are_those_of_the_definition_with_candidates_of_each_side(seed, more):
    parent, derived, inside = noisy(60, 12, seed)
    left, right = (torch.cat([side, torch.randn(n, 12)]) for side, n in zip((parent, derived), more, strict=True))
    pairs = torch.arange(60)[:, None].expand(-1, 2)
    scores = pair_credits(left, right, pairs).scores(inside)
    assert scores.all is not None
    for (way, score), (credit, _) in definition(left, right, pairs.numpy(), 10).items():
        subsets = {"all": np.ones(60, bool), "in_dictionary": inside.numpy(), "held_out": ~inside.numpy()}
        for name, members in subsets.items():
            subset = getattr(scores, name)
            assert subset.n == members.sum()
            assert getattr(getattr(subset, score), way) == pytest.approx(100 * credit[members].mean())
        assert 0 < credit.mean() < 1
    cosine = scores.all.cosine
    assert cosine.mean == pytest.approx((cosine.forward + cosine.backward) / 2)
    few = scores_of(parent, derived).all
    assert few is not None and (few.cosine.mean > cosine.mean or not all(more))


def test_ties_count_their_share_and_rows_of_zeros_miss():
    collapsed = scores_of(torch.ones(4, 3), torch.ones(4, 3)).all
    assert collapsed.cosine == collapsed.csls == Retrieval(25.0, 25.0, 25.0)
    rows, derived = torch.eye(4), torch.eye(4)
    derived[1] = 2 * rows[0]  # word 0 ties with it; word 1 has cosine 0 to all four rows
    scores = scores_of(rows, derived).all
    assert (scores.cosine.forward, scores.cosine.backward) == (100 * (0.5 + 0.25 + 1 + 1) / 4, 75.0)
    parent, derived = torch.eye(4), torch.eye(4)
    parent[0], derived[1] = 0, 0
    scores = scores_of(parent, derived, torch.tensor([True, False, False, False]))
    assert scores.all.cosine == Retrieval(50.0, 50.0, 50.0) and scores.in_dictionary.cosine.mean == 0


def test_empty_subsets_are_none_and_json_is_plain():
    rows = torch.eye(3)
    scores = scores_of(rows, rows)
    assert scores.in_dictionary is None and scores.held_out == scores.all
    whole = {"forward": 100.0, "backward": 100.0, "mean": 100.0}
    assert json.loads(json.dumps(scores.to_json()))["all"] == {"n": 3, "cosine": whole, "csls": whole}
    assert scores_of(rows[:0], rows) == AlignmentScores(None, None, None)


def test_errors_and_rows_of_zeros_name_the_sides():
    rows = torch.eye(4)
    rows[3] = 0
    assert credits(rows, rows[:3]).zeros == (1, 0)
    assert refused(credits, rows, rows * float("nan"), names=("en", "fr")) == ("", "damaged")


CASES: dict[str, dict[str, Any]] = {
    "joint": {"vocabulary": {"kind": "joint", "size": 900, "min_frequency": 1}},
    "apart": {"vocabulary": {"kind": "prefixed", "size": 380, "min_frequency": 1}},
    "own rows": {"sharing": {"embeddings": "separate"}},
}


def occurring(artifacts, number, place):
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
    ids = [occurring(artifacts, number, folder) for number in (0, 1)]
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
    earned = credits_of(model, pairs, 1)
    for (way, score), (credit, _) in definition(rows[0], rows[1], where, 10, barred).items():
        side = int(way == "backward")
        of_word = [credit[pairs.pairs[:, side] == word].sum() for word in pairs.pairs[:, side]]
        assert getattr(earned, score)[side].numpy() == pytest.approx(np.asarray(of_word))
    scores = credits_of(model, pairs, 1).scores(torch.from_numpy(pairs.in_dictionary)).all
    assert scores is not None and 20 < scores.cosine.mean < 80
    said = Validation(config, artifacts).measure(model)
    assert said["alignment/fr"] == pytest.approx(scores.cosine.mean, abs=1e-4)


def test_the_use_of_a_file_of_translations_is_told(folder, tmp_path):  # noqa: F811
    config = config_of(folder, dictionary={"path": "HERE", "coverage": 1.0})
    artifacts = prepare(config, Store(tmp_path))
    counts = [language.train.counts for language in artifacts.languages]
    words = word_files(config.dictionary.path, ["en", "fr"])
    [right], [wrong] = (
        all_candidates(artifacts.id_space, counts, {1: given}) for given in (words[1], words[1].swapped)
    )
    used = f"{len(right.pairs)} of {len(words[1])} pairs of the dictionary are used"
    assert artifacts.candidates[0].use == right.use and used in right.use and "swapped" not in right.use
    assert wrong.use.startswith("warning: only") and wrong.use.endswith("so check their order")


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


def test_separate_embeddings_have_two_rows_for_an_id_which_are_a_pair(tmp_path):
    settings = {"language": "inv", "objective": {"kind": "align_mlm"}, "sharing": {"embeddings": "separate"}}
    pairs = word_pairs(prepare(parse(PretrainConfig, changed(PRETRAIN, **settings)), Store(tmp_path)), 1)
    assert pairs is not None and len(pairs.pairs) > 50 and pairs.same == 0 and not len(pairs.shared)
    assert (pairs.pairs[:, 0] == pairs.pairs[:, 1]).all()


def test_a_word_is_found_by_any_of_its_translations_and_counts_once():
    rows = torch.eye(6)
    pairs = torch.tensor([[0, 3], [0, 0], [1, 3], [2, 4], [2, 5], [3, 3]])
    found = pair_credits(rows, rows, pairs)
    scores = found.scores(torch.tensor([True, True, False, False, False, False])).to_json()
    # forward: words 0 and 3 of 0, 1, 2, 3 are found; backward: 3 by its third source, and 0, but not 4 and 5
    assert scores["all"]["n"] == 4
    assert scores["all"]["cosine"] == {"forward": 50.0, "backward": 50.0, "mean": 50.0}
    assert scores["in_dictionary"]["n"] == 1 and scores["in_dictionary"]["cosine"]["forward"] == 100.0
    # two of three nearest rows at the same distance are translations
    tied = pair_credits(rows[:1], torch.ones(3, 6), torch.tensor([[0, 0], [0, 2]])).cosine[0]
    assert tied.tolist() == pytest.approx([2 / 3, 2 / 3])


@pytest.mark.parametrize("added", [False, True])
def test_the_embedding_of_the_language_is_added_to_each_row_if_asked_for(added):
    """As the released code of ALIGN-MLM does for models with language ids; by a loop over words."""
    model = model_of(language_ids=True)
    assert model.embeddings.languages is not None
    with torch.no_grad():  # some words near their counterparts
        near = model.embeddings.words[WORDS[0]] + 0.3 * torch.randn(95, 16, generator=torch.Generator().manual_seed(0))
        model.embeddings.words[WORDS[1]] = near
    ids = np.stack([WORDS[0][:30], WORDS[1][:30]], axis=1)
    pairs = WordPairs(ids, np.zeros(30, bool), WORDS, False, ("a", "b"))
    found = credits_of(model, pairs, 1, language_ids=added).scores(torch.zeros(30, dtype=torch.bool)).all
    words = model.embeddings.words.detach().double().numpy()
    own = model.embeddings.languages.detach().double().numpy() * added

    def cosine(i, j):
        a, b = words[i] + own[0], words[j] + own[1]
        return a @ b / np.sqrt((a @ a) * (b @ b))

    cosines = np.array([[cosine(i, j) for j in WORDS[1].tolist()] for i in WORDS[0].tolist()])
    forward = [int(cosines[n].argmax()) == n for n in range(30)]
    backward = [int(cosines[:, n].argmax()) == n for n in range(30)]
    assert found is not None and 20 < found.cosine.forward < 95
    assert (found.cosine.forward, found.cosine.backward) == pytest.approx(
        (100 * np.mean(forward), 100 * np.mean(backward))
    )
    plain = model_of(language_ids=False)
    assert credits_of(plain, pairs, 1, language_ids=True).cosine[0].equal(credits_of(plain, pairs, 1).cosine[0])
