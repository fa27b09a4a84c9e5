"""Word dictionaries: pairs of words, drawn by coverage, saved with what they come from.

A folder holds dictionary.txt (the MUSE format, see muse.py) and manifest.json.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from synthlang.dictionary.spec import DictionarySpec, draw_types
from synthlang.errors import InputError
from synthlang.files import atomic_folder, read_json, write_json
from synthlang.fingerprint import fingerprint, sha256_file
from synthlang.muse import read_muse, write_muse
from synthlang.rng import key_of

FORMAT = 1
FILE = "dictionary.txt"


@dataclass(frozen=True)
class WordDictionary:
    """Pairs of words: ``source[i]`` is translated by ``target[i]``; a word may have several translations."""

    source: tuple[str, ...]
    target: tuple[str, ...]

    def __post_init__(self) -> None:
        assert len(self.source) == len(self.target)

    def __len__(self) -> int:
        return len(self.source)

    @staticmethod
    def of(pairs: list[tuple[str, str]]) -> WordDictionary:
        """From pairs in order."""
        return WordDictionary(tuple(a for a, _ in pairs), tuple(b for _, b in pairs))

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """The pairs in order."""
        return list(zip(self.source, self.target, strict=True))

    @cached_property
    def digest(self) -> str:
        """Of the pairs and their order."""
        return fingerprint("pairs", pairs=[list(pair) for pair in self.pairs])

    def restrict(
        self, source: Mapping[str, int] | None, target: Mapping[str, int] | None
    ) -> tuple[WordDictionary, dict[str, int]]:
        """The pairs whose words occur in both texts (counts by word; None: any word), and how many do not."""
        kept: list[tuple[str, str]] = []
        counts = {"pairs left out, source word not in the text": 0, "pairs left out, target word not in the text": 0}
        for a, b in self.pairs:
            if source is not None and not source.get(a):
                counts["pairs left out, source word not in the text"] += 1
            elif target is not None and not target.get(b):
                counts["pairs left out, target word not in the text"] += 1
            else:
                kept.append((a, b))
        return WordDictionary.of(kept), {reason: n for reason, n in counts.items() if n}

    def draw(self, spec: DictionarySpec, counts: Mapping[str, int] | None) -> WordDictionary:
        """The share of the spec, counted over the source words here; a drawn word keeps all its translations.

        ``counts`` says how often each source word occurs; without it neither running text nor
        frequency are known, so only ``by: type`` with ``order: uniform`` can be drawn. The
        uniform draw hashes the word itself: it is the same whatever other words there are.
        """
        if counts is None and (spec.by == "token" or spec.order == "frequent"):
            wanted = "coverage by token" if spec.by == "token" else "the most frequent words"
            raise InputError(f"{wanted} needs the counts of a text; name one with --source")
        types = list(dict.fromkeys(self.source))
        names = np.asarray([key_of("word", word) for word in types], np.uint64)
        amounts = np.asarray([1 if counts is None else counts.get(word, 0) for word in types], np.int64)
        chosen = {types[index] for index in draw_types(spec, names, amounts).tolist()}
        return WordDictionary.of([pair for pair in self.pairs if pair[0] in chosen])

    def coverage(self, counts: Mapping[str, int], side: str = "source") -> dict[str, float]:
        """Share of the types and of the running words of a text that the words of one side are."""
        words = set(self.source if side == "source" else self.target)
        running = sum(counts.values())
        types = sum(1 for word in words if counts.get(word, 0) > 0)
        tokens = sum(counts.get(word, 0) for word in words)
        return {"types": types / max(len(counts), 1), "tokens": tokens / max(running, 1)}


def dictionary_fingerprint(spec: DictionarySpec, parents: Mapping[str, str]) -> str:
    """Of a drawn word dictionary; ``parents`` are the fingerprints of what it was made from."""
    return fingerprint("word-dictionary", format=FORMAT, spec=spec.drawing, parents=dict(parents))


def write_words(
    dictionary: WordDictionary,
    folder: Path,
    spec: DictionarySpec,
    parents: Mapping[str, str],
    report: Mapping[str, Any],
) -> dict[str, Any]:
    """Write the folder of a drawn dictionary and return its manifest; ``report`` goes into it."""
    with atomic_folder(folder) as temporary:
        write_muse(dictionary.pairs, temporary / FILE)
        manifest = {
            **report,
            "fingerprint": dictionary_fingerprint(spec, parents),
            "format": FORMAT,
            "spec": spec.drawing,
            "parents": dict(parents),
            "pairs": len(dictionary),
            "source_words": len(set(dictionary.source)),
            "target_words": len(set(dictionary.target)),
            "sha256": sha256_file(temporary / FILE),
        }
        write_json(temporary / "manifest.json", manifest)
    return manifest


def read_words(folder: Path) -> tuple[WordDictionary, dict[str, Any]]:
    """A saved dictionary and its manifest; InputError if the two differ."""
    manifest = read_json(folder / "manifest.json")
    path = folder / FILE
    if not path.is_file():
        raise InputError("no such file; is this the folder of a word dictionary?", path)
    sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
    if not isinstance(manifest, dict) or manifest.get("sha256") != sha256:
        raise InputError("differs from its manifest; make the dictionary again", path)
    pairs = read_muse(path) if path.stat().st_size else []
    return WordDictionary.of(pairs), manifest
