"""Shards: the token ids of a split in one language, memory-mapped, with a manifest.

tokens.bin     ids of all sentences one after another, little-endian uint16 or uint32
offsets.npy    [sentences + 1] int64, where each sentence starts
counts.npy     [ids of the model] int64, how often each id occurs
manifest.json  parents by fingerprint, sizes, checksums
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from synthlang.errors import InputError
from synthlang.files import atomic_folder, read_json, write_json
from synthlang.fingerprint import fingerprint, sha256_file
from synthlang.language import Language
from synthlang.sources.base import Source
from synthlang.vocabulary import Vocabulary

FORMAT = 1


def shards_fingerprint(source: Source, split: str, language: Language, vocabulary: Vocabulary) -> str:
    """Of all that the ids depend on."""
    parents = {"source": source.fingerprint, "language": language.fingerprint, "vocabulary": vocabulary.fingerprint}
    return fingerprint("shards", format=FORMAT, split=split, parents=parents)


@dataclass(frozen=True)
class Shards:
    """Token ids on disk: ``tokens`` is a memory map, so reading is bounded by what is touched."""

    tokens: NDArray[Any]
    offsets: NDArray[np.int64]
    counts: NDArray[np.int64]
    manifest: dict[str, Any]

    @property
    def fingerprint(self) -> str:
        """The fingerprint that the manifest names."""
        return str(self.manifest["fingerprint"])

    def __len__(self) -> int:
        return len(self.offsets) - 1


def write_shards(source: Source, split: str, language: Language, vocabulary: Vocabulary, folder: Path) -> None:
    """Derive a split, encode it and write it, batch by batch."""
    size = vocabulary.size_with(language.script)
    dtype = np.dtype("<u2" if size <= 2**16 else "<u4")
    counts = np.zeros(size, np.int64)
    lengths = []
    with atomic_folder(folder) as temporary:
        with (temporary / "tokens.bin").open("wb") as handle:
            for ids, sentence_lengths in _encoded(source, split, language, vocabulary):
                handle.write(ids.astype(dtype).tobytes())
                counts += np.bincount(ids, minlength=size)
                lengths.append(sentence_lengths)
        offsets = np.concatenate([[0], np.cumsum(np.concatenate(lengths))]).astype(np.int64)
        if len(offsets) == 1:
            raise InputError(f"the language {language.name} leaves no sentence of the split {split}")
        np.save(temporary / "offsets.npy", offsets)
        np.save(temporary / "counts.npy", counts)
        manifest = {
            "fingerprint": shards_fingerprint(source, split, language, vocabulary),
            "format": FORMAT,
            "split": split,
            "dtype": dtype.str,
            "ids": size,
            "sentences": len(offsets) - 1,
            "tokens": int(offsets[-1]),
            "parents": {
                "source": source.fingerprint,
                "language": language.fingerprint,
                "vocabulary": vocabulary.fingerprint,
            },
            "sha256": {p.name: sha256_file(p) for p in sorted(temporary.iterdir())},
        }
        write_json(temporary / "manifest.json", manifest)


def _encoded(
    source: Source, split: str, language: Language, vocabulary: Vocabulary
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    for batch in source.batches(split):
        derived = language.derive(batch)
        encoded = language.encode(derived, vocabulary)
        yield encoded.ids, np.diff(encoded.word_offsets[derived.offsets])


def read_shards(folder: Path, verify: bool = True) -> Shards:
    """Open shards; with ``verify`` the checksums of the manifest are compared first."""
    manifest = read_json(folder / "manifest.json")
    if verify:
        for name, expected in manifest["sha256"].items():
            if not (folder / name).exists() or sha256_file(folder / name) != expected:
                raise InputError("differs from its manifest; delete the folder and run again", folder / name)
    count = manifest["tokens"]
    dtype = np.dtype(manifest["dtype"])
    # numpy cannot map an empty file
    tokens = np.memmap(folder / "tokens.bin", dtype, "r", shape=(count,)) if count else np.zeros(0, dtype)
    offsets = np.load(folder / "offsets.npy", allow_pickle=False)
    return Shards(tokens, offsets, np.load(folder / "counts.npy", allow_pickle=False), manifest)
