"""One shard: SHARD_BATCHES batches derived and written as a parquet file for each configuration.

A shard is the unit of work, of a resumed export and of its record ``done/<split>-00000.json``, which is written last.
``types.npz`` beside it has the word types for the overlap. Batches go from the process that reads to the one that
writes through a file, a stream of Arrow record batches with a row a sentence: memory is one batch at either end, and
nothing is pickled.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from synthlang.corpus import Column, Corpus
from synthlang.errors import InputError
from synthlang.export.rows import (
    COUNTERS,
    ELEMENT,
    Side,
    Strings,
    Types,
    coded,
    lists,
    merged,
    numbers,
    tables_of,
    values_of,
)
from synthlang.files import atomic_file, read_json, write_json
from synthlang.fingerprint import sha256_file
from synthlang.language import Language
from synthlang.overlap import Overlap
from synthlang.scripts import CONTROL_WORDS

if TYPE_CHECKING:
    from synthlang.vocabulary import Encoded, Vocabulary


def write_batches(path: Path, batches: Iterable[Corpus]) -> None:
    """Write batches that have the same columns; at least one."""
    with path.open("wb") as handle:  # scratch: nobody reads it after a crash, so it need not reach the disk
        writer = None
        for batch in batches:
            rows = _rows(batch)
            writer = writer or pa.ipc.new_stream(handle, rows.schema)
            writer.write_batch(rows)
        assert writer is not None, "a spool holds at least one batch"
        writer.close()


def read_batches(path: Path) -> Iterator[Corpus]:
    """The same batches again: codes, names and all."""
    with path.open("rb") as handle, pa.ipc.open_stream(handle) as stream:
        for rows in stream:
            ids, *arrays = rows.columns
            columns = {n: _column(a.values) for n, a in zip(rows.schema.names[1:], arrays, strict=True)}
            yield Corpus(values_of(arrays[0].offsets, np.int32).astype(np.int64), columns, values_of(ids, np.int64))


def _rows(batch: Corpus) -> pa.RecordBatch:
    arrays = [numbers(batch.ids), *(lists(batch.offsets, _values(column)) for column in batch.columns.values())]
    return pa.RecordBatch.from_arrays(arrays, ["id", *batch.columns])


def _values(column: Column) -> Any:
    codes = column.codes.astype(np.int32, copy=False)
    return numbers(codes) if column.names is None else coded(codes, Strings.of(column.names).array)


def _column(values: Any) -> Column:
    if pa.types.is_dictionary(values.type):
        return Column(values_of(values.indices, np.int32), tuple(values.dictionary.to_pylist()))
    return Column(values_of(values, np.int32))


@dataclass(frozen=True)
class BatchIds:
    """A batch as ids without ``<s>`` and ``</s>``: an Arrow list for each sentence, and how often each id occurs.

    ``control_words``: how many words spelled a control token, which is the unknown one now.
    """

    column: Any
    counts: NDArray[np.int64]
    control_words: int


def batch_ids(vocabulary: Vocabulary, language: Language, parent: Corpus, derived: Corpus) -> tuple[BatchIds, BatchIds]:
    """The ids of a batch in the parent and in the language: those of a transliterated word are moved by V."""
    from synthlang.vocabulary import encode_corpus  # with it come the tokenizers, which most exports do without

    size = vocabulary.size_with(language.script)
    return (
        _as_ids(encode_corpus(vocabulary.parent, parent).as_text(), parent, size),
        _as_ids(language.encode(derived, vocabulary), derived, size),
    )


def _as_ids(encoded: Encoded, corpus: Corpus, size: int) -> BatchIds:
    column = lists(encoded.word_offsets[corpus.offsets], numbers(encoded.ids.astype(np.int32)))
    counts = np.bincount(encoded.ids, minlength=size).astype(np.int64)
    return BatchIds(column, counts, encoded.control_words)


def overlap_of_ids(parent: NDArray[np.int64], derived: NDArray[np.int64]) -> Overlap:
    """The overlap of two texts given how often each id occurs, [ids] each."""
    both = np.minimum(parent, derived)
    return Overlap(int((both > 0).sum()), int((parent > 0).sum()), int(both.sum()), int(parent.sum()))


def write_tokenizers(vocabulary: Vocabulary, language: Language, out: Path) -> list[Path]:
    """Both tokenizers as folders that AutoTokenizer loads; returns their files.

    That of a language of tokens gives the ids of its words, before tokens are moved.
    """
    vocabulary.save(out / "tokenizer" / "parent")
    vocabulary.save(out / "tokenizer" / "derived", language.script)
    return sorted(path for path in (out / "tokenizer").rglob("*") if path.is_file())


if TYPE_CHECKING:
    from synthlang.export.shard import BatchIds
    from synthlang.vocabulary import Vocabulary

SHARD_BATCHES = 10  # a constant, as the size of a batch: borders are part of "same spec, same bytes"
SPLIT_NAMES = {"train": "train", "dev": "validation", "test": "test"}  # the hub's names


class InterruptedExportError(InputError):
    """The disk or a process failed, not the input: what was written stays, and the same command goes on."""


@dataclass(frozen=True)
class Plan:
    """What every shard of an export has in common; ``folder`` is the partial folder."""

    language: Language
    folder: Path
    configs: tuple[str, ...]
    vocabulary: Vocabulary | None = None

    def data(self, config: str, split: str, number: int) -> Path:
        """The parquet file of a shard."""
        return self.folder / "out" / "data" / config / f"{SPLIT_NAMES[split]}-{number:05d}.parquet"

    def record(self, split: str, number: int) -> Path:
        """Its record, which is there when the shard is complete."""
        return self.folder / "done" / f"{split}-{number:05d}.json"

    def types(self, split: str, number: int) -> Path:
        """Its word types."""
        return self.folder / "done" / f"{split}-{number:05d}.npz"


@dataclass(frozen=True)
class Job:
    """A shard for a worker: its batches are in the file ``spool``."""

    split: str
    number: int
    spool: Path


def write_job(plan: Plan, job: Job) -> dict[str, Any]:
    """Write the shard of a job and delete its spool."""
    record = write_shard(plan, job.split, job.number, read_batches(job.spool))
    job.spool.unlink()
    return record


def write_shard(plan: Plan, split: str, number: int, batches: Iterable[Corpus]) -> dict[str, Any]:
    """Derive and write a shard; returns its record.

    Raises InterruptedExportError if the disk fails, InputError for what the language cannot do.
    """
    try:
        return _write(plan, split, number, batches)
    except InputError as error:
        if isinstance(error.__cause__, OSError):
            raise InterruptedExportError(str(error)) from error
        raise


def _write(plan: Plan, split: str, number: int, batches: Iterable[Corpus]) -> dict[str, Any]:
    sizes: Counter[str] = Counter({"sentences": 0, "kept": 0, "words": 0, "derived_words": 0})
    counts: Counter[str] = Counter()
    types: dict[str, list[Types]] = {"parent": [], "derived": []}
    ids: dict[str, NDArray[np.int64]] = {}
    rows: Counter[str] = Counter(dict.fromkeys(plan.configs, 0))
    with ExitStack() as stack:
        files = {c: stack.enter_context(atomic_file(plan.data(c, split, number))) for c in plan.configs}
        writers: dict[str, pq.ParquetWriter] = {}
        for batch in batches:
            rewrite = plan.language.rewrite(batch)
            parent, derived = Side.of(batch), Side.of(rewrite.apply(batch))
            lists = {}
            if plan.vocabulary is not None:
                for name, found in _ids(plan, plan.vocabulary, batch, derived.corpus, counts).items():
                    lists[name], ids[name] = found.column, ids.get(name, 0) + found.counts
            for config, table in tables_of(parent, derived, rewrite, plan.configs, lists).items():
                if config not in writers:
                    writers[config] = stack.enter_context(_writer(files[config], table.schema))
                if table.num_rows:
                    writers[config].write_table(table)
                    rows[config] += table.num_rows
            sizes.update(sentences=len(batch), kept=len(derived.corpus))
            sizes.update(words=int(batch.offsets[-1]), derived_words=int(derived.corpus.offsets[-1]))
            counts.update(rewrite.counts)
            for name, side in (("parent", parent), ("derived", derived)):
                types[name].append(Types.of(side.corpus.form, side.names))
    paths = [plan.data(config, split, number) for config in plan.configs if rows[config]]
    for config in plan.configs:
        if not rows[config]:  # datasets fails on a split without a row
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
    plan: Plan, vocabulary: Vocabulary, batch: Corpus, derived: Corpus, reasons: Counter[str]
) -> dict[str, BatchIds]:
    """The ids of both sides; ``reasons`` counts the parent's words that cannot be what they spell."""
    parent, other = batch_ids(vocabulary, plan.language, batch, derived)
    if parent.control_words:
        reasons[CONTROL_WORDS] += parent.control_words
    return {"parent": parent, "derived": other}


def _writer(handle: Any, schema: pa.Schema) -> pq.ParquetWriter:
    """Codes stay codes, counters are stored as differences; a reader sees plain strings and lists."""
    counters = {name: "DELTA_BINARY_PACKED" for name in COUNTERS if name.split(".")[0] in schema.names}
    coded = [f"{f.name}{ELEMENT}" for f in schema if pa.types.is_list(f.type)]
    return pq.ParquetWriter(
        handle,
        schema,
        compression="zstd",
        compression_level=1,
        use_dictionary=[name for name in coded if name not in counters],
        column_encoding=counters,
        write_statistics=False,  # of no use for text, and a quarter of the time
        store_schema=False,  # it would make the strings dictionaries again
    )


def finished(plan: Plan, split: str, number: int) -> dict[str, Any] | None:
    """The record of a shard that is there and whose files are as they were written, else None."""
    path = plan.record(split, number)
    if not path.exists():
        return None
    try:
        record: dict[str, Any] = read_json(path)
    except InputError:  # damaged by something else than us: write the shard again
        return None
    files = {plan.folder / name: sha256 for name, sha256 in record["sha256"].items()}
    whole = all(file.is_file() and sha256_file(file) == sha256 for file, sha256 in files.items())
    return record if whole else None


def types_of(plan: Plan, split: str, number: int) -> tuple[Types, Types]:
    """The word types of a finished shard: the parent's and the derived ones."""
    with np.load(plan.types(split, number), allow_pickle=False) as held:
        parent, derived = (Types(held[f"{side}_hashes"], held[f"{side}_counts"]) for side in ("parent", "derived"))
    return parent, derived


def id_counts_of(plan: Plan, split: str, number: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """How often each token id occurs in a finished shard: in the parent's text and in the derived one."""
    with np.load(plan.types(split, number), allow_pickle=False) as held:
        return held["parent_ids"], held["derived_ids"]
