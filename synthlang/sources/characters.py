"""Between characters and words: the words of a text, where they stand in it, and which ones a span of characters is."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass

from synthlang.corpus import FORM
from synthlang.sources.words import split_sentences, split_words


@dataclass(frozen=True)
class Words:
    """The words of a text by the rules of ``sources.words``.

    words         all of them
    start, stop   the characters ``start`` … ``stop`` − 1 of the text that each word is
    """

    words: list[str]
    start: list[int]
    stop: list[int]

    @staticmethod
    def of(text: str) -> Words:
        """Split a text; its words are all that is not white space, in order."""
        words, start, stop, at = split_words(text), [], [], 0
        for word in words:
            while text[at].isspace():
                at += 1
            assert text.startswith(word, at), "the words are the text without its white space"
            start.append(at)
            at += len(word)
            stop.append(at)
        return Words(words, start, stop)

    @staticmethod
    def spaced(text: str) -> Words:
        """The words of a text that has one space between each two, whatever they are made of.

        >>> Words.spaced("James 's house").words
        ['James', "'s", 'house']
        """
        words, start, stop, at = [], [], [], 0
        for word in text.split(" "):
            if word:
                words.append(word)
                start.append(at)
                stop.append(at + len(word))
            at += len(word) + 1
        return Words(words, start, stop)

    @property
    def sentences(self) -> list[dict[str, list[str]]]:
        """The words cut into sentences, as columns."""
        return [{FORM: sentence} for sentence in split_sentences(self.words)]

    def span(self, start: int, stop: int) -> tuple[int, int] | None:
        """The words that share a character with ``start`` … ``stop`` − 1, as (first, last + 1); None if no word does.

        >>> Words.of("in 1990s.").span(3, 7)
        (1, 2)
        """
        first, last = bisect_right(self.stop, start), bisect_left(self.start, stop)
        return (first, last) if first < last and start < stop else None

    def is_cut(self, span: tuple[int, int], start: int, stop: int) -> bool:
        """Whether the characters begin or end inside a word of the span, so that it is wider than they are."""
        return self.start[span[0]] < start or self.stop[span[1] - 1] > stop
