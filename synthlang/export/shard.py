"""One shard: SHARD_BATCHES batches, derived and written as a parquet file for each configuration.

A shard is the unit of work and of resuming. Its record ``done/<split>-00000.json`` is written last. The ``.npz`` file
beside it has the word types for the overlap.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from synthlang.corpus import Corpus
from synthlang.errors import InputError
from synthlang.export.rows import (
    CONFIGS,
    COUNTERS,
    ELEMENT,
    LanguageBatch,
    Overlap,
    Types,
    lists,
    merged,
    numbers,
    tables_of,
)
from synthlang.files import atomic_file, read_json, write_json
from synthlang.fingerprint import sha256_file
from synthlang.language import Language
from synthlang.scripts import CONTROL_WORDS

if TYPE_CHECKING:
    from synthlang.vocabulary import Vocabulary


def overlap_of_ids(parent: NDArray[np.int64], derived: NDArray[np.int64]) -> Overlap:
    """Compute the overlap of two texts (see ``Overlap``) from the counts of each id, [ids] each."""
    both = np.minimum(parent, derived)
    return Overlap(int((both > 0).sum()), int((parent > 0).sum()), int(both.sum()), int(parent.sum()))


def write_tokenizers(vocabulary: Vocabulary, language: Language, out: Path) -> list[Path]:
    """Write both tokenizers as folders that AutoTokenizer loads, and return the paths of their files.

    The folders are ``tokenizer/parent`` and ``tokenizer/derived`` in ``out``. With ``unit: token``, the tokenizer of
    the derived language returns the ids of a text in their original order, because a tokenizer cannot move tokens.

    Raises:
        DiskError: A file cannot be written.
    """
    vocabulary.save(out / "tokenizer" / "parent")
    vocabulary.save(out / "tokenizer" / "derived", language.script)
    return sorted(path for path in (out / "tokenizer").rglob("*") if path.is_file())


SHARD_BATCHES = 10  # a constant, because the borders of shards affect the bytes
SPLIT_NAMES = {"train": "train", "dev": "validation", "test": "test"}  # the hub's names


@dataclass(frozen=True)
class ExportPlan:
    """The settings that all shards of an export share.

    Attributes:
        language: The derived language, bound to the counts and the vocabulary that it needs.
        folder: Folder of the unfinished export.
        source_name: The source as the user wrote it, for errors.
        vocabulary: Vocabulary of the source language, or None for a data set without token ids.
    """

    language: Language
    folder: Path
    source_name: str
    vocabulary: Vocabulary | None = None

    def data(self, config: str, split: str, number: int) -> Path:
        """Return the path of the parquet file of a shard in one configuration.

        A configuration without a row has no file.
        """
        return self.folder / "out" / "data" / config / f"{SPLIT_NAMES[split]}-{number:05d}.parquet"

    def record(self, split: str, number: int) -> Path:
        """Return the path of the record of a shard, which exists once the shard is complete."""
        return self.folder / "done" / f"{split}-{number:05d}.json"

    def types(self, split: str, number: int) -> Path:
        """Return the path of the file with the word types of a shard."""
        return self.folder / "done" / f"{split}-{number:05d}.npz"


Shard = tuple[str, int, Iterable[Corpus]]
"""A shard to write, as its split, its number in the split and its batches."""


def write_shard(plan: ExportPlan, shard: Shard) -> dict[str, Any]:
    """Derive and write a shard, and return its record.

    Raises:
        DiskError: The shard cannot be written.
        InputError: The language cannot be applied to a sentence.
    """
    split, number, batches = shard
    sizes: Counter[str] = Counter({"sentences": 0, "kept": 0, "words": 0, "derived_words": 0})
    counts: Counter[str] = Counter()
    types: dict[str, list[Types]] = {"parent": [], "derived": []}
    ids: dict[str, NDArray[np.int64]] = {}
    with ExitStack() as stack:
        files = ShardFiles(stack, {config: plan.data(config, split, number) for config in CONFIGS})
        for batch in batches:
            rewrite = plan.language.rewrite(batch)
            parent, derived = LanguageBatch.of(batch), LanguageBatch.of(rewrite.apply(batch))
            columns = {}
            for name, (column, occurrences) in _ids(plan, batch, derived.corpus, counts).items():
                columns[name], ids[name] = column, ids.get(name, 0) + occurrences
            files.write(tables_of(parent, derived, rewrite, columns))
            sizes.update(sentences=len(batch), kept=len(derived.corpus))
            sizes.update(words=int(batch.offsets[-1]), derived_words=int(derived.corpus.offsets[-1]))
            counts.update(rewrite.counts)
            for name, side in (("parent", parent), ("derived", derived)):
                types[name].append(Types.of(side.corpus.form, side.names))
        files.finish()
    paths = [plan.data(config, split, number) for config in CONFIGS if files.rows[config]]
    for config in CONFIGS:
        if not files.rows[config]:  # the library datasets fails on a split without a row
            plan.data(config, split, number).unlink()
    with atomic_file(plan.types(split, number)) as handle:
        sides = {side: merged(parts) for side, parts in types.items()}
        arrays: dict[str, Any] = {f"{s}_{f}": getattr(t, f) for s, t in sides.items() for f in ("hashes", "counts")}
        arrays |= {f"{side}_ids": counts for side, counts in ids.items()}
        np.savez(handle, **arrays)
    paths.append(plan.types(split, number))
    sha256 = {path.relative_to(plan.folder).as_posix(): sha256_file(path) for path in paths}
    record = {**sizes, "split": split, "number": number, "counts": dict(counts), "sha256": sha256}
    write_json(plan.record(split, number), record)
    return record


def _ids(
    plan: ExportPlan, parent: Corpus, derived: Corpus, counts: Counter[str]
) -> dict[str, tuple[Any, NDArray[np.int64]]]:
    """Return the ids of both sides of a batch without ``<s>`` and ``</s>``, or {} without a vocabulary.

    The value of a side has an Arrow list of ids for each sentence, and the number of occurrences of each id, [ids].
    ``counts`` counts the words of ``parent`` that spell a control token.
    """
    if plan.vocabulary is None:
        return {}
    from synthlang.vocabulary import encode_corpus  # imports the tokenizers, which most exports do not need

    encoded = encode_corpus(plan.vocabulary.parent, parent).as_text()
    if encoded.control_words:
        counts[CONTROL_WORDS] += encoded.control_words
    sides = {"parent": (encoded, parent), "derived": (plan.language.encode(derived, plan.vocabulary), derived)}
    size = plan.vocabulary.size_with(plan.language.script)
    return {
        name: (
            lists(one.word_offsets[corpus.offsets], numbers(one.ids.astype(np.int32))),
            np.bincount(one.ids, minlength=size),
        )
        for name, (one, corpus) in sides.items()
    }


class ShardFiles:
    """The parquet files of a shard, closed by ``stack``. A thread writes a batch while the next batch is derived.

    Args:
        stack: Stack of contexts that closes the files.
        paths: Path of the file of each configuration.

    Attributes:
        rows: Number of rows of each configuration, complete after ``finish``.
    """

    def __init__(self, stack: ExitStack, paths: Mapping[str, Path]) -> None:
        self.rows = Counter(dict.fromkeys(paths, 0))
        self._files = {config: stack.enter_context(atomic_file(path)) for config, path in paths.items()}
        self._writers: dict[str, pq.ParquetWriter] = {}
        self._closing = stack.enter_context(ExitStack())
        self._thread = stack.enter_context(ThreadPoolExecutor(1))  # ends before the writers are closed
        self._waiting: Future[None] | None = None

    def write(self, tables: Mapping[str, pa.Table]) -> None:
        """Write the tables of a batch, one for each configuration, in the background.

        An error of the previous batch is raised here.
        """
        self.finish()
        for config, table in tables.items():
            if config not in self._writers:
                self._writers[config] = self._closing.enter_context(_writer(self._files[config], table.schema))
        self._waiting = self._thread.submit(self._write, tables)

    def finish(self) -> None:
        """Wait until all batches are written. An error of the last batch is raised here."""
        if self._waiting is not None:
            self._waiting.result()

    def _write(self, tables: Mapping[str, pa.Table]) -> None:
        for config, table in tables.items():
            if table.num_rows:
                self._writers[config].write_table(table)
                self.rows[config] += table.num_rows


def _writer(handle: Any, schema: pa.Schema) -> pq.ParquetWriter:
    """Open a parquet writer with dictionary encoding for words and delta encoding for counters."""
    counters = {name: "DELTA_BINARY_PACKED" for name in COUNTERS if name.split(".")[0] in schema.names}
    coded = [f"{f.name}{ELEMENT}" for f in schema if pa.types.is_list(f.type)]
    return pq.ParquetWriter(
        handle,
        schema,
        compression="zstd",
        compression_level=1,
        use_dictionary=[name for name in coded if name not in counters],
        column_encoding=counters,
        write_statistics=False,  # statistics are useless for text and take a quarter of the time
        store_schema=False,  # with a stored schema, readers would get dictionaries in place of strings
    )


def finished(plan: ExportPlan, split: str, number: int) -> dict[str, Any] | None:
    """Return the record of a complete shard whose files are unchanged, else None."""
    path = plan.record(split, number)
    if not path.exists():
        return None
    try:
        record: dict[str, Any] = read_json(path)
    except InputError:  # another program damaged the record: write the shard again
        return None
    files = {plan.folder / name: sha256 for name, sha256 in record["sha256"].items()}
    whole = all(file.is_file() and sha256_file(file) == sha256 for file, sha256 in files.items())
    return record if whole else None


def types_of(plan: ExportPlan, split: str, number: int) -> dict[str, NDArray[Any]]:
    """Return the counts of words and ids in a finished shard, as arrays by name.

    The arrays SIDE_hashes and SIDE_counts [types] are those of ``Types`` for the sides ``parent`` and ``derived``. With
    token ids, SIDE_ids [ids] has the number of occurrences of each id.
    """
    with np.load(plan.types(split, number), allow_pickle=False) as saved:
        return dict(saved)
