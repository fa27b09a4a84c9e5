"""Dependency parsing: a head and a relation for each word."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from probes.transfer.batch import NO_LABEL, Examples, Reader
from probes.transfer.heads.head import Head
from probes.transfer.metrics.metric import Metric
from probes.transfer.tasks.base import Labels
from probes.transfer.tasks.words import WordExamples, Words, WordTask, classes_of, is_named, names_in, with_unseen
from synthlang.corpus import Corpus
from synthlang.errors import InputError
from synthlang.tasks.batch import TaskBatch

HEADLESS = "words whose head was left out"
NO_TREES = "no word of the training set has a head and a relation, so there is nothing to learn"
LEFT, RIGHT = -1, 1


@dataclass(frozen=True, kw_only=True)
class TreeExamples(WordExamples):
    """Sentences with trees. Heads of targets and of a head's outputs count the words that are read, those of gold
    and predictions all words with a label: both 1-based, 0 is the root."""

    relations: tuple[str, ...]

    def predictions(self, outputs: Sequence[Any]) -> list[Any]:
        """[items] head and relation of each word; ``outputs`` are those of the words that are read."""
        words = self.words
        pairs = np.asarray(list(chain.from_iterable(outputs)), np.int64).reshape(-1, 2)
        read = np.flatnonzero(words.read)  # [read words] the place of each among all words
        counts = np.diff(words.read_offsets)
        shift, before = np.repeat(words.read_offsets[:-1], counts), np.repeat(words.offsets[:-1], counts)
        heads = np.full(len(words.read), -1, np.int64)
        relations = np.full(len(words.read), len(self.relations), np.int64)
        # a root's place is looked up too, and not used
        heads[read] = np.where(pairs[:, 0] > 0, read[np.maximum(pairs[:, 0] - 1, 0) + shift] + 1 - before, 0)
        relations[read] = pairs[:, 1]
        names = (*self.relations, "")
        found = zip(heads.tolist(), relations.tolist(), strict=True)
        return words.lists([[head, names[relation]] for head, relation in found])


class Parsing(WordTask):
    """Sentences with the columns ``upos``, ``head`` and ``deprel``; relations are learned with their subtypes."""

    name = "parsing"
    requires = ("upos", "head", "deprel")

    def has_gold(self, corpus: Corpus) -> NDArray[np.bool_]:
        """[words] which have a relation."""
        return is_named(corpus.columns["deprel"])

    def labels(self, train: TaskBatch) -> Labels:
        """``relations``: those of training; ``root``: the one that roots have, most of them if they differ."""
        column, heads = train.corpus.columns["deprel"], train.corpus.columns["head"].codes
        named = self.has_gold(train.corpus)
        roots = np.bincount(column.codes[named & (heads == 0)], minlength=len(column.names or ()))
        if not roots.any():
            raise InputError(NO_TREES)
        root = min(name for name, n in zip(column.names or (), roots.tolist(), strict=True) if n == roots.max())
        return {"relations": tuple(names_in(column, named & (heads >= 0))), "root": (root,)}

    def encode(self, batch: TaskBatch, readers: Sequence[Reader], labels: Labels) -> Examples:
        """A head and a relation for each word; InputError where a language's words are tokens."""
        language = readers[0].language
        if language.on_tokens:
            raise InputError(
                f"the language {language.name} moves or changes tokens (unit: token), and trees are of words: "
                "the task parsing needs a language of words"
            )
        words = self.words(batch, readers)
        column, heads = words.column("deprel"), _heads(words)
        relations, unseen = classes_of(column, labels["relations"])
        targets = _targets(words, heads)
        gold = zip(heads.tolist(), column.values(), words.column("upos").values(), strict=True)
        counts = with_unseen(with_unseen(words.counts, unseen), int((heads < 0).sum()), HEADLESS)
        return TreeExamples(
            batch.ids,
            words.lists([list(parts) for parts in gold]),
            counts,
            words=words,
            targets={"heads": targets, "relations": np.where(targets == NO_LABEL, NO_LABEL, relations)},
            relations=labels["relations"],
        )

    def head(self, hidden: int, labels: Labels) -> Head:
        """A biaffine parser."""
        from probes.transfer.heads.biaffine import ParserHead

        root = labels["relations"].index(labels["root"][0])
        return ParserHead(
            hidden=hidden, relations=len(labels["relations"]), root_relation=root, config=self.config.head
        )

    def metrics(self) -> dict[str, Metric]:
        """Attachment scores: relations without subtypes as CoNLL 2018 counts, with them, and without punctuation."""
        from probes.transfer.metrics import tree_metrics

        return tree_metrics(self.config.score.punctuation)

    def majority(self, train: Sequence[Any], test: Sequence[Any]) -> list[Any]:
        """Every word on its left neighbour, the first one the root; or on the right one, the last the root.

        The side is the one with more right heads in ``train``; the relation is the most frequent one of the words
        that are right there, and that of a root the most frequent one of roots.
        """
        right: dict[int, Counter[str]] = {side: Counter() for side in (LEFT, RIGHT)}
        roots: Counter[str] = Counter()
        hits: Counter[int] = Counter()
        for words in train:
            for number, (head, relation, _) in enumerate(words, start=1):
                roots[relation] += head == 0
                for side, counts in right.items():
                    hits[side] += head == _neighbour(number, side, len(words))
                    counts[relation] += head > 0 and head == number + side
        side = max((LEFT, RIGHT), key=lambda one: hits[one])
        relation, root = (_most_frequent(counts) for counts in (right[side], roots))
        heads = [[_neighbour(number, side, len(words)) for number in range(1, len(words) + 1)] for words in test]
        return [[[head, relation if head else root] for head in item] for item in heads]


def _heads(words: Words) -> NDArray[np.int64]:
    """[words] heads in the numbering of items, whose sentences follow each other; −1 where there is none."""
    heads = words.column("head").codes.astype(np.int64)
    return np.where(heads > 0, heads + words.starts[words.index], heads)


def _targets(words: Words, heads: NDArray[np.int64]) -> NDArray[np.int64]:
    """[words] the same in the numbering of the words that are read; NO_LABEL where the head is not there."""
    counts = np.diff(words.offsets)
    number: NDArray[np.int64] = np.cumsum(words.read) - np.repeat(words.read_offsets[:-1], counts)
    place = np.maximum(heads - 1, 0) + np.repeat(words.offsets[:-1], counts)
    there = (heads > 0) & words.read[place]
    return np.where(heads == 0, 0, np.where(there, number[place], NO_LABEL))


def _neighbour(number: int, side: int, size: int) -> int:
    """The word on a side of word ``number`` of ``size``, 1-based; 0 where there is none."""
    return number + side if 1 <= number + side <= size else 0


def _most_frequent(counts: Counter[str]) -> str:
    return min(counts, key=lambda name: (-counts[name], name), default="")
