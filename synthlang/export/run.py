"""Export a derived language: a data set folder that ``datasets.load_dataset(DIR)`` reads, of any size.

data/<config>/<split>-00000.parquet …   shards of SHARD_BATCHES batches
README.md                               the data set card
language.yaml                           the spec of the language, complete
manifest.json                           parents by fingerprint, counts, checksums of every file
"""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from synthlang.errors import InputError
from synthlang.export.card import UNKNOWN_LICENCE, check_licence
from synthlang.export.manifest import write_manifest
from synthlang.export.partial import claimed, is_finished, partial_of
from synthlang.export.rows import CONFIGS
from synthlang.export.shard import SPLIT_NAMES, InterruptedExportError, Plan, write_job
from synthlang.export.work import Progress, write_shards
from synthlang.files import read_json
from synthlang.fingerprint import fingerprint
from synthlang.language import Language, bind_language
from synthlang.sources.base import Source
from synthlang.workers import WorkerDiedError, warm_up

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
