"""A batch of a task as rows, with the columns that the hub's data sets of its kind have.

classes   id, premise, hypothesis, label                   as glue, xnli
words     id, tokens, ner_tags | slots, intent             as conll2003, with tags as strings
          id, tokens, upos | upos, head, deprel            as universal_dependencies, heads as numbers
spans     id, title, context, question, answers            as squad: {text: […], answer_start: […]}

Columns of texts say that a space stands between each two words, so that who reads them need not guess.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pyarrow as pa

from synthlang.corpus import Column
from synthlang.sources.hub_data import SPACED
from synthlang.tasks.base import TaskSet
from synthlang.tasks.batch import TaskBatch

TAG_NAMES = {"ner": "ner_tags", "slot": "slots"}
TREE = ("upos", "head", "deprel")  # what a task whose tags are relations has


def task_table(task: TaskSet, batch: TaskBatch) -> pa.Table:
    """The rows of a batch; class labels are numbers that ``datasets`` shows with their names."""
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
    """[answers] the words of each answer, and the character of its text (see TaskBatch.strings) it starts at."""
    form, bounds = batch.corpus.form, batch.word_offsets
    lengths = np.fromiter((len(name) + 1 for name in form.names or ()), np.int64, len(form.names or ()))
    before = np.concatenate([[0], np.cumsum(lengths[form.codes])]).astype(np.int64)
    start, stop = batch.answers.start, batch.answers.stop
    text = np.searchsorted(bounds, start, side="right") - 1
    words = form.values()
    texts = [" ".join(words[a:b]) for a, b in zip(start.tolist(), stop.tolist(), strict=True)]
    return texts, (before[start] - before[bounds[text]]).tolist()


def _answers(batch: TaskBatch) -> pa.StructArray:
    """For each item a list of texts and a list of starts; empty for a question without an answer."""
    offsets = pa.array(np.searchsorted(batch.answers.item, np.arange(len(batch) + 1)).astype(np.int32))
    texts, starts = answer_texts(batch)
    lists = [pa.ListArray.from_arrays(offsets, pa.array(v, t)) for v, t in ((texts, pa.string()), (starts, pa.int32()))]
    return pa.StructArray.from_arrays(lists, names=["text", "answer_start"])


def _lists(offsets: np.ndarray[Any, Any], column: Column) -> pa.ListArray:
    """A list of strings, or of numbers, for each sentence."""
    values = pa.array(column.codes)
    if column.names is not None:
        values = pa.DictionaryArray.from_arrays(values, pa.array(column.names, pa.string())).cast(pa.string())
    return pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), values)
