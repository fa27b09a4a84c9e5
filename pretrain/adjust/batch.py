"""Sentence pairs as tensors: what an encoder reads, where each word stands, and which words are linked."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import torch
from torch import Tensor

from pretrain.adjust.config import LossConfig, Side


@dataclass(frozen=True)
class Words:
    """The sentences of one side.

    input_ids    [rows, width] int64: a sentence between its two sentence tokens, then padding
    mask         [rows, width] int64: 1 where there is a token
    start, stop  [words] int64: the columns of each word's subwords, counted through all rows (row · width + column);
                 equal for a word that the tokenizer leaves nothing of
    aligned      [words] bool: whether the word has a link
    language       the language of the sentences, for a model with parts of its own for each language
    """

    input_ids: Tensor
    mask: Tensor
    start: Tensor
    stop: Tensor
    aligned: Tensor
    language: int = 0

    @property
    def sentence_tokens(self) -> tuple[Tensor, Tensor]:
        """[rows] the columns of the first and of the last token of each sentence, counted through all rows."""
        rows, width = self.input_ids.shape
        first = torch.arange(rows, device=self.mask.device) * width
        return first, first + self.mask.sum(1) - 1

    def to(self, device: torch.device) -> Words:
        """The same on a device."""
        held: dict[str, Any] = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "language"}
        return replace(self, **{name: tensor.to(device, non_blocking=True) for name, tensor in held.items()})


@dataclass(frozen=True)
class WordPairs:
    """Sentence pairs (row r of ``left`` translates row r of ``right``) and their linked words.

    links   [links, 2] int64: a word of ``left`` and one of ``right``
    """

    left: Words
    right: Words
    links: Tensor

    def side(self, side: Side) -> Words:
        """One of the two sides."""
        return self.left if side == "left" else self.right

    def pulled(self, side: Side, settings: LossConfig) -> Tensor:
        """[pairs] the items of a side that are pulled: its linked words, then sentence tokens, as settings say."""
        of_side = self.links[:, 0 if side == "left" else 1]
        return torch.cat([of_side if settings.pulls_words else of_side[:0], self._extra(side, settings)])

    def held(self, side: Side, settings: LossConfig) -> Tensor:
        """[items] the items of a side that are held: all words that have a subword, or what is pulled only."""
        words = self.side(side)
        chosen = words.aligned if settings.held_words == "aligned" else words.stop > words.start
        if settings.held_words == "aligned" and not settings.pulls_words:
            chosen = torch.zeros_like(chosen)
        return torch.cat([chosen.nonzero()[:, 0], self._extra(side, settings)])

    def _extra(self, side: Side, settings: LossConfig) -> Tensor:
        """The numbers of the sentence tokens: after all words, first those before the sentences, then those after."""
        words = self.side(side)
        count = settings.sentence_tokens * len(words.input_ids)
        return torch.arange(count, device=self.links.device) + len(words.start)

    def to(self, device: torch.device) -> WordPairs:
        """The same on a device."""
        return WordPairs(self.left.to(device), self.right.to(device), self.links.to(device, non_blocking=True))
