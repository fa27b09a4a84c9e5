"""Merges of symbols, most frequent first: the learner behind new subwords of WordPiece and of BPE.

The library's BPE trainer knows characters only, and its WordPiece trainer gives other tokens in every
process. So each symbol (a character, a token of a checkpoint) is written as one private character, and
plain BPE, which is deterministic, does the work.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from tokenizers import Tokenizer, models, pre_tokenizers, trainers

from synthlang.vocabulary import LONGEST_LEARNED

Symbols = tuple[str, ...]

FIRST = 0x10000  # code points from here on are no spaces and no surrogates
REPEATED = 1000  # words of a line


def learn_merges(words: Mapping[Symbols, int], limit: int, min_frequency: int) -> list[tuple[Symbols, Symbols]]:
    """At most ``limit`` merges of pairs that occur at least ``min_frequency`` times, in the order learned.

    ``words`` are words as symbols, with how often each occurs. A merge is (left, right), each as the symbols
    that earlier merges have joined. A word of more than LONGEST_LEARNED symbols counts as several.
    """
    symbols = sorted({symbol for word in words for symbol in word})
    assert len(symbols) < 0x110000 - FIRST, "more symbols than private characters"
    written = {symbol: chr(FIRST + i) for i, symbol in enumerate(symbols)}
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    size = len(symbols) + limit
    trainer = trainers.BpeTrainer(vocab_size=size, min_frequency=min_frequency, special_tokens=[], show_progress=False)
    spelled: Counter[str] = Counter()
    for word, count in words.items():
        for start in range(0, len(word), LONGEST_LEARNED):
            spelled["".join(written[symbol] for symbol in word[start : start + LONGEST_LEARNED])] += count
    tokenizer.train_from_iterator(lines_of(spelled), trainer)
    pairs: Sequence[Sequence[str]] = json.loads(tokenizer.to_str())["model"]["merges"]

    def read(text: str) -> Symbols:
        return tuple(symbols[ord(char) - FIRST] for char in text)

    return [(read(left), read(right)) for left, right in pairs]


def lines_of(counts: Mapping[str, int]) -> Iterator[str]:
    """Text in which each word occurs so many times."""
    for word, count in counts.items():
        for start in range(0, count, REPEATED):
            yield " ".join([word] * min(count - start, REPEATED))
