"""How much of a vocabulary a dictionary holds, and which part of it."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from synthlang.config import StrictModel
from synthlang.fingerprint import fingerprint
from synthlang.rng import key_of, random_bits
from synthlang.scripts import SPECIAL_TOKENS

FORMAT = 1


class DictionarySpec(StrictModel):
    """How a dictionary is drawn.

    coverage   share of the vocabulary it holds, 0–1
    by         what the share counts: ``type`` (ids, as ALIGN-MLM) or ``token`` (running text)
    order      which types come first: drawn uniformly, or the most frequent ones
    """

    coverage: float = Field(default=0.25, ge=0.0, le=1.0)
    by: Literal["type", "token"] = "type"
    order: Literal["uniform", "frequent"] = "uniform"
    seed: int = Field(default=0, ge=0)

    def fingerprint(self, shards: str) -> str:
        """Of the spec and of the shards whose counts it is drawn from."""
        return fingerprint("dictionary", format=FORMAT, spec=self.model_dump(mode="json"), shards=shards)


def draw(spec: DictionarySpec, counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """The parent ids in the dictionary, sorted; ``counts`` [V] is how often each occurs."""
    types = trained_types(counts)
    return types[draw_types(spec, types.astype(np.uint64), counts[types])]


def draw_types(spec: DictionarySpec, names: NDArray[np.uint64], counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """The indices [n] of the drawn types, sorted.

    names    [types] what a type is known by, whatever else is there: its id, or a hash of its form
    counts   [types] how often each occurs

    Types are taken in the order of the spec while the share stays at most ``coverage``
    (types) or until it is reached (tokens).
    """
    if spec.order == "uniform":
        ordered = np.argsort(random_bits(key_of("dictionary", spec.seed), names), kind="stable")
    else:
        ordered = np.argsort(-counts, kind="stable")
    if spec.by == "type":
        return np.sort(ordered[: round(spec.coverage * len(ordered))])
    before = np.cumsum(counts[ordered]) - counts[ordered]
    return np.sort(ordered[before < spec.coverage * counts.sum()])


def trained_types(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """The ids that occur in the text the model trains on, specials left out."""
    ids = np.flatnonzero(counts > 0)
    return ids[ids >= len(SPECIAL_TOKENS)]
