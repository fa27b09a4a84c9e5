"""Stems made of English-like syllables, for ranks beyond the word lists."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

# fmt: off
ONSETS = (
    "b", "c", "d", "f", "g", "h", "l", "m", "n", "p", "r", "s", "t", "v", "w", "br", "cl", "cr", "dr", "fl", "gl", "gr",
    "pl", "pr", "sc", "sh", "sl", "sp", "st", "str", "th", "tr",
)
NUCLEI = ("a", "e", "i", "o", "u", "ai", "ea", "oo", "ou", "ee")
CODAS = (
    "b", "d", "g", "l", "m", "n", "nd", "nt", "p", "r", "rd", "rk", "rn", "s", "sk", "st", "t", "ck", "ll", "ng", "mp",
)
ENDINGS = {
    "noun": ("er", "on", "et", "le", "ment", "ness", "age", "ock", "in", "el", "ard", "um"),
    "mass": ("ness", "dust", "ium", "ency"),
    "verb": ("ate", "ify", "le", "ish", "en", "er", "ow", "ize", "", "", "", "", "", ""),
    "adjective": ("ous", "ful", "ic", "al", "ive", "y", "ish", "less", "ant"),
    "given": ("a", "en", "o", "ia", "in", "elle", "us", "ina"),
    "surname": ("son", "ton", "man", "er", "berg", "well", "ley", "wick"),
    "place": ("ville", "ton", "burg", "ford", "ia", "land", "mouth", "stead"),
    "org": ("ex", "co", "tech", "corp", "on", "ix", "ara"),
}
# fmt: on


def stems(kind: str, draw: Callable[[], float], taken: Callable[[str], bool]) -> Iterator[str]:
    """New stems of a kind without end; never one that is ``taken``."""

    def one(items: Sequence[str]) -> str:
        return items[int(draw() * len(items))]

    names = kind in ("given", "surname", "place", "org")
    while True:
        stem = one(ONSETS) + one(NUCLEI) + one(CODAS)
        ending = one(ENDINGS[kind])
        if draw() < 0.3 and not names:
            stem = stem.rstrip("ck") + one("aeio") + one("lmnrtv")
        word = stem + ending
        word = word.capitalize() if names else word
        if not taken(word) and 3 < len(word) < 13:
            yield word
