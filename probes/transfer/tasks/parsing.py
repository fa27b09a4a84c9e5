"""Dependency parsing: a head and a relation for each word, by a deep biaffine parser (Dozat & Manning 2017).

A prediction has the form ``[[2, "det"], [0, "root"]]``. Heads are 1-based, and 0 is the root. A word beyond the maximum
length is predicted as ``[-1, ""]``. Gold values also have the UPOS tag of each word.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from pretrain.model.text import Packed
from probes.models.pretrained import Reader
from probes.transfer.config import HeadConfig
from probes.transfer.tasks.arborescence import arborescences
from probes.transfer.tasks.base import NO_LABEL, Batch, Examples, Head, Labels, classes_of, most_frequent
from probes.transfer.tasks.heads import mean_loss
from probes.transfer.tasks.metrics import Floats, Metric, Stats, WordLabels, named, share
from probes.transfer.tasks.word_tasks import UNSEEN, LabelledWords, WordExamples, WordTask, is_named, names_in
from synthlang.corpus import Corpus
from synthlang.errors import InputError
from synthlang.tasks.batch import TaskBatch

HEADLESS = "words whose head was left out"
LEFT, RIGHT = -1, 1
PUNCT = "PUNCT"
SLOPE = 0.1  # negative slope of the leaky ReLU, as in the code of Dozat & Manning


class Parsing(WordTask):
    """Dependency parsing: a head and a relation for each word (columns ``upos``, ``head`` and ``deprel``)."""

    name = "parsing"
    requires = ("upos", "head", "deprel")

    def has_gold(self, corpus: Corpus) -> NDArray[np.bool_]:
        """Return the mask [words] of words with a relation other than ``_``."""
        return is_named(corpus.columns["deprel"])

    def labels(self, train: TaskBatch) -> Labels:
        """Return ``relations`` (all in training, with subtypes) and ``root`` (the most frequent relation of a root).

        Raises:
            InputError: No word of the training set is a root with a relation.
        """
        column, heads = train.corpus.columns["deprel"], train.corpus.columns["head"].codes
        named = self.has_gold(train.corpus)
        roots = np.bincount(column.codes[named & (heads == 0)], minlength=len(column.names or ()))
        if not roots.any():
            reason, hint = "no word of the training set is a root with a relation", "use a treebank with trees"
            raise InputError(reason, hint=hint, code="empty")
        root = min(name for name, n in zip(column.names or (), roots.tolist(), strict=True) if n == roots.max())
        return {"relations": tuple(names_in(column, named & (heads >= 0))), "root": (root,)}

    def encode(self, batch: TaskBatch, readers: Sequence[Reader], labels: Labels) -> Examples:
        """Encode a head and a relation for each word.

        Raises:
            InputError: The language changes tokens instead of words.
        """
        language = readers[0].language
        if language.on_tokens:
            reason = f"the language {language.name} changes tokens (unit: token), and the task parsing needs words"
            raise InputError(reason, hint="use a language without unit: token", code="conflict")
        words = self.words(batch, readers)
        column, heads = words.column("deprel"), _heads(words)
        relations, unseen = classes_of(column, labels["relations"])
        targets = _targets(words, heads)
        gold = zip(heads.tolist(), column.values(), words.column("upos").values(), strict=True)
        counts = {**words.counts, UNSEEN: unseen, HEADLESS: int((heads < 0).sum())}
        return TreeExamples(
            batch.ids,
            words.lists([list(parts) for parts in gold]),
            counts,
            words=words,
            targets={"heads": targets, "relations": np.where(targets == NO_LABEL, NO_LABEL, relations)},
            relations=labels["relations"],
        )

    def head(self, hidden: int, labels: Labels) -> Head:
        """Return a biaffine parser for states of width ``hidden``."""
        names, (root,) = labels["relations"], labels["root"]
        return ParserHead(hidden, len(names), self.config.head, root_relation=names.index(root))

    def metrics(self) -> dict[str, Metric]:
        """Return attachment scores in percent.

            las               share of words with the correct head and relation up to ":" (CoNLL 2018)
            uas               share of words with the correct head
            las_subtypes      share of words with the correct head and whole relation
            …_without_punct   share without words whose gold UPOS tag is PUNCT

        Words are given, so precision and recall of CoNLL 2018 are equal. ``score.punctuation`` decides which scores
        come first. A predicted head −1 is an error, and words with the gold head −1 do not count.
        """
        endings = ("", "_without_punct") if self.config.score.punctuation else ("_without_punct", "")
        rights: dict[str, Callable[[Any], Any]] = {
            "las": lambda word: (word[0], word[1].partition(":")[0]),
            "uas": lambda word: word[0],
            "las_subtypes": lambda word: tuple(word[:2]),
        }
        return named(
            *(
                Metric(name + ending, attached(part, punctuation=not ending), share)
                for ending in endings
                for name, part in rights.items()
            )
        )

    def majority(self, train: Sequence[Any], test: Sequence[Any]) -> list[Any]:
        """Attach every word to its left neighbour, or every word to its right neighbour.

        The word without such a neighbour is the root. The chosen side has more correct heads in ``train``. The
        predicted relation is the most frequent relation of words whose head is on this side. The root has the most
        frequent relation of roots.
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
        relation, root = (most_frequent(counts) for counts in (right[side], roots))
        heads = [[_neighbour(number, side, len(words)) for number in range(1, len(words) + 1)] for words in test]
        return [[[head, relation if head else root] for head in item] for item in heads]


@dataclass(frozen=True, kw_only=True)
class TreeExamples(WordExamples):
    """Encoded sentences with trees.

    In targets and in the outputs of the head, heads are numbered among the words that were read. In gold values and
    predictions they are numbered among all labelled words. Numbers are 1-based, and 0 is the root.

    Attributes:
        relations: The relations that can be predicted, which targets and outputs number from 0.
    """

    relations: tuple[str, ...]

    def predictions(self, outputs: Sequence[Any]) -> list[Any]:
        """Return the head and the relation of each word, by item.

        ``outputs`` has (head, relation) for each word that was read, by row.
        """
        words = self.words
        pairs = np.asarray(list(chain.from_iterable(outputs)), np.int64).reshape(-1, 2)
        read = np.flatnonzero(words.read)  # [read words] the index of each among all words
        counts = np.diff(words.read_offsets)
        shift, before = np.repeat(words.read_offsets[:-1], counts), np.repeat(words.offsets[:-1], counts)
        heads = np.full(len(words.read), -1, np.int64)
        relations = np.full(len(words.read), len(self.relations), np.int64)
        # for roots, the looked-up index is ignored
        heads[read] = np.where(pairs[:, 0] > 0, read[np.maximum(pairs[:, 0] - 1, 0) + shift] + 1 - before, 0)
        relations[read] = pairs[:, 1]
        names = (*self.relations, "")
        found = zip(heads.tolist(), relations.tolist(), strict=True)
        return words.lists([[head, names[relation]] for head, relation in found])


def _heads(words: LabelledWords) -> NDArray[np.int64]:
    """Return the heads [words], numbered across all sentences of an item, or −1."""
    heads = words.column("head").codes.astype(np.int64)
    return np.where(heads > 0, heads + words.starts[words.index], heads)


def _targets(words: LabelledWords, heads: NDArray[np.int64]) -> NDArray[np.int64]:
    """Renumber heads [words] among the words that were read. A head that was not read becomes NO_LABEL."""
    counts = np.diff(words.offsets)
    number: NDArray[np.int64] = np.cumsum(words.read) - np.repeat(words.read_offsets[:-1], counts)
    place = np.maximum(heads - 1, 0) + np.repeat(words.offsets[:-1], counts)
    there = (heads > 0) & words.read[place]
    return np.where(heads == 0, 0, np.where(there, number[place], NO_LABEL))


def _neighbour(number: int, side: int, size: int) -> int:
    """Return the 1-based number of the previous or next word, or 0 if there is none."""
    return number + side if 1 <= number + side <= size else 0


def attached(part: Callable[[Any], Any], punctuation: bool) -> Stats:
    """Return the ``stats`` of an attachment score, which count correct words and counted words, [items, 2].

    A word is correct if ``part`` of its prediction and of its gold value are equal. Words with the gold head −1 are not
    counted, and without ``punctuation`` neither are words with the tag PUNCT.
    """

    def stats(gold: Sequence[Any], predictions: Sequence[Any]) -> Floats:
        words = WordLabels.of(gold, predictions)
        counted = np.fromiter((g[0] >= 0 and (punctuation or g[2] != PUNCT) for g in words.gold), bool)
        return words.sums(counted & words.same(part), counted)

    return stats


class ParserHead(Head):
    """The biaffine parser of Dozat & Manning 2017.

    Arcs have the scores s[i, j] = dᵢᵀ U hⱼ + bᵀ hⱼ (equation 6), and relations [dᵢ; 1]ᵀ Uᵣ [hⱼ; 1] (equation 3). The
    state of the row represents the root. Bilinear weights start at 0, so that all heads are equally likely.

    Args:
        hidden: The width of the states.
        relations: Number of relations.
        config: The sizes of the arc and relation vectors, and the dropout.
        root_relation: The relation that is decoded for the arc of the root and for no other arc (None: no restriction).
    """

    def __init__(self, hidden: int, relations: int, config: HeadConfig, root_relation: int | None = None) -> None:
        super().__init__()
        self.relations, self.root_relation = relations, root_relation
        self.arc_dependent = Mlp(hidden, config.arc, config.dropout)
        self.arc_head = Mlp(hidden, config.arc, config.dropout)
        self.relation_dependent = Mlp(hidden, config.relation, config.dropout)
        self.relation_head = Mlp(hidden, config.relation, config.dropout)
        self.arc = nn.Parameter(torch.zeros(config.arc + 1, config.arc))
        self.relation = nn.Parameter(torch.zeros(relations, config.relation + 1, config.relation + 1))

    def arcs(self, states: Tensor, mask: Tensor) -> Tensor:
        """Return the score [r, k, 1 + k] of each head for each word. Head 0 is the root. Impossible arcs have −inf.

        ``states`` are [r, 1 + k, d], and ``mask`` [r, k] is False for padding.
        """
        dependents, heads = with_one(self.arc_dependent(states[:, 1:])), self.arc_head(states)
        scores: Tensor = dependents @ self.arc @ heads.transpose(1, 2)
        words = mask.shape[1]
        itself = torch.eye(words, dtype=torch.bool, device=mask.device)
        never = itself[None] | ~mask[:, None, :]
        return scores.masked_fill(nn.functional.pad(never, (1, 0)), -torch.inf)

    def labels(self, states: Tensor, heads: Tensor, words: Packed | None = None) -> Tensor:
        """Return the score [r, k, relations] of each relation between each word and its head.

        ``states`` are [r, 1 + k, d], and ``heads`` [r, k] are numbers from 0 for the root to k. Outside the positions
        in ``words``, the score is 0.
        """
        dependents, above = with_one(self.relation_dependent(states[:, 1:])), with_one(self.relation_head(states))
        above = above.gather(1, heads[:, :, None].expand(-1, -1, above.shape[2]))
        if words is not None:
            dependents, above = words.pick(dependents), words.pick(above)
        y: Tensor = torch.einsum("...d,cde,...e->...c", dependents, self.relation, above)
        return y if words is None else words.pad(y)

    def loss(self, states: Tensor, batch: Batch) -> Tensor:
        """Return the mean cross entropy of heads plus the mean cross entropy of relations at the gold heads, in nats.

        The first mean is over words with a head, and the second mean is over words with a head and a relation.
        ``states`` are [r, 1 + k, d].
        """
        heads = batch.targets["heads"].masked_fill(~batch.mask, NO_LABEL)
        relations = batch.targets["relations"].masked_fill(heads < 0, NO_LABEL)
        heads = heads.masked_fill(heads < 0, NO_LABEL)
        arcs = mean_loss(self.arcs(states, batch.mask), heads)
        return arcs + mean_loss(self.labels(states, heads.clamp(min=0), batch.packed), relations)

    @torch.no_grad()
    def decode(self, states: Tensor, batch: Batch) -> list[list[tuple[int, int]]]:
        """Return (head, relation) for each word: the best tree with one root, and the best relation of each arc.

        ``states`` are [r, 1 + k, d]. The result has a list for each row.

        Raises:
            InputError: An arc score is NaN or infinite.
        """
        lengths = batch.mask.sum(dim=1)
        scores = self.arcs(states, batch.mask).double().cpu().numpy()
        trees = [torch.from_numpy(tree) for tree in arborescences(scores, lengths.cpu().numpy())]
        heads = nn.utils.rnn.pad_sequence([*trees, torch.zeros(batch.mask.shape[1], dtype=torch.int64)], True)[:-1]
        labels = self.labels(states, heads.to(states.device), batch.packed)
        if self.root_relation is not None:
            of_root = torch.arange(self.relations, device=labels.device) == self.root_relation
            labels = labels.masked_fill((heads.to(labels.device) == 0)[:, :, None] != of_root, -torch.inf)
        best = labels.argmax(dim=2).tolist()
        return [list(zip(tree.tolist(), row, strict=False)) for tree, row in zip(trees, best, strict=True)]


class Mlp(nn.Module):
    """A linear map from ``hidden`` to ``width`` dimensions, followed by a leaky ReLU and by dropout."""

    def __init__(self, hidden: int, width: int, dropout: float) -> None:
        super().__init__()
        self.linear, self.active, self.dropout = nn.Linear(hidden, width), nn.LeakyReLU(SLOPE), nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        """Map [..., hidden] to [..., width]."""
        y: Tensor = self.dropout(self.active(self.linear(x)))
        return y


def with_one(x: Tensor) -> Tensor:
    """Append a constant 1 to vectors [..., d], and return them as [..., d + 1].

    A bilinear form of such vectors has linear terms and a bias.
    """
    return torch.cat([x, x.new_ones(*x.shape[:-1], 1)], dim=-1)
