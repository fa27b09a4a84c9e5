"""Readers over a small vocabulary, and rows of two texts written out token by token."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

import numpy as np

from probes.models.pretrained import Reader
from probes.transfer.config import TransferConfig
from probes.transfer.tasks.nli import Nli
from probes.transfer.tasks.qa import Qa
from synthlang.corpus import Corpus
from synthlang.language import bind_language, parse_language
from synthlang.sources import open_source
from synthlang.tasks.batch import TaskBatch
from synthlang.vocabularies import OURS, LanguageTokenizer
from synthlang.vocabulary import Subwords, Vocabulary, train_vocabulary
from tests.task_cases import random_batch

INVERT_TOKENS = {"name": "tokens", "transforms": [{"kind": "invert", "unit": "token"}]}


@cache
def vocabulary() -> Vocabulary:
    """A vocabulary that cuts most words of ``random_batch`` into several tokens."""
    return train_vocabulary([random_batch(np.random.default_rng(0), 40).corpus], 275)


def reader(spec: Any = "parent", member: int = 0, bert: bool = False, words: Vocabulary | None = None) -> Reader:
    """Return a reader of a language. Number 0 is the source language."""
    words = vocabulary() if words is None else words
    language = bind_language(parse_language(spec), open_source("builtin:mini-english"), words)
    own = np.arange(5, words.size) + (words.size if language.script else 0)
    subwords = Subwords(words, language.script) if language.on_tokens else None
    tokenizer = LanguageTokenizer(
        language.name, words.tokenizer(language.script), np.r_[0:5, own], subwords, words.size if subwords else 0
    )
    return Reader(language, tokenizer, member, OURS, "target" if member else "source", bert)


def nli(**settings: Any) -> Nli:
    return Nli(TransferConfig(task="nli", **settings))


def qa(**settings: Any) -> Qa:
    return Qa(TransferConfig(task="qa", **settings))


def words_of(batch: TaskBatch, item: int, field: int) -> tuple[list[str], int]:
    """The words of a text of an item, and where they begin in the corpus."""
    text = int(batch.texts[item, field])
    low, high = batch.word_offsets[text : text + 2].tolist()
    return batch.corpus.form.values()[low:high], low


def pieces_of(reader: Reader, words: list[str]) -> list[list[int]]:
    """The ids of each word, encoded apart."""
    if reader.tokenizer.subwords is not None:
        return [reader.tokenizer.subwords.encode(Corpus.of_words([[word]])).ids.tolist() for word in words]
    return [reader.tokenizer.tokenizer.encode(word, add_special_tokens=False).ids for word in words]


def tokens_of(batch: TaskBatch, item: int, field: int, reader: Reader) -> list[int]:
    return [token for piece in pieces_of(reader, words_of(batch, item, field)[0]) for token in piece]


def plain_row(a: list[int], b: list[int], bert: bool) -> tuple[list[int], list[int], int]:
    """The ids of a row without padding, its segments, and how many of them belong to the first text."""
    head = [0, *a, 2]
    tail = [*b, 2] if bert else [2, *b, 2]
    return head + tail, [0] * len(head) + [int(bert)] * len(tail), len(head)


def cut(texts: Iterable[list[int]], room: int) -> tuple[list[int], list[int]]:
    """Cut one token at a time from the longer text. If both are equal, cut from the one that was not longer."""
    a, b = map(list, texts)
    longer = len(a) > len(b)
    while len(a) + len(b) > room:
        (a if len(a) > len(b) or (len(a) == len(b) and not longer) else b).pop()
    return a, b


def shown(text: Any, row: int) -> tuple[list[int], list[int], list[int], list[int]]:
    """Ids, positions, segments and members of the valid columns of a row."""
    width = text.input_ids.shape[1]
    valid = [True] * width if text.valid is None else text.valid[row].tolist()
    positions = list(range(width)) if text.positions is None else text.positions[row].tolist()
    segments = [0] * width if text.segments is None else text.segments[row].tolist()
    members = text.languages[row].tolist()
    columns = [c for c in range(width) if valid[c]]
    ids = text.input_ids[row].tolist()
    assert all(ids[c] == OURS.pad for c in range(width) if not valid[c])
    a, b, c, d = ([values[i] for i in columns] for values in (ids, positions, segments, members))
    return a, b, c, d
