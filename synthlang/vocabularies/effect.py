"""What new subwords change in a text: how many words are cut otherwise, and into how many pieces."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tokenizers import Tokenizer

from synthlang.vocabularies.grow import chunks


@dataclass(frozen=True)
class Effect:
    """Counts over the training text of a member: word types, running words, pieces.

    ``types_changed`` and ``words_changed`` are those whose ids are others than before; ``unknown_before`` and
    ``unknown_after`` count running words with an unknown token.
    """

    types: int
    words: int
    types_changed: int
    words_changed: int
    pieces_before: int
    pieces_after: int
    unknown_before: int
    unknown_after: int


def measure(old: Tokenizer, new: Tokenizer, counts: Mapping[str, int], unknown: int) -> Effect:
    """Encode each word type with both tokenizers; ``unknown`` is the id of the unknown token."""
    totals = dict.fromkeys(Effect.__dataclass_fields__, 0)
    for words in chunks(counts):
        before = old.encode_batch(words, add_special_tokens=False)
        after = new.encode_batch(words, add_special_tokens=False)
        for word, a, b in zip(words, before, after, strict=True):
            count = counts[word]
            totals["types"] += 1
            totals["words"] += count
            totals["types_changed"] += a.ids != b.ids
            totals["words_changed"] += count * (a.ids != b.ids)
            totals["pieces_before"] += count * len(a.ids)
            totals["pieces_after"] += count * len(b.ids)
            totals["unknown_before"] += count * (unknown in a.ids)
            totals["unknown_after"] += count * (unknown in b.ids)
    return Effect(**totals)
