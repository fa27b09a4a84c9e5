"""Tokens, parameters and operations of a pretraining: counts by hand, and the numbers of real models."""

import numpy as np
import pytest

from pretrain.config import PretrainConfig
from pretrain.cost import ModelSize, pretraining_flops, size_of_run
from pretrain.model.roberta import MaskedLM
from synthlang.config import parse
from tests.tiny import PRETRAIN, changed


def config_of(**values) -> PretrainConfig:
    return parse(PretrainConfig, changed({**PRETRAIN, "sharing": {}, "sampling": {}}, **values))


def test_the_run_of_the_paper_by_hand():
    """ALIGN-MLM as printed: 500,000 steps of 128 rows of 512 tokens, 8 layers of width 512, 2 × 40,000 ids."""
    model = {"layers": 8, "heads": 8, "hidden": 512, "feed_forward": 2048}
    config = config_of(
        steps=500_000, model=model, vocabulary={"size": 40_000}, batch={"rows": 128, "length": 512}, objective={}
    )
    size = size_of_run(config)
    assert config.batch.tokens == 65_536 and config.tokens == 32_768_000_000
    d, masked = 512, 77
    layer = 12 * d * d  # weights of a layer: attention 4 d², feed-forward 8 d²
    assert size.words == size.outputs == 80_000
    assert size.parameters == pytest.approx(8 * layer + 80_000 * d + 512 * d + d * d, rel=0.005)
    products: float = 7 * (layer + 2 * 512 * d) + 2 * d * d  # seven whole layers; keys and values of the last
    products += masked / 512 * (10 * d * d + 2 * 512 * d + d * d + d * 80_000)  # the masked positions
    assert size.flops_per_token(512, masked) == pytest.approx(6 * products)
    assert pretraining_flops(config, size) == pytest.approx(32.768e9 * 6 * products)


def test_a_small_run_by_hand():
    config = config_of(objective={"kind": "mlm", "mask_rate": 0.25}, batch={"rows": 4, "length": 8})
    size = size_of_run(config)
    assert config.tokens == 6 * 4 * 8
    assert size == ModelSize(1, 16, 32, words=600, outputs=600, others=8)
    keys, rest = 2 * 16 * 16, 2 * 16 * 16 + 2 * 8 * 16 + 2 * 16 * 32  # per token, and per masked position
    head = 16 * (16 + 600)
    assert size.flops_per_token(8, 2) == 3 * 2 * (8 * keys + 2 * rest + 2 * head) / 8


@pytest.mark.parametrize(
    ("values", "rows", "own"),
    [
        ({}, 600, [300, 300]),
        ({"vocabulary__kind": "joint", "model__positions": 64}, 300, [300, 300]),
        ({"vocabulary__kind": "joined", "objective__kind": "xlm"}, 600, [300, 300]),
        (
            {"vocabulary__kind": "joined", "sharing": {"embeddings": "separate", "layers": [1]}, "model__layers": 2},
            600,
            [300, 300],
        ),
        ({"model__output": "linear", "model__feed_forward": 64, "model__hidden": 16}, 600, [300, 300]),
    ],
)
def test_parameters_are_those_of_the_model(values, rows, own):
    config = config_of(**{"objective__kind": "mlm", **values})
    size = size_of_run(config)
    assert size.words == rows
    sharing, length = config.sharing, config.model.positions or config.batch.length

    def count(languages: int) -> int:
        ids = [np.arange(n) for n in own[:languages]]
        uses_ids = config.objective.uses_language_ids
        model = MaskedLM(config.model, sharing, ids, rows, length, pad=1, language_ids=uses_ids, seed=0)
        return sum(parameter.numel() for parameter in model.parameters())

    assert size.parameters == count(2)
    assert size_of_run(config, exported=True).parameters == count(1)
    assert size_of_run(config, ids=77).words == 77
