"""A task set as a data set folder: parent, derived and mixed, with the same columns.

data/<config>/<split>.parquet   see tables.py; configs parent, derived (the default), mixed
language.yaml                   the spec, so that the command in the card makes the folder again
README.md                       the data set card
manifest.json                   parents by fingerprint, items, what was dropped by reason, checksums of every file
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from synthlang.claim import claimed_folder
from synthlang.errors import InputError
from synthlang.export.card import UNKNOWN_LICENCE, check_licence
from synthlang.files import write_json
from synthlang.fingerprint import fingerprint, sha256_file
from synthlang.language import Language, bind_language, portable, write_spec
from synthlang.sources.reasons import listed
from synthlang.tasks.base import TaskSet
from synthlang.tasks.batch import TaskBatch
from synthlang.tasks.card import task_card
from synthlang.tasks.derive import derive_task
from synthlang.tasks.tables import task_table

FORMAT = 3  # 2: the manifest vouches for every file; 3: columns of texts say how words are parted
SPLIT_NAMES = {"train": "train", "dev": "validation", "test": "test"}  # the hub's names
Progress = Callable[[str, int], None]


def export_fingerprint(task: TaskSet, language: Language, fields: tuple[str, ...] | None) -> str:
    """Of the exported set: its task, its language and the fields that the config mixed derives."""
    parents = {"task": task.fingerprint, "language": language.fingerprint}
    return fingerprint("derived-task", format=FORMAT, parents=parents, fields=fields and sorted(fields))


def export_task(
    task: TaskSet,
    language: Language,
    folder: Path,
    *,
    fields: tuple[str, ...] | None = None,
    licence: str | None = None,
    command: str | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Derive every split of a task and write the data set; returns the manifest.

    ``parent`` has every item that was read, ``derived`` those that are left when all fields are
    derived; with ``fields`` the config ``mixed`` derives only these. An id names the same item
    in each. ``licence`` is an SPDX id (None: that of the task, if it is known), ``command`` what
    makes the folder again. ``progress(split, items)`` is called after each batch. Nothing is left
    in ``folder`` if this fails; no item left in ``derived`` or ``mixed`` is an InputError.
    """
    licence = licence or task.licence
    check_licence(licence or UNKNOWN_LICENCE)
    language = bind_language(language, task.as_source())
    configs: dict[str, tuple[int, ...] | None] = {"parent": (), "derived": None}
    if fields is not None:
        configs["mixed"] = task.field_rows(fields)
    with claimed_folder(folder) as temporary:
        report = _Report(tuple(configs))
        for split in task.splits:
            _write_split(task, split, language, configs, temporary, report, progress)
        for config in configs:
            if not any(report.items[config].values()):
                raise InputError(f"{task.name}: no item is left in the config {config!r}: {report.reasons(config)}")
        manifest: dict[str, Any] = {
            "fingerprint": export_fingerprint(task, language, fields),
            "format": FORMAT,
            "task": task.name,
            "language": portable(language)[0],
            "fields": {"all": list(task.fields), "mixed": None if fields is None else sorted(fields)},
            "parents": {"task": task.fingerprint, "language": language.fingerprint},
            "items": report.items,
            "read": report.read,
            "changes": report.changes,
        }
        write_spec(language, temporary)
        (temporary / "README.md").write_text(task_card(task, manifest, licence, command), encoding="utf-8")
        files = sorted(path for path in temporary.rglob("*") if path.is_file())
        manifest["sha256"] = {p.relative_to(temporary).as_posix(): sha256_file(p) for p in files}
        write_json(temporary / "manifest.json", manifest)
    return manifest


class _Report:
    """How many items there are and what happened, by config and split."""

    def __init__(self, configs: tuple[str, ...]) -> None:
        self.items: dict[str, dict[str, int]] = {config: {} for config in configs}
        self.changes: dict[str, dict[str, dict[str, int]]] = {c: {} for c in configs if c != "parent"}
        self.read: dict[str, dict[str, int]] = {}

    def reasons(self, config: str) -> str:
        """All that happened in a config, in words."""
        total = sum((Counter(counts) for counts in self.changes.get(config, {}).values()), Counter[str]())
        return listed(total) or "none was read"


def _write_split(
    task: TaskSet,
    split: str,
    language: Language,
    configs: dict[str, tuple[int, ...] | None],
    folder: Path,
    report: _Report,
    progress: Progress | None,
) -> None:
    name = SPLIT_NAMES[split]
    items: dict[str, int] = dict.fromkeys(configs, 0)
    changes: dict[str, Counter[str]] = {config: Counter() for config in configs}
    read: Counter[str] = Counter()
    with ExitStack() as stack:
        writers = {
            config: stack.enter_context(_Writer(folder / "data" / config / f"{name}.parquet")) for config in configs
        }
        for batch in task.batches(split):
            read.update(batch.counts)
            for config, rows in configs.items():
                result, counts = (batch, {}) if rows == () else derive_task(batch, language, rows)
                changes[config].update(counts)
                items[config] += len(result)
                writers[config].write(task, result)
            if progress:
                progress(split, len(batch))
    report.read[name] = dict(read)
    for config in configs:
        report.items[config][name] = items[config]
        if config in report.changes:
            report.changes[config][name] = dict(changes[config])


class _Writer:
    """A parquet file that is there only if it has a row: a library may not read one without."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.writer: pq.ParquetWriter | None = None

    def __enter__(self) -> _Writer:
        return self

    def __exit__(self, *_: object) -> None:
        if self.writer is not None:
            self.writer.close()

    def write(self, task: TaskSet, batch: TaskBatch) -> None:
        """Add the rows of a batch."""
        if not len(batch):
            return
        table: pa.Table = task_table(task, batch)
        if self.writer is None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.writer = pq.ParquetWriter(self.path, table.schema, compression="zstd")
        self.writer.write_table(table)
