"""Parts of speech of the parent's words: those that the text has, or those of a parser."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from probes.measure.retrieval_scores import LEVEL, Retrieved
from probes.measure.states import words_of
from probes.statistics import Interval
from synthlang.corpus import Corpus
from synthlang.parsing import open_engine
from synthlang.parsing.cache import ParseCache, default_cache
from synthlang.parsing.chunks import CHUNK, parse_chunks
from synthlang.progress import Report, silent

UPOS = "upos"
CONJUNCTION = "CONJ"
GROUPS = {
    "lexical overlap": ("NUM", "PUNCT", "PROPN"),
    "closed class": ("DET", "ADP", CONJUNCTION, "PRON", "AUX"),
    "open class": ("NOUN", "ADV", "ADJ", "VERB"),
}
"""Cao et al. 2020, table 4, which leaves out PART, SYM, INTJ and X."""

ONE = {"CCONJ": CONJUNCTION, "SCONJ": CONJUNCTION}  # one tag in the tag set of the paper


@dataclass(frozen=True)
class Tags:
    """``codes`` [words of the corpus] into ``names``; -1: not known. ``source`` says whose they are."""

    codes: NDArray[np.int64]
    names: tuple[str, ...]
    source: str

    @staticmethod
    def of(values: Sequence[str | None], source: str) -> Tags:
        """Of a tag or None for each word."""
        known = [ONE.get(value, value) if value else None for value in values]
        names = tuple(sorted({value for value in known if value}))
        number = {name: code for code, name in enumerate(names)}
        return Tags(np.asarray([-1 if v is None else number[v] for v in known], np.int64), names, source)


def tags_of(corpus: Corpus, rows: NDArray[np.int64], parser: str | None, report: Report = silent) -> Tags | None:
    """The column ``upos``, else what a parser says of the sentences at ``rows``; None where there is neither.

    InputError for a parser that is not there. A word of a sentence that it cannot parse has no tag.
    """
    words = words_of(corpus.offsets, rows)
    values: list[str | None] = [None] * int(corpus.offsets[-1])
    column = corpus.columns.get(UPOS)
    if column is not None:
        there = column.take(words).values()
        for word, tag in zip(words.tolist(), there, strict=True):
            values[word] = None if tag in ("", "_") else tag
        return Tags.of(values, "the text")
    if parser is None:
        return None
    engine = open_engine(parser)
    chunks = [corpus.take(rows[start : start + CHUNK]) for start in range(0, len(rows), CHUNK)]
    parsed = parse_chunks(engine, "words", ([s.words for s in chunk] for chunk in chunks), ParseCache(default_cache()))
    found: list[str | None] = []
    for done, (chunk, (outcomes, _)) in enumerate(zip(chunks, parsed, strict=True), 1):
        for length, outcome in zip(chunk.lengths.tolist(), outcomes, strict=True):
            found += [None] * length if isinstance(outcome, str) else outcome[0][UPOS]
        report(f"parts of speech by {engine.name}", done, len(chunks), "")
    for word, tag in zip(words.tolist(), found, strict=True):
        values[word] = tag
    return Tags.of(values, engine.version)


def by_tag(retrieved: Retrieved, chosen: NDArray[np.bool_], tag: NDArray[np.int64], names: Sequence[str]) -> Any:
    """Accuracy under CSLS of the ``chosen`` links [q] by the tag [q] of their right word, and by group of tags.

    A group's ``average`` is the mean of its tags' accuracies (as printed in the paper's table), ``pooled`` that of its
    words. ``left_out``: how many links have another tag, or none.
    """
    groups: dict[str, Any] = {}
    seen = np.zeros(len(chosen), bool)
    for group, members in GROUPS.items():
        tags = {}
        inside = np.zeros(len(chosen), bool)
        for name in members:
            of_tag = chosen & (tag == names.index(name)) if name in names else np.zeros(len(chosen), bool)
            found = retrieved.accuracy(of_tag, "csls")
            tags[name] = None if found is None else found.to_json()
            inside |= of_tag
        means = [value["mean"] for value in tags.values() if value is not None]
        pooled = retrieved.accuracy(inside, "csls")
        groups[group] = {
            "average": sum(means) / len(means) if means else None,
            "pooled": None if pooled is None else pooled.to_json(),
            "tags": tags,
        }
        seen |= inside
    codes, counts = np.unique(tag[chosen & ~seen], return_counts=True)
    rest = {names[code] if code >= 0 else "none": int(n) for code, n in zip(codes, counts, strict=True)}
    return {"groups": groups, "left_out": rest}


def intervals(groups: Any) -> Iterator[tuple[str, str, Interval, int]]:
    """(group, tag, accuracy, links) of every tag that has links."""
    for group, found in groups.items():
        for name, value in found["tags"].items():
            if value is not None:
                bounds = Interval(value["mean"], value["low"], value["high"], min(value["asking"].values()), LEVEL)
                yield group, name, bounds, value["links"]
