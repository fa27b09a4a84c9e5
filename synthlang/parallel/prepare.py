"""Encode word-aligned text, drop unusable parts, and split it into training and held-out sentence pairs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from tokenizers import Tokenizer

from synthlang.config import StrictModel
from synthlang.corpus import Corpus
from synthlang.errors import InputError
from synthlang.parallel.links import Links
from synthlang.parallel.pairs import LinkedText
from synthlang.parallel.text import token_ids
from synthlang.references import OmitDefaultFromHash
from synthlang.rng import key_of, permutation
from synthlang.vocabulary import encode_corpus
from synthlang.wording import plural

SENTENCE_TOKENS = 2  # one before and one after a sentence


class DataConfig(StrictModel):
    """Selection of sentence pairs and word alignments of each pair of languages."""

    smoke: ClassVar[Mapping[str, Any]] = {"test": 40, "dev": 40, "sentences": 100}

    test: int = Field(default=0, ge=0)
    """Number of sentence pairs at the end that are not used."""
    dev: int = Field(default=1024, ge=0)
    """Number of sentence pairs before the ``test`` pairs that are used for evaluation."""
    gap: Annotated[int, OmitDefaultFromHash()] = Field(default=0, ge=0)
    """Number of sentence pairs before the ``dev`` pairs that are not used.

    A probe that measures the test pairs of an adjustment leaves out the dev pairs of the adjustment in this way.
    """
    sentences: int | None = Field(default=None, ge=1)
    """Number of usable sentence pairs to train on, without held-out pairs (null: all)."""
    draw: Literal["last", "random"] = "last"
    """Choice of the pairs to train on: the ``last`` pairs, or a ``random`` draw by the seed."""
    length: int | None = Field(default=None, ge=3)
    """Longest sentence in tokens, including the two sentence tokens (default: the limit of the model)."""
    one_to_one: bool = True
    """Use only alignments whose words have no other alignment."""
    exact_matches: Literal["keep", "drop"] = "keep"
    """Treatment of alignments between identical words: ``keep`` or ``drop``."""

    def longest(self, limit: int) -> int:
        """Return the length of the longest sentence for a model that reads ``limit`` tokens.

        Raises:
            InputError: ``length`` is greater than the limit.
        """
        length = self.length or limit
        if length > limit:
            reason = f"{length} is more than the {limit} tokens that the model reads"
            raise InputError(reason, keys="data.length", hint=f"set this key to at most {limit}", code="range")
        return length

    def held_out(self, pairs: int) -> tuple[int, int]:
        """Return the bounds (start, stop) of the rows for evaluation among ``pairs`` sentence pairs."""
        stop = max(0, pairs - self.test)
        return max(0, stop - self.dev), stop

    def before_gap(self, pairs: int) -> int:
        """Return the number of sentence pairs before the gap, of ``pairs`` in all. These include the training pairs."""
        return max(0, self.held_out(pairs)[0] - self.gap)


TOO_LONG, WITHOUT_LINK = "sentence pairs over", "sentence pairs without a usable link"
"""First words of the two reasons for which sentence pairs are left out."""


@dataclass(frozen=True)
class Sentences:
    """The sentences of one side as token ids.

    Attributes:
        ids: Ids without sentence tokens, [tokens].
        word_offsets: Index of the first token of each word, [words + 1].
        offsets: Index of the first word of each sentence, [sentences + 1].
        language: Number of the language, for a model with separate parts for each language.
    """

    ids: NDArray[np.int32]
    word_offsets: NDArray[np.int64]
    offsets: NDArray[np.int64]
    language: int = 0

    @cached_property
    def bounds(self) -> NDArray[np.int64]:
        """Index of the first token of each sentence, [sentences + 1]."""
        return self.word_offsets[self.offsets]


@dataclass(frozen=True)
class PairData:
    """A pair of languages, with the rows of the sentence pairs for training and for evaluation.

    Pairs that are held out as ``test`` or ``gap`` are in none of the arrays of rows.

    Attributes:
        name: Name of the pair.
        left: The left sentences.
        right: The right sentences, whose row n translates row n of ``left``.
        links: Usable word alignments of all sentence pairs.
        train: Sorted rows of the sentence pairs to train on, [n].
        dev: Sorted rows of the sentence pairs for evaluation, [m].
        counts: Numbers of used and omitted sentence pairs and alignments, by reason.
        unlinked: Sorted rows of the sentence pairs that fit and have tokens but no usable word alignment, [k].
    """

    name: str
    left: Sentences
    right: Sentences
    links: Links
    train: NDArray[np.int64]
    dev: NDArray[np.int64]
    counts: dict[str, int]
    unlinked: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))


def encode(tokenizer: Tokenizer, corpus: Corpus, unit: str = "word", language: int = 0) -> Sentences:
    """Encode the words of a corpus.

    Args:
        tokenizer: The tokenizer, which must split a single word as it does in a text.
        corpus: The sentences.
        unit: ``word``, or ``subword`` if the words of the corpus are token ids already (see ``in_subwords``).
        language: Number of the language, which the result keeps.
    """
    encoded = token_ids(corpus) if unit == "subword" else encode_corpus(tokenizer, corpus)
    return Sentences(encoded.ids.astype(np.int32), encoded.word_offsets, corpus.offsets, language)


def prepare_pair(
    name: str,
    text: LinkedText,
    tokenizers: tuple[Tokenizer, Tokenizer],
    config: DataConfig,
    length: int,
    seed: int,
    languages: tuple[int, int] = (0, 0),
    fits: bool = True,
) -> PairData:
    """Encode both sides, drop and count unusable alignments and sentence pairs, and select pairs to train and evaluate.

    Args:
        name: Name of the pair.
        text: The sentence pairs with word alignments.
        tokenizers: The tokenizers of both sides.
        config: Selection of sentence pairs and word alignments.
        length: Longest sentence in tokens, including the two sentence tokens.
        seed: Seed of a random draw.
        languages: Numbers of the languages of both sides, for a model with separate parts for each language.
        fits: True if sentence pairs to train or fit on are required.

    Raises:
        InputError: No word of a side has a token, or with ``fits`` no sentence pair is left to train on.
    """
    sides = []
    for side, corpus, tokenizer, number in zip(
        ("left", "right"), (text.left, text.right), tokenizers, languages, strict=True
    ):
        encoded = encode(tokenizer, corpus, text.unit, number)
        if len(corpus.form.codes) and not len(encoded.ids):
            words = plural(len(corpus.form.codes), "word")
            reason = f"the model's tokenizer has no token for the {words} of the {side} side"
            hint = "use a model whose tokenizer has tokens for this text"
            raise InputError(reason, hint=hint, code="empty")
        sides.append(encoded)
    left, right = sides
    counts = dict(text.counts)
    links = _usable_links(text, left, right, config, counts)
    usable, unlinked = _usable_rows(left, right, links, length, counts)
    start, stop = config.held_out(len(usable))
    rows, before = np.arange(len(usable)), config.before_gap(len(usable))
    to_fit, to_measure = rows < before, (rows >= start) & (rows < stop)
    train, dev = _drawn(name, rows[usable & to_fit], config, seed), rows[usable & to_measure]
    counts |= {"sentence pairs to train on": len(train), "sentence pairs to measure on": len(dev)}
    if fits:
        check_left(len(train), len(usable), config)
    return PairData(name, left, right, links, train, dev, counts, rows[unlinked & (to_fit | to_measure)])


def check_left(train: int, total: int, config: DataConfig) -> None:
    """Check that at least one sentence pair is left to train on.

    Args:
        train: Number of sentence pairs that are left.
        total: Number of all sentence pairs.
        config: Selection of sentence pairs.

    Raises:
        InputError: No sentence pair is left.
    """
    if not train:
        held = total - config.before_gap(total)
        others = ", and the others have no usable word alignment or are too long (data.length)" if held < total else ""
        reason = f"no sentence pair is left to train or fit on: {held:,} of {total:,} are held out{others}"
        longer = ", raise data.length" if others and config.length else ""
        hint = f"lower data.dev, data.gap or data.test{longer}, or give more sentence pairs"
        raise InputError(reason, hint=hint, code="empty")


def shared_codes(left: Corpus, right: Corpus) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return a number for each word of both sides, [words] each. Identical words have equal numbers."""
    names: dict[str, int] = {}
    codes = []
    for corpus in (left, right):
        table = [names.setdefault(name, len(names)) for name in corpus.form.names or ()]
        codes.append(np.asarray([*table, 0], np.int64)[corpus.form.codes])
    return codes[0], codes[1]


def _usable_links(
    text: LinkedText, left: Sentences, right: Sentences, config: DataConfig, counts: dict[str, int]
) -> Links:
    links = text.links

    def keep(kept: Links, reason: str) -> None:
        nonlocal links
        if dropped := len(links.left) - len(kept.left):
            counts[reason] = dropped
        links = kept

    def rows() -> tuple[NDArray[np.int64], NDArray[np.int64]]:  # rows of the aligned words among all words of a side
        sentence = links.sentence
        return left.offsets[sentence] + links.left, right.offsets[sentence] + links.right

    if config.one_to_one:
        keep(links.one_to_one(), "links not one to one")
    if config.exact_matches == "drop":
        codes, (a, b) = shared_codes(text.left, text.right), rows()
        keep(links.select(codes[0][a] != codes[1][b]), "links between words written alike")
    a, b = rows()
    read = (np.diff(left.word_offsets)[a] > 0) & (np.diff(right.word_offsets)[b] > 0)
    keep(links.select(read), "links to words without a subword")
    return links


def _usable_rows(
    left: Sentences, right: Sentences, links: Links, length: int, counts: dict[str, int]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Flag the sentence pairs whose sides both fit into ``length`` tokens, and count the other pairs.

    Returns:
        Flags of pairs with a word alignment, and of pairs without one whose sides have tokens, [sentence pairs] each.
    """
    lengths = np.stack([np.diff(left.bounds), np.diff(right.bounds)])
    fits, linked = lengths.max(axis=0) + SENTENCE_TOKENS <= length, np.diff(links.offsets) > 0
    dropped = {
        f"{TOO_LONG} {length} tokens": int((~fits).sum()),
        WITHOUT_LINK: int((fits & ~linked).sum()),
    }
    counts |= {reason: count for reason, count in dropped.items() if count}
    return fits & linked, fits & ~linked & (lengths.min(axis=0) > 0)


def _drawn(name: str, rows: NDArray[np.int64], config: DataConfig, seed: int) -> NDArray[np.int64]:
    """Return the sentence pairs to train on, in order."""
    if config.sentences is None or config.sentences >= len(rows):
        return rows
    if config.draw == "last":
        return rows[-config.sentences :]
    return np.sort(rows[permutation(key_of("adjust-draw", seed, name), len(rows))[: config.sentences]])
