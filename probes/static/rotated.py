"""Word vectors of two languages in one space: normalised, then rotated (Cao et al. 2020, section 3.4)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from probes.measures.probe_input import ProbeInput
from probes.rotation.fitted import MapFitter
from probes.rotation.normalise import Normaliser
from probes.static.settings import LoadedVectors, StaticBaseline, TrainedVectors
from probes.static.training import train_vectors
from probes.static.vec_file import read_vec
from probes.static.vectors import StaticVectors
from probes.transfer.batch import Role
from synthlang.corpus import Corpus
from synthlang.errors import InputError
from synthlang.files import user_path
from synthlang.progress import Report

ROWS = 8192  # linked words that are looked up at once

Codes = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class StaticText:
    """The sentences as word vectors see them: of the other language, then of the parent.

    corpora   the sentences of both sides, whose words are looked up as they are written there
    wanted    [types] of each side, the codes of words that are measured: they get a vector where one can be made
    pairs     [n], [n] codes of words that mean the same, to fit the rotation on
    """

    corpora: tuple[Corpus, Corpus]
    wanted: tuple[Codes, Codes]
    pairs: tuple[Codes, Codes]


@dataclass(frozen=True, eq=False)
class StaticPair:
    """Vectors of the other language and of the parent in one space, none of them zero; what the rotation is like."""

    left: StaticVectors
    right: StaticVectors
    facts: dict[str, Any]


def static_vectors(
    given: ProbeInput, config: TrainedVectors | LoadedVectors, text: StaticText, report: Report
) -> tuple[StaticVectors, StaticVectors]:
    """As they are read or trained, each language by itself; InputError without gensim and for files that are none."""
    if isinstance(config, LoadedVectors):
        left, right = (
            _with_small(held, corpus) if config.lower else held
            for held, corpus in zip(_read(config, report), text.corpora, strict=True)
        )
        return left, right
    trained = []
    for i, (corpus, wanted) in enumerate(zip(text.corpora, text.wanted, strict=True)):
        rows = given.fitted if config.text == "fitted" else np.arange(i, int(given.measured.min()), 2)
        names = corpus.form.names or ()
        also = [names[code] for code in wanted.tolist()] if config.vectors.kind == "fasttext" else ()
        trained.append(train_vectors(config.vectors, partial(_once, corpus.take(rows)), also, report))
    return trained[0], trained[1]


def static_pair(
    vectors: tuple[StaticVectors, StaticVectors], config: StaticBaseline, text: StaticText, moves: Role, name: str
) -> StaticPair:
    """Vectors of both languages, normalised each by itself and those of the one that ``moves`` rotated onto the other.

    InputError, which calls the settings ``name``: no pair to fit on has a vector on both sides, or the vectors have not
    the same size.
    """
    left, right = vectors
    pairs, unknown = _rows(text, left, right)
    if not len(pairs):
        raise InputError(f"{name}: no pair of words to fit the rotation on has a vector on both sides")
    held = [
        (one, Normaliser.fit(one.vectors, config.normalise), rows)
        for one, rows in zip((left, right), pairs.T, strict=True)
    ]
    (x, of_x, x_rows), (y, of_y, y_rows) = held if moves == "target" else held[::-1]
    fitter = MapFitter(of_x, of_y)
    for start in range(0, len(pairs), ROWS):
        at = slice(start, start + ROWS)
        fitter.update(x.vectors[torch.from_numpy(x_rows[at])], y.vectors[torch.from_numpy(y_rows[at])])
    fitted = fitter.fit()
    facts = {
        "vectors": {"left": dict(left.facts), "right": dict(right.facts)},
        "fit": fitted.to_json(),
        "counts": {"pairs of words without a vector": unknown},
    }
    moved, other = (_without_zeros(one) for one in (x.mapped(fitted.apply), y.mapped(fitted.apply_right)))
    return StaticPair(*((moved, other) if moves == "target" else (other, moved)), facts)


def linked_codes(given: ProbeInput, corpora: tuple[Corpus, Corpus]) -> tuple[Codes, Codes]:
    """Codes of both words of every link of the sentence pairs that maps are fitted on."""
    links = given.data.links.take(given.fitted)
    sentence = given.fitted[links.sentence]
    left, right = (
        corpus.form.codes[corpus.offsets[sentence] + column].astype(np.int64)
        for corpus, column in zip(corpora, (links.left, links.right), strict=True)
    )
    return left, right


def _read(config: LoadedVectors, report: Report) -> list[StaticVectors]:
    return [read_vec(user_path(name), config.words, report) for name in (config.left, config.right)]


def _with_small(held: StaticVectors, corpus: Corpus) -> StaticVectors:
    """With those of small letters for words of the corpus that have none of their own."""
    index = held.index
    more = [name for name in corpus.form.names or () if name not in index and name.lower() in index]
    rows = torch.tensor([index[name.lower()] for name in more], dtype=torch.long)
    facts = {**held.facts, "small_letters": len(more)}
    return StaticVectors((*held.words, *more), torch.cat([held.vectors, held.vectors[rows]]), facts)


def _once(corpus: Corpus) -> list[Corpus]:
    return [corpus]


def _rows(text: StaticText, left: StaticVectors, right: StaticVectors) -> tuple[Codes, int]:
    """[n, 2] rows of the vectors, left and right, that the rotation is fitted on; and how many pairs have none."""
    rows = np.stack(
        [
            held.rows_of(corpus.form.names or ())[codes]
            for held, corpus, codes in zip((left, right), text.corpora, text.pairs, strict=True)
        ],
        axis=1,
    )
    known = (rows >= 0).all(1)
    return rows[known], int((~known).sum())


def _without_zeros(held: StaticVectors) -> StaticVectors:
    """A word whose vector is zero has none: it would be near its sentence's other words by what the sentence adds."""
    kept = (held.vectors != 0).any(1)
    if bool(kept.all()):
        return held
    words = tuple(word for word, there in zip(held.words, kept.tolist(), strict=True) if there)
    return StaticVectors(words, held.vectors[kept], held.facts)
