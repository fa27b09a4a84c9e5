"""Rows of pairs through an encoder mean what each means alone; cutting is that of Hugging Face's tokenizers."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import torch

from pretrain.config import ModelConfig, SharingConfig
from pretrain.model.encoder import MaskedLM
from pretrain.model.text import Text
from synthlang.tasks import derive_task
from synthlang.tasks.batch import Group, Item, batches_of_groups
from tests.pair_cases import cut, nli, plain_row, qa, reader, shown, tokens_of, vocabulary
from tests.task_cases import random_batch

SHAPE = ModelConfig(layers=3, heads=2, hidden=12, feed_forward=20, dropout=0.0, init_std=0.3)
SHARINGS = {
    "shared": SharingConfig(),
    "embeddings": SharingConfig(embeddings="separate", softmax="language"),
    "layers": SharingConfig(layers=(1, 3), softmax="shared"),
    "both": SharingConfig(embeddings="separate", layers=(1, 2, 3), softmax="language"),
}
LENGTH = 40


def model_of(sharing, readers, language_ids):
    ids = [reader("parent").tokenizer.ids, reader("trans", 1).tokenizer.ids]
    model = MaskedLM(SHAPE, sharing, ids, 2 * vocabulary().size, 3 * LENGTH, 1, language_ids, 0)
    if readers[0].bert:
        model.embeddings.segments = torch.randn(1, SHAPE.hidden, generator=torch.Generator().manual_seed(1))
    return model.eval()


def mixed(seed, names, bert=False):
    readers = tuple(reader(name, int(name != "parent"), bert) for name in names)
    batch = random_batch(np.random.default_rng(seed), 16)
    for field, held in enumerate(readers):
        batch, _ = derive_task(batch, held.language, (field,))
    return batch, readers


@pytest.mark.parametrize("language_ids", [False, True], ids=["", "ids"])
@pytest.mark.parametrize("names", [("parent", "trans"), ("trans", "parent"), ("trans", "trans")], ids="-".join)
@pytest.mark.parametrize("sharing", SHARINGS)
@pytest.mark.parametrize("bert", [False, True], ids=["roberta", "bert"])
@torch.no_grad()
def test_states_are_those_of_each_row_alone(sharing, names, bert, language_ids):
    batch, readers = mixed(7, names, bert)
    model = model_of(SHARINGS[sharing], readers, language_ids)
    examples = nli(length=LENGTH).encode(batch, readers, {"label": ("yes", "no")})
    held = examples.batch(np.arange(len(examples)))
    valid, states = held.text.valid, model.read(held.text, layers=(0, 2, 3))
    assert valid is not None and not valid.all()
    for row in range(len(examples)):
        a, b = cut((tokens_of(batch, row, field, readers[field]) for field in (0, 1)), LENGTH - (3 if bert else 4))
        ids, segments, first = plain_row(a, b, bert)
        spans = ((0, first, readers[0].number), (first, len(ids), readers[1].number))
        kinds = torch.tensor([segments]) if bert else None
        alone = model.read(Text(torch.tensor([ids]), None, spans, None, kinds), layers=(0, 2, 3))
        seen = valid[row]
        for mine, expected in zip(states, alone, strict=True):
            torch.testing.assert_close(mine[row][seen], expected[0], atol=1e-5, rtol=1e-5)


@torch.no_grad()
def test_spans_and_positions_matter():
    """The control of the test above: other spans or positions, other states."""
    batch, readers = mixed(7, ("parent", "trans"))
    model = model_of(SHARINGS["layers"], readers, True)
    text = nli(length=LENGTH).encode(batch, readers, {"label": ("yes", "no")}).batch(np.arange(len(batch))).text
    (zero, head, one), (_, stop, two) = text.spans
    right = model.read(text)[0][:, 0]
    for wrong in (
        replace(text, spans=((zero, head - 8, one), (head - 8, stop, two))),
        replace(text, positions=None),
        replace(text, valid=None),
    ):
        assert not torch.allclose(model.read(wrong)[0][:, 0], right, atol=1e-3)


def test_positions_stay_within_the_length():
    """Both blocks together may be wider than any row may be long."""
    batch, readers = mixed(3, ("parent", "trans"))
    for examples in (
        nli(length=24).encode(batch, readers, {"label": ("yes", "no")}),
        qa(length=24, stride=4).encode(batch, readers, {"no_answer": ()}),
    ):
        text = examples.batch(np.arange(len(examples))).text
        assert text.positions is not None and text.input_ids.shape[1] > 24
        assert int(text.positions.max()) == 23


def fast_tokenizer():
    from transformers import PreTrainedTokenizerFast

    specials = {"bos_token": "<s>", "cls_token": "<s>", "eos_token": "</s>", "sep_token": "</s>", "pad_token": "<pad>"}
    return PreTrainedTokenizerFast(tokenizer_object=vocabulary().parent, unk_token="<unk>", **specials)


@pytest.mark.parametrize("length", [9, 16, 21, 40, 128])
def test_pairs_are_cut_as_transformers_cuts_them(length):
    batch, readers = mixed(11, ("parent", "parent"))
    examples = nli(length=length).encode(batch, readers, {"label": ("yes", "no")})
    expected = fast_tokenizer()(batch.strings(0), batch.strings(1), truncation="longest_first", max_length=length)
    text = examples.batch(np.arange(len(examples))).text
    assert [shown(text, row)[0] for row in range(len(examples))] == expected["input_ids"]


def long_contexts():
    """Questions of one to six words, contexts of up to a hundred."""
    rng = np.random.default_rng(4)
    groups = []
    for number in range(20):
        sizes = int(rng.integers(1, 7)), int(rng.integers(1, 100))
        question, context = ([f"w{n}" for n in rng.integers(0, 10**6, size)] for size in sizes)
        texts = ((1, [{"form": context}]), (0, [{"form": question}]))
        groups.append(Group(texts, (Item(str(number), (1, 0), None, ((0, 1),)),)))
    [batch] = batches_of_groups(groups, (), Counter(), 1)
    return batch


@pytest.mark.parametrize(("length", "stride"), [(96, 0), (96, 5), (128, 21), (384, 128)])
def test_windows_are_those_of_transformers(length, stride):
    batch, own = long_contexts(), reader()
    examples = qa(length=length, stride=stride).encode(batch, (own, own), {"no_answer": ()})
    expected = fast_tokenizer()(
        batch.strings(0),
        batch.strings(1),
        truncation="only_second",
        max_length=length,
        stride=stride,
        return_overflowing_tokens=True,
    )
    text = examples.batch(np.arange(len(examples))).text
    assert [shown(text, row)[0] for row in range(len(examples))] == expected["input_ids"]
    assert examples.windows.item.tolist() == expected["overflow_to_sample_mapping"]
    assert len(examples) > 2 * len(batch) or length > 96
    assert not examples.counts
