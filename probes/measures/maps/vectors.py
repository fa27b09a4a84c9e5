"""The text that maps are measured on, and its vectors at some layers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from probes.measures.maps import SentenceFiles
from probes.measures.maps.dictionary import Dictionary
from probes.measures.probe_input import ProbeInput
from probes.measures.rotated import Sides
from probes.states import LanguageSide, anchors, sentence_means, word_states, words_of
from synthlang.errors import InputError
from synthlang.files import user_path
from synthlang.parallel.prepare import SENTENCE_TOKENS, Sentences, encode
from synthlang.parallel.text import read_parallel
from synthlang.progress import Report
from synthlang.wording import plural

AT_ONCE = 1 << 30  # maximum size of vectors in memory, in bytes; if all layers need more, they are read in groups
Rows = NDArray[np.int64]
Vectors = Mapping[str, tuple[Tensor, Tensor]]
"""Vectors [layers, n, d] of the other language and of the source language, by measure.

words       the mean over all occurrences of each candidate of the dictionary, float64
context     the words of the measured sentences
sentences   the means of the measured sentences
files       the means of additional parallel sentences, if there are any
"""


@dataclass(frozen=True, eq=False)
class MeasuredText:
    """The measured sentence pairs and sentence files. The other language comes before the source language.

    Attributes:
        rows: [s] the indices of the measured sentence pairs, ascending.
        words: [words] the words of each side, as indices among all words of the side.
        links: [links, 2] indices into ``words`` of the source word and the other word of each alignment.
        files: The sentences of the files as ids, or None.
        lines: [n] the lines of the files that are used.
        counts: Number of lines left out, by reason.
    """

    rows: Rows
    words: tuple[Rows, Rows]
    links: Rows
    files: tuple[Sentences, Sentences] | None
    lines: Rows
    counts: dict[str, int]


def measured_text(given: ProbeInput, files: SentenceFiles | None) -> MeasuredText:
    """Return the measured sentence pairs, and the sentences of ``files`` if they are given.

    Raises:
        InputError: The sentence pairs cannot be read, or none is left to measure on. The error is also raised if the
            files cannot be read, or no pair of lines is left.
    """
    rows, text = np.sort(given.measured), given.aligned.text
    left, right = words_of(text.left.offsets, rows), words_of(text.right.offsets, rows)
    linked = given.aligned.linked_words(rows)
    links = np.stack([np.searchsorted(right, linked[1]), np.searchsorted(left, linked[0])], axis=1).astype(np.int64)
    none: Rows = np.zeros(0, np.int64)
    of_files = (None, none, dict[str, int]()) if files is None else _read_files(given, files)
    return MeasuredText(rows, (left, right), links, *of_files)


def _read_files(given: ProbeInput, files: SentenceFiles) -> tuple[tuple[Sentences, Sentences], Rows, dict[str, int]]:
    """Return the sentences of both files, the lines to use, and counts of empty and too long lines."""
    text = read_parallel(user_path(files.left), user_path(files.right), files.words)
    left, right = (
        encode(reader.tokenizer.tokenizer, corpus, "word", reader.number)
        for reader, corpus in ((given.pretrained.target, text.left), (given.pretrained.source, text.right))
    )
    lengths = np.stack([np.diff(sentences.bounds) for sentences in (left, right)])
    limit = given.pretrained.length
    most = given.config.data.length or limit
    empty, long = (lengths == 0).any(0), (lengths + SENTENCE_TOKENS > most).any(0)
    rows = np.flatnonzero(~empty & ~long)
    if not len(rows):
        told = (
            f"of {plural(len(text), 'pair')} of lines, none can be used: {int(empty.sum()):,} with an empty line, "
            f"{int((long & ~empty).sum()):,} with a line over {most} tokens"
        )
        hint = "increase data.length, or give shorter sentences" if most < limit else "give shorter sentences"
        if empty.all():
            told, hint = "no pair of lines has words on both sides", "give files with sentences"
        raise InputError(told, user_path(files.left), keys="maps.sentences", hint=hint, code="empty")
    counts = {"lines that are empty": int(empty.sum()), f"lines over {most} tokens": int((long & ~empty).sum())}
    return (left, right), rows, counts


def layer_groups(count: int, width: int, dictionary: Dictionary, text: MeasuredText) -> list[range]:
    """Cut ``count`` layers into groups whose vectors need about AT_ONCE bytes at most. A group has at least one layer.

    ``width`` is the number of dimensions of a vector. ``dictionary`` and ``text`` determine the number of vectors.
    """
    # the approximate size of one layer and of its copies
    types, others = sum(map(len, dictionary.types)), 2 * (len(text.rows) + len(text.lines)) + sum(map(len, text.words))
    size = max(1, AT_ONCE // max(1, width * (3 * 8 * types + 2 * 4 * others)))
    return [range(first, min(first + size, count)) for first in range(0, count, size)]


def read_vectors(sides: Sides, dictionary: Dictionary, fitted: Rows, text: MeasuredText, report: Report) -> Vectors:
    """Return the vectors of words and sentences (see ``Vectors``) at the layers of the sides.

    Args:
        sides: The other language and the source language, with the layers to read.
        dictionary: The dictionary, whose candidates get the mean over their occurrences.
        fitted: The indices of the sentence pairs in which these occurrences are read.
        text: The words and sentences to measure on.
        report: Receives the progress.
    """

    def of_sentences(side: LanguageSide, sentences: Sentences, rows: Rows) -> Tensor:
        return sentence_means(sentences, side.reader, rows, False, report, f"sentences, {side.name}")

    found: dict[str, list[Tensor]] = {"words": [], "context": [], "sentences": []}
    for side, corpus, codes, words in zip(sides, dictionary.corpora, dictionary.types, text.words, strict=True):
        found["words"].append(anchors(replace(side, corpus=corpus), fitted, codes, report))
        # zeros for a word without tokens
        context = torch.zeros(len(side.reader.layers), len(words), side.reader.body.shape.hidden)
        for batch in word_states(side, text.rows, report, f"words in context, {side.name}"):
            context[:, torch.from_numpy(np.searchsorted(words, batch.word.numpy()))] = batch.vectors.cpu()
        found["context"].append(context)
        found["sentences"].append(of_sentences(side, side.sentences, text.rows))
    if text.files is not None:
        found["files"] = [of_sentences(*both, text.lines) for both in zip(sides, text.files, strict=True)]
    return {measure: (left, right) for measure, (left, right) in found.items()}
