"""Shards: the token ids of a split in one language, memory-mapped, with a manifest.

tokens.bin        ids of all sentences, little-endian uint16 or uint32
offsets.npy       start of each sentence, [sentences + 1] int64
sentence_ids.npy  number of each sentence in its split (``Corpus.ids``), [sentences] int64
counts.npy        number of occurrences of each id, [ids of the tokenizer] int64
manifest.json     fingerprints of the inputs, sizes, counts of the language by reason, checksums
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from synthlang.errors import InputError
from synthlang.files import atomic_folder, read_json, write_json
from synthlang.fingerprint import fingerprint, sha256_file
from synthlang.language import Language
from synthlang.reading import Reading
from synthlang.scripts import CONTROL_WORDS
from synthlang.sources.base import Source, because, remarks_of

if TYPE_CHECKING:
    from synthlang.vocabularies import LanguageTokenizer

FORMAT = 2
KEYS = {"fingerprint", "format", "dtype", "tokens", "sha256"}  # the keys of the manifest that reading needs
FILES = ("counts.npy", "offsets.npy", "sentence_ids.npy", "tokens.bin")
AGAIN = "delete the folder, and try again"


def shards_fingerprint(source: Source, split: str, language: Language, tokenizer: LanguageTokenizer) -> str:
    """Return the fingerprint of the source, the split, the language and the tokenizer, which determine the ids."""
    return fingerprint("shards", format=FORMAT, split=split, parents=_parents(source, language, tokenizer))


def _parents(source: Source, language: Language, tokenizer: LanguageTokenizer) -> dict[str, str]:
    return {"source": source.fingerprint, "language": language.fingerprint, "tokenizer": tokenizer.fingerprint}


@dataclass(frozen=True, eq=False)
class Shards:
    """Open shards: the arrays and the manifest of their folder. All arrays but ``counts`` are memory-mapped.

    Attributes:
        tokens: Ids of all sentences, [tokens] uint16 or uint32.
        offsets: Start of each sentence in ``tokens``, [sentences + 1].
        counts: Number of occurrences of each id, [ids of the tokenizer].
        sentence_ids: Number of each sentence in its split, [sentences].
        manifest: Content of ``manifest.json``.
    """

    tokens: NDArray[Any]
    offsets: NDArray[np.int64]
    counts: NDArray[np.int64]
    sentence_ids: NDArray[np.int64]
    manifest: dict[str, Any]

    @property
    def fingerprint(self) -> str:
        """Fingerprint of everything that determines the token ids, as in the manifest."""
        return str(self.manifest["fingerprint"])

    def reading(self, unknown: int) -> Reading:
        """Return the numbers of words, tokens and unknown tokens. Shards of earlier versions have 0 words.

        Args:
            unknown: Id of the unknown token.
        """
        counted = int(self.counts[unknown]) if unknown < len(self.counts) else 0
        return Reading(int(self.manifest.get("words", 0)), int(self.manifest["tokens"]), counted)

    @property
    def reasons(self) -> dict[str, int]:
        """Number of events by reason, such as sentences that the language dropped."""
        return dict(self.manifest.get("reasons", {}))

    def __len__(self) -> int:
        return len(self.offsets) - 1


def write_shards(source: Source, split: str, language: Language, tokenizer: LanguageTokenizer, folder: Path) -> None:
    """Derive a split, encode it and write it, batch by batch, in memory that does not grow with the text.

    Args:
        source: Source of the sentences.
        split: The split.
        language: The derived language, bound to the counts and the vocabulary that it needs.
        tokenizer: Tokenizer of the language.
        folder: The folder to create.

    Raises:
        InputError: The folder exists, the split cannot be read or derived, or the language drops all of its sentences.
        DiskError: The folder cannot be written.
    """
    size = tokenizer.size
    dtype = np.dtype("<u2" if size <= 2**16 else "<u4")
    counts = np.zeros(size, np.int64)
    words = tokens = 0
    reasons: Counter[str] = Counter()
    with atomic_folder(folder) as temporary:
        with (
            (temporary / "tokens.bin").open("wb") as handle,
            NpyWriter(temporary / "offsets.npy") as offsets,
            NpyWriter(temporary / "sentence_ids.npy") as numbers,
        ):
            offsets.append(np.zeros(1, np.int64))
            for batch in source.batches(split):
                rewrite = language.rewrite(batch)
                derived = rewrite.apply(batch)
                encoded = tokenizer.encode(derived)
                handle.write(encoded.ids.astype(dtype).tobytes())
                counts += np.bincount(encoded.ids, minlength=size)
                words += len(encoded.word_offsets) - 1
                offsets.append(tokens + np.asarray(encoded.word_offsets[derived.offsets], np.int64)[1:])
                numbers.append(derived.ids)
                tokens += len(encoded.ids)
                reasons.update(rewrite.counts)
                reasons.update({CONTROL_WORDS: encoded.control_words} if encoded.control_words else {})
        reasons.update(remarks_of(source, split))
        if not len(numbers):
            raise _nothing_left(language, split, reasons)
        np.save(temporary / "counts.npy", counts)
        manifest = _about(source, split, language, tokenizer) | {
            "dtype": dtype.str,
            "ids": size,
            "sentences": len(numbers),
            "words": words,
            "tokens": tokens,
            "reasons": dict(reasons),
            "sha256": {name: sha256_file(temporary / name) for name in FILES},
        }
        write_json(temporary / "manifest.json", manifest)


class NpyWriter:
    """Writer of a one-dimensional array of int64, with the bytes that ``numpy.save`` writes for the whole array.

    A writer is used as a context manager. The header has the same length for every number of items, and is written
    again with the final number when the block ends without an error. An existing file is replaced.

    Raises:
        OSError: The file cannot be written.
    """

    def __init__(self, path: Path) -> None:
        self._file = path.open("wb")
        self._items = 0
        self._write_header()

    def append(self, values: NDArray[np.integer]) -> None:
        """Append integers [n] to the array. They are converted to int64."""
        self._items += len(values)
        self._file.write(values.astype("<i8", copy=False).tobytes())

    def __len__(self) -> int:
        return self._items

    def __enter__(self) -> NpyWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._file:
            if error is None:
                self._file.seek(0)
                self._write_header()

    def _write_header(self) -> None:
        about = {"descr": "<i8", "fortran_order": False, "shape": (self._items,)}
        npy.write_array_header_1_0(self._file, about)


def _about(source: Source, split: str, language: Language, tokenizer: LanguageTokenizer) -> dict[str, Any]:
    """Return the part of the manifest that is known before the text is read."""
    parents = _parents(source, language, tokenizer)
    name = shards_fingerprint(source, split, language, tokenizer)
    return {"fingerprint": name, "format": FORMAT, "split": split, "parents": parents}


def _nothing_left(language: Language, split: str, counts: Mapping[str, int]) -> InputError:
    reason = f"the language {language.name} has no sentence in the split {split}{because(counts)}"
    hint = "use a larger text, or transforms that keep its sentences"
    return InputError(reason, hint=hint if language.transforms else "use a text with sentences", code="empty")


def read_shards(folder: Path, expected: str | None = None) -> Shards:
    """Open shards after checking them against their manifest.

    Args:
        folder: The folder of the shards.
        expected: The fingerprint that the shards must have (``shards_fingerprint``).

    Raises:
        InputError: The folder has no manifest of shards, the shards have another fingerprint or format, or a file is
            missing or damaged.
    """
    manifest = read_json(folder / "manifest.json")
    if not isinstance(manifest, dict) or not manifest.keys() >= KEYS:
        raise InputError("is not a manifest of stored token ids", folder / "manifest.json", hint=AGAIN, code="format")
    if expected is not None and manifest["fingerprint"] != expected:
        reason = f"has token ids of another tokenizer, language or source ({manifest['fingerprint']}, not {expected})"
        raise InputError(reason, folder, hint=AGAIN, code="changed")
    if manifest.get("format") != FORMAT:
        reason = f"has token ids of format {manifest.get('format')}, but this version reads format {FORMAT}"
        raise InputError(reason, folder, hint=AGAIN, code="format")
    for name in FILES:
        if not (folder / name).exists() or sha256_file(folder / name) != manifest["sha256"].get(name):
            fault = "differs from its checksum" if (folder / name).exists() else "is missing"
            raise InputError(f"this file of stored token ids {fault}", folder / name, hint=AGAIN, code="damaged")
    count, dtype = manifest["tokens"], np.dtype(manifest["dtype"])
    # NumPy cannot map an empty file. Plain arrays over a map are quicker to index than the map's own class.
    tokens = np.memmap(folder / "tokens.bin", dtype, "r", shape=(count,)) if count else np.zeros(0, dtype)
    offsets, numbers = (
        np.asarray(np.load(folder / name, mmap_mode="r", allow_pickle=False))
        for name in ("offsets.npy", "sentence_ids.npy")
    )
    return Shards(np.asarray(tokens), offsets, np.load(folder / "counts.npy", allow_pickle=False), numbers, manifest)
