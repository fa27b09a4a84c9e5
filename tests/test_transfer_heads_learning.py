"""Each head learns a problem that it is made for, on new data, and nothing where the labels are shuffled."""

import pytest
import torch
from torch.nn import functional as F

from probes.transfer.config import HeadConfig
from probes.transfer.tasks.heads import TagHead
from probes.transfer.tasks.qa import AnswerHead
from probes.transfer.tasks.slots import SlotsHead
from tests.head_cases import batch_of, prefix, train

ROWS, WORDS, TAGS, NOISE = 32, 6, 3, 4


def _config(kind):
    return HeadConfig(kind=kind, dropout=0.1, hidden=16)


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


def _right(found, gold):
    return float((torch.tensor(found) == gold).float().mean())


def _learned(head, draw, shuffled, steps=150):
    states, batch = train(head, lambda generator: draw(generator, shuffled), steps)
    return head.decode(states, batch), batch.targets


@pytest.mark.parametrize(
    ("kind", "draw", "shuffled", "low", "high"),
    [
        ("crf", _chain, False, 0.99, 1.0),
        ("crf", _chain, True, 0.0, 0.6),
        ("linear", _chain, False, 0.0, 0.7),  # it sees one word at a time
        ("bilstm_crf", _far, False, 0.98, 1.0),
        ("bilstm_crf", _far, True, 0.0, 0.6),
        ("crf", _far, False, 0.0, 0.8),
    ],
)
def test_tags(kind, draw, shuffled, low, high):
    torch.manual_seed(1)
    head = TagHead(hidden=TAGS + NOISE, classes=TAGS, config=_config(kind))
    found, gold = _learned(head, draw, shuffled, 200 if kind == "bilstm_crf" else 150)
    assert low <= _right(found, gold["tags"]) <= high


@pytest.mark.parametrize(("shuffled", "low", "high"), [(False, 0.99, 1.0), (True, 0.0, 0.6)])
def test_slots(shuffled, low, high):
    torch.manual_seed(1)
    head = SlotsHead(hidden=TAGS + NOISE, tags=TAGS, intents=TAGS, config=_config("crf"))
    found, gold = _learned(head, _chain, shuffled)
    assert low <= _right([tags for _, tags in found], gold["tags"]) <= high
    assert low <= _right([intent for intent, _ in found], gold["intent"]) <= high


@pytest.mark.parametrize(("shuffled", "low", "high"), [(False, 0.97, 1.0), (True, 0.0, 0.6)])
def test_answers(shuffled, low, high):
    torch.manual_seed(1)
    head = AnswerHead(hidden=2 + NOISE, dropout=0.1)
    found, gold = _learned(head, _answer, shuffled)
    chosen = [spans[0][1:] if spans and spans[0][0] > none else (0, 0) for none, spans in found]
    both = torch.stack([gold["start"], gold["stop"]], dim=1)
    assert low <= float((torch.tensor(chosen) == both).all(dim=1).float().mean()) <= high
