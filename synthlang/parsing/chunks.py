"""Parse sentences in chunks, in this process or in workers, and cache each chunk.

A chunk has CHUNK sentences, a constant, so that a second run and another source with the same text find the same
chunks. The name of a file in the cache is a hash of the input and the parser. A file holds one chunk as gzipped JSON,
and a damaged file counts as missing.
"""

from __future__ import annotations

import gzip
import json
import os
import zlib
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, Literal

from synthlang.errors import InputError
from synthlang.files import atomic_file, user_path
from synthlang.fingerprint import canonical_json, fingerprint
from synthlang.parsing.engines import Engine, Parsed, problem_of
from synthlang.wording import plural
from synthlang.workers import WorkerDiedError, cores, ordered_map

FORMAT = 1
CHUNK = 200  # number of sentences, which divides BATCH_SENTENCES
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
RESUME = "run the same command again; finished parses are kept"
CACHE = "(--cache, or the variable SYNTHLANG_CACHE)"
"""Settings that name the folder of the cache, for hints."""
Mode = Literal["words", "text"]
Outcome = list[Parsed] | str
"""Parses of one input, or the reason why it has none. Given words have one parse, and a line of text has any number."""
Result = tuple[list[Outcome], bool]


def default_cache() -> Path:
    """Return the folder ``parses`` in $SYNTHLANG_CACHE, else $XDG_CACHE_HOME/synthlang, else ~/.cache/synthlang.

    Raises:
        InputError: $SYNTHLANG_CACHE begins with ``~NAME`` for a user that does not exist.
    """
    if os.environ.get("SYNTHLANG_CACHE"):
        root = user_path(os.environ["SYNTHLANG_CACHE"])
    else:
        root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "synthlang"
    return root / "parses"


class ParseCache:
    """Cache of parsed chunks, which any number of processes may read and write.

    A chunk is in the file ``root/ENGINE/XX/KEY.json.gz``.

    Args:
        root: The folder, which need not exist.

    Raises:
        InputError: ``root`` or a folder above it is a file.
    """

    def __init__(self, root: Path) -> None:
        nearest = next((place for place in (root, *root.parents) if place.exists()), root)
        if nearest.exists() and not nearest.is_dir():
            reason = "is a file, but parses are stored in a folder"
            raise InputError(reason, nearest, hint=f"name another folder {CACHE}", code="type")
        self.root = root

    def path(self, engine: str, mode: str, sentences: Sequence[Any]) -> Path:
        """Return the file for the parses of these sentences.

        Args:
            engine: Fingerprint of the parser.
            mode: ``words`` or ``text``, as in ``parse_chunks``.
            sentences: The sentences as lists of words, or lines of text.
        """
        key = fingerprint("parse", format=FORMAT, engine=engine, mode=mode, sentences=sentences)
        return self.root / engine / key[:2] / f"{key}.json.gz"

    @staticmethod
    def read(path: Path) -> list[Any] | None:
        """Return the parses in a file, or None if the file is missing or damaged.

        Raises:
            InputError: The file cannot be read for another reason.
        """
        try:
            data = json.loads(gzip.decompress(path.read_bytes()))
        except FileNotFoundError:
            return None
        except (gzip.BadGzipFile, EOFError, zlib.error, UnicodeDecodeError, json.JSONDecodeError):
            return None  # damaged: the chunk is parsed again and overwritten
        except OSError as error:
            reason = f"this file of stored parses cannot be read: {error.strerror or error}"
            hint = f"make it readable, or name another folder for parses {CACHE}"
            raise InputError(reason, path, hint=hint, code="failed") from error
        whole = isinstance(data, dict) and data.get("key") == path.name.partition(".")[0]
        return list(data["parses"]) if whole else None

    @staticmethod
    def write(path: Path, parses: Sequence[Any]) -> None:
        """Write the parses of a chunk to ``path``, atomically. The bytes are a function of the path and the parses.

        Raises:
            DiskError: The file cannot be written.
        """
        text = canonical_json({"key": path.name.partition(".")[0], "parses": list(parses)})
        with atomic_file(path) as handle:
            handle.write(gzip.compress(text.encode("utf-8"), compresslevel=6, mtime=0))


def parse_chunks(
    engine: Engine,
    mode: Mode,
    chunks: Iterable[Sequence[Any]],
    cache: ParseCache,
    workers: int = 1,
    devices: Sequence[str] = (),
) -> Iterator[Result]:
    """Yield the outcomes of the sentences of each chunk in order, and True if they came from the cache.

    No worker process starts before the first chunk that is not in the cache.

    Args:
        engine: The parser.
        mode: ``words`` for sentences that are lists of words, ``text`` for lines of text.
        chunks: The chunks, each with at most CHUNK sentences.
        cache: Cache that is read first, and to which new parses are written.
        workers: Number of worker processes. With one worker, the parser runs in this process.
        devices: CUDA devices, of which each worker process sees one (see ``ordered_map``).

    Raises:
        InputError: A worker process died, the parser has no tokenizer for lines of text, fails at every sentence of a
            chunk or runs out of memory, or the cache cannot be read. Finished chunks stay in the cache.
        DiskError: The cache cannot be written.
    """
    rest = iter(chunks)
    for sentences in rest:
        known = cache.read(cache.path(engine.fingerprint, mode, sentences)) if workers > 1 else None
        if known is not None:
            yield known, True
            continue
        threads = None if workers == 1 else max(1, cores() // workers)
        try:
            parse = partial(_parse, engine, mode, cache, threads)
            yield from ordered_map(parse, chain([sentences], rest), workers, devices)
        except WorkerDiedError as error:
            reason = "a worker process ended unexpectedly, most likely for lack of memory"
            hint = f"use fewer workers or free memory, and {RESUME}"
            raise InputError(reason, hint=hint, code="resources") from error


def _parse(engine: Engine, mode: Mode, cache: ParseCache, threads: int | None, sentences: Sequence[Any]) -> Result:
    """Parse a chunk, or read it from the cache. ``threads`` limits the libraries in a worker process."""
    path = cache.path(engine.fingerprint, mode, sentences)
    known = cache.read(path)
    if known is not None:
        return known, True
    for name in THREADS if threads else ():  # the libraries read these when they are loaded, which happens later
        os.environ.setdefault(name, str(threads))
    try:
        outcome = _attempt(engine, mode, sentences)
    except InputError:
        raise
    except Exception as error:
        outcome = _one_by_one(engine, mode, sentences, error)
    cache.write(path, outcome)
    return outcome, False


def _attempt(engine: Engine, mode: Mode, sentences: Sequence[Any]) -> list[Outcome]:
    given = sentences if mode == "words" else [None] * len(sentences)
    found = [[p] for p in engine.parse(sentences)] if mode == "words" else engine.parse_text(sentences)
    outcomes: list[Outcome] = []
    for parses, words in zip(found, given, strict=True):
        problems = [p for p in (problem_of(parsed, words) for parsed in parses) if p]
        outcomes.append(f"the parser gave {problems[0]}" if problems else parses)
    return outcomes


def _one_by_one(engine: Engine, mode: Mode, sentences: Sequence[Any], error: Exception) -> list[Outcome]:
    """Parse the sentences of a failed chunk one by one, and raise an InputError if all of several fail."""
    outcome: list[Outcome] = []
    for sentence in sentences:
        try:
            outcome += _attempt(engine, mode, [sentence])
        except InputError:
            raise
        except Exception as one:  # the library may raise anything; the first line is the reason
            if isinstance(one, MemoryError) or "out of memory" in str(one).lower():  # more memory would help
                is_line = isinstance(sentence, str)
                size, what = (len(sentence.split()), "line") if is_line else (len(sentence), "sentence")
                reason = f"{engine.name} ran out of memory at a {what} of {plural(size, 'word')}"
                hint = f"free memory or use fewer workers, and {RESUME}"
                raise InputError(reason, hint=hint, code="resources") from one
            outcome.append(_first_line(one))
    if len(sentences) > 1 and all(isinstance(o, str) for o in outcome):
        what = "lines" if mode == "text" else "sentences"
        reason = f"{engine.name} failed at {len(sentences)} {what} in a row: {_first_line(error)}"
        hint = f"correct the installation of {engine.name}, or use another model or library"
        raise InputError(reason, hint=hint, code="failed") from error
    return outcome


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
