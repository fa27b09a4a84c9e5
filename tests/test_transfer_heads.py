"""Heads: what every one promises, each by hand, the CRF against all paths, and what each learns and does not."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional as F
from transformers import BertConfig, RobertaConfig
from transformers.models.bert.modeling_bert import BertPooler
from transformers.models.roberta.modeling_roberta import RobertaClassificationHead

from pretrain.model.text import Packed, Text
from probes.transfer.config import HeadConfig
from probes.transfer.tasks.base import NO_LABEL, Batch, Head
from probes.transfer.tasks.heads import ClassifyHead, Crf, TagHead
from probes.transfer.tasks.parsing import ParserHead
from probes.transfer.tasks.qa import AnswerHead
from probes.transfer.tasks.slots import SlotsHead


def batch_of(mask: Tensor, **targets: Tensor) -> Batch:
    """A batch of which heads read the mask, where its words are, and the targets only."""
    rows = len(mask)
    text = Text.of(torch.zeros(rows, 1, dtype=torch.int64), 0)
    return Batch(text, None, mask, targets, "source", np.arange(rows), packed=Packed.of(mask))


def prefix(lengths: list[int], words: int | None = None) -> Tensor:
    """[r, k] the mask of sentences with so many words."""
    width = max(lengths, default=0) if words is None else words
    return torch.arange(width) < torch.tensor(lengths)[:, None]


WIDTH = 8
KINDS = ["linear", "crf", "bilstm_crf"]


def _config(kind="linear", dropout=0.0):
    return HeadConfig(kind=kind, dropout=dropout, hidden=4, arc=5, relation=4)


HEADS: dict[str, Callable[[], Head]] = {
    "classify": lambda: ClassifyHead(hidden=WIDTH, classes=3, dropout=0.1),
    "linear": lambda: TagHead(hidden=WIDTH, classes=3, config=_config("linear", 0.1)),
    "crf": lambda: TagHead(hidden=WIDTH, classes=3, config=_config("crf", 0.1)),
    "bilstm_crf": lambda: TagHead(hidden=WIDTH, classes=3, config=_config("bilstm_crf", 0.1)),
    "slots": lambda: SlotsHead(hidden=WIDTH, tags=3, intents=3, config=_config("crf", 0.1)),
    "parser": lambda: ParserHead(hidden=WIDTH, relations=3, config=_config(dropout=0.1)),
    "answers": lambda: AnswerHead(hidden=WIDTH, dropout=0.1),
}


def _case(name, lengths, words=None, labelled=True):
    """States and a batch with every target; the answers read all columns."""
    mask = prefix(lengths, words)
    rows, count = mask.shape
    states = torch.randn(rows, 1 + count, WIDTH)
    if name == "answers":
        mask = torch.cat([torch.zeros(rows, 1, dtype=torch.bool), mask], dim=1)
    here, one = prefix(lengths, words), torch.zeros(rows, dtype=torch.int64)
    none = torch.full((rows, count), NO_LABEL)
    tags = torch.where(here, torch.randint(0, 3, (rows, count)), NO_LABEL) if labelled else none
    heads = torch.where(here, 0, NO_LABEL) if labelled else none
    single = one if labelled else one + NO_LABEL
    targets = {"tags": tags, "relations": tags, "heads": heads}
    targets |= dict.fromkeys(("label", "intent", "start", "stop"), single)
    return states, batch_of(mask, **targets)


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(0)


@pytest.mark.parametrize("name", HEADS)
@pytest.mark.parametrize(("lengths", "words", "labelled"), [([3, 0, 1], 3, False), ([0, 0], 2, True)])
def test_nothing_to_learn(name, lengths, words, labelled):
    """Rows without words or labels: loss 0 with finite gradients, and a prediction all the same."""
    head = HEADS[name]()
    states, batch = _case(name, lengths, words, labelled)
    loss = head.loss(states.requires_grad_(), batch)
    loss.backward()
    assert bool(torch.isfinite(loss))
    if not labelled or name in (*KINDS, "parser"):
        assert float(loss.detach()) == 0.0
        assert all(p.grad is None or not bool(p.grad.any()) for p in head.parameters())
    assert any(p.grad is not None for p in head.parameters())
    assert all(p.grad is None or bool(torch.isfinite(p.grad).all()) for p in head.parameters())
    found = head.decode(states, batch)
    assert len(found) == len(lengths)
    if name in (*KINDS, "parser"):
        assert [len(row) for row in found] == lengths
    if name == "answers":
        assert [row[1] for row, length in zip(found, lengths, strict=True) if not length] == [[]] * lengths.count(0)


@pytest.mark.parametrize("name", HEADS)
def test_padding_does_not_matter(name):
    """Three more columns that nothing points at, with other states."""
    head = HEADS[name]().eval()
    states, batch = _case(name, [4, 0, 5])
    wide_states = torch.cat([states, 9 * torch.randn(3, 3, WIDTH)], dim=1)
    mask = F.pad(batch.mask, (0, 3))
    targets = {k: F.pad(v, (0, 3), value=1) if v.ndim == 2 else v for k, v in batch.targets.items()}
    wide = batch_of(mask, **targets)
    torch.testing.assert_close(head.loss(wide_states, wide), head.loss(states, batch), rtol=1e-5, atol=1e-6)
    for one, other in zip(head.decode(wide_states, wide), head.decode(states, batch), strict=True):
        if name == "answers":
            assert one[0] == pytest.approx(other[0], abs=1e-5)
            assert [span[1:] for span in one[1]] == [span[1:] for span in other[1]]
        else:
            assert one == other


@torch.no_grad()
def test_classify():
    head = ClassifyHead(hidden=WIDTH, classes=4, dropout=0.5).eval()
    states, label = torch.randn(5, 3, WIDTH), torch.tensor([3, NO_LABEL, 0, 1, 1])
    scores = states[:, 0] @ head.linear.weight.T + head.linear.bias
    expected = -torch.log_softmax(scores, dim=1)[[0, 2, 3, 4], label[[0, 2, 3, 4]]].mean()
    batch = batch_of(prefix([2] * 5), label=label)
    torch.testing.assert_close(head.loss(states, batch), expected)
    assert head.decode(states, batch) == scores.argmax(dim=1).tolist()
    assert float(head.train().loss(states, batch)) != pytest.approx(float(expected))


@torch.no_grad()
def test_classify_with_berts_pooler_is_as_in_hugging_face():
    config = BertConfig(hidden_size=WIDTH, num_labels=4)
    pooler, head = BertPooler(config), ClassifyHead(hidden=WIDTH, classes=4, dropout=0.5, pooler=True).eval()
    assert isinstance(head.pooler, torch.nn.Sequential)
    head.pooler[0].load_state_dict(pooler.dense.state_dict())
    states = torch.randn(3, 5, WIDTH)
    assert torch.equal(head.scores(states), head.linear(pooler(states)))
    assert not torch.allclose(head.scores(states), head.linear(states[:, 0]))


@torch.no_grad()
@pytest.mark.parametrize("training", [False, True])
def test_classify_with_the_layers_of_roberta_is_as_in_hugging_face(training):
    """With dropout both before the dense layer and after tanh, drawn by the same generator."""
    theirs = RobertaClassificationHead(RobertaConfig(hidden_size=WIDTH, num_labels=4, classifier_dropout=0.5))
    head = ClassifyHead(hidden=WIDTH, classes=4, dropout=0.5, pooler="roberta").train(training)
    dense = next(module for module in head.pooler.modules() if isinstance(module, torch.nn.Linear))
    dense.load_state_dict(theirs.dense.state_dict())
    head.linear.load_state_dict(theirs.out_proj.state_dict())
    states = torch.randn(3, 5, WIDTH)
    found = []
    for scores in (head.scores, theirs.train(training)):
        torch.manual_seed(1)
        found.append(scores(states))
    assert torch.equal(*found)


def test_tags():
    """Linear: means over labelled words. CRF: −log p of the paths over as many."""
    states, mask = torch.randn(2, 5, WIDTH), prefix([4, 2])
    tags = torch.tensor([[0, NO_LABEL, 2, 1], [1, 1, 0, 0]])
    batch = batch_of(mask, tags=tags)
    linear = TagHead(hidden=WIDTH, classes=3, config=_config()).eval()
    scores = states[:, 1:] @ linear.linear.weight.T + linear.linear.bias
    logs = torch.log_softmax(scores, dim=2)
    picked = [logs[0, 0, 0], logs[0, 2, 2], logs[0, 3, 1], logs[1, 0, 1], logs[1, 1, 1]]
    torch.testing.assert_close(linear.loss(states, batch), -torch.stack(picked).mean())
    best = scores.argmax(dim=2).tolist()
    assert linear.decode(states, batch) == [best[0], best[1][:2]]
    crf = TagHead(hidden=WIDTH, classes=3, config=_config("crf")).eval()
    scores = states[:, 1:] @ crf.linear.weight.T + crf.linear.bias
    assert crf.crf is not None
    torch.testing.assert_close(crf.loss(states, batch), -crf.crf.log_likelihood(scores, tags, mask).sum() / 5)
    assert crf.decode(states, batch) == crf.crf.viterbi(scores, mask)


@torch.no_grad()
def test_bilstm_reads_both_ways():
    """Two layers, each direction: the first word's scores depend on the last word's state and the other way round."""
    head = TagHead(hidden=WIDTH, classes=3, config=_config("bilstm_crf")).eval()
    states, mask = torch.randn(1, 5, WIDTH), prefix([4])
    before = head.scores(states, mask)
    for changed, seen in ((1, 3), (4, 0)):
        other = states.clone()
        other[:, changed] += 1
        assert not torch.allclose(head.scores(other, mask)[:, seen], before[:, seen])
    assert head.lstm is not None and head.lstm.lstm.num_layers == 2 and head.lstm.width == 8
    alone = torch.cat([head.scores(states[:, :3], prefix([2])), head.scores(states, mask)[:, 2:]], dim=1)
    assert not torch.allclose(alone, before)  # the shorter sentence is another one


def _spans(start, stop, mask, word_of, best, words, tokens):
    """By the definition, one span at a time."""
    found = []
    for first, last in itertools.product(range(1, len(mask)), repeat=2):
        short = len(set(word_of[first : last + 1])) <= words and last - first < tokens
        if first <= last and short and mask[first : last + 1].all():
            found.append((float(start[first] + stop[last]), first, last))
    return sorted(found, key=lambda span: (-span[0], span[1], span[2]))[:best]


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize(
    ("best", "words", "tokens"), [(1, 1, 1), (4, 3, None), (20, 30, 4), (20, 2, 5), (500, 30, None)]
)
def test_answers(ties, best, words, tokens):
    head = AnswerHead(hidden=2, dropout=0.1, best=best, words=words, tokens=tokens).eval()
    rng = np.random.default_rng(best)
    with torch.no_grad():
        head.linear.weight.copy_(torch.eye(2))
        head.linear.bias.zero_()
    scores = rng.integers(0, 3, (40, 12, 2)) if ties else rng.normal(size=(40, 12, 2))
    begin, columns = rng.integers(1, 12, (40, 1)), np.arange(12)
    mask = (columns == 0) | ((columns >= begin) & (columns < begin + rng.integers(0, 12, (40, 1))))
    word_of = np.cumsum(rng.random((40, 12)) < 0.6, axis=1)
    states = torch.tensor(scores, dtype=torch.float32)
    found = head.decode(states, replace(batch_of(torch.tensor(mask)), word_of=torch.tensor(word_of)))
    for (none, spans), row, inside, of in zip(found, states.double().numpy(), mask, word_of, strict=True):
        assert none == row[0, 0] + row[0, 1]
        assert spans == _spans(row[:, 0], row[:, 1], inside, of.tolist(), best, words, tokens or 12)


@torch.no_grad()
def test_answers_loss():
    """Softmax over column 0 and the columns of the mask; rows without a label are left out."""
    head = AnswerHead(hidden=WIDTH, dropout=0.1).eval()
    states, mask = torch.randn(3, 6, WIDTH), torch.zeros(3, 6, dtype=torch.bool)
    mask[:, 2:5] = True
    start, stop = torch.tensor([2, 0, NO_LABEL]), torch.tensor([4, 0, NO_LABEL])
    columns, losses = [0, 2, 3, 4], []
    scores = states @ head.linear.weight.T + head.linear.bias
    for row in (0, 1):
        for side, gold in ((0, start), (1, stop)):
            logs = torch.log_softmax(scores[row, columns, side], dim=0)
            losses.append(-logs[columns.index(int(gold[row]))])
    loss = head.loss(states, batch_of(mask, start=start, stop=stop))
    torch.testing.assert_close(loss, torch.stack(losses).mean())


ROWS, WORDS, TAGS, NOISE = 32, 6, 3, 4


def _shuffle(tensor, generator, shuffled):
    return tensor[torch.randperm(len(tensor), generator=generator)] if shuffled else tensor


def _chain(generator, shuffled=False):
    """The first word shows its tag; each later tag is the next one, which only a path knows."""
    first = torch.randint(0, TAGS, (ROWS, 1), generator=generator)
    tags = (first + torch.arange(WORDS)) % TAGS
    states = torch.zeros(ROWS, 1 + WORDS, TAGS + NOISE)
    states[:, 1, :TAGS] = 3 * F.one_hot(first[:, 0], TAGS)
    states[:, :, TAGS:] = torch.randn(ROWS, 1 + WORDS, NOISE, generator=generator)
    states[:, 0, :TAGS] = F.one_hot(first[:, 0], TAGS)
    intent = _shuffle(first[:, 0], generator, shuffled)
    return states, batch_of(prefix([WORDS] * ROWS), tags=_shuffle(tags, generator, shuffled), intent=intent)


def _far(generator, shuffled=False):
    """Every tag is what the last word shows: a CRF cannot know whether to agree with so distant a word."""
    last = torch.randint(0, TAGS, (ROWS,), generator=generator)
    states = torch.randn(ROWS, 1 + WORDS, TAGS + NOISE, generator=generator) / 8
    states[:, WORDS, :TAGS] += F.one_hot(last, TAGS)
    mixed = (last[:, None] + torch.randint(0, TAGS, (ROWS, WORDS), generator=generator)) % TAGS
    states[:, 1:, TAGS : 2 * TAGS] += F.one_hot((mixed - last[:, None]) % TAGS, TAGS)  # what to add to it
    return states, batch_of(prefix([WORDS] * ROWS), tags=_shuffle(mixed, generator, shuffled))


def _answer(generator, shuffled=False):
    """Markers at the first and the last column of an answer; a third of the rows have none, where <s> says so."""
    width = 12
    first = torch.randint(1, 6, (ROWS,), generator=generator)
    last = first + torch.randint(0, 4, (ROWS,), generator=generator)
    none = torch.rand(ROWS, generator=generator) < 1 / 3
    states = torch.randn(ROWS, width, 2 + NOISE, generator=generator) / 8
    rows = torch.arange(ROWS)
    states[rows, torch.where(none, 0, first), 0] += 2
    states[rows, torch.where(none, 0, last), 1] += 2
    mask = torch.ones(ROWS, width, dtype=torch.bool)
    both = _shuffle(torch.stack([first, last], dim=1).masked_fill(none[:, None], 0), generator, shuffled)
    return states, batch_of(mask, start=both[:, 0], stop=both[:, 1])


def trained(head, draw, shuffled, steps):
    """Return the output of a head on a batch that it was not trained on, and the targets."""
    generator = torch.Generator().manual_seed(7)
    optimizer = torch.optim.Adam(head.parameters(), lr=1e-2)
    head.train()
    for _ in range(steps):
        states, batch = draw(generator, shuffled)
        optimizer.zero_grad()
        head.loss(states, batch).backward()
        optimizer.step()
    states, batch = draw(generator, shuffled)
    return head.eval().decode(states, batch), batch.targets


def _tags(kind):
    config = HeadConfig(kind=kind, dropout=0.1, hidden=16)
    return lambda: TagHead(hidden=TAGS + NOISE, classes=TAGS, config=config), lambda found: {"tags": found}


def _slots():
    config = HeadConfig(kind="crf", dropout=0.1)
    head = lambda: SlotsHead(hidden=TAGS + NOISE, tags=TAGS, intents=TAGS, config=config)  # noqa: E731
    return head, lambda found: {"intent": [row[0] for row in found], "tags": [row[1] for row in found]}


def _spans_said(found):
    chosen = [spans[0][1:] if spans and spans[0][0] > none else (0, 0) for none, spans in found]
    return {"start": [first for first, _ in chosen], "stop": [last for _, last in chosen]}


LEARNED = {
    "crf": (*_tags("crf"), _chain, 100, (0.99, 1.0), (0.0, 0.6)),
    "linear": (*_tags("linear"), _chain, 100, (0.0, 0.7), None),  # it sees one word at a time
    "bilstm_crf": (*_tags("bilstm_crf"), _far, 150, (0.98, 1.0), (0.0, 0.6)),
    "crf, far": (*_tags("crf"), _far, 100, (0.0, 0.8), None),
    "slots": (*_slots(), _chain, 100, (0.99, 1.0), (0.0, 0.6)),
    "answers": (lambda: AnswerHead(hidden=2 + NOISE, dropout=0.1), _spans_said, _answer, 150, (0.97, 1.0), (0.0, 0.7)),
}


@pytest.mark.parametrize("name", LEARNED)
def test_what_is_there_is_learned_and_what_is_shuffled_is_not(name):
    make, said, draw, steps, *bounds = LEARNED[name]
    for shuffled, between in enumerate(bounds):
        if between is not None:
            torch.manual_seed(1)
            found, gold = trained(make(), draw, bool(shuffled), steps)
            for kind, values in said(found).items():
                assert between[0] <= float((torch.tensor(values) == gold[kind]).float().mean()) <= between[1]


# --- the CRF against enumeration of all paths ---


def _crf_case(seed, tags, scale=2.0):
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
    crf, emissions, mask, lengths = _crf_case(seed, tags)
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
    crf, emissions, mask, lengths = _crf_case(seed, 3)
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
