"""Distances of related and unrelated words: AUC, its interval, histograms, comparison, the largest dimensions."""

import json

import numpy as np
import pytest
import torch
from scipy import stats

from probes.measures.distances.pairs import Linked, pair_blocks, unrelated
from probes.measures.distances.separation import Influence, auc, clustered_interval, placements, standard_error
from tests.refusals import refused
from tests.separations import separations


def linked(noise=1.0, n=600, d=16, per=4, layers=2, seed=0, zero=(), word=None):
    random = torch.Generator().manual_seed(seed)
    base = torch.randn(1, n, d, generator=random)
    left, right = (base + noise * torch.randn(layers, n, d, generator=random) for _ in range(2))
    left[:, list(zero)] = 0
    return Linked(left, right, torch.arange(n) // per, word)


def bounds(interval):
    assert interval.low is not None and interval.high is not None
    return interval.low, interval.high


def influence(a, b, ends_a, ends_b):
    v, w = placements(a, b)
    value = auc(a, b)
    psi = np.concatenate([(v - value) / len(v), (w - value) / len(w)])
    return Influence(value, psi, *(np.concatenate(x).astype(np.int64) for x in zip(ends_a, ends_b, strict=True)))


@pytest.mark.parametrize("ties", [False, True])
def test_auc_is_mann_whitney_and_brute_force(ties):
    random = np.random.default_rng(1)
    a, b = random.normal(size=83), random.normal(0.4, 1, size=61)
    if ties:
        a, b = a.round(), b.round()
    less, equal = (a[:, None] < b).mean(), (a[:, None] == b).mean()
    assert auc(a, b) == pytest.approx(less + equal / 2, abs=1e-14)
    assert auc(a, b) == pytest.approx(stats.mannwhitneyu(b, a).statistic / (83 * 61), abs=1e-14)
    v, w = placements(a, b)
    np.testing.assert_allclose(v, (a[:, None] < b).mean(1) + (a[:, None] == b).mean(1) / 2)
    np.testing.assert_allclose(w, (a[:, None] < b).mean(0) + (a[:, None] == b).mean(0) / 2)


def test_standard_error_is_the_double_sum_over_pairs_that_share_a_sentence():
    random = np.random.default_rng(2)
    first, second = random.integers(40, size=(2, 150))
    second[:70] = first[:70]
    psi = random.normal(size=150)
    share = (first[:, None] == first) | (first[:, None] == second) | (second[:, None] == first)
    share |= second[:, None] == second
    groups = len(np.unique([first, second]))
    expected = np.sqrt(groups / (groups - 1) * (psi[:, None] * psi * share).sum())
    assert standard_error(Influence(0.0, psi, first, second)) == pytest.approx(expected, rel=1e-12)


def test_with_a_sentence_for_each_pair_it_is_delong():
    random = np.random.default_rng(3)
    a, b = random.normal(size=90), random.normal(1, 1, size=110)
    found = influence(a, b, (np.arange(90),) * 2, (np.arange(90, 200),) * 2)
    v, w = placements(a, b)
    assert standard_error(found) == pytest.approx(np.sqrt(v.var(ddof=1) / 90 + w.var(ddof=1) / 110), rel=0.01)


def test_interval_holds_the_truth_with_clusters_where_independent_pairs_would_not():
    random, covered, naive, rounds = np.random.default_rng(4), 0, 0, 200
    sentence = np.repeat(np.arange(60), 6)
    truth = stats.norm.cdf(1 / np.sqrt(2 + 1.5**2))
    for _ in range(rounds):
        a = 1.5 * random.normal(size=60)[sentence] + random.normal(size=360)
        query, other = unrelated(sentence, int(random.integers(1 << 60)))
        b = 1 + random.normal(size=360)
        found = influence(a, b, (sentence, sentence), (sentence[query], sentence[other]))
        interval = clustered_interval(found, share=True)
        covered += interval.low <= truth <= interval.high
        naive += abs(found.estimate - truth) <= 1.96 * np.sqrt((found.values**2).sum())
    assert 0.89 <= covered / rounds <= 0.99
    assert naive / rounds < 0.85


def test_standard_error_agrees_with_a_bootstrap_of_sentences():
    random = np.random.default_rng(5)
    sentence = np.repeat(np.arange(80), 5)
    a = random.normal(size=80)[sentence] + random.normal(size=400)
    b = 1 + random.normal(size=400)
    drawn = []
    for _ in range(400):
        chosen = (random.integers(80, size=80)[:, None] * 5 + np.arange(5)).ravel()
        drawn.append(auc(a[chosen], b[chosen]))
    found = influence(a, b, (sentence,) * 2, (sentence,) * 2)
    assert standard_error(found) == pytest.approx(np.std(drawn), rel=0.15)


def test_unrelated_words_are_never_of_the_same_sentence_and_uniform():
    sentence = np.array([5, 2, 5, 5, 2, 9])
    counts = np.zeros((6, 6))
    for key in range(3000):
        query, other = unrelated(sentence, key)
        np.testing.assert_array_equal(query, np.arange(6))
        counts[query, other] += 1
    assert not counts[sentence[:, None] == sentence].any()
    for row, own in zip(counts, sentence, strict=True):
        assert stats.chisquare(row[sentence != own]).pvalue > 1e-4


def test_distances_against_scipy_and_any_batches_give_the_same():
    data = linked()
    found = separations([data], 7, layers=(3, 8))
    again = separations([data.take(slice(i, i + 37)) for i in range(0, 600, 37)], 7, layers=(3, 8))
    assert [(s.layer, s.distance) for s in found] == [(3, "l2"), (3, "cosine"), (8, "l2"), (8, "cosine")]
    for one, other in zip(found, again, strict=True):
        for name in ("sentence", "query", "other"):
            np.testing.assert_array_equal(getattr(one.pairs, name), getattr(other.pairs, name))
        np.testing.assert_array_equal(one.related, other.related)
        np.testing.assert_array_equal(one.unrelated, other.unrelated)
    pairs, left, right = found[0].pairs, data.left[1].numpy(), data.right[1].numpy()
    assert (pairs.sentence[pairs.query] != pairs.sentence[pairs.other]).all()
    from scipy.spatial.distance import cosine, euclidean

    expected = [euclidean(left[q], right[o]) for q, o in zip(pairs.query, pairs.other, strict=True)]
    np.testing.assert_allclose(found[2].unrelated, expected, rtol=1e-5)
    np.testing.assert_allclose(found[3].related, [cosine(x, y) for x, y in zip(left, right, strict=True)], rtol=1e-4)
    assert found[0].auc.mean == auc(found[0].related, found[0].unrelated)
    json.dumps(found[0].to_json(), allow_nan=False)


def test_what_waits_is_joined_once_for_a_batch(monkeypatch):
    joined, join = [], Linked.joined

    def joining(parts):
        joined.append(len(parts))
        return join(parts)

    monkeypatch.setattr(Linked, "joined", joining)
    sizes = [len(block.linked) for block in pair_blocks([linked()], 7, block=50)]
    assert sizes == [50] * 12 and len(joined) == 2


def test_words_of_one_type_are_not_unrelated():
    found = separations([linked(word=torch.arange(600) % 3)], 0)[0]
    assert found.pairs.same_word + len(found.unrelated) == 600
    assert 150 < found.pairs.same_word < 250
    assert ((found.pairs.query % 3) != (found.pairs.other % 3)).all()


def test_planted_separation_is_found_and_none_is_none():
    apart, mixed = separations([linked(0.05)], 1), separations([linked(60.0)], 1)
    assert min(s.auc.mean for s in apart) > 0.99
    for s in mixed:
        low, high = bounds(s.auc)
        assert low < 0.5 < high and abs(s.auc.mean - 0.5) < 0.05


def test_zero_rows_are_counted_and_have_cosine_distance_one():
    found = separations([linked(zero=(3, 4, 5))], 0)
    assert [s.zero for s in found] == [3] * 4
    np.testing.assert_array_equal(found[1].related[3:6], 1)
    assert found[0].related[3] == pytest.approx(float(linked().right[0, 3].norm()))


def test_cosine_distance_of_equal_parallel_opposite_and_huge_vectors():
    left = torch.randn(1, 4, 6, generator=torch.Generator().manual_seed(0)) * 1e30
    right = left * torch.tensor([1.0, 3.0, -1.0, 1e-20])[:, None]
    found = separations([Linked(left, right, torch.arange(4))], 0)[1].related
    assert found[0] == 0 and found == pytest.approx([0, 0, 2, 0], abs=1e-6)


def bad(change):
    data = linked(n=12)
    change(data)
    return [data]


@pytest.mark.parametrize(
    ("batches", "code"),
    [
        ([], "empty"),
        ([linked(n=0)], "empty"),
        ([linked(n=4)], "range"),
        ([linked(n=1)], "range"),
        (bad(lambda x: x.left[1, 3].fill_(float("nan"))), "damaged"),
        (bad(lambda x: x.right[0, 0].fill_(float("inf"))), "damaged"),
        (bad(lambda x: (x.left[1].zero_(), x.right[1].zero_())), "damaged"),
        ([linked(n=12, word=torch.zeros(12))], "empty"),
    ],
    ids=["nothing", "empty", "one-sentence", "one-pair", "nan", "inf", "all-zero", "one-word"],
)
def test_bad_input_is_refused(batches, code):
    assert refused(separations, batches, 0) == ("", code)
