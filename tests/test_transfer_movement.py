"""Movement of a body in fine-tuning, against plain computation, and 0 if all weights are frozen."""

from __future__ import annotations

import copy
import math
from typing import Any

import numpy as np
import pytest
import torch

from pretrain.model.roberta import MaskedLM
from probes.transfer import movement as movements
from probes.transfer.movement import movement
from tests.model_cases import KINDS, SHAPE, model_of
from tests.test_transfer_run import transfer_of


def changed(body: MaskedLM, **changes: Any) -> MaskedLM:
    """A copy with each named parameter as the function of it that is given."""
    new = copy.deepcopy(body)
    with torch.no_grad():
        for name, change in changes.items():
            parameter = new.get_parameter(name.replace("__", "."))
            parameter.copy_(change(parameter.clone()))
    return new


def with_row(row: int, vector: torch.Tensor) -> Any:
    def add(words: torch.Tensor) -> torch.Tensor:
        words[row] += vector
        return words

    return add


@pytest.mark.parametrize("rows", [1, 4, 8192])
@pytest.mark.parametrize("kind", KINDS)
def test_a_movement_of_known_size(kind: str, rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """One row by a vector of a tenth of its length, one by three times it; every parameter of a layer by a quarter."""
    monkeypatch.setattr(movements, "ROWS", rows)
    body = model_of(KINDS[kind])
    words = body.embeddings.words.detach()
    side = torch.zeros_like(words[3])
    side[0] = 3 * words[3].norm()
    first, second = with_row(7, 0.1 * words[7]), with_row(3, side)
    assert movement(body, changed(body, embeddings__words=first)) == {"embeddings": pytest.approx(0.1), "layers": 0.0}
    both = changed(body, embeddings__words=lambda table: second(first(table)))
    assert movement(body, both)["embeddings"] == pytest.approx((0.1 + 3) / 2)
    of_layers = {name for name, _ in body.named_parameters() if name.startswith("layers.")}
    moved = changed(body, **{name.replace(".", "__"): lambda weight: 1.25 * weight for name in of_layers})
    assert movement(body, moved) == {"embeddings": 0.0, "layers": pytest.approx(0.25)}


def test_the_layers_are_one_vector() -> None:
    body = model_of(KINDS["sep L1"])
    first = next(name for name, weight in body.layers[0].named_parameters() if weight.ndim == 2)
    matrix = f"layers.0.{first}".replace(".", "__")
    after = changed(body, **{matrix: lambda weight: weight + 2}, layers__2__qkv__bias=lambda bias: -bias)
    old, new = (dict(one.named_parameters()) for one in (body, after))
    pairs = [(old[name].detach().double(), new[name].detach().double()) for name in old if name.startswith("layers.")]
    squares = sum(float((b - a).square().sum()) for a, b in pairs), sum(float(a.square().sum()) for a, _ in pairs)
    assert movement(body, after)["layers"] == pytest.approx(math.sqrt(squares[0] / squares[1]), rel=1e-5)


def test_rows_of_zeros_and_what_is_of_neither() -> None:
    body = changed(model_of(), embeddings__words=with_row(1, -model_of().embeddings.words[1].detach()))
    still = {"embeddings": 0.0, "layers": 0.0}
    assert movement(body, copy.deepcopy(body)) == still
    assert movement(body, changed(body, embeddings__words=with_row(1, torch.ones(SHAPE.hidden)))) == still
    names = ("embeddings.positions", "embeddings.bias", "norm.weight", "head.dense.weight")
    others = changed(body, **{name.replace(".", "__"): lambda weight: weight + 1 for name in names})
    assert movement(body, others) == still


@pytest.mark.parametrize(
    ("features", "still"),
    [
        ({}, set()),
        ({"freeze_embeddings": True}, {"embeddings"}),
        ({"tune": "none"}, {"embeddings", "layers"}),
    ],
    ids=["tuned", "frozen embeddings", "frozen"],
)
def test_each_fit_tells_how_far_it_moved_the_body(run: Any, features: dict[str, Any], still: set[str]) -> None:
    transfer = transfer_of(run, features=features)
    found = transfer.run(0)
    for of_language in found.fits.values():
        (fit,) = of_language
        assert {name for name, value in fit["moved"].items() if value == 0.0} == still
    body, record = transfer.tune(0)
    assert record == found.fits["source"][0]
    assert record["moved"] == {name: round(value, 4) for name, value in movement(run.model, body).items()}
    if not still:  # only rows of tokens that the training text has
        rows = (body.embeddings.words != run.model.embeddings.words).any(1)
        examples = transfer.examples("source train")
        read = examples.batch(np.arange(len(examples))).text.input_ids.unique()
        assert rows.any() and set(rows.nonzero().flatten().tolist()) <= set(read.tolist())


def test_a_search_tells_it_of_every_kept_setting(run: Any) -> None:
    search = {"fine_tune.learning_rate": [1e-4, 5e-3]}
    fits = transfer_of(run, sup=False, search=search, best=2).run(0).fits["source"]
    by_rate = {fit["setting"]: fit["moved"]["layers"] for fit in fits}
    assert len(by_rate) == 2
    assert max(by_rate.values()) > 5 * min(by_rate.values()) > 0
