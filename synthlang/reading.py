"""Tokens per word and share of unknown tokens of an encoded text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from synthlang.errors import InputError

if TYPE_CHECKING:  # imports the tokenizers
    from synthlang.parallel.prepare import Sentences
    from synthlang.vocabulary import Encoded

NEARLY_ALL = 0.9
"""Share of unknown tokens above which a text is refused, because a model could learn nothing from it."""


@dataclass(frozen=True)
class Reading:
    """Numbers of words, of tokens and of unknown tokens in an encoded text.

    Attributes:
        words: Number of words, or 0 if it is unknown.
        tokens: Number of tokens.
        unknown: Number of unknown tokens.

    >>> print(Reading(100, 224, 7))
    2.24 tokens per word, 3.1 % of the tokens unknown
    """

    words: int
    tokens: int
    unknown: int

    @staticmethod
    def of(encoded: Encoded | Sentences, unknown: int) -> Reading:
        """Count the words, tokens and unknown tokens of an encoded text. ``unknown`` is the id of the unknown token."""
        return Reading(len(encoded.word_offsets) - 1, len(encoded.ids), int((encoded.ids == unknown).sum()))

    @property
    def tokens_per_word(self) -> float:
        """Mean number of tokens of a word. The value has no meaning if the number of words is unknown (0)."""
        return self.tokens / max(self.words, 1)

    @property
    def unknown_share(self) -> float:
        """Share of the tokens that are unknown, 0 to 1. It is 0 for a text without tokens."""
        return self.unknown / max(self.tokens, 1)

    def to_json(self) -> dict[str, float]:
        """Return ``tokens_per_word`` and the share ``unknown_tokens`` (0 to 1), with 4 decimals.

        The key ``tokens_per_word`` is missing if the number of words is unknown.
        """
        per_word = {"tokens_per_word": round(self.tokens_per_word, 4)} if self.words else {}
        return {**per_word, "unknown_tokens": round(self.unknown_share, 4)}

    def check(self, where: str, tokenizer: str) -> None:
        """Check that the tokenizer has tokens for the text.

        Args:
            where: Name of the text, for the error.
            tokenizer: Name of the tokenizer, for the error.

        Raises:
            InputError: More than NEARLY_ALL of the tokens are unknown.
        """
        if self.unknown_share > NEARLY_ALL:
            reason = f"{100 * self.unknown_share:.1f} % of the tokens are unknown to {tokenizer}"
            raise InputError(reason, where, hint="use a model whose tokenizer has tokens for this text", code="empty")

    def __str__(self) -> str:
        return f"{self.tokens_per_word:.2f} tokens per word, {100 * self.unknown_share:.1f} % of the tokens unknown"
