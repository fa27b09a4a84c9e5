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
from synthlang.vocabulary import Encoded, Subwords, beginning_only, encode_corpus, save_tokenizer

SMALLEST = len(SPECIAL_TOKENS) + 256  # the specials and every byte
LARGEST = 10_000_000  # the trainer allocates memory for this number of tokens before it reads a word


class VocabularySpec(StrictModel):
    """Vocabulary of a run, which determines how its languages share ids.

    copied    One byte-level BPE of the source. A language in a script has copies of its tokens at id + V for the first
              script, id + 2V for the second (ALIGN-MLM, section 3.2). All languages need one source.
              Each form that a transform adds, such as a case marker, is one token more.
    joint     One BPE of the text of all languages together (default of Conneau et al. 2020).
    joined    One BPE for each language. Equal strings have the same id in all languages (default anchors).
    prefixed  One BPE for each language, with its tokens under the prefix of the language, so that only the specials
              are shared (no anchors).
    """

    smoke: ClassVar[Mapping[str, Any]] = {"size": 1000}

    kind: Literal["copied", "joint", "joined", "prefixed"] = "copied"
    """Way in which languages share ids: ``copied``, ``joint``, ``joined`` or ``prefixed``."""
    size: int = Field(default=40_000, ge=SMALLEST, le=LARGEST)
    """Largest number of tokens of one BPE, with specials and bytes. The kinds joined and prefixed have several BPEs."""
    min_frequency: int = Field(default=2, ge=1)
    """Smallest number of times that a pair of tokens must occur to be merged."""


class ExtendSpec(StrictModel):
    """New subwords for a language that a checkpoint covers poorly (Wang et al. 2020, E-mBERT).

    The subwords are learned on the training text of ``language`` by the tokenizer's own algorithm.
    """

    smoke: ClassVar[Mapping[str, Any]] = {"size": 50}

    language: str
    """Language for whose training text subwords are learned."""
    size: int = Field(default=10_000, ge=1, le=LARGEST)
    """Largest number of new subwords."""
    min_frequency: int = Field(default=2, ge=1)
    """Smallest number of times that a word or piece must occur in the text."""
    initialise: Literal["pieces", "mean", "random"] = "pieces"
    """First values of the new embeddings.

    ``pieces`` takes the mean of the old pieces of each subword, ``mean`` the mean of all old embeddings, and ``random``
    draws them.
    """


FORMAT = 1


def digest(tokenizer: Tokenizer) -> str:
    """Return the SHA-256 of a tokenizer as the library writes it.

    Tokens are in the order of their ids, so equal tokenizers have equal digests.
    """
    return hashlib.sha256(tokenizer.to_str(pretty=False).encode("utf-8")).hexdigest()


@dataclass(frozen=True)
class Specials:
    """The ids of the special tokens. BERT calls ``bos`` [CLS] and ``eos`` [SEP]."""

    bos: int
    pad: int
    eos: int
    unk: int
    mask: int

    @property
    def all(self) -> tuple[int, ...]:
        """The five ids, in the order of the fields."""
        return (self.bos, self.pad, self.eos, self.unk, self.mask)

    @property
    def control(self) -> tuple[int, ...]:
        """The ids that must not occur in a text, where they would act as padding, masks or ends of sentences."""
        return tuple(index for index in (self.bos, self.pad, self.eos, self.mask) if index != self.unk)


OURS = Specials(0, 1, 2, 3, 4)


@dataclass(frozen=True, eq=False)
class LanguageTokenizer:
    """The mapping from the text of one language to ids of the space.

    Attributes:
        name: Name of the language in the run.
        tokenizer: Tokenizer of the language, with the ids of the space unless ``subwords`` is given.
        ids: Sorted ids that a text of the language can have, with the specials, [n] int64.
        subwords: Mapping from tokens to ids if words are tokens (``unit: token``), else None.
        moved: Number that is added to the ids of copies from ``subwords``.
        settings: Content of tokenizer_config.json, or None for a tokenizer that is trained here.
        specials: Ids of the special tokens.
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
        """Largest id of the language plus one, the size of a table of counts."""
        return int(self.ids[-1]) + 1

    @cached_property
    def fingerprint(self) -> str:
        """Fingerprint of the mapping from text to ids: the tokenizer, ``ids`` and ``moved``."""
        parts = {
            "tokenizer": digest(self.tokenizer),
            "ids": hashlib.sha256(self.ids.astype("<i8").tobytes()).hexdigest(),
        }
        return fingerprint("member-tokenizer", format=FORMAT, moved=self.moved, **parts)

    def encode(self, corpus: Corpus) -> Encoded:
        """Return the ids of a batch in the language, without <s> and </s>.

        A word without a token in a checkpoint's tokenizer, such as a control character, has no ids. A control token
        that the text spells becomes the unknown token.
        """
        control, unknown = self.specials.control, self.specials.unk
        if self.subwords is None:
            return encode_corpus(self.tokenizer, corpus).as_text(control, unknown)
        encoded = self.subwords.encode(corpus).as_text(control, unknown)
        copies = encoded.ids >= self.subwords.vocabulary.size
        return replace(encoded, ids=encoded.ids + np.where(copies, self.moved, 0))

    def save(self, folder: Path, causal: bool = False) -> None:
        """Write a folder that ``AutoTokenizer.from_pretrained`` loads without this project.

        For a ``causal`` model, a tokenizer that is trained here does not end a text with </s>. A model of a checkpoint
        keeps the tokenizer of the checkpoint.

        Raises:
            OSError: The folder cannot be made.
            DiskError: A file cannot be written.
        """
        ours = causal and self.settings is None
        save_tokenizer(beginning_only(self.tokenizer) if ours else self.tokenizer, folder, self.settings)


@dataclass(frozen=True, eq=False)
class IdSpace:
    """The token ids of a run, in one space for all its languages.

    Attributes:
        kind: Kind of the vocabulary, as in ``VocabularySpec``, or ``checkpoint``.
        size: Number of rows of the embedding, including ids that do not occur.
        specials: Ids of the special tokens.
        languages: Tokenizer of each language, in the order of the run.
        offsets: First id of the copies of each language, or 0 for the source's own tokens. Only the kind ``copied``
            has offsets.
        copies: Number of ids of the source's vocabulary, V, for the kind ``copied``. It is 0 for any other kind.
    """

    kind: str
    size: int
    specials: Specials
    languages: tuple[LanguageTokenizer, ...]
    offsets: tuple[int, ...] | None = None
    copies: int = 0

    @cached_property
    def fingerprint(self) -> str:
        """Fingerprint of the size, the specials and the mapping of every language to ids."""
        parts = {"specials": list(self.specials.all), "members": [language.fingerprint for language in self.languages]}
        return fingerprint("id-space", format=FORMAT, size=self.size, **parts)

    def translations(self, which: int, own_rows: bool = False) -> NDArray[np.int64] | None:
        """Return pairs of an id of language 0 and its translation in language ``which``, [n, 2], without the specials.

        The result is None unless the two languages are copies of each other. With separate embeddings (``own_rows``),
        equal ids are pairs, too. In a partially transliterated language some of the pairs do not occur, so callers
        select the pairs that occur.
        """
        if self.offsets is None or (self.offsets[0] == self.offsets[which] and not own_rows):
            return None
        tokens = np.arange(len(OURS.all), self.copies, dtype=np.int64)
        return np.stack([tokens + self.offsets[0], tokens + self.offsets[which]], axis=1)
