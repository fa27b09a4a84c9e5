"""The baseline without contexts: word vectors, normalised, rotated and put beside those of their sentence, measured as
the model's states are (Cao et al. 2020, section 3.4)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from probes.maps.fitted import fit_map
from probes.maps.normalise import Method, Normaliser
from probes.maps.translation_set import TranslationSet
from probes.measure.maps_config import LoadedVectors, StaticBaseline, TrainedVectors
from probes.measure.maps_material import Dictionary, Occurrences
from probes.measure.maps_scores import context_scores, word_scores
from probes.measure.subject import Subject
from probes.static.text import Pool, augmented
from probes.static.training import train_vectors
from probes.static.vec_file import read_vec
from probes.static.vectors import StaticVectors
from synthlang.corpus import Corpus
from synthlang.errors import InputError
from synthlang.files import user_path
from synthlang.progress import Report

NORMALISE: Method = "unit-centre-unit"
ROWS = 8192  # linked words that are looked up at once


@dataclass(frozen=True, eq=False)
class StaticPair:
    """Vectors of the other language and of the parent in one space, with what the rotation is like."""

    left: StaticVectors
    right: StaticVectors
    facts: dict[str, Any]


def static_scores(
    subject: Subject,
    dictionary: Dictionary,
    words: tuple[Occurrences, Occurrences],
    links: NDArray[np.int64],
    report: Report,
) -> dict[str, Any]:
    """``words`` and ``context`` as the maps have them, ``alone``: context without the sentence's vectors, the ``fit``,
    and how many words have no vector. InputError without gensim, for files that are none and for vectors that have
    not the same size."""
    config = subject.config.maps
    assert config.static is not None, "only where a baseline is asked for"
    pair = static_pair(subject, config.static, dictionary, report)
    linked_only = config.candidates == "linked"
    sides = [pair.left, pair.right]
    left, right = (
        _types(held, corpus, codes)
        for held, corpus, codes in zip(sides, dictionary.corpora, dictionary.types, strict=True)
    )
    found: dict[str, Any] = {**pair.facts, "words": word_scores(right, left, dictionary, report)}
    missed: dict[str, int] = {}
    for name, held, asking, answering in (
        ("parent", dictionary.forward, right, left), ("other language", dictionary.backward, left, right),
    ):  # fmt: skip
        (
            missed[f"measured words without a vector ({name})"],
            missed[f"measured words whose translations have no vector ({name})"],
        ) = _missed(held, asking, answering)
    pools: dict[str, tuple[Pool, ...]] = {"context": config.static.pools, "alone": ()}
    for name, some in pools.items():
        left, right = (
            _occurrences(held, corpus.take(one.rows), some)
            for held, corpus, one in zip(sides, dictionary.corpora, words, strict=True)
        )
        found[name] = context_scores(right, left, links, linked_only, report)
    missed |= {
        f"linked words without a vector ({name})": int((rows[torch.from_numpy(links[:, at])] == 0).all(1).sum())
        for name, at, rows in (("parent", 0, right), ("other language", 1, left))
    }
    found["counts"] = {**pair.facts["counts"], **missed}
    return found


def _missed(held: TranslationSet, asking: Tensor, answering: Tensor) -> tuple[int, int]:
    """How many queries have no vector, and of how many others no right answer has one."""
    there = (asking != 0).any(1).numpy()[held.queries]
    answered = np.logical_or.reduceat((answering != 0).any(1).numpy()[held.answers], held.offsets[:-1])
    return int((~there).sum()), int((there & ~answered).sum())


def static_pair(
    subject: Subject, config: TrainedVectors | LoadedVectors, dictionary: Dictionary, report: Report
) -> StaticPair:
    """Vectors of both languages, normalised each by itself and the one that moves rotated onto the other."""
    left, right = _vectors(subject, config, dictionary, report)
    pairs, unknown = _pairs(subject, config, dictionary, left, right)
    if not len(pairs):
        raise InputError("maps.static: no pair of words to fit the rotation on has a vector on both sides")
    held = [
        (one, Normaliser.fit(one.vectors, NORMALISE), rows) for one, rows in zip((left, right), pairs.T, strict=True)
    ]
    moves = subject.config.maps.moves
    (x, of_x, x_rows), (y, of_y, y_rows) = held if moves == "target" else held[::-1]
    fitted = fit_map(_batches(x, x_rows), _batches(y, y_rows), (of_x, of_y))
    facts = {
        "vectors": {"left": dict(left.facts), "right": dict(right.facts)},
        "fit": fitted.to_json(),
        "counts": {"pairs of words without a vector": unknown},
    }
    moved, other = x.mapped(fitted.apply), y.mapped(fitted.apply_right)
    return StaticPair(*((moved, other) if moves == "target" else (other, moved)), facts)


def _vectors(
    subject: Subject, config: TrainedVectors | LoadedVectors, dictionary: Dictionary, report: Report
) -> tuple[StaticVectors, StaticVectors]:
    if isinstance(config, LoadedVectors):
        left, right = (read_vec(user_path(name), config.words, report) for name in (config.left, config.right))
        return left, right
    trained = []
    for corpus, types in zip(dictionary.corpora, dictionary.types, strict=True):
        text = partial(_once, corpus.take(subject.fitted))
        names = corpus.form.names or ()
        # the words that are measured in context, and those that are measured alone but may be too rare to be trained
        measured = np.union1d(corpus.take(subject.measured).form.codes, types)
        also = [names[code] for code in measured.tolist()]
        unseen = also if config.vectors.kind == "fasttext" else ()
        trained.append(train_vectors(config.vectors, text, unseen, report))
    return trained[0], trained[1]


def _once(corpus: Corpus) -> list[Corpus]:
    return [corpus]


def _pairs(
    subject: Subject, config: StaticBaseline, dictionary: Dictionary, left: StaticVectors, right: StaticVectors
) -> tuple[NDArray[np.int64], int]:
    """[n, 2] rows of the vectors, left and right, that the rotation is fitted on; and how many pairs have none."""
    most = subject.config.maps.words
    if config.supervision == "dictionary":
        known = dictionary.fitted.pairs()[:most]
        codes = dictionary.types[0][known[:, 1]], dictionary.types[1][known[:, 0]]
    else:
        links = subject.data.links.take(subject.fitted)
        sentence = subject.fitted[links.sentence]
        numbers = (
            corpus.offsets[sentence] + column
            for corpus, column in zip(dictionary.corpora, (links.left, links.right), strict=True)
        )
        left_codes, right_codes = (
            corpus.form.codes[at][:most] for corpus, at in zip(dictionary.corpora, numbers, strict=True)
        )
        codes = left_codes, right_codes
    rows = np.stack(
        [
            held.rows_of(corpus.form.names or ())[some]
            for held, corpus, some in zip((left, right), dictionary.corpora, codes, strict=True)
        ],
        axis=1,
    )
    known_rows = (rows >= 0).all(1)
    return rows[known_rows], int((~known_rows).sum())


def _batches(held: StaticVectors, rows: NDArray[np.int64]) -> Iterator[Tensor]:
    for start in range(0, len(rows), ROWS):
        yield held.vectors[torch.from_numpy(rows[start : start + ROWS])]


def _types(held: StaticVectors, corpus: Corpus, types: NDArray[np.int64]) -> Tensor:
    """[types, d] the vector of each; zeros for one without, which finds nothing."""
    rows = held.rows_of(corpus.form.names or ())[types]
    found = held.vectors[torch.from_numpy(np.maximum(rows, 0))]
    return found.masked_fill(torch.from_numpy(rows < 0)[:, None], 0.0)


def _occurrences(held: StaticVectors, corpus: Corpus, pools: Sequence[Pool]) -> Tensor:
    return torch.cat([part.vectors for part in augmented(held, [corpus], pools)])
