"""How many words find their translation: both directions, CSLS and cosine, intervals; also by part of speech."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from pretrain.nearest import Direction, nearest
from pretrain.nearest_lists import Matrix
from probes.measures.probe_input import words_of
from probes.statistics import Interval, wilson_interval
from synthlang.corpus import Corpus
from synthlang.parsing import open_engine
from synthlang.parsing.chunks import CHUNK, ParseCache, default_cache, parse_chunks
from synthlang.progress import Report, silent

LEVEL = 0.95
SIMILARITIES = ("csls", "cosine")

Credits = NDArray[np.float64]


@dataclass(frozen=True)
class Accuracy:
    """Percent (0 to 100) of words that find a translation of theirs, of those in some links.

    forward    words of the parent ask, those of the other language answer; ``backward`` the other way
    mean       of both, with Wilson's interval for as many draws as the direction with fewer words has: the two
               directions of a pair are one draw, and words of one sentence are taken as independent
    links, asking   how many links, and how many words ask in each direction (as many, if links are one to one)
    """

    forward: float
    backward: float
    mean: Interval
    links: int
    asking: tuple[int, int]

    def to_json(self) -> dict[str, Any]:
        """JSON values."""
        return {
            "forward": self.forward,
            "backward": self.backward,
            "mean": self.mean.mean,
            "low": self.mean.low,
            "high": self.mean.high,
            "links": self.links,
            "asking": {"forward": self.asking[0], "backward": self.asking[1]},
        }


@dataclass(frozen=True, eq=False)
class Retrieved:
    """What each link [q] earns: 1 if its word found any word that it is linked with, 1/t with t tied ones, else 0.

    ``csls`` and ``cosine``: (forward, backward). ``zeros``: rows of zeros on the left and on the right.
    """

    links: NDArray[np.int64]
    csls: tuple[Credits, Credits]
    cosine: tuple[Credits, Credits]
    zeros: tuple[int, int]

    def accuracy(self, chosen: NDArray[np.bool_], similarity: str) -> Accuracy | None:
        """Of the words of the ``chosen`` links [q]; each word counts once. None if there is none."""
        if not chosen.any():
            return None
        credits = self.csls if similarity == "csls" else self.cosine
        scores, asking = [], []
        for side, credit in ((1, credits[0]), (0, credits[1])):
            first = np.unique(self.links[chosen, side], return_index=True)[1]
            scores.append(100 * float(credit[chosen][first].mean()))
            asking.append(len(first))
        mean = wilson_interval(sum(scores) / 200, min(asking))
        return Accuracy(scores[0], scores[1], mean, int(chosen.sum()), (asking[0], asking[1]))

    def of_links(self, similarity: str = "csls") -> Credits:
        """[q] the mean of both directions."""
        credits = self.csls if similarity == "csls" else self.cosine
        return (credits[0] + credits[1]) / 2


def retrieve(
    left: Matrix,
    right: Matrix,
    links: NDArray[np.int64],
    k: int,
    report: Report = silent,
    lost: NDArray[np.bool_] | None = None,
) -> Retrieved:
    """Search in both directions; ``links`` [q, 2] are rows of ``left`` [n, d] and ``right`` [m, d].

    Of links that are ``lost`` [q] a word has no row: they earn nothing, and negative numbers stand for such words.
    """
    there = np.ones(len(links), bool) if lost is None else ~lost
    found = nearest(right, left, torch.from_numpy(links[there, ::-1].copy()), k=k, report=report)
    ways = ((found.forward, links[:, 1]), (found.backward, links[:, 0]))

    def credits(similarity: str) -> tuple[Credits, Credits]:
        one, other = (_of_any(_credit(way, similarity, there), asking) for way, asking in ways)
        return one, other

    return Retrieved(links, credits("csls"), credits("cosine"), (found.backward.zeros, found.forward.zeros))


def _credit(way: Direction, similarity: str, there: NDArray[np.bool_]) -> Credits:
    """[q] of every link; nothing for those that are not ``there``."""
    found = way.csls if similarity == "csls" else way.cosine
    credit = np.zeros(len(there))
    credit[there] = found.credit.cpu().numpy()
    return credit


def _of_any(credit: Credits, asking: NDArray[np.int64]) -> Credits:
    """What the word that asks earns by all its links: of t tied ones, each of its own is the chosen one with 1/t."""
    _, word = np.unique(asking, return_inverse=True)
    return np.minimum(np.bincount(word, credit)[word], 1.0)


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
