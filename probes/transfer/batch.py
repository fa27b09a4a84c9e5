"""What every task makes of its items: rows of tokens, and what is to be predicted on them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pretrain.model.text import Text
from synthlang.corpus import Corpus
from synthlang.errors import InputError
from synthlang.language import Language
from synthlang.vocabularies import LanguageTokenizer, Specials
from synthlang.vocabulary import Encoded

ROWS, TOKENS = 256, 8192  # of a batch that is only predicted
NO_LABEL = -100  # of a target that no loss counts
Role = Literal["source", "target"]


@dataclass(frozen=True)
class Reader:
    """How texts of one language become ids.

    number    that of the language in the model
    role      whether it is the language that is trained on first (the parent) or the other one
    bert      pairs are ``<s> a </s> b </s>`` with segments 0 and 1, as BERT has them; else ``<s> a </s> </s> b </s>``
    """

    language: Language
    tokenizer: LanguageTokenizer
    number: int
    specials: Specials
    role: Role
    bert: bool = False

    def encode(self, corpus: Corpus) -> Encoded:
        """The ids of a corpus. InputError for a language of tokens that the model reads as words."""
        if self.language.on_tokens and self.tokenizer.subwords is None:
            raise InputError(
                f"the language {self.language.name} moves or changes tokens, and the model's tokenizer is not the one "
                "they are of: pretrain a run with it, or leave unit: token out"
            )
        return self.tokenizer.encode(corpus)


@dataclass(frozen=True)
class Batch:
    """Rows of a step.

    words    [rows, k, 2] int64: first and last column of the subwords of each word that is predicted; None: every
             column is
    mask     [rows, k] bool: which words are there, [rows, width] which columns may be predicted
    targets  name → what is to be learned, [rows] or [rows, k], as the task's head has it; NO_LABEL for nothing
    rows     [rows] their numbers in the Examples
    word_of  [rows, width] the number of the word that a column is part of, where ``mask`` is set; None: one each
    """

    text: Text
    words: Tensor | None
    mask: Tensor
    targets: Mapping[str, Tensor]
    role: Role
    rows: NDArray[np.int64]
    word_of: Tensor | None = None

    def to(self, device: torch.device) -> Batch:
        words = None if self.words is None else self.words.to(device, non_blocking=True)
        targets = {name: tensor.to(device, non_blocking=True) for name, tensor in self.targets.items()}
        mask = self.mask.to(device, non_blocking=True)
        # word_of is read on the CPU
        return replace(self, text=self.text.to(device), words=words, mask=mask, targets=targets)


@dataclass(frozen=True)
class Examples(ABC):
    """The items of one set in one language, encoded.

    ids     of the items
    gold    what is right for each item, as JSON has it; what that is depends on the task
    counts  reason → how many items or words were left out or cut
    """

    ids: tuple[str, ...]
    gold: Sequence[Any]
    counts: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "counts", {reason: n for reason, n in self.counts.items() if n})

    @property
    @abstractmethod
    def lengths(self) -> NDArray[np.int64]:
        """[rows] how many tokens each row has; an item may have several rows (windows)."""

    @property
    def around(self) -> int:
        """How many tokens of a row are of no text."""
        return 2

    @abstractmethod
    def batch(self, rows: NDArray[np.int64]) -> Batch:
        """The rows with these numbers, padded to the longest of them."""

    @abstractmethod
    def predictions(self, outputs: Sequence[Any]) -> list[Any]:
        """For each item the prediction, in the form of ``gold``; ``outputs`` are what the head decoded for each row."""

    def __len__(self) -> int:
        return len(self.lengths)


def bounded_batches(lengths: NDArray[np.int64], rows: int = ROWS, tokens: int = TOKENS) -> list[NDArray[np.int64]]:
    """Each row once, the longest first: at most ``rows`` rows and, padded, ``tokens`` tokens a batch (or one row)."""
    order = np.argsort(-lengths, kind="stable").astype(np.int64)
    batches, start = [], 0
    while start < len(order):
        count = max(1, min(rows, tokens // max(int(lengths[order[start]]), 1)))
        batches.append(order[start : start + count])
        start += count
    return batches
