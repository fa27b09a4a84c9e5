"""How much of a vocabulary a dictionary holds, and which part of it."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import Field, field_validator

from synthlang.config import StrictModel
from synthlang.references import UserFile
from synthlang.rng import key_of, random_bits
from synthlang.scripts import SPECIAL_TOKENS

SPECIAL_IDS = tuple(range(len(SPECIAL_TOKENS)))  # of a vocabulary that was trained here


class DictionarySpec(StrictModel):
    """How a dictionary is drawn, and from what.

    coverage   share of the types that have a translation which it holds, 0–1
    by         what the share counts: ``type`` (ids, as ALIGN-MLM) or ``token`` (running text)
    order      which types come first: drawn uniformly, or the most frequent ones
    path       a MUSE file or the folder of a word dictionary; with several languages a file for each but the
               first, by its name. Default: the copies of a transliterated language
    """

    coverage: float = Field(default=0.25, ge=0.0, le=1.0)
    by: Literal["type", "token"] = "type"
    order: Literal["uniform", "frequent"] = "uniform"
    seed: int = Field(default=0, ge=0)
    path: UserFile | dict[str, UserFile] | None = None

    @field_validator("path")
    @classmethod
    def _named(cls, value: str | dict[str, str] | None) -> str | dict[str, str] | None:
        if value is not None and (not value or (isinstance(value, dict) and not all(value.values()))):
            raise ValueError("must name a file or a folder, or for each language one")
        return value

    @property
    def drawing(self) -> dict[str, Any]:
        """How it is drawn, for fingerprints and manifests: a file counts by its content, not by its path."""
        return self.model_dump(mode="json", exclude={"path"})


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


def trained_types(counts: NDArray[np.int64], specials: ArrayLike = SPECIAL_IDS) -> NDArray[np.int64]:
    """The ids that occur in the text the model trains on, sorted; ``specials`` left out (default: ours, 0–4)."""
    ids = np.flatnonzero(counts > 0)
    return ids[~np.isin(ids, specials)].astype(np.int64)
