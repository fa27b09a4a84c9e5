"""Words and sentences of plain text: cases; the quick and the general pattern are the one rule they come from."""

import re
import sys
import unicodedata
from functools import cache
from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synthlang.sources.segmentation import (
    CONTROLS,
    EMOJI,
    ENDS,
    LONGEST,
    SegmentedText,
    _ends,
    _goes_on,
    _past_closing,
    is_gap,
    reads_alike,
    split_sentences,
    split_words,
)
from synthlang.sources.words import visible

WORDS = [
    ("The cat sat.", "The cat sat ."),
    ("Don't pay $1,000 (or 3.14)!", "Don't pay $ 1,000 ( or 3.14 ) !"),
    ("a well-known man’s co-op", "a well-known man’s co-op"),
    ("dogs' 'tis -x- a--b", "dogs ' ' tis - x - a - - b"),
    ("1,2 3. 4.a x.5 1,000,000.50", "1,2 3 . 4 . a x . 5 1,000,000.50"),
    ("wait... what?!", "wait . . . what ? !"),
    ("<unk> a<unk>b </s> [MASK] [mask] 0 @.@ 7 &apos;s", "<unk> a <unk> b </s> [MASK] [ mask ] 0 @.@ 7 &apos; s"),
    ("3 < 4 and 5 > 2", "3 < 4 and 5 > 2"),
    ("= = History = =", "= = History = ="),
    ("“Où?” dit-il…", "“ Où ? ” dit-il …"),
    ("यह हिन्दी है।", "यह हिन्दी है ।"),
    ("مَجمُوعَةٌ، مِن", "مَجمُوعَةٌ ، مِن"),
    ("I ❤️ col·legi snake_case", "I ❤️ col·legi snake_case"),
    ("a\u00a0b\u3000c\td", "a b c d"),
    ("x@y.org", "x @ y . org"),
    ("a\x00b don\x92t \x1b\x7f.", "a b don t ."),
    ("👩‍👩‍👧🇩🇪🇫🇷👍🏽!❤️‍🔥 1️⃣ क्‍ष", "👩‍👩‍👧 🇩🇪 🇫🇷 👍🏽 ! ❤️‍🔥 1️⃣ क्‍ष"),
    ("", ""),
]
SENTENCES = [
    ("He left. She stayed", ["He left .", "She stayed"]),
    ("He left! She? Yes.", ["He left !", "She ?", "Yes ."]),
    ('He said "Go." Then he left.', ['He said " Go . "', "Then he left ."]),
    ('It ended. "Go," he said.', ["It ended .", '" Go , " he said .']),
    ('the song "Angel of Death"."', ['the song " Angel of Death " . "']),
    ("(It ended.) Then [more.]", ["( It ended . )", "Then [ more . ]"]),
    ("Wait... What?! No.", ["Wait . . .", "What ? !", "No ."]),
    ("wait... what", ["wait . . . what"]),
    ("J. Doe met Dr. Who. So I left with I. Then", ["J . Doe met Dr . Who .", "So I left with I .", "Then"]),
    ("in the U.S. Army, see No. 5. No. He", ["in the U . S . Army , see No . 5 .", "No .", "He"]),
    ("= J. What? Yes. =", ["= J . What ? Yes . ="]),
    ("これ です 。 それ です 。", ["これ です 。", "それ です 。"]),
    ("यह है। वह", ["यह है ।", "वह"]),
    (". . A", [". .", "A"]),
    ("It is 3.14. 5 is more.", ["It is 3.14 .", "5 is more ."]),
]


@pytest.mark.parametrize(("line", "expected"), WORDS)
def test_words(line, expected):
    assert split_words(line) == expected.split()


@pytest.mark.parametrize(("line", "expected"), SENTENCES)
def test_sentences(line, expected):
    assert [" ".join(s) for s in split_sentences(split_words(line))] == expected


@given(st.text())
def test_words_joined_by_spaces_are_the_same_words_again(line):
    found = split_words(line)
    assert split_words(" ".join(found)) == found
    assert "".join(found) == "".join(re.sub(f"[{CONTROLS}]", "", visible(line)).split())
    assert all(word.split() == [word] for word in found)


@given(st.lists(st.sampled_from([".", "?", '"', "'", ")", "=", "A", "b", "Cat", "Dr", "No", "5"]), max_size=40))
def test_sentences_keep_every_word_in_order(line):
    found = list(split_sentences(line))
    assert list(chain.from_iterable(found)) == line
    assert all(found)


@pytest.mark.parametrize("count", [1, LONGEST - 1, LONGEST, LONGEST + 1, 2 * LONGEST, 2 * LONGEST + 1])
def test_long_sentences_are_cut(count):
    lengths = [len(s) for s in split_sentences(["dog"] * count + [".", "B"])]
    assert lengths[-1] == 1 and sum(lengths) == count + 2
    assert all(n == LONGEST for n in lengths[:-2]) and 0 < lengths[-2] <= LONGEST


@cache
def rule():
    """The rule in one pattern; a letter is neither white space, punctuation nor symbol."""
    codes = map(chr, range(sys.maxunicode + 1))
    kinds = "".join("x" if is_gap(c) else "a" for c in codes)
    runs = (f"\\U{match.start():08x}-\\U{match.end() - 1:08x}" for match in re.finditer("a+", kinds))
    letter = f"[{''.join(runs)}]"
    inner = r"(?:['’_·‐‑-]|(?<=\d)[.,](?=\d))"
    special = rf"<[^\s<>{CONTROLS}]{{1,24}}>|"
    special += r"\[(?:UNK|MASK|CLS|SEP|PAD)\]|@[-.,/:]@|&(?:[a-z]{2,8}|#[0-9]{1,7});"
    return re.compile(rf"{special}|{letter}+(?:{inner}{letter}+)*|{EMOJI}|[^\s{CONTROLS}][\u200d\ufe0e\ufe0f]*").findall


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
    *("<unk>", "[MASK]", " @-@ ", "&amp;"),
    *("3.14", "1,000", "don't", "a.b", "1.a", "a,1", "word ", "Dr.", " No. 5", "J. ", "日本"),
]
LINES = st.lists(st.sampled_from(PIECES), max_size=25).map("".join)


@cache
def first_rule():
    """As the rules read before ``LATER``."""
    letter = "".join(c for c in map(chr, range(sys.maxunicode + 1)) if is_gap(c) and unicodedata.category(c) != "Cc")
    inner = r"(?:['’_·‐‑-]|(?<=\d)[.,](?=\d))"
    letter = rf"[^\s{re.escape(letter)}]"
    special = r"<[^\s<>]{1,24}>|\[(?:UNK|MASK|CLS|SEP|PAD)\]|@[-.,/:]@|&(?:[a-z]{2,8}|#[0-9]{1,7});"
    return re.compile(rf"{special}|{letter}+(?:{inner}{letter}+)*|\S[\u200d\ufe0e\ufe0f]*").findall


@given(LINES | st.text(st.sampled_from("a1 \x00\x92\x85👩👧🇩🇪👍🏽❤️🔥\u200d❤™é"), max_size=12))
def test_what_reads_alike_has_the_words_of_the_first_rules(line):
    assert not reads_alike(line.encode()) or split_words(line) == first_rule()(visible(line))


@given(LINES | st.text(max_size=30) | st.text(st.characters(max_codepoint=127), max_size=30))
def test_words_and_sentences_are_those_of_the_plain_rules(line):
    words = split_words(line)
    assert "\u200b" in line or words == rule()(visible(line))
    assert list(_ends(words)) == ends(words)


def test_every_character_of_ascii_between_others():
    for c in map(chr, range(128)):
        for line in (f"a{c}b", f"1{c}2", f"a {c} b", f"a{c} ", f"{c}{c}"):
            assert split_words(line) == rule()(line)
            assert split_words(line + "é") == rule()(line + "é")


@given(st.text(max_size=30), st.integers(0, 30), st.integers(0, 30))
def test_the_words_of_a_span_are_those_it_touches(text, start, stop):
    words = SegmentedText.of(text)
    pieces = list(zip(words.start, words.stop, strict=True))
    assert [visible(text[a:b]) for a, b in pieces] == words.words
    touched = [i for i, (a, b) in enumerate(pieces) if any(start <= c < stop for c in range(a, b))]
    span = words.span(start, stop)
    assert ([] if span is None else list(range(*span))) == touched
    if span is not None:
        covered = range(words.start[touched[0]], words.stop[touched[-1]])
        assert words.is_cut(span, start, stop) == any(not start <= c < stop for c in covered)
