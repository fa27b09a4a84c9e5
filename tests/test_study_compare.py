"""The comparisons that a study names: their forms, and those that no study can make."""

from typing import Any

import pytest

from probes.study.cells import expand
from probes.study.compare import comparisons
from tests.refusals import refused
from tests.test_study_cells import study_of

ALPHA = "pretrain.objective.alpha"
GRID: dict[str, Any] = {
    "product": {
        "pretrain.language": ["trans", "trans+inv"],
        "steps": {"few": {"pretrain.steps": 3}, "many": {"pretrain.steps": 9}},
        ALPHA: [1.0, 10.0],
        "pretrain.seed": [0, 1],
    },
    "exclude": [{"steps": "many", ALPHA: 10.0}],
}
PAIR: dict[str, Any] = {"steps": ["many", "few"]}


@pytest.mark.parametrize(
    ("entry", "sides"),
    [
        (PAIR, [{"steps": "many"}, {"steps": "few"}]),
        ({**PAIR, ALPHA: 10}, [{"steps": "many", ALPHA: "10"}, {"steps": "few", ALPHA: "10"}]),
        (
            {"a": ["x", "y"], "b": [True, False]},
            [{"a": a, "b": b} for b in ("true", "false") for a in ("x", "y")],
        ),
        ([{"a": "x", "b": "v"}, {"a": "y", "b": "w"}], [{"a": "x", "b": "v"}, {"a": "y", "b": "w"}]),
    ],
)
def test_the_conditions_of_an_entry(entry, sides):
    (found,) = comparisons([entry])
    assert list(found.sides) == sides and found.is_interaction == (len(sides) == 4)


def test_a_study_names_labels_of_its_cells():
    entries = [{**PAIR, ALPHA: 1}, {"pretrain.language": ["trans+inv", "trans"], ALPHA: [10.0, 1.0], "steps": "few"}]
    assert len(expand(study_of(grid=GRID, compare=entries))) == 12


@pytest.mark.parametrize(
    ("entry", "place"),
    [
        ({"steps": "few"}, ("compare.0", "range")),
        ({"a": ["x", "y"], "b": ["x", "y"], "c": ["x", "y"]}, ("compare.0", "range")),
        ({"steps": ["few"]}, ("compare.0.steps", "range")),
        ({"steps": ["few", "few"]}, ("compare.0.steps", "range")),
        ({"pretrain.seed": [0, 1]}, ("compare.0.pretrain.seed", "conflict")),
        ([{"steps": few, "pretrain.seed": 0} for few in ("few", "many")], ("compare.0.pretrain.seed", "conflict")),
        ([{"steps": "few"}], ("compare.0", "range")),
        ([{"steps": "few"}, {"steps": "few"}], ("compare.0", "conflict")),
        ([{"steps": "few"}, {ALPHA: 1}], ("compare.0", "conflict")),
        ({"step": ["few", "many"]}, ("compare.0.step", "unknown")),
        ({"steps": ["few", "much"]}, ("compare.0.steps", "unknown")),
        ({**PAIR, ALPHA: 10}, ("compare.0", "no_effect")),
    ],
)
def test_comparisons_that_a_study_cannot_make(entry, place):
    assert refused(lambda: expand(study_of(grid=GRID, compare=[entry]))) == place
