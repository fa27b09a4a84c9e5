"""Every batch of a run has the same shapes and dtypes, so that a compiler sees one graph."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import pytest

from pretrain.build import dev_batches, train_batches
from pretrain.config import PretrainConfig
from pretrain.data.batch import Batch
from pretrain.prepare import prepare
from synthlang.store import Store
from tests.tiny import PRETRAIN, changed

STEPS = (0, 1, 2, 3, 50, 51, 52, 1_000_003)
CASES: dict[str, dict[str, Any]] = {
    "mlm": {},
    "xlm": {"objective__tlm_rate": 1.0},
    "dict_mlm": {"objective__dict_target": "as-paper"},
    "dict_mlm as-code": {"objective__dict_target": "as-code"},
    "dict_mlm corrected": {},
    "align_mlm": {},
    "sum": {"objective__weights": {"mlm": 1.0, "tlm": 1.0, "dict": 1.0, "align": 10.0}},
    "mlm separate": {"sharing": {"embeddings": "separate", "layers": [1]}},
}


def shapes(batch: Batch) -> dict[str, tuple[tuple[int, ...], str] | None]:
    """Shape and dtype of each field; None where there is none."""
    values = {f.name: getattr(batch, f.name) for f in fields(batch) if f.name != "groups"}
    return {name: None if value is None else (value.shape, str(value.dtype)) for name, value in values.items()}


def arrays_differ(a: Batch, b: Batch) -> bool:
    return not np.array_equal(a.input_ids, b.input_ids)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return Store(tmp_path_factory.mktemp("store"))


@pytest.mark.parametrize("packing", ["stream", "sentences"])
@pytest.mark.parametrize("name", CASES)
def test_every_batch_of_a_run_has_the_same_shapes(name, packing, store):
    kind = name.split()[0]
    data = changed(PRETRAIN, objective__kind=kind, batch__packing=packing, **CASES[name])
    config = PretrainConfig.model_validate(data)
    artifacts = prepare(config, store)
    batches = train_batches(config, artifacts)
    rows, length = config.batch.rows, config.batch.length
    wanted = shapes(batches.batch(0))
    assert wanted["input_ids"] == wanted["languages"] == ((rows, length), "int64")
    assert wanted["masked"] == wanted["labels"] == wanted["terms"]
    assert wanted["samples"] == ((rows,), "int64")
    assert (wanted["valid"] is None) == (packing == "stream" and kind in ("mlm", "dict_mlm", "align_mlm"))
    drawn = [batches.batch(step) for step in STEPS]
    assert [shapes(batch) for batch in drawn] == [wanted] * len(STEPS)
    assert all(arrays_differ(drawn[0], batch) for batch in drawn[1:]), "the same batch again shows nothing"
    for parts in (2, 4):
        parted = [shapes(batches.batch(step, part, parts)) for step in STEPS[:4] for part in range(parts)]
        assert all(shape == parted[0] for shape in parted)
        assert parted[0]["input_ids"] == ((rows // parts, length), "int64")
    for member in range(len(artifacts.languages)):
        seen = shapes(dev_batches(config, artifacts, member).batch(0))
        assert seen == wanted, "validation would be another graph of another kind"


@pytest.mark.parametrize("kind", ["mlm", "xlm"])
def test_the_rows_of_a_source_are_few_numbers(kind, store):
    """A model with separate parts has one graph for each division of the rows among the sources: two for each
    source at most, since quotas are exact."""
    data = changed(PRETRAIN, objective__kind=kind)
    config = PretrainConfig.model_validate(data)
    batches = train_batches(config, prepare(config, store))
    divisions = {tuple((g.start, g.stop, g.spans) for g in batches.batch(step).groups) for step in range(200)}
    assert len(divisions) <= (1 if kind == "mlm" else 8)
