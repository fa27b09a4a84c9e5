"""Batches: each row once, in random company, predictions that do not depend on them; and searches."""

from __future__ import annotations

import numpy as np
import pytest

from probes.transfer.batch import bounded_batches
from probes.transfer.config import TransferConfig, combinations
from probes.transfer.fit import predict, training_batches
from probes.transfer.run import rank
from synthlang.errors import InputError
from tests.transfer_fits import fine_tune_tiny, model_of, tokens

LENGTHS = np.random.default_rng(0).gamma(4, 8, 5000).astype(np.int64) + 3


@pytest.mark.parametrize("count", [1, 31, 32, 33, 2048, 2049, 5000])
def test_each_row_once_an_epoch(count):
    batches = training_batches(count, 32, key=1)
    assert sorted(np.concatenate(batches).tolist()) == list(range(count))
    sizes = sorted(len(batch) for batch in batches)
    assert len(batches) == -(-count // 32) and sizes[1:] == [32] * (len(sizes) - 1)


def test_which_rows_come_together_is_chance():
    batches, again, other = (training_batches(5000, 32, key) for key in (1, 1, 2))
    assert all(np.array_equal(a, b) for a, b in zip(batches, again, strict=True))
    together = {frozenset(batch.tolist()) for batch in batches} & {frozenset(batch.tolist()) for batch in other}
    assert not together  # another epoch has other batches, not the same ones in another order
    classes = np.arange(5000) * 3 // 5000  # of rows that lie together in the file
    shares = np.array([np.bincount(classes[batch], minlength=3) / len(batch) for batch in batches[:-1]])
    spread = np.sqrt(1 / 3 * 2 / 3 / 32)  # of a share in a random batch
    assert np.allclose(shares.std(axis=0), spread, rtol=0.25)


@pytest.mark.parametrize(("rows", "tokens"), [(256, 8192), (8, 8192), (256, 100), (1, 1), (256, 1)])
def test_bounded_batches(rows, tokens):
    batches = bounded_batches(LENGTHS[:1000], rows, tokens)
    assert sorted(np.concatenate(batches).tolist()) == list(range(1000))
    for batch in batches:
        assert len(batch) <= rows and (len(batch) == 1 or len(batch) * LENGTHS[batch].max() <= tokens)
    starts = [LENGTHS[batch].max() for batch in batches]
    assert starts == sorted(starts, reverse=True)
    assert bounded_batches(LENGTHS[:0]) == []


def test_predictions_do_not_depend_on_batches():
    model, examples = model_of(seed=4), tokens(50, seed=5)
    fine_tune_tiny(model, examples)
    whole = predict(model, examples)
    assert [len(labels) for labels in whole] == [len(labels) for labels in examples.labels]
    for rows, most in ((1, 8192), (7, 8192), (256, 20)):
        assert predict(model, examples, rows, most) == whole
    one = [labels for row in range(50) for labels in model.decode(examples.batch(np.array([row])))]
    assert one == whole


def config_of(**search) -> TransferConfig:
    return TransferConfig(search={key.replace("__", "."): values for key, values in search.items()})


def test_every_combination():
    config = config_of(fine_tune__learning_rate=[1e-5, 2e-5], head__kind=["linear", "crf"], features__layers=[[-1]])
    found = combinations(config)
    assert [label for label, _ in found] == [
        f"fine_tune.learning_rate={rate} head.kind={kind} features.layers=[-1]"
        for rate in ("1e-05", "2e-05")
        for kind in ("linear", "crf")
    ]
    last = found[-1][1]
    assert last.fine_tune.learning_rate == 2e-5 and last.head.kind == "crf" and last.features.layers == (-1,)
    unchanged = last.model_copy(update={"fine_tune": config.fine_tune, "head": config.head, "search": config.search})
    assert unchanged == config and last.search == {}


def test_equal_combinations_come_once_and_none_is_the_settings_themselves():
    assert len(combinations(config_of(fine_tune__epochs=[3, 3, 4]))) == 2
    assert combinations(TransferConfig()) == [("", TransferConfig())]


@pytest.mark.parametrize(
    ("search", "message"),
    [
        ({"fine_tune__learning_rat": [1.0]}, r"search: fine_tune.learning_rat=1.0: .*learning_rat"),
        ({"fine_tune__epochs": [1, "many"]}, r"search: fine_tune.epochs=many: .*fine_tune.epochs"),
        ({"fine_tune__epochs__x": [1]}, r"search: fine_tune.epochs.x=1: .*fine_tune.epochs"),
        ({"head__dropout": [0.1, 1.5]}, r"search: head.dropout=1.5: .*head.dropout"),
    ],
    ids=["key", "type", "inside", "range"],
)
def test_a_search_over_what_is_not_there(search, message):
    with pytest.raises(InputError, match=message):
        combinations(config_of(**search))


def test_rank():
    assert rank([50.0, 70.0, 60.0, 70.0], best=3) == [1, 3, 2]
    assert rank([1.0], best=5) == [0] and rank([], best=1) == []
