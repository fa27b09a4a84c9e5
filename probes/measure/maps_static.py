"""The baseline without contexts: word vectors, normalised, rotated and put beside those of their sentence, measured as
the model's states are (Cao et al. 2020, section 3.4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from probes.maps.translation_set import TranslationSet
from probes.measure.maps_dictionary import Dictionary
from probes.measure.maps_material import Occurrences
from probes.measure.maps_scores import context_scores, word_scores
from probes.measure.static_config import StaticBaseline
from probes.measure.static_pair import StaticText, linked_codes, static_pair, static_vectors
from probes.measure.subject import Subject
from probes.static.config import Pool
from probes.static.text import augmented
from probes.static.vectors import StaticVectors
from synthlang.corpus import Corpus
from synthlang.progress import Report


@dataclass(frozen=True, eq=False)
class Static:
    """Vectors of the other language and of the parent, as they are read or trained, and the text that they are for."""

    config: StaticBaseline
    text: StaticText
    vectors: tuple[StaticVectors, StaticVectors]


def read_static(subject: Subject, dictionary: Dictionary, report: Report) -> Static | None:
    """What ``maps.static`` asks for; InputError without gensim and for files that are none."""
    config = subject.config.maps.static
    if config is None:
        return None
    text = _text(subject, config, dictionary)
    return Static(config, text, static_vectors(subject, config, text, report))


def static_scores(
    subject: Subject,
    static: Static,
    dictionary: Dictionary,
    words: tuple[Occurrences, Occurrences],
    links: NDArray[np.int64],
    report: Report,
) -> dict[str, Any]:
    """``words`` and ``context`` as the maps have them, ``alone``: context without the sentence's vectors, the ``fit``,
    and how many words have no vector. InputError for vectors that have not the same size."""
    config = subject.config.maps
    pair = static_pair(static.vectors, static.config, static.text, config.moves, "maps.static")
    linked_only = config.candidates == "linked"
    sides = pair.left, pair.right
    left, right = type_vectors(sides, dictionary)
    found: dict[str, Any] = {**pair.facts, "words": word_scores(right, left, dictionary, report)}
    missed = missed_words(dictionary, left, right)
    pools: dict[str, tuple[Pool, ...]] = {"context": static.config.pools, "alone": ()}
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


def missed_words(dictionary: Dictionary, left: Tensor, right: Tensor) -> dict[str, int]:
    """How many words that are measured have no vector, or no translation with one; of ``left``, the other language,
    and of the parent [types, d]."""
    found: dict[str, int] = {}
    for name, held, asking, answering in (
        ("parent", dictionary.forward, right, left), ("other language", dictionary.backward, left, right),
    ):  # fmt: skip
        (
            found[f"measured words without a vector ({name})"],
            found[f"measured words whose translations have no vector ({name})"],
        ) = _missed(held, asking, answering)
    return found


def _missed(held: TranslationSet, asking: Tensor, answering: Tensor) -> tuple[int, int]:
    """How many queries have no vector, and of how many others no right answer has one."""
    there = (asking != 0).any(1).numpy()[held.queries]
    answered = np.logical_or.reduceat((answering != 0).any(1).numpy()[held.answers], held.offsets[:-1])
    return int((~there).sum()), int((there & ~answered).sum())


def _text(subject: Subject, config: StaticBaseline, dictionary: Dictionary) -> StaticText:
    """Words as the dictionary has them, and the pairs that the rotation is fitted on."""
    most, corpora, types = subject.config.maps.words, dictionary.corpora, dictionary.types
    if config.supervision == "dictionary":
        known = dictionary.fitted.pairs()[:most]
        pairs = types[0][known[:, 1]], types[1][known[:, 0]]
    else:
        left, right = linked_codes(subject, corpora)
        pairs = left[:most], right[:most]
    # the words that are measured in context, and those that are measured alone but may be too rare to be trained
    wanted = tuple(
        np.union1d(corpus.take(subject.measured).form.codes, own) for corpus, own in zip(corpora, types, strict=True)
    )
    return StaticText(corpora, (wanted[0], wanted[1]), pairs)


def type_vectors(sides: tuple[StaticVectors, StaticVectors], dictionary: Dictionary) -> tuple[Tensor, Tensor]:
    """[types, d] of both languages, the vector of each candidate; zeros for one without, which finds nothing."""
    left, right = (_rows_of(held, dictionary.words(side)) for side, held in enumerate(sides))
    return left, right


def _rows_of(held: StaticVectors, words: Sequence[str]) -> Tensor:
    rows = held.rows_of(words)
    found = held.vectors[torch.from_numpy(np.maximum(rows, 0))]
    return found.masked_fill(torch.from_numpy(rows < 0)[:, None], 0.0)


def _occurrences(held: StaticVectors, corpus: Corpus, pools: Sequence[Pool]) -> Tensor:
    return torch.cat([part.vectors for part in augmented(held, [corpus], pools)])
