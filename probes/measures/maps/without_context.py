"""Words without context in the probe ``maps``: static word vectors, and rows of the embedding matrix.

Static vectors are normalised, rotated, extended by the vector of their sentence, and measured like the states of the
model (Cao et al. 2020, section 3.4). Rows of the embedding matrix are measured for words that are one subword
(Emerging Cross-lingual Structure, section 5.1.1, figure 4a).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from probes.measures.maps import MapsConfig
from probes.measures.maps.dictionary import Dictionary
from probes.measures.maps.scores import context_scores, intervals, word_scores
from probes.measures.maps.vectors import MeasuredText
from probes.measures.probe_input import ROLES, ProbeInput
from probes.measures.rotated import MovingMap, Static, linked_codes, read_static
from probes.rotation.fitted import fit_map
from probes.states import single_tokens, special_tokens, words_of
from probes.static.vectors import StaticVectors, augmented
from synthlang.errors import InputError
from synthlang.progress import Report

WHAT = "words of one subword"
STATIC = "maps.static"
"""The key of the settings of static vectors."""
NAMES = "other language", "parent"


def static_of(given: ProbeInput, dictionary: Dictionary, report: Report) -> Static | None:
    """Return the static vectors of the settings ``maps.static``, or None without such settings.

    Raises:
        InputError: gensim is not installed, the training fails, or a file cannot be read or is malformed (see
            `read_static`). The error is also raised if the sentence pairs cannot be read.
    """
    config, most = given.config.of(MapsConfig).static, given.config.of(MapsConfig).words
    if config is None:
        return None
    corpora, types = dictionary.corpora, dictionary.types
    if config.supervision == "dictionary":
        known = dictionary.fitted.pairs()
        pairs = types[0][known[:, 1]], types[1][known[:, 0]]
    else:
        pairs = linked_codes(given, corpora)
    # words measured in context, and words measured alone, which may be too rare to have a trained vector
    wanted = [
        np.union1d(corpus.form.codes[words_of(corpus.offsets, given.measured)], own)
        for corpus, own in zip(corpora, types, strict=True)
    ]
    return read_static(given, config, STATIC, corpora, wanted, (pairs[0][:most], pairs[1][:most]), report)


def static_scores(
    given: ProbeInput,
    static: Static,
    dictionary: Dictionary,
    text: MeasuredText,
    report: Report,
) -> dict[str, Any]:
    """Return the accuracies of static vectors after a rotation, in percent.

    ``words`` and ``context`` are the same measures as for the states. ``alone`` measures ``context`` on vectors without
    the appended vectors of sentences. The result also has the ``fit`` and the number of words without a vector.

    Args:
        given: The input of the probe.
        static: The vectors of both languages before the rotation.
        dictionary: The translations to measure.
        text: The words in context to measure.
        report: Receives the progress.

    Raises:
        InputError: The vectors cannot be normalised or rotated (see `Static.rotated`).
    """
    config = given.config.of(MapsConfig)
    *sides, facts = static.rotated(config.moves)
    left, right = _type_vectors(sides, dictionary)
    found: dict[str, Any] = {**facts, "words": word_scores(right, left, dictionary, report)}
    missed = _missed_words(dictionary, left, right)
    for name, pools in (("context", static.config.pools), ("alone", ())):
        left, right = (
            torch.cat(list(augmented(one, corpus.take(text.rows), pools)))
            for one, corpus in zip(sides, dictionary.corpora, strict=True)
        )
        found[name] = context_scores(right, left, text.links, config.candidates, report)
    missed |= {
        f"linked words without a vector ({name})": int((rows[torch.from_numpy(text.links[:, at])] == 0).all(1).sum())
        for name, at, rows in (("parent", 0, right), ("other language", 1, left))
    }
    found["counts"] = {**facts["counts"], **missed}
    return found


def _type_vectors(sides: Sequence[StaticVectors], dictionary: Dictionary) -> tuple[Tensor, Tensor]:
    """Return the candidate vectors [types, d] of both languages, with zeros for words without a vector."""
    left, right = (one.vectors_of(dictionary.words(side)) for side, one in enumerate(sides))
    return left, right


def _missed_words(dictionary: Dictionary, left: Tensor, right: Tensor) -> dict[str, int]:
    """Count, for each language, the measured words without a vector, and the others of which no translation has one.

    ``left`` and ``right`` [types, d] are the vectors of the other language and of the source language.
    """
    there = [(rows != 0).any(1).numpy() for rows in (left, right)]
    found: dict[str, int] = {}
    for name, answers, asking, answering in (
        ("parent", dictionary.forward, there[1], there[0]), ("other language", dictionary.backward, there[0], there[1]),
    ):  # fmt: skip
        known = asking[answers.queries]
        answered = np.logical_or.reduceat(answering[answers.answers], answers.offsets[:-1])
        found[f"measured words without a vector ({name})"] = int((~known).sum())
        found[f"measured words whose translations have no vector ({name})"] = int((known & ~answered).sum())
    return found


def embedding_scores(
    given: ProbeInput, dictionary: Dictionary, static: Static | None, report: Report
) -> dict[str, Any]:
    """Return the accuracy of word translation by embeddings in percent, for types that are one subword.

    ``before`` has the scores without a rotation, and ``words`` the scores after a rotation that is fitted on such types
    only. ``static`` has the scores of static vectors of the same types. A lower-cased type is represented by its most
    frequent form that is one subword.

    Raises:
        InputError: Fewer than two pairs are left to fit on, no pair is left to measure on, embeddings contain NaN, or a
            language cannot be normalised (see `fit_map`).
    """
    config = given.config.of(MapsConfig)
    ids, counts = [], dict[str, int]()
    for side, name in enumerate(NAMES):
        of_types, left_out = subwords_of_types(given, dictionary, side)
        ids.append(of_types)
        counts |= {f"{what} ({name})": count for what, count in left_out.items()}
    few = dictionary.only(config, (ids[0] >= 0, ids[1] >= 0), WHAT)
    rows = []
    for role, of_types in zip(ROLES, ids, strict=True):
        body = given.body(role)
        asked = torch.from_numpy(of_types[of_types >= 0]).to(body.norm.weight.device)
        rows.append(body.word_rows(asked, given.reader(role).number).float().cpu())
    left, right = rows
    found: dict[str, Any] = {
        "measured": few.measured(),
        "fitted": {"translations": few.fitted.to_json()},
        "before": word_scores(right, left, few, report),
        **_rotated((left, right), few, config, "maps.embeddings", report),
        "counts": counts,
    }
    if static is not None:
        vectors = _type_vectors(static.vectors, few)
        found["static"] = _rotated(vectors, few, config, STATIC, report)
        found["static"]["counts"] = _missed_words(few, *vectors)
    return found


def subwords_of_types(given: ProbeInput, dictionary: Dictionary, side: int) -> tuple[NDArray[np.int64], dict[str, int]]:
    """Return the token id [types] of each type of a side, and the number of types without an id by reason.

    A type that is not exactly one known subword has −1. ``side`` is 0 for the other language and 1 for the source
    language.

    Raises:
        InputError: The sentence pairs cannot be read.
    """
    reader, text = given.reader(ROLES[side]), given.aligned.text
    written, small = (text.left, text.right)[side], dictionary.corpora[side]
    place = np.full(len(small.form.names or ()), -1, np.int64)
    place[dictionary.types[side]] = np.arange(len(dictionary.types[side]))
    words = words_of(written.offsets, given.fitted)
    # the forms of each type in the fitted sentences, most frequent first
    pairs = np.stack([place[small.form.codes[words]], written.form.codes[words]], axis=1)
    distinct, counts = np.unique(pairs[pairs[:, 0] >= 0], axis=0, return_counts=True)
    types, forms = distinct[np.lexsort((distinct[:, 1], -counts, distinct[:, 0]))].T
    ids = single_tokens(reader, list(written.form.names or ()))
    single = np.zeros(len(dictionary.types[side]), bool)
    single[types[ids[forms] >= 0]] = True
    ids[np.isin(ids, special_tokens(reader))] = -1
    found = np.full(len(single), -1, np.int64)
    usable = np.flatnonzero(ids[forms] >= 0)
    at, first = np.unique(types[usable], return_index=True)
    found[at] = ids[forms[usable[first]]]
    unknown = int((single & (found < 0)).sum())
    return found, {"types of several subwords": int((~single).sum()), "types unknown to the tokenizer": unknown}


def _rotated(
    vectors: tuple[Tensor, Tensor], few: Dictionary, config: MapsConfig, name: str, report: Report
) -> dict[str, Any]:
    """Fit a rotation and return the scores, the facts about the fit, and the intervals.

    ``vectors`` [types, d] has the other language before the source language.
    """
    known = torch.from_numpy(few.fitted.pairs()[: config.words])
    left, right = vectors[0][known[:, 1]], vectors[1][known[:, 0]]
    there = (left != 0).any(1) & (right != 0).any(1)
    if (count := int(there.sum())) < 2:
        told = f"a rotation needs two pairs of {WHAT} with vectors, but there is {'only one' if count else 'none'}"
        hint = "give a larger dictionary, or more sentence pairs" + ", or vectors of more words" * (name == STATIC)
        raise InputError(told, keys=name, hint=hint, code="range")
    x, y = (left[there], right[there]) if config.moves == "target" else (right[there], left[there])
    try:
        fitted = fit_map(x, y, config.normalise, rounds=config.rounds)
    except InputError as error:
        raise error.inside(*name.split(".")) from error
    words = word_scores(*MovingMap(fitted, config.moves).apply(vectors), few, report)
    asking = {"words": min(len(few.forward.queries), len(few.backward.queries))}
    fit = {**fitted.to_json(), "width": x.shape[1]}
    return {"words": words, "fit": fit, "intervals": intervals({"words": words}, asking)}
