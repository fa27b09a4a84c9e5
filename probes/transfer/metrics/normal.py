"""Normalisation of answers before they are compared, by the rules of SQuAD and of MLQA."""

from __future__ import annotations

import re
import string
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass

from synthlang.errors import InputError

ARTICLES = {
    "en": r"\b(a|an|the)\b",
    "es": r"\b(un|una|unos|unas|el|la|los|las)\b",
    "vi": r"\b(của|là|cái|chiếc|những)\b",
    "de": r"\b(ein|eine|einen|einem|eines|einer|der|die|das|den|dem|des)\b",
    "ar": "ال",  # anywhere in a word: the rule's other half, "white space, then it, then the start", never matches
    "hi": "",
    "zh": "",
}
"""What MLQA (Lewis et al. 2020) takes for articles; each becomes a space."""
HAN = re.compile("([\u4e00-\u9fa5])")


@dataclass(frozen=True)
class Rules:
    """How answers are compared.

    words       text → its normalised words
    filtered    SQuAD 2: a gold answer without a normalised word is none
    """

    words: Callable[[str], list[str]]
    filtered: bool


class _Deleted(dict[int, int | None]):
    """A table for str.translate that deletes punctuation: ASCII's and, if ``wide``, whatever Unicode calls P…"""

    def __init__(self, wide: bool) -> None:
        super().__init__({ord(mark): None for mark in string.punctuation})
        self.wide = wide

    def __missing__(self, code: int) -> int | None:
        gone = self.wide and unicodedata.category(chr(code)).startswith("P")
        return self.setdefault(code, None if gone else code)


def rules_of(name: str) -> Rules:
    """``squad`` (v2, which scores answers as v1.1 does unless one has no normalised word) or ``mlqa-xx``."""
    if name == "squad":
        return Rules(_words(ARTICLES["en"], False, False), filtered=True)
    language = name.removeprefix("mlqa-")
    if language == name or language not in ARTICLES:
        known = ", ".join(("squad", *(f"mlqa-{code}" for code in sorted(ARTICLES))))
        raise InputError(f"answers: there are no rules {name!r}; there are {known}")
    return Rules(_words(ARTICLES[language], True, language == "zh"), filtered=False)


def _words(articles: str, wide: bool, letters: bool) -> Callable[[str], list[str]]:
    """Lower case, no punctuation, no articles, white space; ``letters``: a Chinese character is a word."""
    deleted, article = _Deleted(wide), re.compile(articles) if articles else None

    def words(text: str) -> list[str]:
        text = text.lower().translate(deleted)
        text = article.sub(" ", text) if article else text
        return (HAN.sub(r" \1 ", text) if letters else text).split()

    return words
