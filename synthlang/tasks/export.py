"""Export a task as a data set folder, with the column names of well-known data sets of its kind.

data/<config>/<split>.parquet   configs parent (the source language), derived (the default), mixed
language.yaml                   the language, for the command on the card that rebuilds the folder
README.md                       the data set card
manifest.json                   fingerprints of the inputs, items, counts by reason, checksums of every file

classes   id, premise, hypothesis, label                   as glue, xnli
words     id, tokens, ner_tags | slots, intent             as conll2003, with tags as strings
          id, tokens, upos | upos, head, deprel            as universal_dependencies, heads as numbers
spans     id, title, context, question, answers            as squad: {text: […], answer_start: […]}

Columns of texts are marked as words that are separated by single spaces.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path, PurePath
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from synthlang.corpus import Column
from synthlang.errors import InputError
from synthlang.export.card import (
    UNKNOWN_LICENCE,
    card_config,
    card_header,
    check_licence,
    code_block,
    markdown_table,
    write_card,
)
from synthlang.export.rows import column_values, lists, numbers
from synthlang.export.run import finished_export
from synthlang.export.shard import SPLIT_NAMES
from synthlang.files import claimed_folder, write_json
from synthlang.fingerprint import fingerprint, sha256_file
from synthlang.language import Language, bind_language, portable, write_spec
from synthlang.sources.base import listed, with_columns
from synthlang.sources.hub_data import SPACED
from synthlang.strict_yaml import write_yaml
from synthlang.tasks.base import TaskSet
from synthlang.tasks.batch import TaskBatch
from synthlang.tasks.derive import derive_task

FORMAT = 3  # 2: the manifest has checksums of every file; 3: columns of texts are marked as separated by single spaces
Progress = Callable[[str, int], None]
Configs = dict[str, tuple[int, ...] | None]
"""Name of each configuration → indices of the fields to derive, or None for all fields."""
TAG_NAMES = {"ner": "ner_tags", "slot": "slots"}
TREE = ("upos", "head", "deprel")  # columns of a task whose tags are relations


def task_table(task: TaskSet, batch: TaskBatch) -> pa.Table:
    """Return the rows of a batch, one for each item. ``datasets`` shows class labels, which are numbers, as names."""
    features: dict[str, dict[str, Any]] = {}
    columns: dict[str, Any] = {"id": pa.array(batch.ids, pa.string())}
    columns |= {name: pa.array(values, pa.string()) for name, values in batch.extra.items()}
    if task.tags is not None:
        assert len(batch.corpus) == len(batch), "an item with labelled words is a sentence"
        columns["tokens"] = _lists(batch.corpus.offsets, batch.corpus.form)
        for ours in TREE if task.tags == "deprel" else (task.tags,):
            columns[TAG_NAMES.get(ours, ours)] = _lists(batch.corpus.offsets, batch.corpus.columns[ours])
    else:
        columns |= {name: pa.array(batch.strings(i), pa.string()) for i, name in enumerate(task.fields)}
        features |= {name: {"dtype": "string", "id": SPACED, "_type": "Value"} for name in task.fields}
    if batch.label is not None:
        columns[task.label_name] = pa.array(batch.label.codes.astype(np.int64))
        features[task.label_name] = {"names": list(task.labels), "_type": "ClassLabel"}
    if task.kind == "spans":
        columns["answers"] = _answers(batch)
    table = pa.table(columns)
    if not features:
        return table
    info = {"info": {"features": features}}
    return table.replace_schema_metadata({"huggingface": json.dumps(info, ensure_ascii=False)})


def answer_texts(batch: TaskBatch) -> tuple[list[str], list[int]]:
    """Return the words of each answer and the index of its first character in its text, [answers] each.

    The text is that of ``TaskBatch.strings``: words, separated by single spaces.
    """
    form, bounds = batch.corpus.form, batch.word_offsets
    lengths = np.fromiter((len(name) + 1 for name in form.names or ()), np.int64, len(form.names or ()))
    before = np.concatenate([[0], np.cumsum(lengths[form.codes])]).astype(np.int64)
    start, stop = batch.answers.start, batch.answers.stop
    text = np.searchsorted(bounds, start, side="right") - 1
    words = form.values()
    texts = [" ".join(words[a:b]) for a, b in zip(start.tolist(), stop.tolist(), strict=True)]
    return texts, (before[start] - before[bounds[text]]).tolist()


def _answers(batch: TaskBatch) -> pa.StructArray:
    """Return a list of texts and a list of starts for each item. Both are empty for an unanswerable question."""
    offsets = numbers(np.searchsorted(batch.answers.item, np.arange(len(batch) + 1)).astype(np.int32))
    texts, starts = answer_texts(batch)
    values = [pa.array(texts, pa.string()), pa.array(starts, pa.int32())]
    return pa.StructArray.from_arrays([pa.ListArray.from_arrays(offsets, v) for v in values], ["text", "answer_start"])


def _lists(offsets: np.ndarray[Any, Any], column: Column) -> pa.ListArray:
    """Return a list of strings, or of numbers, for each sentence."""
    values = column_values(column)
    return lists(offsets, values if column.names is None else values.cast(pa.string()))


CATEGORIES = {"words": "token-classification", "classes": "text-classification", "spans": "question-answering"}
ABOUT = {
    "parent": "every item in the source language, as it was read: words and marks separated by single spaces",
    "derived": "the items with all fields in the derived language",
    "mixed": "the items with some fields in the derived language",
}
LABELS = {
    "words": "The tags are IOB2 and moved with their words, so that each word stays in its entity or slot.",
    "upos": "The tags moved with their words. A word that the language inserted has the tag `_`.",
    "deprel": (
        "Heads count words from 1, with 0 for the root, and point to the same words as in the source language. Tags "
        "and relations moved with their words. A word that the language inserted has the head -1 and the relation `_`."
    ),
    "classes": "Each item has the label that it has in the source language.",
    "spans": (
        "An answer has the same words as in the source language, in their new order; `answer_start` counts characters "
        "of `context`. An answer is left out if another word now stands among its words, and a question if no answer "
        "is left. A question without answers is unanswerable."
    ),
}


def task_card(task: TaskSet, manifest: Mapping[str, Any], licence: str | None, command: str | None) -> str:
    """Return the card of the data set folder that ``manifest`` describes.

    ``licence`` is an SPDX id, or None if it is unknown. ``command`` rebuilds the folder, and is left out if it is None.
    """
    # The card has the name of the files, but not their folder.
    title = f"{task.name if ':builtin:' in task.name else PurePath(task.name).name} in {manifest['language']['name']}"
    fingerprints = [("this data set", manifest["fingerprint"]), *manifest["parents"].items()]
    about = (
        "A labelled task set in a synthetic language, made by synthlang. "
        "An id names the same item in all configurations."
    )
    note = "The licence of the original task set applies; check it before you share this data set."
    if licence is not None:
        note = f"{licence}, as far as the licence of the original task set allows."
    sections = [
        ("", about),
        *_content_sections(task, manifest),
        ("Licence", note),
        ("Language", code_block(write_yaml(manifest["language"]), "yaml")),
        *([("How to reproduce it", code_block(command, "sh"))] if command else []),
        ("Fingerprints", markdown_table(("artifact", "fingerprint"), fingerprints)),
    ]
    items = manifest["items"]
    configs = [
        card_config(config, {s: f"data/{config}/{s}.parquet" for s, n in splits.items() if n}, config == "derived")
        for config, splits in items.items()
    ]
    header = card_header(
        configs,
        pretty_name=title,
        licence=licence or UNKNOWN_LICENCE,
        rows=sum(items["derived"].values()),
        tags=["synthlang", "synthetic-language"],
        task_categories=[CATEGORIES[task.kind]],
    )
    return write_card(title, header, sections)


def _content_sections(task: TaskSet, manifest: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the sections on configurations, labels, numbers of items and changes."""
    items, mixed = manifest["items"], manifest["fields"]["mixed"]
    which = [(c, ABOUT[c] + (f": {', '.join(mixed)}" if c == "mixed" else "")) for c in items]
    sizes = [(config, split, n) for config, splits in items.items() for split, n in splits.items()]
    told = {"read": manifest["read"], **manifest["changes"]}
    happened = [(c, s, reason, n) for c, of in told.items() for s, counts in of.items() for reason, n in counts.items()]
    changed = markdown_table(("config", "split", "reason", "times"), happened) if happened else "Nothing."
    return [
        ("Configurations", markdown_table(("config", "content"), which)),
        ("Labels", LABELS.get(task.tags or "", LABELS[task.kind])),
        ("Items", markdown_table(("config", "split", "items"), sizes)),
        ("What was left out or changed", changed),
    ]


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
    """Derive every split of a task, write the data set and return the manifest.

    The config ``parent`` has every item that was read. The config ``derived`` has the items that remain when all fields
    are derived. If ``fields`` are given, the config ``mixed`` has the items with only these fields derived. An id names
    the same item in each config. A folder that already holds this data set is not changed. After a failed export,
    ``folder`` does not exist.

    Args:
        task: The labelled items.
        language: The derived language.
        folder: The folder to create.
        fields: The fields to derive in ``mixed``.
        licence: SPDX id (default: the licence of the task, if it is known).
        command: The command on the card that rebuilds the folder.
        progress: Called as ``progress(split, items)`` after each batch.

    Raises:
        InputError: The licence is not an SPDX id, the task lacks a field, the language cannot be bound or applied to
            the task, or a configuration would be empty. The folder holds other data or a damaged file, or another
            process writes the folder.
        DiskError: The folder cannot be written.
    """
    licence = licence or task.licence
    check_licence(licence or UNKNOWN_LICENCE)
    task = with_columns(task, language.requires)
    language = bind_language(language, task.as_source(), name=task.name)
    configs: Configs = {"parent": (), "derived": None}
    if fields is not None:
        configs["mixed"] = task.field_rows(fields)
    parents = {"task": task.fingerprint, "language": language.fingerprint}
    name = fingerprint("derived-task", format=FORMAT, parents=parents, fields=fields and sorted(fields))
    if folder.exists():
        return finished_export(folder, name)
    with claimed_folder(folder) as temporary:
        manifest: dict[str, Any] = {
            "fingerprint": name,
            "format": FORMAT,
            "task": task.name,
            "language": portable(language)[0],
            "fields": {"all": list(task.fields), "mixed": None if fields is None else sorted(fields)},
            "parents": parents,
            **_write_splits(task, language, configs, temporary, progress),
        }
        write_spec(language, temporary)
        (temporary / "README.md").write_text(task_card(task, manifest, licence, command), encoding="utf-8")
        files = sorted(path for path in temporary.rglob("*") if path.is_file())
        manifest["sha256"] = {p.relative_to(temporary).as_posix(): sha256_file(p) for p in files}
        write_json(temporary / "manifest.json", manifest)
    return manifest


def _write_splits(
    task: TaskSet, language: Language, configs: Configs, folder: Path, progress: Progress | None
) -> dict[str, dict[str, Any]]:
    """Write all splits of every config.

    Returns:
        Entries of the manifest: ``items`` of each config and split, counts of the reader (``read``), and ``changes``.

    Raises:
        InputError: A config has no item in any split.
    """
    items: dict[str, dict[str, int]] = {config: {} for config in configs}
    changes: dict[str, dict[str, dict[str, int]]] = {config: {} for config in configs if config != "parent"}
    read = {}
    for split in task.splits:
        of_split = SPLIT_NAMES[split]
        read[of_split], sizes, happened = _write_split(task, split, language, configs, folder, progress)
        for config in configs:
            items[config][of_split] = sizes[config]
            changes.get(config, {})[of_split] = dict(happened[config])
    for config in configs:
        if not any(items[config].values()):
            total = sum((Counter(counts) for counts in changes.get(config, {}).values()), Counter[str]())
            reason = f"no item is left in the configuration {config} ({listed(total) or 'none was read'})"
            hint = "use transforms that drop fewer items, or a task with more items"
            raise InputError(reason, task.name, hint=hint, code="empty")
    return {"items": items, "read": read, "changes": changes}


def _write_split(
    task: TaskSet,
    split: str,
    language: Language,
    configs: Configs,
    folder: Path,
    progress: Progress | None,
) -> tuple[dict[str, int], Counter[str], dict[str, Counter[str]]]:
    """Write a split of every config.

    Returns:
        The counts of the reader, the number of items of each config, and the counts of changes in each config.
    """
    sizes: Counter[str] = Counter()
    read: Counter[str] = Counter()
    changes: dict[str, Counter[str]] = {config: Counter() for config in configs}
    writers: dict[str, pq.ParquetWriter] = {}
    with ExitStack() as stack:
        for batch in task.batches(split):
            read.update(batch.counts)
            for config, rows in configs.items():
                result, counts = (batch, {}) if rows == () else derive_task(batch, language, rows)
                changes[config].update(counts)
                sizes[config] += len(result)
                if not len(result):  # some libraries cannot read a file without a row
                    continue
                table = task_table(task, result)
                if config not in writers:
                    path = folder / "data" / config / f"{SPLIT_NAMES[split]}.parquet"
                    path.parent.mkdir(parents=True, exist_ok=True)
                    writers[config] = stack.enter_context(pq.ParquetWriter(path, table.schema, compression="zstd"))
                writers[config].write_table(table)
            if progress:
                progress(split, len(batch))
    return dict(read), sizes, changes
