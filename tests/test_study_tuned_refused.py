"""Studies with ``tuned`` that cannot run are refused in one line, before anything starts."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from pretrain.config import ModelConfig, SharingConfig
from pretrain.model.encoder import MaskedLM
from probes.study.checks import check_cells
from probes.transfer.config import TransferConfig
from probes.transfer.model import check_keep
from synthlang.errors import InputError
from tests.study_graphs import FULL, graph_of
from tests.study_tuned import BASE
from tests.tiny import changed

SEPARATE = {"embeddings": "separate"}


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"probes": {}, "tasks": {"pos": {}}}, "tuned has no effect on a cell without probes"),
        ({"second": {**FULL["pretrain"], "seed": 7}}, "a cell has either tuned or second"),
        ({"tuned": {"task": "poss"}}, "tuned.task: 'poss' must be 'nli', 'ner'"),
        ({"tuned": {"seed": -1}}, "tuned.seed: .*0"),
        ({"tuned": {"seed": "one"}}, "tuned.seed: 'one' must be a valid integer"),
        ({"tuned": [1]}, "tuned.*must be an object"),
        ({"tuned": {"epochs": 3}}, "tuned.epochs: unknown key"),
        ({"tuned": {"length": 500}}, "tuned.length 500 exceeds the 48 tokens that the model reads"),
        ({"tuned": {"features": {"tune": "none"}}}, "tuned.features.tune: with none no body is fine-tuned"),
        ({"tuned": {"search": {"features.tune": ["all", "none"]}}}, "tuned.features.tune: with none no body"),
        ({"transfer__rotation": {}}, "tuned.rotation: a rotation is no part of the model"),
        ({"tuned": {"best": 2, "search": {"fine_tune.rows": [4, 8]}}}, "tuned.best: the probes read one model"),
        ({"tuned": {"train": "conllu:/nowhere"}}, "tuned.*nowhere"),
        ({"pretrain__sharing": SEPARATE}, "tuned: the languages of the run have weights of their own"),
        ({"pretrain__objective": {"kind": "xlm"}}, "tuned: the languages of the run have weights of their own"),
        ({"probes": {"w": {"probes": ["words"]}}}, "probes.w.*words.dictionary"),
        (
            {
                "tuned": {
                    "language": "trans",
                    "continual": {"pairs": {"x": {"kind": "text", "left": "no", "right": "no"}}},
                }
            },
            "no such file no",
        ),
        ({"grid": {"product": {"tuned.test_items": [5, 6]}}}, "two cells of the grid are the same"),
        ({"grid": {"product": {"tuned.fine_tune.epoch": [5]}}}, r"tuned.fine_tune.epoch: unknown key; .*\(axis"),
    ],
)
def test_bad_input_is_one_line(values, message):
    if "sharing" in str(values):
        values = {**values, "pretrain__vocabulary": {"kind": "joint", "size": 300}}
    with pytest.raises(InputError, match=message) as caught:
        check_cells(graph_of(changed(BASE, **values))[1])
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("part", ["language ids", "layers"])
def test_a_body_with_parts_of_a_language_is_not_kept(part):
    ids, size = [np.arange(10)] * 2, ModelConfig(layers=1, heads=1, hidden=4, feed_forward=4)
    sharing = SharingConfig(layers=(1,) if part == "layers" else ())
    body = MaskedLM(size, sharing, ids=ids, size=10, positions=8, pad=1, language_ids=part == "language ids", seed=0)
    pretrained: Any = SimpleNamespace(model=body)
    with pytest.raises(InputError, match=r"^tuned: the model has parts of its own for each language"):
        check_keep(TransferConfig(), pretrained, "tuned")
