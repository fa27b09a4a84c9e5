"""Words without context: rows of the embedding matrix of words that are one subword, rotated, in the probe ``maps``
(Emerging Cross-lingual Structure, section 5.1.1, figure 4a)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from probes.maps.fitted import fit_map
from probes.measure.maps_config import MapsConfig
from probes.measure.maps_dictionary import Dictionary
from probes.measure.maps_material import Occurrences
from probes.measure.maps_scores import Both, intervals, word_scores
from probes.measure.maps_static import Static, missed_words, type_vectors
from probes.measure.single_tokens import single_tokens, special_tokens
from probes.measure.subject import Subject
from probes.transfer.batch import Role
from synthlang.errors import InputError
from synthlang.progress import Report

WHAT = "words of one subword"


@dataclass(frozen=True, eq=False)
class _Side:
    """One language: of each of its types the id of the word, −1 for one that is not one subword, and the rows [n, d] of
    the others; how many types are several subwords, or none that the tokenizer knows."""

    ids: NDArray[np.int64]
    rows: Tensor
    several: int
    unknown: int

    @property
    def kept(self) -> NDArray[np.bool_]:
        """[types] which have a row."""
        return self.ids >= 0


def embedding_scores(subject: Subject, dictionary: Dictionary, static: Static | None, report: Report) -> dict[str, Any]:
    """Translation of the words of a dictionary that are one subword on both sides, among all types that are.

    ``words`` after a rotation that is fitted on such words alone, ``before`` without it, ``static``: word vectors of
    the same types, normalised and rotated in the same way. A word in small letters is its most frequent form in the
    sentences that is one subword. InputError where fewer than two pairs to fit on, or none to measure on, are one
    subword on both sides and have static vectors.
    """
    config = subject.config.maps
    left, right = _side(subject, "target", dictionary, 0), _side(subject, "source", dictionary, 1)
    held = dictionary.only((left.kept, right.kept), WHAT)
    found: dict[str, Any] = {
        "measured": {
            "types": {"parent": len(right.rows), "other": len(left.rows)},
            "translations": held.forward.to_json(),
            "translations_backward": held.backward.to_json(),
        },
        "fitted": {"translations": held.fitted.to_json()},
        "before": word_scores(right.rows, left.rows, held, report),
        **_rotated((left.rows, right.rows), held, config, "maps.embeddings", report),
        "counts": {
            f"{what} ({name})": count
            for name, side in (("other language", left), ("parent", right))
            for what, count in (
                ("types of several subwords", side.several), ("types unknown to the tokenizer", side.unknown),
            )
        },
    }  # fmt: skip
    if static is not None:
        vectors = type_vectors(static.vectors, held)
        found["static"] = _rotated(vectors, held, config, "maps.static", report)
        found["static"]["counts"] = missed_words(held, *vectors)
    return found


def _side(subject: Subject, role: Role, dictionary: Dictionary, side: int) -> _Side:
    reader = subject.pretrained.target if role == "target" else subject.pretrained.source
    types, forms, names = _forms(subject, dictionary, side)
    ids = single_tokens(reader, names)
    known = ids >= 0
    ids[np.isin(ids, special_tokens(reader))] = -1
    found = np.full(len(dictionary.types[side]), -1, np.int64)
    # of the forms of a type, the most frequent first, the first that is one subword
    usable = np.flatnonzero(ids[forms] >= 0)
    at, first = np.unique(types[usable], return_index=True)
    found[at] = ids[forms[usable[first]]]
    single = np.zeros(len(found), bool)
    single[types[known[forms]]] = True
    body = subject.body(role)
    asked = torch.from_numpy(found[found >= 0]).to(body.norm.weight.device)
    rows = body.word_rows(asked, reader.member).float().cpu()
    return _Side(found, rows, int((~single).sum()), int((single & (found < 0)).sum()))


def _forms(
    subject: Subject, dictionary: Dictionary, side: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], list[str]]:
    """How the types of a side are written in the sentences that maps are fitted on: the place of a type and the number
    of a form, each pair once, by type and then by how often, and all forms by their numbers."""
    text = subject.aligned.text
    written, lowered = (text.left, text.right)[side], dictionary.corpora[side]
    place = np.full(len(lowered.form.names or ()), -1, np.int64)
    place[dictionary.types[side]] = np.arange(len(dictionary.types[side]))
    words = Occurrences.of(written, subject.fitted).number
    pairs = np.stack([place[lowered.form.codes[words]], written.form.codes[words]], axis=1)
    distinct, counts = np.unique(pairs[pairs[:, 0] >= 0], axis=0, return_counts=True)
    order = np.lexsort((distinct[:, 1], -counts, distinct[:, 0]))
    return distinct[order, 0], distinct[order, 1], list(written.form.names or ())


def _rotated(
    vectors: tuple[Tensor, Tensor], held: Dictionary, config: MapsConfig, name: str, report: Report
) -> dict[str, Any]:
    """``words``, ``fit`` and ``intervals``; the vectors [types, d] are the other language's, then the parent's."""
    known = torch.from_numpy(held.fitted.pairs()[: config.words])
    left, right = vectors[0][known[:, 1]], vectors[1][known[:, 0]]
    there = (left != 0).any(1) & (right != 0).any(1)
    if int(there.sum()) < 2:
        raise InputError(
            f"{name}: of the pairs of {WHAT} {int(there.sum())} can be fitted on; name a larger dictionary, or more "
            "sentence pairs"
        )
    x, y = (left[there], right[there]) if config.moves == "target" else (right[there], left[there])
    fitted = fit_map(x, y, config.normalise, rounds=config.rounds)
    words = word_scores(*Both(fitted, config.moves).apply(vectors), held, report)
    asking = {"words": min(len(held.forward.queries), len(held.backward.queries))}
    fit = {**fitted.to_json(), "width": x.shape[1]}
    return {"words": words, "fit": fit, "intervals": intervals({"words": words}, asking)}
