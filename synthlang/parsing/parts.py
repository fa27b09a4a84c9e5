"""Parts of a source to parse: files of chunks, which jobs on other nodes parse into a shared cache.

A part is a gzipped file with a JSON list of sentences on each line, one line for each chunk. Parts are cut at fixed
numbers of chunks, so a second run cuts the same parts.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from synthlang.errors import InputError
from synthlang.files import atomic_file, reading
from synthlang.parsing.chunks import CHUNK, Mode, ParseCache, parse_chunks
from synthlang.parsing.engines import Engine
from synthlang.parsing.source import ParsedSource


@dataclass(frozen=True)
class Part:
    """A part of a split to parse: consecutive chunks.

    Attributes:
        path: The file of the part. It does not exist if the whole part is in the cache.
        sentences: Number of sentences (lines of text if the parser splits them).
        is_cached: True if the cache has every chunk of the part.
    """

    path: Path
    sentences: int
    is_cached: bool


def cut_parts(source: ParsedSource, folder: Path, sentences: int) -> Iterator[Part]:
    """Write the parts of all splits of a source to a folder, and yield them in order. Existing files are kept.

    Only one part is in memory at a time.

    Args:
        source: The source to parse.
        folder: Folder for the files, used for this source only.
        sentences: Number of sentences of a part, rounded up to whole chunks.

    Raises:
        InputError: The source cannot be read.
        DiskError: A part cannot be written.
    """
    for split in source.splits:
        rest, number = source.chunks(split), 0
        while part := list(islice(rest, -(-sentences // CHUNK))):
            path = folder / f"{split}-{number:05d}.jsonl.gz"
            known = (source.cache.path(source.engine.fingerprint, source.mode, chunk).exists() for chunk in part)
            is_cached = all(known)
            if not is_cached and not path.exists():
                write_part(path, part)
            yield Part(path, sum(map(len, part)), is_cached)
            number += 1


def write_part(path: Path, chunks: list[list[Any]]) -> None:
    """Write a part atomically. The bytes are a function of the chunks.

    Raises:
        DiskError: The file cannot be written.
    """
    with atomic_file(path) as handle, gzip.GzipFile("", "wb", 1, handle, mtime=0) as packed:
        for chunk in chunks:
            packed.write(json.dumps(chunk, ensure_ascii=False).encode("utf-8") + b"\n")


def read_part(path: Path) -> Iterator[list[Any]]:
    """Yield the chunks of a part, each as a list of sentences.

    Raises:
        InputError: The file is missing or damaged.
    """
    with reading(path), gzip.open(path, "rt", encoding="utf-8") as lines:
        try:
            for line in lines:
                yield json.loads(line)
        except (EOFError, zlib.error, gzip.BadGzipFile, json.JSONDecodeError) as error:
            hint = "delete the file, and run the same command again"
            raise InputError(f"is damaged: {error}", path, hint=hint, code="damaged") from error


def parse_part(
    path: Path, engine: Engine, mode: Mode, cache: ParseCache, workers: int, count: Callable[[int], None]
) -> dict[str, int]:
    """Parse the chunks of a part that the cache lacks into the cache.

    Args:
        path: The file of the part.
        engine: The parser.
        mode: ``words`` for sentences that are lists of words, ``text`` for lines of text.
        cache: The cache, which is shared with the process that cut the part.
        workers: Number of processes.
        count: Called with the number of sentences of each chunk.

    Returns:
        The numbers of ``chunks``, of ``sentences``, and of ``cached`` chunks, which the cache already had.

    Raises:
        InputError: The part cannot be read, or the parser fails (see ``parse_chunks``).
        DiskError: The cache cannot be written.
    """
    chunks = sentences = hits = 0
    for outcomes, hit in parse_chunks(engine, mode, read_part(path), cache, workers):
        chunks, sentences, hits = chunks + 1, sentences + len(outcomes), hits + hit
        count(len(outcomes))
    return {"chunks": chunks, "sentences": sentences, "cached": hits}
