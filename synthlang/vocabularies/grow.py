"""What the three algorithms of new subwords share: the words they learn from, and what they give."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from tokenizers import Encoding, Tokenizer

from synthlang.vocabularies.merges import Symbols

AT_ONCE = 10_000  # words
COVERAGE = 0.9995  # of the characters of a text; the rest, as of stray foreign words, gets no token of its own


@dataclass(frozen=True)
class Task:
    """New subwords for a tokenizer.

    model           its model as JSON; every id below ``first`` is taken
    counts          how often each word occurs in the text that they are for
    size            how many at most
    min_frequency   how often one must occur
    """

    tokenizer: Tokenizer
    model: Mapping[str, Any]
    first: int
    counts: Mapping[str, int]
    size: int
    min_frequency: int


@dataclass(frozen=True)
class Grown:
    """New tokens, the old ids each was cut into (none if the old tokenizer did not know it), and the new model."""

    tokens: tuple[str, ...]
    pieces: tuple[tuple[int, ...], ...]
    model: Mapping[str, Any]


def pretokens(tokenizer: Tokenizer, counts: Mapping[str, int]) -> Counter[str]:
    """What the model of a tokenizer sees of words: normalised and cut where no token crosses."""
    result: Counter[str] = Counter()
    normalizer, cutter = tokenizer.normalizer, tokenizer.pre_tokenizer
    for word, count in counts.items():
        text = word if normalizer is None else normalizer.normalize_str(word)
        parts = [text] if cutter is None else [part for part, _ in cutter.pre_tokenize_str(text)]
        for part in parts:
            if part:
                result[part] += count
    return result


def token_runs(tokenizer: Tokenizer, counts: Mapping[str, int], apart: Collection[int]) -> Counter[Symbols]:
    """Tokens that stand together in one pre-token, so that a merge could join them; ids in ``apart`` stay alone."""
    result: Counter[Symbols] = Counter()
    for words in chunks(counts):
        encodings = tokenizer.encode_batch(words, add_special_tokens=False)
        for word, encoding in zip(words, encodings, strict=True):
            for run in _runs(encoding, apart):
                result[run] += counts[word]
    return result


def _runs(encoding: Encoding, apart: Collection[int]) -> Iterator[Symbols]:
    run: list[str] = []
    within: int | None = None
    for token, index, part in zip(encoding.tokens, encoding.ids, encoding.word_ids, strict=True):
        if run and (part != within or index in apart):
            yield tuple(run)
            run = []
        if index not in apart:
            run.append(token)
        within = part
    if run:
        yield tuple(run)


def chunks(words: Mapping[str, int]) -> Iterator[Sequence[str]]:
    """The words, some at a time: what the library makes of them is large."""
    rest = iter(words)
    while chunk := list(islice(rest, AT_ONCE)):
        yield chunk


def token_usage(tokenizer: Tokenizer, counts: Mapping[str, int]) -> Counter[int]:
    """How often each id occurs in text of these word counts."""
    usage: Counter[int] = Counter()
    for words in chunks(counts):
        encodings = tokenizer.encode_batch(words, add_special_tokens=False)
        for word, encoding in zip(words, encodings, strict=True):
            for index in encoding.ids:
                usage[index] += counts[word]
    return usage


def new_characters(words: Mapping[Symbols, int], vocab: Container[str], min_frequency: int) -> list[str]:
    """The symbols of characters that the vocabulary lacks, most frequent first, without rare ones."""
    counts: Counter[str] = Counter()
    for word, count in words.items():
        for symbol in word:
            counts[symbol] += count
    rest = sum(counts.values())
    rare = (1 - COVERAGE) * rest
    found = []
    for symbol, count in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        if symbol not in vocab and count >= min_frequency and rest > rare:
            found.append(symbol)
        rest -= count
    return found
