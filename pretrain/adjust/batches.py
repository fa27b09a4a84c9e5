"""Batches of an adjustment, a pure function of the seed and the step.

A batch holds the input of an encoder, the place of each word, and the word alignments.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pretrain.adjust.config import LossConfig, Side
from synthlang.parallel.prepare import PairData, Sentences
from synthlang.rng import key_of, permutation
from synthlang.vocabularies.space import Specials

ROUND_WIDTH = 8  # widths are multiples of this number, so that few shapes occur


@dataclass(frozen=True)
class SideWords:
    """The sentences of one side.

    Attributes:
        input_ids: Sentences with their two sentence tokens and padding, [rows, width] int64.
        mask: 1 where there is a token, [rows, width] int64.
        start: First column of each word's subwords, counted through all rows (row · width + column), [words] int64.
        stop: Column after each word's subwords, which is ``start`` for a word without subwords, [words] int64.
        aligned: True for aligned words, [words] bool.
        language: Language of the sentences, for a model with separate parts for each language.
    """

    input_ids: Tensor
    mask: Tensor
    start: Tensor
    stop: Tensor
    aligned: Tensor
    language: int = 0

    @property
    def sentence_tokens(self) -> tuple[Tensor, Tensor]:
        """Columns of the first and the last token of each sentence, counted through all rows, [rows]."""
        rows, width = self.input_ids.shape
        first = torch.arange(rows, device=self.mask.device) * width
        return first, first + self.mask.sum(1) - 1

    def to(self, device: torch.device) -> SideWords:
        tensors: dict[str, Any] = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "language"}
        return replace(self, **{name: tensor.to(device, non_blocking=True) for name, tensor in tensors.items()})


@dataclass(frozen=True)
class WordPairs:
    """Sentence pairs, where row r of ``left`` translates row r of ``right``, and their word alignments.

    ``links`` [links, 2] int64 holds the words of ``left`` and ``right`` that are aligned.
    """

    left: SideWords
    right: SideWords
    links: Tensor

    def side(self, side: Side) -> SideWords:
        return self.left if side == "left" else self.right

    def pulled(self, side: Side, settings: LossConfig) -> Tensor:
        """Return the pulled items of a side, [pairs]: its aligned words, then sentence tokens, by the settings."""
        of_side = self.links[:, 0 if side == "left" else 1]
        return torch.cat([of_side if settings.pulls_words else of_side[:0], self._extra(side, settings)])

    def held(self, side: Side, settings: LossConfig) -> Tensor:
        """Return the held items of a side, [items]: all words with a subword, or only the pulled items."""
        words = self.side(side)
        chosen = words.aligned if settings.held_words == "aligned" else words.stop > words.start
        if settings.held_words == "aligned" and not settings.pulls_words:
            chosen = torch.zeros_like(chosen)
        return torch.cat([chosen.nonzero()[:, 0], self._extra(side, settings)])

    def _extra(self, side: Side, settings: LossConfig) -> Tensor:
        """Return the indices of the sentence tokens, which follow all words: first tokens, then last tokens."""
        words = self.side(side)
        count = settings.sentence_tokens * len(words.input_ids)
        return torch.arange(count, device=self.links.device) + len(words.start)

    def to(self, device: torch.device) -> WordPairs:
        return WordPairs(self.left.to(device), self.right.to(device), self.links.to(device, non_blocking=True))


class PairBatches:
    """Batches with ``rows`` sentence pairs of each pair of languages a step (Cao et al. 2020: two).

    Sample i of a pair with n sentence pairs is number i mod n of the permutation of epoch ⌊i / n⌋. The largest pair has
    ``epochs`` epochs, and the last step is filled up from the next epoch.
    """

    def __init__(self, pairs: Sequence[PairData], special: Specials, rows: int, epochs: int, seed: int) -> None:
        self.pairs, self.special, self.rows, self.seed = tuple(pairs), special, rows, seed
        self.steps = -(-max(len(pair.train) for pair in pairs) * epochs // rows)
        self._order = lru_cache(maxsize=2 * len(self.pairs))(self._permutation)

    def _permutation(self, pair: int, epoch: int) -> NDArray[np.int64]:
        data = self.pairs[pair]
        return data.train[permutation(key_of("adjust-order", self.seed, data.name, epoch), len(data.train))]

    def chosen(self, step: int) -> list[NDArray[np.int64]]:
        """Return the rows of a step's sentence pairs in the text of each pair of languages."""
        samples = range(step * self.rows, (step + 1) * self.rows)
        result = []
        for which, data in enumerate(self.pairs):
            places = [divmod(sample, len(data.train)) for sample in samples]
            result.append(np.asarray([self._order(which, epoch)[at] for epoch, at in places], np.int64))
        return result

    def batch(self, step: int, which: int = 0, count: int = 1) -> WordPairs:
        """Return micro-batch ``which`` of a step, with every ``count``-th sentence pair of each pair of languages."""
        rows = self.chosen(step)
        return word_pairs(self.pairs, [chosen[which::count] for chosen in rows], self.special)


def dev_batches(pair: PairData, special: Specials, rows: int) -> Iterator[WordPairs]:
    """Yield the held-out sentence pairs of a pair of languages, sorted by length to reduce padding."""
    order = pair.dev[np.argsort(np.diff(pair.left.bounds)[pair.dev], kind="stable")]
    for first in range(0, len(order), rows):
        yield word_pairs([pair], [order[first : first + rows]], special)


def word_pairs(
    pairs: Sequence[PairData],
    chosen: Sequence[NDArray[np.int64]],
    special: Specials,
    of_right: Specials | None = None,
) -> WordPairs:
    """Return the sentence pairs at ``chosen`` of each pair of languages, one pair after another.

    ``of_right`` are the special ids of the right side if another model reads this side.
    """
    links = [pair.links.take(rows) for pair, rows in zip(pairs, chosen, strict=True)]
    base = np.cumsum([0, *map(len, chosen)])  # the first row of each pair of languages
    numbers, sides = [], []
    for name, of_side in (("left", special), ("right", of_right or special)):
        texts: list[Sentences] = [getattr(pair, name) for pair in pairs]
        lengths = [np.diff(text.offsets)[rows] for text, rows in zip(texts, chosen, strict=True)]
        first = np.concatenate([[0], *lengths]).cumsum().astype(np.int64)  # the first word of each row
        linked = [first[row + part.sentence] + getattr(part, name) for row, part in zip(base, links, strict=False)]
        numbers.append(np.concatenate(linked))
        aligned = np.zeros(int(first[-1]), bool)
        aligned[numbers[-1]] = True
        sides.append(side_words(texts, chosen, aligned, of_side))
    return WordPairs(sides[0], sides[1], torch.from_numpy(np.stack(numbers, axis=1).astype(np.int64)))


def side_words(
    texts: Sequence[Sentences], chosen: Sequence[NDArray[np.int64]], aligned: NDArray[np.bool_], special: Specials
) -> SideWords:
    """Return one side of the sentence pairs at ``chosen`` of each text. ``aligned`` [words] marks the aligned words."""
    sizes = np.concatenate([np.diff(text.bounds)[rows] for text, rows in zip(texts, chosen, strict=True)])
    width = -(-(int(sizes.max()) + 2) // ROUND_WIDTH) * ROUND_WIDTH
    ids = np.full((len(sizes), width), special.pad, np.int64)
    start, stop = [], []
    places = ((text, int(row)) for text, rows in zip(texts, chosen, strict=True) for row in rows)
    for i, (text, row) in enumerate(places):
        first, last = text.bounds[row], text.bounds[row + 1]
        ids[i, : last - first + 2] = [special.bos, *text.ids[first:last], special.eos]
        words = text.word_offsets[text.offsets[row] : text.offsets[row + 1] + 1] - first + i * width + 1
        start.append(words[:-1])
        stop.append(words[1:])
    mask = np.arange(width) < (sizes + 2)[:, None]
    first_columns, stops = (torch.from_numpy(np.concatenate(c).astype(np.int64)) for c in (start, stop))
    (language,) = {text.language for text in texts}  # a side has one language of the model
    tensors = torch.from_numpy(ids), torch.from_numpy(mask.astype(np.int64))
    return SideWords(*tensors, first_columns, stops, torch.from_numpy(aligned), language)
