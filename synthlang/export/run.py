"""Export a derived language: a data set folder of any size that ``datasets.load_dataset(DIR)`` reads.

data/<config>/<split>-00000.parquet …   shards of SHARD_BATCHES batches
README.md                               the data set card
language.yaml                           the complete spec of the language
manifest.json                           parents by fingerprint, counts, checksums of every file

An unfinished export is in ``.partial-NAME`` beside its output:

partial.json     the fingerprint of the export
done/            a record for each finished shard, and its word types
out/             becomes NAME by one rename when it is complete
"""

from __future__ import annotations

import shlex
import shutil
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import chain, count, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from synthlang.corpus import Corpus
from synthlang.errors import InputError
from synthlang.export.card import UNKNOWN_LICENCE, check_licence
from synthlang.export.manifest import check_files, write_manifest
from synthlang.export.rows import CONFIGS
from synthlang.export.shard import (
    SHARD_BATCHES,
    ExportPlan,
    Shard,
    finished,
    write_shard,
)
from synthlang.files import (
    TEMPORARY,
    DiskError,
    check_named,
    only_writer,
    read_json,
    remove_leftovers,
    unwritable,
    write_json,
    writing,
)
from synthlang.fingerprint import fingerprint
from synthlang.language import Language, bind_language, checked_source
from synthlang.progress import already
from synthlang.sources.base import Source, because
from synthlang.workers import WorkerDiedError, cores, ordered_map, warm_up

PREFIX = ".partial-"


def partial_of(folder: Path) -> Path:
    """Return the folder of the unfinished export of ``folder``.

    Raises:
        InputError: ``folder`` has no name, or ends in ``..``.
    """
    check_named(folder)
    return folder.with_name(PREFIX + folder.name)


def _export_in(partial: Path) -> str | None:
    """Return the fingerprint of the export in a partial folder."""
    path = partial / "partial.json"
    saved = read_json(path) if path.exists() else None
    return saved.get("fingerprint") if isinstance(saved, dict) else None


def _claim(partial: Path, fingerprint: str) -> None:
    """Create the partial folder, or resume the export in it. A folder with other content is refused."""
    partial.mkdir(exist_ok=True)
    if any(not path.name.startswith(TEMPORARY) for path in partial.iterdir()) and _export_in(partial) != fingerprint:
        hint = "delete this folder, or name another output"
        raise InputError("is not an unfinished export of this data set", partial, hint=hint, code="exists")
    write_json(partial / "partial.json", {"fingerprint": fingerprint})
    for part in (partial, partial / "done", *(partial / "out").rglob("*/")):
        remove_leftovers(part)


Progress = Callable[[str, int], None]
Record = dict[str, Any]


def write_shards(plan: ExportPlan, source: Source, workers: int, progress: Progress) -> list[Record]:
    """Write all shards, and return their records in the order of splits and sentences.

    Args:
        plan: The settings of the export.
        source: Source of the sentences.
        workers: Number of worker processes.
        progress: Called as ``progress(split, sentences)`` during the work.

    Raises:
        InputError: The source has no sentence or cannot be read, or the language drops all sentences or cannot be
            applied to a sentence.
        DiskError: A shard cannot be written.
        WorkerDiedError: A worker was killed.
    """
    records: list[Record] = []
    missing = _missing(plan, source, records, progress)
    if workers == 1:
        for split, number, batches in missing:
            records.append(write_shard(plan, (split, number, _counted(batches, split, progress))))
    else:
        whole = ((split, number, list(batches)) for split, number, batches in missing)
        for record in ordered_map(partial(write_shard, plan), whole, workers):
            records.append(record)
            progress(record["split"], record["sentences"])
    if not any(record["sentences"] for record in records):
        reason = "has no sentence in any split"
        raise InputError(reason, plan.source_name, hint="name a source with sentences", code="empty")
    if not any(record["kept"] for record in records):
        counts = sum((Counter(record["counts"]) for record in records), Counter[str]())
        raise InputError(
            f"the language {plan.language.name} drops every sentence{because(counts)}",
            plan.source_name,
            hint="change the transforms that drop sentences, or name another source",
            code="empty",
        )
    order = {split: rank for rank, split in enumerate(source.splits)}
    return sorted(records, key=lambda record: (order[record["split"]], record["number"]))


def _missing(plan: ExportPlan, source: Source, records: list[Record], progress: Progress) -> Iterator[Shard]:
    """Yield the unfinished shards, and add the records of finished ones to ``records``.

    One process reads the source, because sentence ids count through a split.
    """
    for split in source.splits:
        batches = iter(source.batches(split))
        for number in count():
            first = next(batches, None)
            if first is None:
                break
            shard = chain([first], islice(batches, SHARD_BATCHES - 1))
            record = finished(plan, split, number)
            if record is None:
                yield split, number, shard
            else:
                deque(shard, maxlen=0)  # skip its batches
                records.append(record)
                already(progress, split, record["sentences"])


def _counted(batches: Iterable[Corpus], split: str, progress: Progress) -> Iterator[Corpus]:
    for batch in batches:
        yield batch
        progress(split, len(batch))


if TYPE_CHECKING:
    from synthlang.vocabulary import Vocabulary

FORMAT = 2  # 2: three configurations in shards


def derived_fingerprint(source: Source, language: Language, vocabulary: Vocabulary | None = None) -> str:
    """Return the fingerprint of a derived data set, which covers source, language and vocabulary."""
    parents = {"source": source.fingerprint, "language": language.fingerprint}
    if vocabulary is not None:
        parents["vocabulary"] = vocabulary.fingerprint
    return fingerprint("derived", format=FORMAT, parents=parents)


def export_language(
    source: Source,
    language: Language,
    folder: Path,
    *,
    source_name: str,
    workers: int = 1,
    progress: Progress | None = None,
    licence: str | None = None,
    command: str | None = None,
    vocabulary: Vocabulary | None = None,
    counted_in: str | None = None,
) -> dict[str, Any]:
    """Derive every split of a source, write the data set and return its manifest.

    The bytes depend neither on the number of workers nor on interruptions. The same command resumes from
    ``.partial-NAME``, and the folder appears when it is complete. A folder that already holds this data set is not
    changed. After wrong input, no file is left.

    Args:
        source: Source of the sentences.
        language: The derived language.
        folder: The folder to create.
        source_name: The source as the user wrote it.
        workers: Worker processes, at most one per processor core.
        progress: Called as ``progress(split, sentences)`` during the work, first for finished shards.
        licence: SPDX id (default: the source's attribute ``licence``, or else unknown).
        command: The command on the card that rebuilds the folder.
        vocabulary: Vocabulary of the source language, which adds token ids and both tokenizers.
        counted_in: Split whose words were counted for language and vocabulary, if not the training split.

    Raises:
        InputError: The licence is not an SPDX id, the language cannot be bound or applied to the source, or no sentence
            is left. The folder or its unfinished export holds other data, a file of the finished data set is missing or
            damaged, or another process writes the folder.
        DiskError: The data set cannot be written, or a worker was killed. The same command resumes.
    """
    licence = check_licence(licence or getattr(source, "licence", None) or UNKNOWN_LICENCE)
    workers = min(workers, cores())
    if workers > 1:
        warm_up(write_shard.__module__)
    language = bind_language(language, source, vocabulary, name=source_name)
    source = checked_source(language, source, source_name)
    derived = derived_fingerprint(source, language, vocabulary)
    name = fingerprint("export", derived=derived, configs=CONFIGS, pyarrow=pa.__version__)
    place = partial_of(folder)
    if folder.exists():
        if _export_in(place) == name and not (place / "out").exists():
            shutil.rmtree(place)  # a process was killed while it cleaned up
        return finished_export(folder, derived, licence)
    about = {"fingerprint": derived, "format": FORMAT}
    command = command or f"synthlang derive {shlex.quote(source_name)} --language language.yaml --out DIR"
    about |= {"source": source_name, "licence": licence, "command": command}
    about |= {} if counted_in is None else {"counted_in": counted_in}
    with only_writer(folder):
        if folder.exists():
            raise exists_already(folder)
        with writing(place):
            _claim(place, name)
        with _resumable(folder, place):
            plan = ExportPlan(language, place, source_name, vocabulary)
            records = write_shards(plan, source, workers, progress or (lambda _split, _sentences: None))
            manifest = write_manifest(plan, source, records, about)
            (place / "out").rename(folder)
            shutil.rmtree(place)
    return manifest


def finished_export(folder: Path, fingerprint: str, licence: str | None = None) -> dict[str, Any]:
    """Return the manifest of a finished data set after checking its fingerprint, its licence and its files.

    With ``licence`` None, any licence is accepted.

    Raises:
        InputError: The folder has no manifest or another fingerprint, has another licence than ``licence``, or has a
            missing or damaged file.
    """
    manifest = read_json(folder / "manifest.json") if (folder / "manifest.json").is_file() else None
    if not isinstance(manifest, dict) or manifest.get("fingerprint") != fingerprint:
        raise exists_already(folder)
    if licence is not None and manifest["licence"] != licence:
        raise exists_already(folder, f"the licence {manifest['licence']}")
    check_files(folder, manifest["sha256"])
    return manifest


def exists_already(folder: Path, content: str = "other content") -> InputError:
    """Return the error for an output folder that exists and has another ``content`` than the command would write."""
    reason = f"exists already and has {content}" if folder.is_dir() else "is a file, not a folder"
    return InputError(reason, folder, hint="name a new folder", code="exists")


@contextmanager
def _resumable(folder: Path, place: Path) -> Iterator[None]:
    """Remove ``place`` after wrong input. After any other failure, keep it and raise a DiskError."""
    try:
        yield
    except WorkerDiedError as error:
        hint = "try again with fewer workers; finished parts are kept"
        raise DiskError(str(error), folder, hint=hint, code="resources") from error
    except OSError as error:
        raise unwritable(error, folder) from error
    except InputError as error:
        if isinstance(error, DiskError) or isinstance(error.__cause__, OSError):
            told = error if isinstance(error, DiskError) else error.with_hint("then try again; finished parts are kept")
            raise DiskError(told.reason, told.path or folder, told.line, hint=told.hint, code=told.code) from error
        shutil.rmtree(place)
        raise
