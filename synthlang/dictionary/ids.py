"""Dictionaries over a derived vocabulary, for pretraining.

A derived language's dictionary pairs a parent id with its copy at id + V. Which types are
in it is drawn among those that occur in the training text, specials left out.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from synthlang.dictionary.spec import DictionarySpec, draw, trained_types
from synthlang.dictionary.words import WordDictionary
from synthlang.errors import InputError
from synthlang.files import atomic_folder, read_json, write_json
from synthlang.scripts import SPECIAL_TOKENS, Script
from synthlang.vocabulary import Vocabulary


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


def id_pairs(
    dictionary: WordDictionary, source: Tokenizer, target: Tokenizer, offset: int = 0
) -> tuple[NDArray[np.int64], dict[str, int]]:
    """The pairs [n, 2] of (source id, target id + ``offset``), sorted, of words that are one token on both sides.

    For a natural pair of languages in one vocabulary both tokenizers are the same one. The
    counts say how many lines of the dictionary are pairs, and why the others are none.
    """
    left, right = _single_ids(source, dictionary.source), _single_ids(target, dictionary.target)
    usable = (left >= 0) & (right >= 0)
    pairs = np.stack([left[usable], right[usable] + offset], axis=1).reshape(-1, 2)
    counts = {
        "pairs": int(usable.sum()),
        "source word is several tokens": int(((left < 0) & (right >= 0)).sum()),
        "target word is several tokens": int(((left >= 0) & (right < 0)).sum()),
        "both words are several tokens": int(((left < 0) & (right < 0)).sum()),
    }
    return np.unique(pairs, axis=0), counts


def _single_ids(tokenizer: Tokenizer, words: tuple[str, ...]) -> NDArray[np.int64]:
    """[words] the id of each word that is one token and no special one, else −1."""
    encodings = tokenizer.encode_batch(list(words), add_special_tokens=False)
    ids = [e.ids[0] if len(e.ids) == 1 and e.ids[0] >= len(SPECIAL_TOKENS) else -1 for e in encodings]
    return np.asarray(ids, np.int64).reshape(-1)
