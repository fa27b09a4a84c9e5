"""The grid of a study: which cells there are, in which order, under which names; and what is refused."""

import itertools

import pytest

from probes.study.grid import GridConfig, label_of
from synthlang.config import parse
from synthlang.errors import InputError

A, B, C = "pretrain.seed", "pretrain.steps", "transfer.fine_tune.epochs"
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


def test_product_is_in_the_order_of_the_yaml_with_the_last_axis_fastest():
    axes = {B: [5, 6], A: [0, 1, 2], C: [1, 2]}
    expected = [dict(zip(axes, values, strict=True)) for values in itertools.product(*axes.values())]
    assert overrides(product=axes) == expected


def test_zip_walks_its_lists_together():
    assert overrides(zip={A: [0, 0], B: [5, 6]}) == [{A: 0, B: 5}, {A: 0, B: 6}]
    assert overrides(zip={A: [0, 1], B: [5, 6]}) == [{A: 0, B: 5}, {A: 1, B: 6}]


def test_product_and_zip_together():
    assert overrides(product={C: [1, 2]}, zip={A: [0, 1], B: [5, 6]}) == [
        {C: 1, A: 0, B: 5},
        {C: 1, A: 1, B: 6},
        {C: 2, A: 0, B: 5},
        {C: 2, A: 1, B: 6},
    ]


def test_a_named_axis_sets_what_its_labels_say():
    points = grid(product={"objective": OBJECTIVE, A: [0, 1]}).points()
    assert [point.name for point in points] == [
        "MLM, pretrain seed=0",
        "MLM, pretrain seed=1",
        "ALIGN-MLM, pretrain seed=0",
        "ALIGN-MLM, pretrain seed=1",
    ]
    assert points[2].labels == {"objective": "ALIGN-MLM", A: "0"}
    assert points[2].overrides == {"pretrain.objective.kind": "align_mlm", "pretrain.objective.alpha": 10.0, A: 0}
    assert points[0].overrides == {"pretrain.objective.kind": "mlm", A: 0}
    assert [s.axis for s in points[2].settings] == ["objective", "objective", A]


def test_named_axes_in_zip():
    points = grid(zip={"objective": OBJECTIVE, A: [3, 4]}).points()
    assert [point.labels for point in points] == [
        {"objective": "MLM", A: "3"},
        {"objective": "ALIGN-MLM", A: "4"},
    ]


def test_labels_that_are_numbers_are_texts():
    points = grid(product={"dose": {"0": {A: 0}, "0.5": {A: 1}}}).points()
    assert [point.labels["dose"] for point in points] == ["0", "0.5"]


def test_a_later_axis_wins():
    (point,) = grid(product={"one": {"x": {A: 1, B: 2}}, "two": {"y": {A: 3}}}).points()
    assert point.overrides == {A: 3, B: 2}


def test_exclude_leaves_out_what_agrees_with_every_key():
    product = {A: [0, 1], B: [5, 6]}
    assert overrides(product=product, exclude=[{A: 0, B: 6}]) == [{A: 0, B: 5}, {A: 1, B: 5}, {A: 1, B: 6}]
    assert overrides(product=product, exclude=[{A: 0}, {B: 6}]) == [{A: 1, B: 5}]
    assert overrides(product=product, exclude=[{A: 0}, {A: 0, B: 6}]) == [{A: 1, B: 5}, {A: 1, B: 6}]
    assert names(product={"objective": OBJECTIVE, A: [0, 1]}, exclude=[{"objective": "MLM", A: 1}]) == [
        "MLM, pretrain seed=0", "ALIGN-MLM, pretrain seed=0", "ALIGN-MLM, pretrain seed=1",
    ]  # fmt: skip


def test_exclude_takes_values_and_labels_of_mappings():
    languages = [{"name": "weak", "transforms": []}, {"name": "strong", "transforms": []}]
    for wanted in ("weak", languages[0]):
        assert names(product={"pretrain.language": languages}, exclude=[{"pretrain.language": wanted}]) == ["strong"]
    assert overrides(product={A: [0, 1]}, zip={B: [1, 2]}, exclude=[{B: 1}]) == [{A: 0, B: 2}, {A: 1, B: 2}]


def test_true_is_not_one():
    axis = "pretrain.objective.language_ids"
    assert overrides(product={axis: [True, 1]}, exclude=[{axis: True}]) == [{axis: 1}]


def test_include_adds_cells_at_the_end():
    points = grid(
        product={"objective": OBJECTIVE},
        include=[{"objective": "MLM", C: 7}, {"objective": {"XLM": {"pretrain.objective.kind": "xlm"}}}, {B: 9}],
    ).points()
    assert [point.name for point in points] == ["MLM", "ALIGN-MLM", "MLM, epochs=7", "XLM", "steps=9"]
    assert points[2].overrides == {"pretrain.objective.kind": "mlm", C: 7}
    assert points[3].labels == {"objective": "XLM"}
    assert points[4].labels == {B: "9"}


def test_only_included_cells_and_no_axis():
    assert overrides(include=[{A: 1}, {A: 2}]) == [{A: 1}, {A: 2}]
    assert overrides() == [{}]
    assert names() == [""]


def test_exclude_does_not_touch_what_is_included():
    assert overrides(product={A: [0, 1]}, exclude=[{A: 0}], include=[{A: 0, B: 3}]) == [{A: 1}, {A: 0, B: 3}]


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


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"product": {"objectiv.layers": [1]}}, "axis 'objectiv.layers' must start with one of source, start, pretr"),
        ({"product": {"pretain.objective.alpha": [1]}}, "probes; did you mean pretrain.objective.alpha[?]"),
        ({"product": {"objective.alpha": [1]}}, "probes; did you mean pretrain.objective.alpha[?]"),
        ({"product": {"alpha": [1]}}, r"axis 'alpha' must start with .* probes \(a name without a dot needs labels\)"),
        ({"product": {B: [1.0, 10.0, 10.0]}}, f"axis '{B}' has 10.0 twice"),
        ({"product": {"pretrain.language": ["a", "b", "a"]}}, "axis 'pretrain.language' has \"a\" twice"),
        ({"zip": {"seeds": [1]}}, "axis 'seeds' must start with one of source, start, pretrain, second, model"),
        ({"zip": {A: [0, 1], B: [5]}}, "lists of zip must have the same length"),
        ({"zip": {A: [0, 1, 2], "objective": OBJECTIVE}}, "lists of zip must have the same length"),
        ({"product": {A: []}}, f"axis '{A}' has no values"),
        ({"product": {"objective": {}}}, "axis 'objective' has no values"),
        ({"zip": {A: []}}, f"axis '{A}' has no values"),
        ({"product": {A: [0]}, "zip": {A: [1]}}, f"axis '{A}' stands in product and in zip"),
        ({"product": {A: 0}}, f"product.{A}.* must be a list"),
        ({"product": {A: {"x": {B: 1}}}}, f"axis '{A}' must be a list of values; an axis with labels has a name"),
        ({"product": {"pretrain": {"x": {B: 1}}}}, "axis 'pretrain' must be a list of values"),
        ({"product": {"objective": {"MLM": 3}}}, "axis 'objective', label 'MLM': must be a mapping of dotted keys"),
        ({"product": {"o": {"MLM": {"objective.kind": 1}}}}, "axis 'o', label 'MLM': 'objective.kind' must start with"),
        ({"product": {"pretrain..seed": [1]}}, "axis 'pretrain..seed' is no dotted key"),
        ({"product": {"source.x": [1]}}, "axis 'source.x': source is one value, it has no key 'x'"),
        ({"produkt": {A: [0]}}, "produkt.*did you mean product"),
    ],
)
def test_wrong_axes(values, message):
    with pytest.raises(InputError, match=message) as caught:
        grid(**values)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"exclude": [{B: 1}]}, f"grid.exclude.0: '{B}' is no axis of the grid; it has objective, {A}"),
        ({"exclude": [{A: 0}, {"objective": "XLM"}]}, "grid.exclude.1: the axis 'objective' has no 'XLM'; it has MLM,"),
        ({"exclude": [{A: 7}]}, f"grid.exclude.0: the axis '{A}' has no 7; it has 0, 1"),
        ({"exclude": [{A: "x"}]}, f"grid.exclude.0: the axis '{A}' has no 'x'; it has 0, 1"),
        ({"exclude": [{}]}, "grid.exclude.0: names no key of the cells that are left out"),
        ({"include": [{}]}, "grid.include.0: names nothing"),
        ({"include": [{"objective": "XLM"}]}, "grid.include.0: the axis 'objective' has no 'XLM'"),
        ({"include": [{"objektive": "MLM"}]}, "grid.include.0: 'objektive', which is no axis, must start with one of"),
        ({"include": [{"objective": {"X": {A: 1}, "Y": {A: 2}}}]}, "grid.include.0: axis 'objective': one label"),
        ({"include": [{"objective": {"X": {"steps": 1}}}]}, "grid.include.0: .*label 'X': 'steps' must start with"),
    ],
)
def test_entries_that_fit_no_cell(values, message):
    with pytest.raises(InputError, match=message):
        grid(product={"objective": OBJECTIVE, A: [0, 1]}, **values).points()


def test_values_that_never_meet_are_no_cell():
    with pytest.raises(InputError, match=f"grid.exclude.0: no cell has {A}: 0, {B}: 6"):
        grid(zip={A: [0, 1], B: [5, 6]}, exclude=[{A: 0, B: 6}]).points()
