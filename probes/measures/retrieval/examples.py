"""Examples of words in context, each with the nearest word of the other language (Cao et al. 2020, appendix A.3)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from pretrain.nearest import nearest
from pretrain.nearest_lists import Matrix
from probes.measures.retrieval.scores import Items
from probes.report.page import Table
from synthlang.corpus import FORM, Corpus
from synthlang.progress import Report, silent

Numbers = NDArray[np.int64]
SHOWN = 5
"""Maximum number of occurrences shown for a word."""


def asking(corpus: Corpus, candidates: Numbers, words: Sequence[str]) -> Numbers:
    """Return the first SHOWN occurrences of each of ``words`` among ``candidates``. Case is ignored.

    Occurrences [n] and candidates [m] are indices of words in ``corpus``. Candidates must be in ascending order.
    """
    names = [name.casefold() for name in corpus.form.names or ()]
    found = []
    for word in words:
        codes = [code for code, name in enumerate(names) if name == word.casefold()]
        found.append(candidates[np.isin(corpus.form.codes[candidates], codes)][:SHOWN])
    return np.concatenate([np.zeros(0, np.int64), *found])


def examples_of(
    corpora: tuple[Corpus, Corpus],
    one: Items,
    vectors: tuple[Matrix, Matrix],
    rows: tuple[Numbers, Numbers],
    words: Sequence[str],
    k: int,
    report: Report = silent,
) -> list[dict[str, Any]]:
    """Return occurrences of ``words`` of the source language, each with the nearest word of the other language.

    An example has the words ``word`` and ``nearest``. Their sentences are ``sentence`` and ``in``, with the word in
    guillemets. The key ``csls`` has the similarity, and ``linked`` is true if the two words are aligned. Without a
    nearest word, ``nearest``, ``in`` and ``csls`` are None. At most SHOWN occurrences of each word are returned.

    Args:
        corpora: The sentences of the left and the right side.
        one: The candidates and word alignments.
        vectors: [n, d] and [m, d], the vectors of the left and of the right side.
        rows: The row of each candidate of each side in ``vectors``.
        words: The words of the source language.
        k: Number of neighbours in the densities of CSLS.
        report: Receives the progress.

    Raises:
        InputError: A vector has NaN or infinity, or ``k`` is less than 1.
    """
    asked = asking(corpora[1], one.right, words)
    at = torch.from_numpy(rows[1][np.searchsorted(one.right, asked)])
    if not len(asked):
        return []
    listed = nearest(vectors[1], vectors[0], top=1, queries=(at, at[:0]), k=k, report=report).forward.csls
    word_at = np.full(len(vectors[0]), -1)
    word_at[rows[0]] = one.left
    links = set(map(tuple, one.links.tolist()))
    found = []
    for word, nearest_row, score in zip(
        asked.tolist(), listed.indices[:, 0].tolist(), listed.scores[:, 0], strict=True
    ):
        other = -1 if nearest_row < 0 else int(word_at[nearest_row])
        found.append(
            {
                **dict(zip(("word", "sentence"), in_context(corpora[1], word), strict=True)),
                **dict(zip(("nearest", "in"), in_context(corpora[0], other), strict=True)),
                "csls": None if other < 0 else float(score),
                "linked": (other, word) in links,
            }
        )
    return found


def in_context(corpus: Corpus, word: int) -> tuple[str | None, str | None]:
    """Return the word with the index ``word`` and its sentence, in which it has guillemets. −1 gives (None, None)."""
    if word < 0:
        return None, None
    sentence = int(np.searchsorted(corpus.offsets, word, side="right")) - 1
    words = corpus.take(np.asarray([sentence], np.int64)).columns[FORM].values()
    place = word - int(corpus.offsets[sentence])
    return words[place], " ".join(f"«{name}»" if i == place else name for i, name in enumerate(words))


def example_table(found: Sequence[dict[str, Any]], names: tuple[str, str], read: str) -> Table:
    """Return the examples as a table, with a row for each occurrence of a word.

    ``found`` is the result of `examples_of`. ``names`` are the names of the source and the other language. ``read`` is
    the name of the vectors in the title.
    """
    header = [f"word of {names[0]}", f"nearest word of {names[1]}", "linked", "CSLS"]
    rows = [[one["sentence"], one["in"] or "–", "yes" if one["linked"] else "no", _score(one["csls"])] for one in found]
    return Table(f"Words in context and their nearest words, {names[0]} → {names[1]}, {read}", header, rows, texts=3)


def _score(score: float | None) -> str:
    return "–" if score is None else f"{score:.2f}"
