"""Batches of an adjustment, a pure function of the seed and the step.

A batch holds the input of an encoder, the columns of each word, and the word alignments.
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
    """The sentences of one side of a batch, and the columns of their words.

    Attributes:
        input_ids: Sentences with their two sentence tokens and padding, [rows, width] int64.
        mask: 1 where there is a token, [rows, width] int64.
        start: First column of each word's subwords, counted through all rows (row · width + column), [words] int64.
        stop: Column after each word's subwords, which is ``start`` for a word without subwords, [words] int64.
        aligned: True for aligned words, [words] bool.
        language: Number of the language, for a model with separate parts for each language.
    """

    input_ids: Tensor
    mask: Tensor
    start: Tensor
    stop: Tensor
    aligned: Tensor
    language: int = 0

    @property
    def sentence_tokens(self) -> tuple[Tensor, Tensor]:
        """Columns of the tokens before and after each sentence, counted through all rows, [rows] int64 each."""
        rows, width = self.input_ids.shape
        first = torch.arange(rows, device=self.mask.device) * width
        return first, first + self.mask.sum(1) - 1

    def to(self, device: torch.device) -> SideWords:
        """Return a copy with all tensors on ``device``."""
        tensors: dict[str, Any] = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "language"}
        return replace(self, **{name: tensor.to(device, non_blocking=True) for name, tensor in tensors.items()})


@dataclass(frozen=True)
class WordPairs:
    """Sentence pairs, where row r of ``left`` translates row r of ``right``, and their word alignments.

    Attributes:
        left: The sentences of the left side.
        right: The sentences of the right side.
        links: Indices of the aligned words of ``left`` and ``right``, [links, 2] int64.
        tokens: Numbers of the sentence tokens to use, [tokens] int64: r for the token before the sentence in row r, and
            rows + r for the token after it. None selects all sentence tokens that the settings of the loss name.
    """

    left: SideWords
    right: SideWords
    links: Tensor
    tokens: Tensor | None = None

    def side(self, side: Side) -> SideWords:
        """Return the sentences of the side ``left`` or ``right``."""
        return self.left if side == "left" else self.right

    def pulled(self, side: Side, settings: LossConfig) -> Tensor:
        """Return the indices of the pulled items of a side, [pairs] int64, as ``word_vectors`` orders the items.

        Item i of the left side and item i of the right side are a pair. The items are aligned words, sentence tokens or
        both, as ``settings.pulled`` selects. Aligned words come first.
        """
        of_side = self.links[:, 0 if side == "left" else 1]
        return torch.cat([of_side if settings.pulls_words else of_side[:0], self._extra(side, settings)])

    def held(self, side: Side, settings: LossConfig) -> Tensor:
        """Return the indices of the held items of a side, [items] int64, as ``word_vectors`` orders the items.

        By default, the held items are all words with a subword and the pulled sentence tokens. With ``held_words:
        aligned``, they are only the pulled items, each once.
        """
        words = self.side(side)
        chosen = words.aligned if settings.held_words == "aligned" else words.stop > words.start
        if settings.held_words == "aligned" and not settings.pulls_words:
            chosen = torch.zeros_like(chosen)
        return torch.cat([chosen.nonzero()[:, 0], self._extra(side, settings)])

    def _extra(self, side: Side, settings: LossConfig) -> Tensor:
        """Return the indices of the sentence tokens, which follow all words: first tokens, then last tokens."""
        words = self.side(side)
        count = settings.sentence_tokens * len(words.input_ids)
        tokens = torch.arange(count, device=self.links.device) if self.tokens is None else self.tokens
        return tokens + len(words.start)

    def only(self, links: NDArray[np.int64], tokens: NDArray[np.int64]) -> WordPairs:
        """Return the same sentences with some of the word alignments and some of the sentence tokens.

        Args:
            links: Indices of the word alignments to keep, [links] int64.
            tokens: Numbers of the sentence tokens to use, as in the attribute ``tokens``, [tokens] int64.
        """
        kept, sides = self.links[torch.from_numpy(links)], []
        for words, column in ((self.left, 0), (self.right, 1)):
            aligned = torch.zeros_like(words.aligned)
            aligned[kept[:, column]] = True
            sides.append(replace(words, aligned=aligned))
        return WordPairs(sides[0], sides[1], kept, torch.from_numpy(tokens))

    def to(self, device: torch.device) -> WordPairs:
        """Return a copy with all tensors on ``device``."""
        tokens = None if self.tokens is None else self.tokens.to(device, non_blocking=True)
        return WordPairs(self.left.to(device), self.right.to(device), self.links.to(device, non_blocking=True), tokens)


class _Draws:
    """Numbers drawn without replacement from several pools, ``count`` from each pool at every step.

    Draw i of a pool of n numbers is number i mod n of the permutation of epoch ⌊i / n⌋. The permutations depend on the
    key, the seed, the name of the pool and the epoch only. ``sizes`` has the name and n of each pool.
    """

    def __init__(self, key: str, seed: int, sizes: Sequence[tuple[str, int]], count: int) -> None:
        self.key, self.seed, self.sizes, self.count = key, seed, tuple(sizes), count
        self._order = lru_cache(maxsize=2 * len(self.sizes))(self._permutation)

    def _permutation(self, pool: int, epoch: int) -> NDArray[np.int64]:
        name, size = self.sizes[pool]
        return permutation(key_of(self.key, self.seed, name, epoch), size)

    def of_step(self, step: int) -> list[NDArray[np.int64]]:
        """Return the numbers of a step, an array [count] int64 for each pool."""
        result = []
        for pool, (_, size) in enumerate(self.sizes):
            places = [divmod(draw, size) for draw in range(step * self.count, (step + 1) * self.count)]
            result.append(np.asarray([self._order(pool, epoch)[at] for epoch, at in places], np.int64))
        return result


class PairBatches:
    """Batches with ``rows`` sentence pairs of each pair of languages at every step.

    Cao et al. 2020 use two sentence pairs. The largest pair of languages is read ``epochs`` times, and its last step is
    filled up from the next epoch. The sentence pairs of the other pairs of languages are repeated as often as needed.

    Args:
        pairs: The data of each pair of languages, which must have training sentences.
        special: The special ids of the model.
        rows: Number of sentence pairs of each pair of languages in a step.
        epochs: Number of epochs of the largest pair of languages.
        seed: Seed of the order.

    Attributes:
        steps: Number of steps of all epochs.
    """

    def __init__(self, pairs: Sequence[PairData], special: Specials, rows: int, epochs: int, seed: int) -> None:
        self.pairs, self.special = tuple(pairs), special
        self.steps = -(-max(len(pair.train) for pair in pairs) * epochs // rows)
        self._draws = _Draws("adjust-order", seed, [(pair.name, len(pair.train)) for pair in pairs], rows)

    def chosen(self, step: int) -> list[NDArray[np.int64]]:
        """Return the rows of a step's sentence pairs in the text of each pair of languages, [rows] int64 each."""
        return [data.train[drawn] for data, drawn in zip(self.pairs, self._draws.of_step(step), strict=True)]

    def batch(self, step: int, which: int = 0, count: int = 1) -> WordPairs:
        """Return micro-batch ``which`` (from 0) of ``count`` of a step (from 0).

        The micro-batch has every ``count``-th sentence pair of each pair of languages, from number ``which`` on.
        """
        rows = self.chosen(step)
        return word_pairs(self.pairs, [chosen[which::count] for chosen in rows], self.special)


class SinglePairBatches:
    """Batches with ``count`` single pairs of aligned items of each pair of languages at every step.

    The items are drawn as in "The Impact of Cross-Lingual Adjustment" (2022), section 3, from everything that the loss
    pulls in the training sentences: aligned words, and the sentence tokens that the settings name. A batch has whole
    sentences, because words are read in context. Only the drawn pairs are aligned.

    Args:
        pairs: The data of each pair of languages.
        special: The special ids of the model.
        settings: Settings of the loss, which name the pulled items.
        count: Number of pairs of items of each pair of languages in a step.
        seed: Seed of the draws.
    """

    def __init__(
        self, pairs: Sequence[PairData], special: Specials, settings: LossConfig, count: int, seed: int
    ) -> None:
        self.pairs, self.special = tuple(pairs), special
        self._words = [np.diff(pair.links.offsets) * settings.pulls_words for pair in pairs]
        """Number of pulled word alignments of each sentence pair. They come before its sentence tokens."""
        self._stops = [
            np.cumsum(words[pair.train] + settings.sentence_tokens)
            for words, pair in zip(self._words, pairs, strict=True)
        ]
        sizes = [(pair.name, int(stops[-1])) for pair, stops in zip(pairs, self._stops, strict=True)]
        self._draws = _Draws("continual-pairs", seed, sizes, count)

    def chosen(self, step: int) -> list[NDArray[np.int64]]:
        """Return the pairs of a step for each pair of languages, [count, 2] int64 each.

        The columns are the row of the sentence pair and the number of the item. The items of a sentence pair are its
        word alignments in their order, then the tokens before and after the sentence.
        """
        result = []
        for data, stops, drawn in zip(self.pairs, self._stops, self._draws.of_step(step), strict=True):
            at = np.searchsorted(stops, drawn, side="right")
            starts = np.concatenate([[0], stops[:-1]])
            result.append(np.stack([data.train[at], drawn - starts[at]], axis=1))
        return result

    def batch(self, step: int) -> WordPairs:
        """Return the sentences of a step's pairs, each once, with these pairs as the only aligned items."""
        chosen = self.chosen(step)
        texts, places = zip(*(np.unique(drawn[:, 0], return_inverse=True) for drawn in chosen), strict=True)
        total = sum(map(len, texts))
        links, tokens, first_row, first_link = [], [], 0, 0
        for which, (rows, place, drawn) in enumerate(zip(texts, places, chosen, strict=True)):
            counts = np.diff(self.pairs[which].links.offsets)[rows]
            starts = first_link + np.cumsum(counts) - counts  # in the alignments of the whole batch
            item, words = drawn[:, 1], self._words[which][rows][place]
            is_word = item < words
            links.append((starts[place] + item)[is_word])
            tokens.append((first_row + place + (item - words) * total)[~is_word])
            first_row, first_link = first_row + len(rows), first_link + int(counts.sum())
        return word_pairs(self.pairs, texts, self.special).only(np.concatenate(links), np.concatenate(tokens))


def dev_batches(pair: PairData, special: Specials, rows: int) -> Iterator[WordPairs]:
    """Yield batches of at most ``rows`` held-out sentence pairs of a pair of languages.

    The pairs are sorted by the length of their left side, which reduces padding.
    """
    order = pair.dev[np.argsort(np.diff(pair.left.bounds)[pair.dev], kind="stable")]
    for first in range(0, len(order), rows):
        yield word_pairs([pair], [order[first : first + rows]], special)


def word_pairs(
    pairs: Sequence[PairData],
    chosen: Sequence[NDArray[np.int64]],
    special: Specials,
    of_right: Specials | None = None,
) -> WordPairs:
    """Return a batch of sentence pairs of several pairs of languages, one pair of languages after another.

    Args:
        pairs: The data of each pair of languages.
        chosen: Rows of the sentence pairs in the text of each pair of languages, [rows] int64 each.
        special: The special ids of the model.
        of_right: The special ids of the right side if another model reads this side (default: ``special``).
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
    """Return one side of a batch of sentence pairs.

    Args:
        texts: The texts of the side, which all have the same language number.
        chosen: Rows of the sentences in each text, [rows] int64 each. At least one text must have a row.
        aligned: True for the aligned words of all chosen sentences, [words] bool.
        special: The special ids of the model that reads the side.
    """
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
