"""Bilingual dictionaries over a derived vocabulary, as saved artifacts.

A derived language's dictionary pairs a parent id with its copy at id + V. Which types are
in it is drawn among those that occur in the training text, specials left out.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from synthlang.config import StrictModel
from synthlang.errors import InputError
from synthlang.files import atomic_folder, read_json, write_json
from synthlang.fingerprint import fingerprint
from synthlang.rng import key_of, random_bits
from synthlang.scripts import SPECIAL_TOKENS, Script
from synthlang.vocabulary import Vocabulary

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
    """The parent ids in the dictionary, sorted; ``counts`` [V] is how often each occurs.

    Types are taken in the order of the spec while the share stays at most ``coverage``
    (types) or until it is reached (tokens).
    """
    types = trained_types(counts)
    if spec.order == "uniform":
        rank = np.argsort(random_bits(key_of("dictionary", spec.seed), types), kind="stable")
    else:
        rank = np.argsort(-counts[types], kind="stable")
    ordered = types[rank]
    if spec.by == "type":
        return np.sort(ordered[: round(spec.coverage * len(ordered))])
    before = np.concatenate([[0], np.cumsum(counts[ordered])[:-1]])
    return np.sort(ordered[before < spec.coverage * counts[ordered].sum()])


def trained_types(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """The ids that occur in the text the model trains on, specials left out."""
    ids = np.flatnonzero(counts > 0)
    return ids[ids >= len(SPECIAL_TOKENS)]


def write_dictionary(
    spec: DictionarySpec, counts: NDArray[np.int64], shards: str, vocabulary: Vocabulary, folder: Path, script: Script
) -> None:
    """Draw a dictionary and write pairs.npy [n, 2], dictionary.tsv and manifest.json."""
    parent = draw(spec, counts)
    pairs = np.stack([parent, parent + vocabulary.size], axis=1)
    types = trained_types(counts)
    running = max(int(counts[types].sum()), 1)
    derived = vocabulary.tokenizer(script)
    with atomic_folder(folder) as temporary:
        np.save(temporary / "pairs.npy", pairs)
        rows = (f"{vocabulary.parent.decode([int(a)])}\t{derived.decode([int(b)])}\n" for a, b in pairs)
        (temporary / "dictionary.tsv").write_text("".join(rows), encoding="utf-8")
        manifest = {
            "fingerprint": spec.fingerprint(shards),
            "spec": spec.model_dump(mode="json"),
            "parents": {"shards": shards, "vocabulary": vocabulary.fingerprint},
            "pairs": len(pairs),
            "share_of_types": len(pairs) / max(len(types), 1),
            "share_of_tokens": int(counts[parent].sum()) / running,
        }
        write_json(temporary / "manifest.json", manifest)


def read_dictionary(folder: Path) -> tuple[NDArray[np.int64], dict[str, Any]]:
    """The pairs [n, 2] of (parent id, derived id), and the manifest."""
    manifest = read_json(folder / "manifest.json")
    pairs = np.load(folder / "pairs.npy", allow_pickle=False)
    if pairs.shape != (manifest["pairs"], 2):
        raise InputError("differs from its manifest; delete the folder and run again", folder / "pairs.npy")
    return pairs, manifest
