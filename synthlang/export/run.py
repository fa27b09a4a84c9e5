"""Export a derived language: a data set folder that ``datasets.load_dataset(DIR)`` reads, of any size.

data/<config>/<split>-00000.parquet …   shards of SHARD_BATCHES batches
README.md                               the data set card
language.yaml                           the spec of the language, complete
manifest.json                           parents by fingerprint, counts, checksums of every file

Until it is finished it is beside its output, in ``.partial-NAME``:

partial.json     the fingerprint of what is being written
lock             held while a process writes
done/            a record for each finished shard, and its word types
spool/           batches on their way to workers
out/             becomes NAME in one rename when everything is there
"""

from __future__ import annotations

import os
import shlex
import shutil
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import chain, count, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from filelock import FileLock, Timeout

from synthlang.corpus import Corpus
from synthlang.errors import InputError
from synthlang.export.card import UNKNOWN_LICENCE, check_licence
from synthlang.export.manifest import write_manifest
from synthlang.export.rows import CONFIGS
from synthlang.export.shard import (
    SHARD_BATCHES,
    SPLIT_NAMES,
    InterruptedExportError,
    Job,
    Plan,
    finished,
    write_batches,
    write_job,
    write_shard,
)
from synthlang.files import check_named, read_json, remove_leftovers, write_json
from synthlang.fingerprint import fingerprint
from synthlang.language import Language, bind_language
from synthlang.progress import already
from synthlang.sources.base import Source
from synthlang.workers import WorkerDiedError, ordered_map, warm_up

PREFIX = ".partial-"


def partial_of(folder: Path) -> Path:
    """Where the unfinished export of ``folder`` is."""
    check_named(folder)
    return folder.with_name(PREFIX + folder.name)


@contextmanager
def claimed(folder: Path, fingerprint: str) -> Iterator[Path]:
    """The partial folder of ``folder``, new or to go on with, for this process alone.

    Raises InputError if another process writes there, or if it holds an unfinished export with
    another fingerprint, or something that is none: that is never deleted.
    """
    partial = partial_of(folder)
    if partial.exists():
        _check(partial, fingerprint)
    partial.mkdir(parents=True, exist_ok=True)
    lock = FileLock(partial / "lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise InputError("is being written by another process; wait for it, or name another folder", folder) from None
    try:
        if folder.exists():  # finished by another process since we looked
            raise InputError("exists already; name a new folder", folder)
        if not (partial / "partial.json").exists():
            write_json(partial / "partial.json", {"fingerprint": fingerprint})
        _check(partial, fingerprint)
        shutil.rmtree(partial / "spool", ignore_errors=True)
        for part in (partial, partial / "done", *(partial / "out").rglob("*/")):
            remove_leftovers(part)
        yield partial
    finally:
        lock.release()


def _check(partial: Path, fingerprint: str) -> None:
    path = partial / "partial.json"
    if path.exists():
        held = read_json(path)
        found = held.get("fingerprint") if isinstance(held, dict) else None
        if found != fingerprint:
            raise InputError(
                f"holds an unfinished export of something else ({found}, not {fingerprint}); "
                "run that command again to finish it, delete the folder, or name another one",
                partial,
            )
    elif any(p.name != "lock" and not p.name.startswith(".tmp-") for p in partial.iterdir()):
        raise InputError("is no unfinished export; delete it or name another folder", partial)


def is_finished(folder: Path, fingerprint: str) -> bool:
    """Whether the export of ``folder`` was finished by a process that could not clear up after it."""
    path = partial_of(folder) / "partial.json"
    if not (folder / "manifest.json").exists() or not path.exists() or (path.parent / "out").exists():
        return False
    held = read_json(path)
    return isinstance(held, dict) and held.get("fingerprint") == fingerprint


Progress = Callable[[str, int], None]
Record = dict[str, Any]


def write_shards(plan: Plan, source: Source, workers: int, progress: Progress) -> list[Record]:
    """The records of all shards, in the order of the splits and of their sentences.

    A split without a sentence has none. InputError if no sentence is there, or none is left.
    """
    held: list[Record] = []
    if workers == 1:
        for split, number, batches in _missing(plan, source, held, progress):
            held.append(write_shard(plan, split, number, _counted(batches, split, progress)))
    else:
        for record in ordered_map(partial(write_job, plan), _jobs(plan, source, held, progress), workers):
            held.append(record)
            progress(record["split"], record["sentences"])
    if not any(record["sentences"] for record in held):
        raise InputError("the source holds no sentence in any split")
    if plan.configs != ("parent",) and not any(record["kept"] for record in held):
        counts = sum((Counter(record["counts"]) for record in held), Counter[str]())
        reasons = "; ".join(f"{reason}: {number}" for reason, number in counts.items())
        raise InputError(f"the language {plan.language.name} drops every sentence ({reasons})")
    order = {split: rank for rank, split in enumerate(source.splits)}
    return sorted(held, key=lambda record: (order[record["split"]], record["number"]))


def _jobs(plan: Plan, source: Source, held: list[Record], progress: Progress) -> Iterator[Job]:
    """Reading is done here: sentence ids count through a split."""
    (plan.folder / "spool").mkdir(exist_ok=True)
    for split, number, batches in _missing(plan, source, held, progress):
        spool = plan.folder / "spool" / f"{split}-{number:05d}.arrow"
        write_batches(spool, batches)
        yield Job(split, number, spool)


def _missing(
    plan: Plan, source: Source, held: list[Record], progress: Progress
) -> Iterator[tuple[str, int, Iterable[Corpus]]]:
    """(split, number, batches) of the shards to write; records of the others go to ``held``."""
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
                deque(shard, maxlen=0)  # read past it
                held.append(record)
                already(progress, split, record["sentences"])


def _counted(batches: Iterable[Corpus], split: str, progress: Progress) -> Iterator[Corpus]:
    for batch in batches:
        yield batch
        progress(split, len(batch))


if TYPE_CHECKING:
    from synthlang.vocabulary import Vocabulary

FORMAT = 2  # 2: three configurations in shards


class Exported(dict[str, int]):
    """Sentences of the derived language in each split; ``manifest`` tells the rest.

    dropped   sentences of the parent that the language dropped, of each split
    counts    what happened, by split and reason
    """

    def __init__(self, manifest: dict[str, Any]) -> None:
        self.manifest = manifest
        ours = {theirs: name for name, theirs in SPLIT_NAMES.items()}
        sizes = {ours[split]: size for split, size in manifest["splits"].items()}
        super().__init__({split: size["kept"] for split, size in sizes.items()})
        self.dropped = {split: size["sentences"] - size["kept"] for split, size in sizes.items()}
        self.counts: dict[str, dict[str, int]] = {ours[split]: c for split, c in manifest["counts"].items()}


def derived_fingerprint(source: Source, language: Language, vocabulary: Vocabulary | None = None) -> str:
    """Of the derived data set: its source, its language and the vocabulary of its token ids."""
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
    configs: Sequence[str] = CONFIGS,
    command: str | None = None,
    vocabulary: Vocabulary | None = None,
) -> Exported:
    """Derive every split of a source and write the data set.

    ``progress(split, sentences)`` is called as work goes on, with what was there already first.
    ``licence`` is an SPDX id; by default the source's attribute ``licence``, else unknown;
    ``command`` is what the card says makes the folder again; with a ``vocabulary`` (the parent's)
    there are also token ids and both tokenizers. No more workers start than there are
    processor cores. The bytes depend neither on them nor on interruptions: the same command goes
    on with ``.partial-NAME``, and the folder appears when it is complete. Wrong input leaves nothing.
    """
    if folder.exists() and not partial_of(folder).exists():
        raise InputError("exists already; name a new folder", folder)
    licence = check_licence(licence or getattr(source, "licence", None) or UNKNOWN_LICENCE)
    configs = _checked(configs)
    workers = min(workers, cores())
    if workers > 1:
        warm_up(write_job.__module__)
    language = bind_language(language, source, vocabulary)
    derived = derived_fingerprint(source, language, vocabulary)
    name = fingerprint("export", derived=derived, configs=configs, pyarrow=pa.__version__)
    if is_finished(folder, name):
        shutil.rmtree(partial_of(folder))
        return Exported(read_json(folder / "manifest.json"))
    if folder.exists():
        raise InputError("exists already; name a new folder", folder)
    parents = [parent for parent in folder.parents if not parent.exists()]  # deepest first
    about = {"fingerprint": derived, "format": FORMAT}
    command = command or f"synthlang derive {shlex.quote(source_name)} --language language.yaml --out DIR"
    about |= {"source": source_name, "licence": licence, "command": command}
    try:
        with claimed(folder, name) as place:
            plan = Plan(language, place, configs, vocabulary)
            records = write_shards(plan, source, workers, progress or (lambda _split, _sentences: None))
            manifest = write_manifest(plan, source, records, about)
            (place / "out").rename(folder)
            shutil.rmtree(place)
    except WorkerDiedError as error:
        raise InterruptedExportError(f"{error}; run the same command again, with fewer workers", folder) from error
    except OSError as error:
        raise InterruptedExportError(f"cannot write: {error.strerror or error}", folder) from error
    except InputError as error:
        if isinstance(error, InterruptedExportError) or isinstance(error.__cause__, OSError):
            raise InterruptedExportError(f"{error}; the same command goes on from here", folder) from error
        _forget(folder, name, parents)
        raise
    return Exported(manifest)


def cores() -> int:
    """Processor cores that this process may use: more workers would only cost memory."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _forget(folder: Path, name: str, parents: Sequence[Path]) -> None:
    """Remove our partial folder and the empty ``parents`` we made: what was wrong is in the input, and will be."""
    path = partial_of(folder) / "partial.json"
    if path.exists() and read_json(path) == {"fingerprint": name}:
        shutil.rmtree(path.parent)
        for parent in parents:
            if parent.is_dir() and not any(parent.iterdir()):
                parent.rmdir()


def _checked(configs: Sequence[str]) -> tuple[str, ...]:
    wrong = [c for c in configs if c not in CONFIGS]
    if wrong or not configs:
        raise InputError(f"configs must be some of {', '.join(CONFIGS)}" + (f", not {wrong[0]!r}" if wrong else ""))
    return tuple(c for c in CONFIGS if c in configs)
