"""A derived language as a data set folder that ``datasets.load_dataset(DIR)`` reads.

data/train.parquet …   a row a sentence: id, text, words, origin, parent_text, labels
README.md              the data set card
manifest.json          parents by fingerprint, checksums
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from synthlang.corpus import FORM, Column, Corpus
from synthlang.errors import InputError
from synthlang.files import atomic_folder, write_json
from synthlang.fingerprint import fingerprint, sha256_file
from synthlang.language import Language
from synthlang.sources.base import Source
from synthlang.workers import ordered_map

FORMAT = 1
SPLIT_NAMES = {"train": "train", "dev": "validation", "test": "test"}  # the hub's names
Progress = Callable[[str, int], None]


def derived_fingerprint(source: Source, language: Language) -> str:
    """Of the derived data set: its source and its language."""
    parents = {"source": source.fingerprint, "language": language.fingerprint}
    return fingerprint("derived", format=FORMAT, parents=parents)


def export_language(
    source: Source,
    language: Language,
    folder: Path,
    *,
    source_name: str,
    workers: int = 1,
    progress: Progress | None = None,
) -> dict[str, int]:
    """Derive every split of a source and write the data set; returns sentences per split.

    ``progress(split, sentences)`` is called after each batch. The bytes do not depend on
    ``workers``. Nothing is left in ``folder`` if this fails.
    """
    counts: dict[str, int] = {}
    with atomic_folder(folder) as temporary:
        (temporary / "data").mkdir()
        for split in source.splits:
            tables = ordered_map(partial(derived_table, language), source.batches(split), workers)
            path = temporary / "data" / f"{SPLIT_NAMES[split]}.parquet"
            counts[split] = _write_split(path, tables, partial(progress, split) if progress else None)
        files = sorted((temporary / "data").iterdir())
        manifest = {
            "fingerprint": derived_fingerprint(source, language),
            "format": FORMAT,
            "language": language.model_dump(mode="json"),
            "source": source_name,
            "parents": {"source": source.fingerprint, "language": language.fingerprint},
            "sentences": counts,
            "sha256": {f"data/{p.name}": sha256_file(p) for p in files},
        }
        write_json(temporary / "manifest.json", manifest)
        (temporary / "README.md").write_text(_card(manifest, source.columns), encoding="utf-8")
    return counts


def derived_table(language: Language, batch: Corpus) -> pa.Table:
    """The rows of a batch in the derived language."""
    rewrite = language.rewrite(batch)
    derived = rewrite.apply(batch)
    columns: dict[str, Any] = {
        "id": pa.array(derived.ids),
        "text": pa.array(derived.texts(), pa.string()),
        "words": _lists(derived, derived.form),
        "origin": _lists(derived, Column(rewrite.origin)),
        "parent_text": pa.array(batch.texts(), pa.string()),
    }
    columns |= {name: _lists(derived, column) for name, column in derived.columns.items() if name != FORM}
    return pa.table(columns)


def _lists(corpus: Corpus, column: Column) -> pa.ListArray:
    codes = pa.array(np.ascontiguousarray(column.codes, dtype=np.int32))
    values = codes
    if column.names is not None:
        values = pa.DictionaryArray.from_arrays(codes, pa.array(column.names, pa.string())).cast(pa.string())
    return pa.ListArray.from_arrays(pa.array(corpus.offsets.astype(np.int32)), values)


def _write_split(path: Path, tables: Iterator[pa.Table], progress: Callable[[int], None] | None) -> int:
    rows = 0
    writer: pq.ParquetWriter | None = None
    try:
        for table in tables:
            writer = writer or pq.ParquetWriter(path, table.schema, compression="zstd")
            writer.write_table(table)
            rows += table.num_rows
            if progress:
                progress(table.num_rows)
    finally:
        if writer:
            writer.close()
    if writer is None:
        raise InputError(f"the split {path.stem} has no sentence")
    return rows


def _card(manifest: dict[str, Any], columns: tuple[str, ...]) -> str:
    files = "\n".join(
        f"  - split: {SPLIT_NAMES[s]}\n    path: data/{SPLIT_NAMES[s]}.parquet" for s in manifest["sentences"]
    )
    sizes = "\n".join(f"| {SPLIT_NAMES[s]} | {n} |" for s, n in manifest["sentences"].items())
    spec = json.dumps(manifest["language"], indent=2, ensure_ascii=False)
    labels = ", ".join(f"`{c}`" for c in columns if c != FORM) or "none"
    return f"""---
configs:
- config_name: default
  data_files:
{files}
---

# {manifest["language"]["name"]}, derived from {manifest["source"]}

A synthetic language made by synthlang. Each row is a sentence: `words` is the derived sentence, `text` the same with
a space between each two words, `parent_text` the sentence it comes from, and `origin` says for each word which word
of the parent it was (counted from 0; -1 for an inserted word). Labels, moved with their words: {labels}. `head` counts
from 1 within the sentence, 0 is the root.

| split | sentences |
|---|---|
{sizes}

The licence of the source applies to this data set too.

## Language

```json
{spec}
```

Data set fingerprint: `{manifest["fingerprint"]}` (source `{manifest["parents"]["source"]}`,
language `{manifest["parents"]["language"]}`).
"""
