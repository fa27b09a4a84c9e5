"""Real pairs and questions as rows: nothing is lost that is not counted."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from synthlang.sources.base import Source
from synthlang.tasks import derive_task, open_task
from synthlang.tasks.batch import TaskBatch, join_batches
from synthlang.vocabulary import Vocabulary, train_vocabulary
from tests.pair_cases import cut, nli, plain_row, qa, reader, shown, tokens_of
from tests.real_data import DATA

NLI = {
    "nli/xnli/test.en.tsv": ("entailment", "neutral", "contradiction"),
    "nli/xnli/test.es.tsv": ("entailment", "neutral", "contradiction"),
    "nli/rte/dev.tsv": ("entailment", "not_entailment"),
    "nli/sick/SICK_trial.txt": ("entailment", "neutral", "contradiction"),
}


def items(spec: str, count: int) -> tuple[TaskBatch, Vocabulary]:
    """The first items of a task, and a vocabulary of their text; skips where the data is absent."""
    scheme, _, name = spec.partition(":")
    if not (DATA / name).exists():
        pytest.skip(f"needs {DATA / name}")
    return _items(f"{scheme}:{DATA / name}", count)


@cache
def _items(spec: str, count: int) -> tuple[TaskBatch, Vocabulary]:
    task = open_task(spec)
    [split] = task.splits
    source: Source = task.as_source()
    held, batches = 0, []
    for batch in task.batches(split):
        batches.append(batch)
        held += len(batch)
        if held >= count:
            break
    joined = join_batches(batches)
    words = train_vocabulary([next(iter(source.batches(split)))], 1000)
    return joined.take(np.arange(min(count, held))), words


@pytest.mark.parametrize("language", ["parent", "trans+inv"])
@pytest.mark.parametrize("name", NLI)
def test_pairs(name, language):
    batch, words = items(f"nli:{name}", 300)
    own = reader(language, int(language != "parent"), words=words)
    batch, _ = derive_task(batch, own.language)
    task = nli(length=48)
    labels = task.labels(batch)
    assert labels["label"] == NLI[name]
    examples = task.encode(batch, (own, own), labels)
    assert batch.label is not None
    assert list(examples.gold) == batch.label.values() == examples.predictions(examples.label.tolist())
    text = examples.batch(np.arange(len(examples))).text
    long = 0
    for row in range(0, len(examples), 9):
        texts = [tokens_of(batch, row, field, own) for field in (0, 1)]
        a, b = cut(texts, 44)
        assert shown(text, row)[0] == plain_row(a, b, False)[0]
        long += len(texts[0]) + len(texts[1]) > 44
    assert long or "sick" in name
    metric = task.metrics()["accuracy"]
    assert metric(examples.gold, examples.gold) == 100.0
    assert 30 < metric(examples.gold, task.majority(examples.gold, examples.gold)) < 70


@pytest.mark.parametrize(
    "names", [("parent", "parent"), ("trans+inv", "trans+inv"), ("parent", "trans+inv")], ids="-".join
)
@pytest.mark.parametrize("name", ["qa/xquad/xquad.en.json", "qa/xquad/xquad.es.json"])
def test_questions(name, names):
    batch, words = items(f"qa:{name}", 200)
    readers = tuple(reader(n, int(n != "parent"), words=words) for n in names)
    if names[0] == names[1]:
        batch, _ = derive_task(batch, readers[0].language)
    else:
        batch, _ = derive_task(batch, readers[1].language, (1,))
    task = qa(length=160, stride=64)
    examples = task.encode(batch, readers, task.labels(batch))
    outputs: list[tuple[float, list[tuple[float, int, int]]]] = []
    for rows in np.array_split(np.arange(len(examples)), 20):
        held = examples.batch(rows)
        for start, stop in zip(held.targets["start"].tolist(), held.targets["stop"].tolist(), strict=True):
            outputs.append((0.0, [(1.0, start, stop)] if stop else []))
    found = examples.predictions(outputs)
    lost = sum(n for reason, n in examples.counts.items() if reason.startswith("answers"))
    right = sum(said["answer"] == gold["answers"][0] for said, gold in zip(found, examples.gold, strict=True))
    assert right == len(batch) - lost and lost <= len(batch) // 20
    assert len(examples) > len(batch)
    metrics = task.metrics()
    assert metrics["exact_match"](examples.gold, found) >= 95.0
    constant = task.majority(examples.gold, examples.gold)
    assert 0.0 <= metrics["f1"](examples.gold, constant) < 20.0
