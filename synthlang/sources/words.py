"""Words in files: the separators of words, and the characters that do not belong to words.

A space separates words, and so does a tab where a format has columns. Any other white space is a part of a word and
becomes U+00A0 there, because downstream a space separates words. Only the rules for running text (``segmentation``)
separate words at all white space.

Invisible characters are removed and counted: soft hyphens, byte order marks inside a text, zero width spaces, word
joiners and marks of direction. U+200C and U+200D stay, because Persian, Hindi and emoji are spelled with them. All
readers of text use these rules.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import compress
from pathlib import Path
from typing import Any, Literal

import numpy as np

from synthlang.corpus import FORM, Column, Corpus
from synthlang.errors import InputError
from synthlang.files import read_lines

REMOVED = "invisible characters (such as U+200B, or U+FEFF inside the text), removed"
NOT_NFC = "words not in Unicode's form NFC, whose other spelling would be another word (sources take ?normalise=NFC)"
NORMALISED = "words changed to Unicode's form NFC"
BLANK = "words left out because they have no visible character"
WITHHELD = "sentences left out because their words are withheld (each is written _)"
MISNUMBERED = "sentences left out because a word number or a head is wrong"
COMPLETE = (
    "complete the files as the README of the treebank describes, with the original text and the script of the treebank"
)
UNSEEN = re.compile("[\u00ad\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff]")
WITHHELD_WORDS = ({"_"}, {"[WORD]"})  # Universal Dependencies; CoNLL 2012
NFC: Literal["NFC"] = "NFC"

# UTF-8 bytes that earlier readers read differently. A file that contains them gets a new fingerprint.
CLEANED = (
    re.compile(rb"\xc2\xad|\xd8\x9c"),
    re.compile(rb"\xe2\x80[\x8b\x8e\x8f\xaa-\xae]"),
    re.compile(rb"\xe2\x81[\xa0-\xaf]"),
    re.compile(rb"\xef\xbb\xbf"),
    re.compile(rb"\\u(?:00ad|061c|200[bef]|202[a-e]|206[0-9a-f]|feff)", re.IGNORECASE),
)
MARKUP = (re.compile(rb" @[-.,/:]@ "), re.compile(rb"</?doc[ >]"))
SPACES = (
    re.compile(rb"[\x0b\x0c\x1c-\x1f]"),
    re.compile(rb"\xc2[\x85\xa0]"),
    re.compile(rb"\xe2\x80[\x80-\x8a\xa8\xa9\xaf]"),
    re.compile(rb"\xe1\x9a\x80|\xe2\x81\x9f|\xe3\x80\x80"),
)


def spaced(text: str) -> list[str]:
    """Split a text into words at spaces and tabs only. A line break at the end is removed.

    >>> spaced("San\\u00a0Juan \\u3000  x")
    ['San\\xa0Juan', '\\u3000', 'x']
    """
    return [word for word in text.rstrip("\r\n").replace("\t", " ").split(" ") if word]


def joined_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield (line number from 1, line) of a file, without the byte order marks of files that were joined.

    Raises:
        InputError: The file cannot be read, or a line is not UTF-8 or too long.
    """
    return ((number, line.removeprefix("\ufeff")) for number, line in read_lines(path))


def columns_of(line: str) -> list[str]:
    """Return the columns of a line, which are separated by tabs if the line has any, else by spaces."""
    return line.split("\t") if "\t" in line else spaced(line)


def one_word(form: str) -> str:
    """Replace white space in a form by U+00A0, so that it stays one word.

    >>> one_word("10 000")
    '10\\xa0000'
    """
    return form if form.split() == [form] else re.sub(r"\s", "\u00a0", form)


def visible(text: str) -> str:
    """Return a text without invisible characters."""
    return text if text.isascii() else UNSEEN.sub("", text)


def count_unseen(text: str) -> int:
    """Return the number of invisible characters in a text."""
    return 0 if text.isascii() else len(UNSEEN.findall(text))


def filled(field: str, path: Any, line: int) -> str:
    """Return the word ``field`` unchanged, after a check that it is not empty.

    Raises:
        InputError: The word is empty. The error names ``path`` and ``line``.
    """
    if not field.strip(" "):
        raise InputError("the word is empty", path, line, hint="write a word, or delete the line", code="format")
    return field


def tidy(forms: list[str], counts: Counter[str]) -> list[str]:
    """Return words without invisible characters, and count these characters in ``counts``.

    White space inside a word becomes U+00A0. A word of invisible characters alone keeps them.
    """
    joined = "".join(forms)
    if joined.isascii() and joined.split() == [joined]:  # most sentences
        return forms
    counts[REMOVED] += count_unseen(joined)
    return [one_word(visible(form) or form) for form in forms]


def tidied(sentences: Iterable[dict[str, list[Any]]], counts: Counter[str]) -> Iterator[dict[str, list[Any]]]:
    """Yield annotated sentences with tidy words (see ``tidy``), and count changes by reason in ``counts``.

    A sentence whose words are withheld is left out and counted. A word without a visible character is also left out
    and counted, unless the sentence has a tree. A sentence without words is left out.
    """
    for sentence in sentences:
        if set(sentence[FORM]) in WITHHELD_WORDS:
            counts[WITHHELD] += 1
            continue
        if "head" not in sentence and not all(kept := [bool(visible(form).strip()) for form in sentence[FORM]]):
            counts[BLANK] += kept.count(False)
            sentence = {name: list(compress(values, kept)) for name, values in sentence.items()}  # noqa: PLW2901
        if sentence[FORM]:
            yield {**sentence, FORM: tidy(sentence[FORM], counts)}


def spelled(batch: Corpus, remarks: Counter[str], normalise: str | None = None) -> Corpus:
    """Return a batch, and count in ``remarks`` its words that are not in Unicode's form NFC.

    With ``normalise``, the words of the result are in NFC. Without it, the batch is unchanged.
    """
    names = batch.form.names or ()
    other = [not name.isascii() and not unicodedata.is_normalized(NFC, name) for name in names]
    if not any(other):
        return batch
    reason = NOT_NFC if normalise is None else NORMALISED
    remarks[reason] += int(np.asarray(other)[batch.form.codes].sum())
    if normalise is None:
        return batch
    form = Column.of([unicodedata.normalize(NFC, name) for name in names])
    return replace(batch, columns={**batch.columns, FORM: replace(form, codes=form.codes[batch.form.codes])})


class Faults:
    """Collector of the sentences of a file that have wrong word numbers or heads.

    Up to one sentence in a hundred is left out and counted in ``counts``. Without ``counts``, the first such sentence
    is an error.

    Attributes:
        counts: Counter of the sentences that are left out, or None.
        read: Number of correct sentences so far. The reader of the file increments the number.
        found: Errors of the wrong sentences.
    """

    def __init__(self, counts: Counter[str] | None) -> None:
        self.counts, self.read, self.found = counts, 0, list[InputError]()

    def add(self, fault: InputError) -> None:
        """Leave out and count a sentence with this fault.

        Raises:
            InputError: The file has too many such sentences, or there is no counter. The error is the first fault.
        """
        self.found.append(fault)
        if self.counts is None or len(self.found) > 1 + self.read // 100:
            raise self.found[0]
        self.counts[MISNUMBERED] += 1

    def end(self) -> None:
        """Check the number of faults after the whole file.

        Raises:
            InputError: The file has more than one fault for each hundred correct sentences. The error is the first
                fault.
        """
        if 100 * len(self.found) > self.read:
            raise self.found[0]
