"""Split plain text into words and sentences by rules, without a model.

Each punctuation mark or symbol is a separate word. Everything else that is not white space is part of a word. A word
also includes:

    an apostrophe, hyphen, underscore or middle dot between two letters   don't  well-known
    a point or comma between two digits                                   3.14   1,000
    special strings                                                       <unk> [MASK] @-@ &amp;

An emoji of several code points (a family, a skin tone, a flag) is one word. Control characters separate words as
white space does, and so does U+200B after a letter of Thai, Lao, Burmese or Khmer. Other invisible characters are
removed (``words``). Words that are joined by spaces are therefore split into the same words again.

A mark of ``ENDS``, with the closing quotes and brackets after it, ends a sentence. A sentence goes on if a lower-case
word follows, if the mark is the point of an initial (``J.``) or a title (``Dr.``), or if a number follows an
abbreviation (``No. 5``). A ``= Title =`` line is never split. Text in a script without spaces (Chinese, Thai) must
already be segmented. Alternatively, ``cjk`` makes a word of each Chinese character and each kana.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import compress, count, pairwise

from synthlang.corpus import FORM
from synthlang.sources.words import UNSEEN, visible

RULES = 1  # part of the fingerprint of everything that is read by these rules: raise when they change
LATER = 2  # in the fingerprint of a text that the first version of these rules split differently
LONGEST = 400  # words; a longer sentence is cut
ENDS = frozenset(".!?…。！？؟۔।")
MARKS_END = 0x20000  # no mark, symbol or white space has a code point from here on
CONTROLS = r"\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f"  # control characters that are not white space
_SYMBOL = r"[\u00a9\u00ae\u2122\u2190-\u21ff\u2300-\u23ff\u25a0-\u27bf\u2900-\u297f\u2b00-\u2bff\U0001f000-\U0001faff]"
_PARTS = r"[\ufe0e\ufe0f\U0001f3fb-\U0001f3ff\U000e0060-\U000e007f]*"  # variation, skin tone, region
_FLAG = r"[\U0001f1e6-\U0001f1ff]{2}"
# a ZWJ sequence and its parts: https://www.unicode.org/reports/tr51/#Definitions
EMOJI = rf"{_FLAG}|{_SYMBOL}{_PARTS}(?:\u200d{_SYMBOL}{_PARTS})*[\u200d\ufe0e\ufe0f]*"
CONTROL_BYTES = bytes([*range(9), *range(0x0E, 0x1C), 0x7F])
_ANEW = {  # characters that the first rules split differently: pattern by the first bytes in UTF-8
    b"\xc2": re.compile(rb"\xc2[\x80-\x84\x86-\x9f]"),
    b"\xe2\x80\x8d": re.compile(rb"\xe2\x80\x8d[\xc2\xe2\xf0]"),
    b"\xf0\x9f\x87": re.compile(rb"(?:\xf0\x9f\x87[\xa6-\xbf]){2}"),
    b"\xf0\x9f\x8f": re.compile(rb"\xf0\x9f\x8f[\xbb-\xbf]"),
    b"\xf3\xa0\x81": re.compile(rb"\xf3\xa0\x81"),
}
_SOUTHEAST = r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff]"  # Thai, Lao, Burmese and Khmer
# Runs of letters longer than nearly all words of Chinese and Japanese, or of the languages of _SOUTHEAST.
_UNCUT = re.compile(
    r"[\u3040-\u30fa\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003134f]{8}" + f"|{_SOUTHEAST}{{20}}"
)
# Chinese characters, which BERT's tokenizer separates, and kana with their marks of length
_CJK = r"\u3041-\u309f\u30a1-\u30fa\u30fc-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003134f"
_PIECES = re.compile(f"[{_CJK}][\u3099\u309a\ufe00-\ufe0f\U000e0100-\U000e01ef]*|[^{_CJK}]+")
_ZERO_WIDTH_SPACES = re.compile(f"(?<={_SOUTHEAST})\u200b+")
LONGEST_MARK = 32  # more bytes than any pattern of changed text looks at
CLOSING = frozenset(")]}»”’」』）")
NUMBERED = frozenset(["No", "Nos", "Vol", "Vols", "Fig", "Figs", "Op"])
QUOTES = frozenset("\"'")
_MAY_CLOSE = QUOTES | ENDS | CLOSING
TITLES = frozenset(
    ["Mr", "Mrs", "Ms", "Dr", "St", "Prof", "Mt", "Gen", "Col", "Lt", "Capt", "Sgt", "Rev", "Gov", "Sen"]
)


@cache
def _splitters() -> tuple[Callable[[str], list[str]], Callable[[str], list[str]]]:
    """Return functions that split a line into words, one for ASCII and one for any text.

    A word character is any character except white space, punctuation, symbols and control characters. The class is not
    ``\\w``, which would separate the vowel signs of Hindi and Arabic from their letters. It has hundreds of ranges and
    is slow, so ASCII has a separate rule. The rules are built at first use, because building them scans the code points
    below ``MARKS_END``.
    """
    gaps = [c for c in range(MARKS_END) if is_gap(chr(c))]
    runs = [(a + 1, b - 1) for a, b in pairwise([-1, *gaps, sys.maxunicode + 1]) if b > a + 1]
    letter = "[" + "".join(f"\\U{a:08x}-\\U{b:08x}" for a, b in runs) + "]"
    plain = "[" + "".join(re.escape(chr(c)) for c in sorted(set(range(128)).difference(gaps))) + "]"
    special = r"\[(?:UNK|MASK|CLS|SEP|PAD)\]|@[-.,/:]@|&(?:[a-z]{2,8}|#[0-9]{1,7});"
    special += rf"|<[^\s<>{CONTROLS}]{{1,24}}>"
    mark = rf"[^\s{CONTROLS}][\u200d\ufe0e\ufe0f]*"  # a symbol keeps its variation selector
    ascii_only = re.compile(rf"{_word(plain)}|{special}|{mark}").findall
    return ascii_only, re.compile(rf"{_word(letter)}|{special}|{EMOJI}|{mark}").findall


def is_gap(character: str) -> bool:
    """Return whether a character is punctuation, a symbol, white space or a control character."""
    category = unicodedata.category(character)
    return category[0] in "PSZ" or category == "Cc" or character.isspace()


def reads_alike(block: bytes) -> bool:
    """Return whether the rules before version ``LATER`` split UTF-8 text into the same words, or False in doubt."""
    if len(block.translate(None, CONTROL_BYTES)) < len(block):
        return False
    return not any(start in block and pattern.search(block) for start, pattern in _ANEW.items())


def control_characters(raw: bytes) -> int:
    """Return the number of control characters other than white space in UTF-8 text."""
    found = len(raw) - len(raw.translate(None, CONTROL_BYTES))
    return found + (len(_ANEW[b"\xc2"].findall(raw)) if b"\xc2" in raw else 0)


def is_uncut(word: str) -> bool:
    """Return whether a word is probably several words of a script without spaces.

    >>> is_uncut("我们昨天去了北京大学"), is_uncut("北京大学"), is_uncut("ไม่มีใครรู้ว่าเขาไปไหน")
    (True, False, True)
    """
    return not word.isascii() and _UNCUT.search(word) is not None


def _word(letter: str) -> str:
    """Return the pattern of a word for a class of letters."""
    inner = r"(?:['’_·‐‑-]|(?<=\d)[.,](?=\d))"
    return f"{letter}++(?:{inner}{letter}++)*+"


def split_words(line: str, cjk: bool = False) -> list[str]:
    """Split a line into words. With ``cjk`` each Chinese character and each kana is a word.

    >>> split_words("Don't pay $1,000 (or 3.14)!")
    ["Don't", 'pay', '$', '1,000', '(', 'or', '3.14', ')', '!']
    >>> split_words("我在Linux上。", cjk=True)
    ['我', '在', 'Linux', '上', '。']
    """
    ascii_only, splitter = _splitters()
    words = list[str]()
    for piece in (line if line.isascii() else visible(_with_spaces(line))).split():
        if piece.isalnum():  # most pieces are, and letters and digits are always part of a word
            words.append(piece)
        elif piece[-1] in ".,;:" and piece[:-1].isalnum():
            words += piece[:-1], piece[-1]
        else:
            words += (ascii_only if piece.isascii() else splitter)(piece)
    return [part for word in words for part in _PIECES.findall(word)] if cjk else words


def _with_spaces(text: str) -> str:
    """Replace each zero width space between words with a space, so that the length stays the same."""
    return _ZERO_WIDTH_SPACES.sub(lambda match: " " * len(match[0]), text) if "\u200b" in text else text


def split_sentences(words: list[str]) -> Iterator[list[str]]:
    """Cut the words of one line into sentences of at most ``LONGEST`` words.

    >>> list(split_sentences(split_words("J. Doe left. He ran!")))
    [['J', '.', 'Doe', 'left', '.'], ['He', 'ran', '!']]
    """
    start = 0
    for end in _ends(words):
        if end - start <= LONGEST:
            yield words[start:end]
        else:
            for first in range(start, end, LONGEST):
                yield words[first : min(first + LONGEST, end)]
        start = end


def _ends(words: list[str]) -> Iterator[int]:
    """Yield the index after the last word of each sentence."""
    title = len(words) > 2 and words[0] == words[-1] == "="
    start = 0
    if not title:
        for at in compress(count(), map(ENDS.__contains__, words)):
            if at >= start:
                end = at + 1
                if end < len(words) and words[end] in _MAY_CLOSE:
                    end = _past_closing(words, start, end)
                if end < len(words) and not _goes_on(words, start, at, end):
                    yield end
                    start = end
    if start < len(words):
        yield len(words)


def _past_closing(words: list[str], start: int, end: int) -> int:
    """Move ``end`` past the closing marks of the sentence from ``start`` on."""
    while end < len(words):
        word = words[end]
        if word in QUOTES:  # a straight quote closes if the number of such quotes so far is odd
            closes = end + 1 == len(words) or words[max(start, end - LONGEST) : end].count(word) % 2 == 1
        else:
            closes = word in ENDS or word in CLOSING
        if not closes:
            break
        end += 1
    return end


def _goes_on(words: list[str], start: int, at: int, end: int) -> bool:
    """Return whether the sentence continues at ``words[end]`` in spite of the mark at ``at``."""
    if words[end][0].islower():
        return True
    if words[at] != "." or end != at + 1 or at == start:
        return False
    before = words[at - 1]
    if before in NUMBERED:
        return words[end][0].isdigit()
    return before in TITLES or (len(before) == 1 and before.isalpha() and before.isascii() and before != "I")


@dataclass(frozen=True)
class SegmentedText:
    """The words of a text with their positions in it.

    Attributes:
        words: All words.
        start: Index of the first character of each word in the text.
        stop: Index of the character after each word in the text.
    """

    words: list[str]
    start: list[int]
    stop: list[int]

    @staticmethod
    def of(text: str, cjk: bool = False) -> SegmentedText:
        """Split a text by the rules of this module (see ``split_words``)."""
        text = _with_spaces(text)
        shown = visible(text)
        found = SegmentedText._placed(shown, split_words(shown, cjk))
        if shown == text:
            return found
        places = [at for at, char in enumerate(text) if not UNSEEN.match(char)]
        stop = [places[at - 1] + 1 for at in found.stop]
        return SegmentedText(found.words, [places[at] for at in found.start], stop)

    @staticmethod
    def spaced(text: str) -> SegmentedText:
        """Split a text at spaces only.

        >>> SegmentedText.spaced("James 's house").words
        ['James', "'s", 'house']
        """
        return SegmentedText._placed(text, [word for word in text.split(" ") if word])

    @staticmethod
    def _placed(text: str, words: list[str]) -> SegmentedText:
        start, at = [], 0
        for word in words:  # only white space is between words
            at = text.index(word, at)
            start.append(at)
            at += len(word)
        return SegmentedText(words, start, [first + len(word) for first, word in zip(start, words, strict=True)])

    @property
    def sentences(self) -> list[dict[str, list[str]]]:
        """The words cut into sentences, each as a dictionary with the column ``form``."""
        return [{FORM: sentence} for sentence in split_sentences(self.words)]

    def span(self, start: int, stop: int) -> tuple[int, int] | None:
        """Return the span of the words that share a character with ``start`` … ``stop`` − 1, or None for no such word.

        >>> SegmentedText.of("in 1990s.").span(3, 7)
        (1, 2)
        """
        first, last = bisect_right(self.stop, start), bisect_left(self.start, stop)
        return (first, last) if first < last and start < stop else None

    def is_cut(self, span: tuple[int, int], start: int, stop: int) -> bool:
        """Return whether the characters ``start`` … ``stop`` − 1 begin or end inside a word of ``span``.

        ``span`` holds the bounds of at least one word, as the method ``span`` returns them.
        """
        return self.start[span[0]] < start or self.stop[span[1] - 1] > stop
