"""The labels of a grid: no two values of an axis have one, and none is called as results call something else."""

import pytest

from probes.study.grid import RESERVED, GridConfig, label_of, labels_of
from synthlang.config import parse
from synthlang.errors import InputError
from tests.test_study_cells import LANGUAGES, cells_of

BASE, LANGUAGE, A, B = "pretrain.base.3", "pretrain.languages.1", "pretrain.seed", "pretrain.steps"
FILES = ["ax/rate.yaml", "bx/rate.yaml"]
NAMED = [{"name": "x", "language": "trans"}, {"name": "x", "language": "trans+inv"}]


def points(**values):
    return parse(GridConfig, values).points()


def labels(axis, **values):
    return [point.labels.get(axis) for point in points(**values)]


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
    assert len({point.name for point in points(product={axis: values})}) == len(values)
    for value, label in zip(values, expected, strict=True):
        assert labels(axis, product={axis: values}, exclude=[{axis: value}]) == [x for x in expected if x != label]


def test_a_label_that_is_longer_chooses_too():
    assert labels(BASE, product={BASE: FILES}, exclude=[{BASE: "ax/rate"}]) == ["bx/rate"]
    with pytest.raises(InputError, match=r"exclude.0: the axis 'pretrain\.base\.3' has no 'rate'; it has ax/rate, bx"):
        points(product={BASE: FILES}, exclude=[{BASE: "rate"}])


def test_labels_that_differ_are_left_as_they_are():
    values = ["mlm", {"name": "weak", "transforms": []}, {"name": "strong", "transforms": []}, 3, None, [1, 2]]
    assert list(labels_of(LANGUAGE, values).values()) == [label_of(LANGUAGE, value) for value in values]


def test_one_value_has_one_label_wherever_it_stands():
    assert labels(BASE, zip={BASE: [FILES[0], FILES[0], FILES[1]], A: [0, 1, 0]}) == ["ax/rate", "ax/rate", "bx/rate"]
    assert labels(BASE, product={BASE: FILES[:1]}, include=[{BASE: FILES[1]}]) == ["ax/rate", "bx/rate"]
    assert labels(BASE, product={BASE: FILES[:1]}, include=[{BASE: FILES[0], A: 1}]) == ["rate", "rate"]
    assert labels(BASE, include=[{BASE: name} for name in FILES]) == ["ax/rate", "bx/rate"]


def test_cells_of_two_languages_of_one_name_are_no_replicates():
    held = [[{"kind": "transliterate"}], [{"kind": "transliterate"}, {"kind": "invert"}]]
    cells = cells_of(product={"pretrain.language": [{"name": "x", "transforms": one} for one in held]})
    assert len({tuple(cell.labels.items()) for cell in cells}) == 2


def test_two_entries_that_give_one_label_to_different_settings_are_refused():
    held = [{"variant": {"x": {"pretrain.language": "trans", A: seed}}} for seed in (1, 2)]
    with pytest.raises(InputError, match="two cells of the grid have the same labels, variant=x, by which results are"):
        cells_of(include=held)
    apart = [{**entry, "pretrain.steps": 5 + number} for number, entry in enumerate(held)]
    assert [cell.name for cell in cells_of(include=apart)] == ["x, steps=5", "x, steps=6"]


def test_cells_that_differ_in_seeds_only_have_the_same_settings():
    """Results take them for replicates; a label may mean something else beside another label."""
    x, other = ({"variant": {"x": {"pretrain.language": "trans", "pretrain.steps": n}}} for n in (5, 6))
    with pytest.raises(InputError, match="the label 'x' of variant for different settings, variant=x and variant=x, "):
        cells_of(product=x, include=[{**other, "pretrain.seed": 7}])
    with pytest.raises(InputError, match=r"seed=1 and variant=x, pretrain\.seed=2: results take cells that differ"):
        cells_of(include=[{**x, "pretrain.seed": 1}, {**other, "pretrain.seed": 2}])
    same = cells_of(product=x, include=[{**x, "pretrain.seed": 7}])
    assert [cell.labels["variant"] for cell in same] == ["x", "x"]
    assert len(cells_of(product=x, include=[{**other, "pretrain.seed": 7, "pretrain.objective.kind": "xlm"}])) == 2


def test_cells_whose_keys_are_set_in_another_order_are_no_replicates():
    """The later key wins, so the order counts; labels do not tell it."""
    whole, part = ("pretrain.objective", {"kind": "mlm"}), ("pretrain.objective.kind", "align_mlm")
    with pytest.raises(InputError, match=r"two cells of the grid have the same labels, .*, by which results are"):
        cells_of(include=[{"pretrain.language": "trans", **dict(order)} for order in ([whole, part], [part, whole])])


def test_a_label_that_reads_as_the_full_name_of_a_cell():
    start = {"pretrain.language": "trans"}
    full = "pretrain.language=trans, pretrain.seed=1"
    named = [{"x": {label: {**start, A: seed}}} for label, seed in (("trans, pretrain seed=1", 2), (full, 3))]
    names = [cell.name for cell in cells_of(include=[{**start, A: 1}, *named])]
    assert names == [f"{full} (1)", "x=trans, pretrain seed=1", f"{full} (2)"]


@pytest.mark.parametrize("name", RESERVED)
def test_names_that_results_have_for_something_else(name):
    axis = {"x": {A: 1}}
    for part in ("product", "zip"):
        with pytest.raises(InputError, match=f"axis '{name}': results have a {name} beside the labels") as caught:
            parse(GridConfig, {part: {name: axis}})
        assert "\n" not in str(caught.value)
    with pytest.raises(InputError, match=f"grid.include.0: axis '{name}': results have a {name}"):
        points(product=LANGUAGES, include=[{name: axis}])


def test_the_settings_of_an_entry_are_in_the_order_of_the_axes():
    axes = {"one": {"x": {A: 1, B: 2}}, "two": {"y": {A: 3}}}
    (_, last) = points(product=axes, include=[{"pretrain.log_every": 9, "two": "y", A: 4, "one": "x"}])
    assert list(last.labels) == ["one", "two", "pretrain.log_every", A]
    assert [s.value for s in last.settings if s.key == A] == [1, 3, 4]
    (_, last) = points(product=axes, include=[{"two": "y", "one": "x"}])
    assert last.overrides == {A: 3, B: 2}  # as the cell of the product has it
    (_, last) = points(product={"two": axes["two"]}, zip={A: [7]}, include=[{A: 5, "two": "y"}])
    assert last.overrides == {A: 5}


def test_numbers_in_entries_are_numbers_however_they_are_written():
    found = points(product={A: [1.0, 10.0, True, "10"]}, exclude=[{A: 10}])
    assert [point.choices[0].value for point in found] == [1.0, True, "10"]
    assert len(points(product={A: [1.0, True]}, exclude=[{A: True}])) == 1


@pytest.mark.parametrize("label", ["a\nb", "a\x1b[31m", "\x00"])
def test_labels_that_cannot_be_written(label):
    with pytest.raises(InputError, match="has a control character, which results cannot show"):
        cells_of(product={"variant": {label: {"pretrain.steps": 5}}})
