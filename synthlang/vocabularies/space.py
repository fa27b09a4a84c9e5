"""The ids of a run: settings, one space for all its languages, and the tokenizer of each."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from tokenizers import Tokenizer

from synthlang.config import StrictModel
from synthlang.corpus import Corpus
from synthlang.fingerprint import fingerprint
from synthlang.scripts import SPECIAL_TOKENS
from synthlang.vocabulary import Encoded, Subwords, encode_corpus, save_tokenizer

SMALLEST = len(SPECIAL_TOKENS) + 256  # the specials and every byte
LARGEST = 10_000_000  # a trainer of tokenizers takes memory for as many before it has seen a word


class VocabularySpec(StrictModel):
    """Which ids the languages of a run have.

    copied    one byte-level BPE of the source; a language in a script has copies of its tokens, V ids further
              for the first script, 2V for the second (ALIGN-MLM, section 3.2). Needs one source for all
    joint     one BPE of the text of all languages together is everyone's tokenizer (Conneau et al. 2020, default)
    joined    a BPE for each language, the union of their tokens: the same string is the same id (default anchors)
    prefixed  a BPE for each language, each token under its language's prefix: only the specials are shared (no anchors)

    ``size`` counts the tokens of one BPE, specials and bytes included: with joined and prefixed each language has one.
    """

    smoke: ClassVar[Mapping[str, Any]] = {"size": 1000}

    kind: Literal["copied", "joint", "joined", "prefixed"] = "copied"
    size: int = Field(default=40_000, ge=SMALLEST, le=LARGEST)
    min_frequency: int = Field(default=2, ge=1)


class ExtendSpec(StrictModel):
    """New subwords for a language that a checkpoint covers poorly (Wang et al. 2020, E-mBERT).

    They are learned on the training text of ``language`` by the tokenizer's own algorithm: at most
    ``size``, of words (or pieces) that occur at least ``min_frequency`` times. ``initialise`` says what their
    embeddings start from: the mean of the old ``pieces`` of each, the mean of all old ones, or ``random`` numbers.
    """

    smoke: ClassVar[Mapping[str, Any]] = {"size": 50}

    language: str
    size: int = Field(default=10_000, ge=1, le=LARGEST)
    min_frequency: int = Field(default=2, ge=1)
    initialise: Literal["pieces", "mean", "random"] = "pieces"


FORMAT = 1


def digest(tokenizer: Tokenizer) -> str:
    """SHA-256 of a tokenizer as the library writes it: tokens by id, so equal ones are equal."""
    return hashlib.sha256(tokenizer.to_str(pretty=False).encode("utf-8")).hexdigest()


@dataclass(frozen=True)
class Specials:
    """The ids of the tokens that are no text. BERT calls ``bos`` [CLS] and ``eos`` [SEP]."""

    bos: int
    pad: int
    eos: int
    unk: int
    mask: int

    @property
    def all(self) -> tuple[int, ...]:
        """The five, in the order of the fields."""
        return (self.bos, self.pad, self.eos, self.unk, self.mask)

    @property
    def control(self) -> tuple[int, ...]:
        """Those that no text may hold: they would be padding, masks and ends of sentences in it."""
        return tuple(index for index in (self.bos, self.pad, self.eos, self.mask) if index != self.unk)


OURS = Specials(0, 1, 2, 3, 4)


@dataclass(frozen=True, eq=False)
class LanguageTokenizer:
    """From the text of one language to ids of the space.

    ids        [n] int64, sorted: those that its text can have, and the specials
    subwords   how its words, which are tokens, get their ids (``unit: token``); None: its words are words
    moved      ids that ``subwords`` gives, of copies, stand so much further in the space
    settings   of tokenizer_config.json; None: those of a tokenizer that was trained here
    specials   its special ids
    """

    name: str
    tokenizer: Tokenizer
    ids: NDArray[np.int64]
    subwords: Subwords | None = None
    moved: int = 0
    settings: Mapping[str, Any] | None = None
    specials: Specials = OURS

    @property
    def size(self) -> int:
        """One more than the largest id: enough rows for a table of its counts, whichever the other languages are."""
        return int(self.ids[-1]) + 1

    @cached_property
    def fingerprint(self) -> str:
        """Of the way from text to ids; neither the name nor the other languages are part of it."""
        parts = {
            "tokenizer": digest(self.tokenizer),
            "ids": hashlib.sha256(self.ids.astype("<i8").tobytes()).hexdigest(),
        }
        return fingerprint("member-tokenizer", format=FORMAT, moved=self.moved, **parts)

    def encode(self, corpus: Corpus) -> Encoded:
        """The ids of a batch in the language, without <s> and </s>; each type is encoded once.

        A word that a checkpoint's tokenizer has nothing for (one control character, say) has no ids; a control
        token that the text spells is the unknown token.
        """
        control, unknown = self.specials.control, self.specials.unk
        if self.subwords is None:
            return encode_corpus(self.tokenizer, corpus).as_text(control, unknown)
        encoded = self.subwords.encode(corpus).as_text(control, unknown)
        copies = encoded.ids >= self.subwords.vocabulary.size
        return replace(encoded, ids=encoded.ids + np.where(copies, self.moved, 0))

    def save(self, folder: Path) -> None:
        """Write a folder that ``AutoTokenizer.from_pretrained`` loads without this project."""
        save_tokenizer(self.tokenizer, folder, self.settings)


@dataclass(frozen=True, eq=False)
class IdSpace:
    """The ids of a run. ``size``: rows of the embedding, ids that no text has included.

    ``offsets`` (copied only): where each language's copies begin; 0: it has the parent's own tokens.
    """

    kind: str
    size: int
    specials: Specials
    languages: tuple[LanguageTokenizer, ...]
    offsets: tuple[int, ...] | None = None
    copies: int = 0

    @cached_property
    def fingerprint(self) -> str:
        """Of the size, the specials and the way of every language to ids."""
        parts = {"specials": list(self.specials.all), "members": [language.fingerprint for language in self.languages]}
        return fingerprint("id-space", format=FORMAT, size=self.size, **parts)

    def counterparts(self, which: int, own_rows: bool = False) -> NDArray[np.int64] | None:
        """[n, 2] an id of language 0 and the one that means the same in language ``which``; never the specials.

        None unless the two are copies of each other; where every language has rows of its own (``own_rows``:
        separate embeddings) the same id in both is such a pair too. All pairs: a word of a partially
        transliterated language occurs in one form only, so callers take those that occur.
        """
        if self.offsets is None or (self.offsets[0] == self.offsets[which] and not own_rows):
            return None
        tokens = np.arange(len(OURS.all), self.copies, dtype=np.int64)
        return np.stack([tokens + self.offsets[0], tokens + self.offsets[which]], axis=1)
