"""The CRF against enumeration of all paths."""

import itertools
import math

import pytest
import torch

from probes.transfer.batch import NO_LABEL
from probes.transfer.tasks.heads import Crf
from tests.head_cases import prefix


def _case(seed, tags, scale=2.0):
    """Random weights, emissions of rows with 0 … 5 words, padded to 5."""
    torch.manual_seed(seed)
    crf = Crf(tags).double()  # weights are drawn anew below, wider
    with torch.no_grad():
        for parameter in crf.parameters():
            parameter.normal_(0, scale)
    lengths = [0, 1, 2, 3, 4, 5]
    return crf, scale * torch.randn(6, 5, tags, dtype=torch.float64), prefix(lengths), lengths


def _score(crf, emissions, path):
    """The definition, term by term."""
    if not path:
        return 0.0
    crf = {name: tensor.detach() for name, tensor in crf.named_parameters()}
    total = float(crf["start"][path[0]]) + float(crf["end"][path[-1]])
    total += sum(float(emissions[place, tag]) for place, tag in enumerate(path))
    return total + sum(float(crf["transitions"][a, b]) for a, b in itertools.pairwise(path))


def _paths(crf, emissions, length, gold=None):
    """(score, path) of every path that agrees with ``gold`` (negative: any tag)."""
    tags = range(emissions.shape[1])
    choices = [tags if gold is None or gold[i] < 0 else [int(gold[i])] for i in range(length)]
    return [(_score(crf, emissions, path), path) for path in itertools.product(*choices)]


def _log_sum(scores):
    top = max(scores)
    return top + math.log(sum(math.exp(score - top) for score in scores))


@pytest.mark.parametrize("tags", [1, 2, 3, 4])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_enumeration(seed, tags):
    crf, emissions, mask, lengths = _case(seed, tags)
    gold = torch.randint(0, tags, (6, 5))
    gold[:, 0] = torch.where(mask[:, 0], gold[:, 0], NO_LABEL)  # what stands at padding does not matter
    with torch.no_grad():
        partition, score = crf.log_partition(emissions, mask), crf.score(emissions, gold, mask)
        likelihood = crf.log_likelihood(emissions, gold, mask)
    best = crf.viterbi(emissions, mask)
    for row, length in enumerate(lengths):
        paths = _paths(crf, emissions[row], length)
        total = _log_sum([value for value, _ in paths])
        own = _score(crf, emissions[row], gold[row, :length].tolist())
        assert float(partition[row]) == pytest.approx(total, abs=1e-9)
        assert float(score[row]) == pytest.approx(own, abs=1e-9)
        assert float(likelihood[row]) == pytest.approx(own - total, abs=1e-9)
        assert tuple(best[row]) == max(paths)[1] and len(best[row]) == length


@pytest.mark.parametrize("seed", range(4))
def test_words_without_a_tag_are_summed_over(seed):
    crf, emissions, mask, lengths = _case(seed, 3)
    gold = torch.randint(0, 3, (6, 5))
    gold[torch.rand(6, 5) < 0.5] = NO_LABEL
    gold[5] = NO_LABEL
    likelihood = crf.log_likelihood(emissions, gold, mask)
    for row, length in enumerate(lengths):
        some = _log_sum([value for value, _ in _paths(crf, emissions[row], length, gold[row])])
        every = _log_sum([value for value, _ in _paths(crf, emissions[row], length)])
        assert float(likelihood[row].detach()) == pytest.approx(some - every, abs=1e-9)
    assert float(likelihood[5].detach()) == 0.0
    likelihood.sum().backward()
    assert all(bool(torch.isfinite(parameter.grad).all()) for parameter in crf.parameters())


def test_gradients_of_the_partition_are_marginals():
    crf, emissions, mask, lengths = _case(4, 3)
    emissions.requires_grad_()
    crf.log_partition(emissions, mask).sum().backward()
    words, arcs = torch.zeros_like(emissions), torch.zeros_like(crf.transitions)
    first = torch.zeros_like(crf.start)
    for row, length in enumerate(lengths):
        paths = _paths(crf, emissions[row].detach(), length)
        total = _log_sum([value for value, _ in paths])
        for value, path in paths if length else []:
            p = math.exp(value - total)
            first[path[0]] += p
            for place, tag in enumerate(path):
                words[row, place, tag] += p
            for a, b in itertools.pairwise(path):
                arcs[a, b] += p
    for found, expected in ((emissions.grad, words), (crf.transitions.grad, arcs), (crf.start.grad, first)):
        torch.testing.assert_close(found, expected, atol=1e-9, rtol=0)


def test_partly_observed_gradient():
    """Against finite differences."""
    crf, emissions, mask, _ = _case(5, 3, scale=0.7)
    gold = torch.randint(0, 3, (6, 5))
    gold[:, 1] = NO_LABEL
    assert torch.autograd.gradcheck(lambda e: crf.log_likelihood(e, gold, mask), emissions.requires_grad_())


def test_float32_with_large_scores():
    torch.manual_seed(0)
    crf, mask = Crf(4), prefix([3, 5])
    emissions = 1e4 * torch.randn(2, 5, 4)
    value = crf.log_partition(emissions, mask).detach()
    assert bool(torch.isfinite(value).all())
    torch.testing.assert_close(value.double(), crf.double().log_partition(emissions.double(), mask), rtol=1e-6, atol=0)


def test_equal_paths():
    """The lowest tags, on every run."""
    crf = Crf(3)
    with torch.no_grad():
        for parameter in crf.parameters():
            parameter.zero_()
    assert crf.viterbi(torch.zeros(2, 4, 3), prefix([4, 2])) == [[0, 0, 0, 0], [0, 0]]
    emissions = torch.zeros(1, 2, 3)
    emissions[0, :, 1:] = 1  # (1, 1), (1, 2), (2, 1), (2, 2) are equal
    assert crf.viterbi(emissions, prefix([2])) == [[1, 1]]


def test_no_word_at_all():
    crf = Crf(3)
    emissions = torch.zeros(2, 0, 3, requires_grad=True)
    mask = torch.zeros(2, 0, dtype=torch.bool)
    value = crf.log_likelihood(emissions, torch.zeros(2, 0, dtype=torch.int64), mask)
    assert value.tolist() == [0.0, 0.0] and value.requires_grad
    assert crf.viterbi(emissions, mask) == [[], []]


def test_weights_follow_the_generator():
    torch.manual_seed(3)
    one = Crf(4)
    torch.manual_seed(3)
    same, other = Crf(4), Crf(4)
    assert torch.equal(one.transitions, same.transitions) and not torch.equal(one.transitions, other.transitions)
