"""The rule for words is cut into a quick and a general pattern: both together are the one rule they come from."""

import re
import sys
import unicodedata
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synthlang.sources.words import ENDS, LONGEST, _ends, _goes_on, _past_closing, split_sentences, split_words


@cache
def letter():
    """Neither white space, punctuation nor symbol, one code point after another."""
    codes = range(sys.maxunicode + 1)
    found = [c for c in codes if unicodedata.category(chr(c))[0] not in "PSZ" and not chr(c).isspace()]
    ranges, start = [], 0
    for at in range(1, len(found) + 1):
        if at == len(found) or found[at] != found[at - 1] + 1:
            ranges.append((found[start], found[at - 1]))
            start = at
    return "[" + "".join(f"\\U{a:08x}-\\U{b:08x}" for a, b in ranges) + "]"


@cache
def rule():
    inner = r"(?:['’_·‐‑-]|(?<=\d)[.,](?=\d))"
    special = r"<[^\s<>]{1,24}>|\[(?:UNK|MASK|CLS|SEP|PAD)\]|@[-.,/:]@|&(?:[a-z]{2,8}|#[0-9]{1,7});"
    return re.compile(rf"{special}|{letter()}+(?:{inner}{letter()}+)*|" + r"\S[\u200d\ufe0e\ufe0f]*").findall


def ends(words):
    """As the rule for sentences reads, with a plain loop over the marks."""
    found, start = [], 0
    title = len(words) > 2 and words[0] == words[-1] == "="
    for at, word in enumerate(words):
        if not title and word in ENDS and at >= start:
            end = _past_closing(words, start, at + 1)
            if end < len(words) and not _goes_on(words, start, at, end):
                found.append(end)
                start = end
    return found + ([len(words)] if start < len(words) else [])


PIECES = [
    *"ab1 9.,'’-_·‐‑!?<>&;#@/[]=\"()\t\n\x00\x1f\x85\u200d\ufe0f\u00a0é日अा٣👩𝟙²½Ⅳ\u0301",
    "<unk>",
    "[MASK]",
    " @-@ ",
    "&amp;",
]
PIECES += ["3.14", "1,000", "don't", "a.b", "1.a", "a,1", "word ", "Dr.", " No. 5", "J. ", "日本"]
LINES = st.lists(st.sampled_from(PIECES), max_size=25).map("".join)


@given(LINES | st.text(max_size=30) | st.text(st.characters(max_codepoint=127), max_size=30))
def test_words_are_those_of_the_one_rule(line):
    assert split_words(line) == rule()(line)


@given(LINES)
def test_sentences_are_those_of_the_plain_loop(line):
    words = split_words(line)
    assert list(_ends(words)) == ends(words)
    assert [w for s in split_sentences(words) for w in s] == words


@pytest.mark.parametrize("count", [1, LONGEST - 1, LONGEST, LONGEST + 1, 2 * LONGEST, 2 * LONGEST + 1])
def test_long_sentences_are_cut(count):
    lengths = [len(s) for s in split_sentences(["w"] * count)]
    assert sum(lengths) == count
    assert all(n == LONGEST for n in lengths[:-1]) and 0 < lengths[-1] <= LONGEST


@pytest.mark.parametrize("character", [chr(c) for c in range(128)])
def test_every_character_of_ascii_between_others(character):
    for line in (f"a{character}b", f"1{character}2", f"a {character} b", f"a{character} ", f"{character}{character}"):
        assert split_words(line) == rule()(line)
        assert split_words(line + "é") == rule()(line + "é")
