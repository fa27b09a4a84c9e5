"""The grid of a study: which cells there are, in which order, under which names; and what is refused."""

import itertools
from collections import Counter
from typing import Any

import pytest

from probes.study.axes import RESERVED, distinct_labels, label_of
from probes.study.grid import GridConfig
from synthlang.config import parse
from tests.refusals import refusal, refused

A, B, C = "pretrain.seed", "pretrain.steps", "transfer.fine_tune.epochs"
IDS, BASE, LANGUAGE = "pretrain.objective.language_ids", "pretrain.base.3", "pretrain.languages.1"
AXES = {A: [0, 1], B: [5, 6]}
FILES = ["ax/rate.yaml", "bx/rate.yaml"]
NAMED = [{"name": "x", "language": "trans"}, {"name": "x", "language": "trans+inv"}]
OBJECTIVE = {
    "MLM": {"pretrain.objective.kind": "mlm"},
    "ALIGN-MLM": {"pretrain.objective.kind": "align_mlm", "pretrain.objective.alpha": 10.0},
}


def grid(**values) -> GridConfig:
    return parse(GridConfig, values)


def overrides(**values):
    return [point.overrides for point in grid(**values).points()]


def names(**values):
    return [point.name for point in grid(**values).points()]


def test_a_product_is_in_the_order_of_the_yaml_with_the_last_axis_fastest():
    axes = {B: [5, 6], A: [0, 1, 2], C: [1, 2]}
    expected = [dict(zip(axes, values, strict=True)) for values in itertools.product(*axes.values())]
    assert overrides(product=axes) == expected


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({}, [{}]),
        ({"zip": {A: [0, 0], B: [5, 6]}}, [{A: 0, B: 5}, {A: 0, B: 6}]),
        (
            {"product": {C: [1, 2]}, "zip": {A: [0, 1], B: [5, 6]}},
            [{C: c, A: a, B: a + 5} for c in (1, 2) for a in (0, 1)],
        ),
        ({"product": {A: [0, 1], B: None}, "zip": {C: None}}, [{A: 0}, {A: 1}]),  # axes of a base, taken away
        ({"product": {"one": {"x": {A: 1, B: 2}}, "two": {"y": {A: 3}}}}, [{A: 3, B: 2}]),  # a later axis wins
        ({"product": AXES, "exclude": [{A: 0, B: 6}]}, [{A: 0, B: 5}, {A: 1, B: 5}, {A: 1, B: 6}]),
        ({"product": AXES, "exclude": [{A: 0}, {B: 6}]}, [{A: 1, B: 5}]),
        ({"product": {A: [0, 1]}, "zip": {B: [1, 2]}, "exclude": [{B: 1}]}, [{A: 0, B: 2}, {A: 1, B: 2}]),
        ({"product": {IDS: [True, 1]}, "exclude": [{IDS: True}]}, [{IDS: 1}]),  # true is not one
        ({"product": {A: [1.0, 10.0, True, "10"]}, "exclude": [{A: 10}]}, [{A: 1.0}, {A: True}, {A: "10"}]),
        ({"include": [{A: 1}, {A: 2}]}, [{A: 1}, {A: 2}]),
        ({"product": {A: [0, 1]}, "exclude": [{A: 0}], "include": [{A: 0, B: 3}]}, [{A: 1}, {A: 0, B: 3}]),
    ],
)
def test_which_cells_there_are(values, expected):
    assert overrides(**values) == expected


def test_a_sample_is_a_random_part_of_the_product():
    axes = {A: list(range(10)), B: list(range(1, 11))}
    whole = names(product=axes)
    drawn = [names(product=axes, sample={"cells": 30, "seed": seed}) for seed in (0, 0, 1)]
    assert drawn[0] == drawn[1] != drawn[2] and all(len(set(some)) == 30 for some in drawn)
    assert drawn[0] == [name for name in whole if name in drawn[0]]  # in the order of the grid
    assert names(product=axes, sample={"cells": 100}) == names(product=axes, sample={"cells": 500}) == whole
    times = Counter(name for seed in range(200) for name in names(product=axes, sample={"cells": 30, "seed": seed}))
    assert set(times) == set(whole) and max(times.values()) < 90 and min(times.values()) > 34  # 60 ± 6.5
    left = names(product=axes, exclude=[{A: 0}], sample={"cells": 89}, include=[{A: 0, B: 1}])
    assert len(left) == 90 and sum("seed=0" in name for name in left) == 1


def test_named_axes_set_what_their_labels_say():
    found = grid(product={"objective": OBJECTIVE, A: [0, 1]}, exclude=[{"objective": "MLM", A: 1}]).points()
    assert [point.name for point in found] == [
        *("MLM, pretrain seed=0", "ALIGN-MLM, pretrain seed=0", "ALIGN-MLM, pretrain seed=1")
    ]
    assert found[1].labels == {"objective": "ALIGN-MLM", A: "0"}
    assert found[1].overrides == {"pretrain.objective.kind": "align_mlm", "pretrain.objective.alpha": 10.0, A: 0}
    assert [setting.axis for setting in found[1].settings] == ["objective", "objective", A]
    found = grid(zip={"objective": OBJECTIVE, A: [3, 4]}).points()
    assert [point.labels for point in found] == [{"objective": "MLM", A: "3"}, {"objective": "ALIGN-MLM", A: "4"}]
    found = grid(product={"dose": {"0": {A: 0}, "0.5": {A: 1}}}).points()
    assert [point.labels["dose"] for point in found] == ["0", "0.5"]


def test_a_label_that_is_a_number_is_found_as_one():
    dose = {"0": {A: 0}, "0.5": {A: 1}}  # as --set, and a word of the catalogue, write it: 0.5
    found = grid(product={"dose": dose}, exclude=[{"dose": 0}], include=[{"dose": 0.5, B: 9}]).points()
    assert [point.labels for point in found] == [{"dose": "0.5"}, {"dose": "0.5", B: "9"}]


def test_exclude_takes_values_and_labels_of_mappings():
    languages = [{"name": "weak", "transforms": []}, {"name": "strong", "transforms": []}]
    for wanted in ("weak", languages[0]):
        assert names(product={"pretrain.language": languages}, exclude=[{"pretrain.language": wanted}]) == ["strong"]


def test_include_adds_cells_at_the_end():
    found = grid(
        product={"objective": OBJECTIVE},
        include=[{"objective": "MLM", C: 7}, {"objective": {"XLM": {"pretrain.objective.kind": "xlm"}}}, {B: 9}],
    ).points()
    assert [point.name for point in found] == ["MLM", "ALIGN-MLM", "MLM, epochs=7", "XLM", "steps=9"]
    assert found[2].overrides == {"pretrain.objective.kind": "mlm", C: 7}
    assert (found[3].labels, found[4].labels) == ({"objective": "XLM"}, {B: "9"})


def test_the_settings_of_an_entry_are_in_the_order_of_the_axes():
    axes = {"one": {"x": {A: 1, B: 2}}, "two": {"y": {A: 3}}}
    (_, last) = grid(product=axes, include=[{"pretrain.log_every": 9, "two": "y", A: 4, "one": "x"}]).points()
    assert list(last.labels) == ["one", "two", "pretrain.log_every", A]
    assert [s.value for s in last.settings if s.key == A] == [1, 3, 4]
    (_, last) = grid(product=axes, include=[{"two": "y", "one": "x"}]).points()
    assert last.overrides == {A: 3, B: 2}  # as the cell of the product has it
    (_, last) = grid(product={"two": axes["two"]}, zip={A: [7]}, include=[{A: 5, "two": "y"}]).points()
    assert last.overrides == {A: 5}


# --- labels: no two values of an axis have one ---


@pytest.mark.parametrize(
    ("key", "value", "label"),
    [
        (A, 3, "3"),
        (A, 0.5, "0.5"),
        ("pretrain.language", "trans+inv", "trans+inv"),
        ("pretrain.language", {"name": "weak", "transforms": []}, "weak"),
        ("adjust", None, "null"),
        (A, True, "true"),
        ("pretrain.sharing.layers", [1, 2], "[1, 2]"),
        ("pretrain.base", ["../rows/mlm.yaml", "../sizes/tiny.yaml"], "mlm+tiny"),
        ("tasks.pos.base", "x/pos.yaml", "pos"),
        ("pretrain.base.0", "../rows/mlm.yaml", "mlm"),
    ],
)
def test_labels_of_values(key, value, label):
    assert label_of(key, value) == label


def test_names_of_cells():
    assert names(product={"pretrain.language": ["trans"], C: [7]}) == ["trans, epochs=7"]
    assert names(product={"pretrain.language": [{"name": "weak", "transforms": []}]}) == ["weak"]
    assert names(product={"pretrain.base": [["a/mlm.yaml", "b/tiny.yaml"]], "source": ["lines:x"]}) == [
        "mlm+tiny, lines:x"
    ]


def labels(axis, **values):
    return [point.labels.get(axis) for point in grid(**values).points()]


@pytest.mark.parametrize(
    ("axis", "values", "expected"),
    [
        (BASE, FILES, ["ax/rate", "bx/rate"]),
        (BASE, [*FILES, "bx/size.yaml"], ["ax/rate", "bx/rate", "size"]),  # the others as they were
        (BASE, ["a/x.yaml", "a/x.yml"], ['"a/x.yaml"', '"a/x.yml"']),
        ("pretrain.base", [["a/x.yaml", "a/y.yaml"], ["a/x.yaml", "b/y.yaml"]], ["a/x+a/y", "a/x+b/y"]),
        (
            LANGUAGE,
            NAMED,
            ['{"name": "x", "language": "trans"}', '{"name": "x", "language": "trans+inv"}'],
        ),
        (A, ["1", 1, 2], ['"1"', "1", "2"]),
        (A, ["1", 1, '"1"', "2"], ['"1"', "1", r'"\"1\""', "2"]),  # what became longer meets another label
    ],
)
def test_two_values_have_two_labels(axis, values, expected):
    assert labels(axis, product={axis: values}) == expected
    assert len({point.name for point in grid(product={axis: values}).points()}) == len(values)
    for value, label in zip(values, expected, strict=True):
        assert labels(axis, product={axis: values}, exclude=[{axis: value}]) == [x for x in expected if x != label]


def test_a_label_that_is_longer_chooses_too():
    assert labels(BASE, product={BASE: FILES}, exclude=[{BASE: "ax/rate"}]) == ["bx/rate"]
    wrong = grid(product={BASE: FILES}, exclude=[{BASE: "rate"}])
    assert refused(wrong.points) == (f"grid.exclude.0.{BASE}", "unknown")


def test_labels_that_differ_are_left_as_they_are():
    values = ["mlm", {"name": "weak", "transforms": []}, {"name": "strong", "transforms": []}, 3, None, [1, 2]]
    assert list(distinct_labels(LANGUAGE, values).values()) == [label_of(LANGUAGE, value) for value in values]


def test_one_value_has_one_label_wherever_it_stands():
    assert labels(BASE, zip={BASE: [FILES[0], FILES[0], FILES[1]], A: [0, 1, 0]}) == ["ax/rate", "ax/rate", "bx/rate"]
    assert labels(BASE, product={BASE: FILES[:1]}, include=[{BASE: FILES[1]}]) == ["ax/rate", "bx/rate"]
    assert labels(BASE, product={BASE: FILES[:1]}, include=[{BASE: FILES[0], A: 1}]) == ["rate", "rate"]
    assert labels(BASE, include=[{BASE: name} for name in FILES]) == ["ax/rate", "bx/rate"]


# --- what is refused ---

WRONG_AXES: list[tuple[dict[str, Any], str, str]] = [
    ({"product": {"objectiv.layers": [1]}}, "product.objectiv.layers", "unknown"),
    ({"product": {"objective.alpha": [1]}}, "product.objective.alpha", "unknown"),
    ({"product": {B: [1.0, 10.0, 10.0]}}, f"product.{B}", "duplicate"),
    ({"zip": {A: [0, 1], B: [5]}}, "zip", "conflict"),
    ({"product": {A: []}}, f"product.{A}", "empty"),
    ({"product": {A: 1}}, f"product.{A}", "type"),
    ({"product": {"my.axis": {"x": {B: 1}}}}, "product.my.axis", "format"),
    ({"product": {A: [0]}, "zip": {A: [1]}}, f"zip.{A}", "duplicate"),
    ({"product": {A: {"x": {B: 1}}}}, f"product.{A}", "type"),
    ({"product": {"o": {"MLM": {"objective.kind": 1}}}}, "product.o.MLM.objective.kind", "unknown"),
    ({"product": {"o": {"": {A: 1}}}}, "product.o", "empty"),
    ({"product": {" ": {"x": {A: 1}}}}, "product", "empty"),
    ({"product": {"o": {"a\tb": {A: 1}}}}, "product.o", "format"),
    ({"product": {"pretrain..seed": [1]}}, "product.pretrain..seed", "format"),
    *(
        (dict[str, Any]({part: {name: {"x": {A: 1}}}}), f"{part}.{name}", "conflict")
        for name in RESERVED
        for part in ("product", "zip")
    ),
]


@pytest.mark.parametrize(("values", "place", "code"), WRONG_AXES)
def test_wrong_axes(values, place, code):
    assert refused(grid, **values) == (place, code)


WRONG_ENTRIES: list[tuple[dict[str, Any], str, str]] = [
    ({"exclude": [{B: 1}]}, f"grid.exclude.0.{B}", "unknown"),
    ({"exclude": [{A: 0}, {"objective": "XLM"}]}, "grid.exclude.1.objective", "unknown"),
    ({"exclude": [{}]}, "grid.exclude.0", "empty"),
    ({"include": [{"objective": "XLM"}]}, "grid.include.0.objective", "unknown"),
    ({"include": [{"objective": {"X": {A: 1}, "Y": {A: 2}}}]}, "grid.include.0.objective", "range"),
    ({"include": [{"task": {"x": {A: 1}}}]}, "grid.include.0.task", "conflict"),
    ({"include": [{"objective": {"X": {"steps": 1}}}]}, "grid.include.0.objective.X.steps", "unknown"),
]


def test_labels_are_suggested_only_for_an_axis_that_can_have_labels():
    """Not for a key of a label, and not for a reserved name."""
    axes: list[tuple[dict[str, Any], bool]] = [
        ({"x": [1]}, True),
        ({"x": {"a": {"foo": 1}}}, False),
        ({RESERVED[0]: [1]}, False),
        ({"foo.x": [1]}, False),
    ]
    for product, can in axes:
        assert ("write labels with their keys" in refusal(grid, product=product).hint) == can


@pytest.mark.parametrize(("values", "place", "code"), WRONG_ENTRIES)
def test_entries_that_fit_no_cell(values, place, code):
    assert refused(grid(product={"objective": OBJECTIVE, A: [0, 1]}, **values).points) == (place, code)


def test_values_that_never_meet_are_no_cell():
    found = grid(zip={A: [0, 1], B: [5, 6]}, exclude=[{A: 0, B: 6}])
    assert refused(found.points) == ("grid.exclude.0", "no_effect")
