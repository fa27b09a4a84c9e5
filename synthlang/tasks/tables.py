"""A batch of a task as rows, with the columns that the hub's data sets of its kind have.

classes   id, premise, hypothesis, label                   as glue, xnli
words     id, tokens, ner_tags | slots, intent             as conll2003, with tags as strings
spans     id, title, context, question, answers            as squad: {text: […], answer_start: […]}
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pyarrow as pa

from synthlang.corpus import Column
from synthlang.tasks.base import TaskSet
from synthlang.tasks.batch import TaskBatch

TAG_NAMES = {"ner": "ner_tags", "slot": "slots"}


def task_table(task: TaskSet, batch: TaskBatch) -> pa.Table:
    """The rows of a batch; class labels are numbers that ``datasets`` shows with their names."""
    columns: dict[str, Any] = {"id": pa.array(batch.ids, pa.string())}
    columns |= {name: pa.array(values, pa.string()) for name, values in batch.extra.items()}
    if task.tags is not None:
        assert len(batch.corpus) == len(batch), "an item with labelled words is a sentence"
        columns["tokens"] = _lists(batch.corpus.offsets, batch.corpus.form)
        columns[TAG_NAMES[task.tags]] = _lists(batch.corpus.offsets, batch.corpus.columns[task.tags])
    else:
        columns |= {name: pa.array(batch.strings(i), pa.string()) for i, name in enumerate(task.fields)}
    if batch.label is not None:
        columns[task.label_name] = pa.array(batch.label.codes.astype(np.int64))
    if task.kind == "spans":
        columns["answers"] = _answers(batch)
    table = pa.table(columns)
    if batch.label is None:
        return table
    names = {"names": list(task.labels), "_type": "ClassLabel"}
    features = {"info": {"features": {task.label_name: names}}}
    return table.replace_schema_metadata({"huggingface": json.dumps(features, ensure_ascii=False)})


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
    """A list of strings for each sentence."""
    names = pa.array(column.names or (), pa.string())
    values = pa.DictionaryArray.from_arrays(pa.array(column.codes), names).cast(pa.string())
    return pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), values)
