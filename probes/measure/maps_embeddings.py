"""Words without context: rows of the embedding matrix of words that are one subword, rotated, in the probe ``maps``
(Emerging Cross-lingual Structure, section 5.1.1, figure 4a)."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from probes.maps.fitted import fit_map
from probes.measure.maps_config import MapsConfig
from probes.measure.maps_dictionary import Dictionary
from probes.measure.maps_scores import Both, intervals, word_scores
from probes.measure.maps_static import Static, missed_words, type_vectors
from probes.measure.single_tokens import single_tokens, special_tokens
from probes.measure.subject import Subject
from probes.transfer.batch import Role
from synthlang.errors import InputError
from synthlang.progress import Report

WHAT = "words of one subword"


def embedding_scores(subject: Subject, dictionary: Dictionary, static: Static | None, report: Report) -> dict[str, Any]:
    """Translation of the words of a dictionary that are one subword on both sides, among all types that are.

    ``words`` after a rotation that is fitted on such words alone, ``before`` without it, ``static``: word vectors of
    the same types, normalised and rotated in the same way. InputError where no pair to fit on or to measure on is one
    subword on both sides, or has static vectors.
    """
    config = subject.config.maps
    ids = _ids(subject, "target", dictionary.words(0)), _ids(subject, "source", dictionary.words(1))
    held = dictionary.only((ids[0] >= 0, ids[1] >= 0), WHAT)
    rows = _rows(subject, "target", ids[0]), _rows(subject, "source", ids[1])
    found: dict[str, Any] = {
        "measured": {
            "types": {"parent": len(rows[1]), "other": len(rows[0])},
            "translations": held.forward.to_json(),
            "translations_backward": held.backward.to_json(),
        },
        "fitted": {"translations": held.fitted.to_json()},
        "before": word_scores(rows[1], rows[0], held, report),
        **_rotated(rows, held, config, "maps.embeddings", report),
        "counts": {
            f"types of several subwords ({name})": int((own < 0).sum())
            for name, own in (("other language", ids[0]), ("parent", ids[1]))
        },
    }
    if static is not None:
        vectors = type_vectors(static.vectors, held)
        found["static"] = _rotated(vectors, held, config, "maps.static", report)
        found["static"]["counts"] = missed_words(held, *vectors)
    return found


def _ids(subject: Subject, role: Role, words: list[str]) -> NDArray[np.int64]:
    """[words] the id of each that is one subword and known to the tokenizer, −1 for others."""
    reader = subject.pretrained.target if role == "target" else subject.pretrained.source
    ids = single_tokens(reader, words)
    return np.where(np.isin(ids, special_tokens(reader)), -1, ids)


def _rows(subject: Subject, role: Role, ids: NDArray[np.int64]) -> Tensor:
    """[n, d] the rows of those that are there."""
    body = subject.body(role)
    reader = subject.pretrained.target if role == "target" else subject.pretrained.source
    asked = torch.from_numpy(ids[ids >= 0]).to(body.norm.weight.device)
    return body.word_rows(asked, reader.member).float().cpu()


def _rotated(
    vectors: tuple[Tensor, Tensor], held: Dictionary, config: MapsConfig, name: str, report: Report
) -> dict[str, Any]:
    """``words``, ``fit`` and ``intervals``; the vectors [types, d] are the other language's, then the parent's."""
    known = torch.from_numpy(held.fitted.pairs()[: config.words])
    left, right = vectors[0][known[:, 1]], vectors[1][known[:, 0]]
    there = (left != 0).any(1) & (right != 0).any(1)
    if not bool(there.any()):
        raise InputError(f"{name}: no pair of {WHAT} to fit a rotation on has a vector on both sides")
    x, y = (left[there], right[there]) if config.moves == "target" else (right[there], left[there])
    fitted = fit_map(x, y, config.normalise, rounds=config.rounds)
    words = word_scores(*Both(fitted, config.moves).apply(vectors), held, report)
    asking = {"words": min(len(held.forward.queries), len(held.backward.queries))}
    return {"words": words, "fit": fitted.to_json(), "intervals": intervals({"words": words}, asking)}
