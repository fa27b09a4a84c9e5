"""Parts of a cell that an axis sets are refused in one line, as those of the study are."""

import pytest

from probes.study.cells import expand
from probes.study.measures import ALIGNMENT
from synthlang.errors import InputError
from tests.test_study_cells import LANGUAGES, one, study_of
from tests.test_study_start import STARTED

CKA = {"probes": ["cka"]}


def refused(message, **values):
    with pytest.raises(InputError, match=message) as caught:
        expand(study_of(**values))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("root", "message"),
    [
        ("transfer", "cell trans, no: transfer: must be a mapping, not null; tasks: {} takes all tasks away, axis 'x'"),
        ("tasks", "cell trans, no: tasks: must be a mapping of names, not None, axis 'x'"),
        ("probes", "cell trans, no: probes: must be a mapping of names, not None, axis 'x'"),
        ("pretrain.base", "cell trans, no: pretrain: base must be the name"),
        ("transfer.base", "cell trans, no: transfer: base must be the name"),
        ("transfer.task", "cell trans, no: transfer.task: "),
        ("pretrain", "cell trans, no: a cell has either pretrain, a config, or model"),
        ("source", "cell trans, no: pretrain: language parent has no source: set source"),
        *((root, "two cells of the grid are the same") for root in ("start", "second", "adjust", "tuned", "probes.p")),
    ],
)
def test_null_is_one_line(root, message):
    refused(message, grid={"product": LANGUAGES | {"x": {"yes": {}, "no": {root: None}}}})


def test_no_task_by_an_axis():
    cells = expand(study_of(grid={"product": LANGUAGES | {"x": {"yes": {}, "no": {"tasks": {}}}}}))
    assert [list(cell.tasks) for cell in cells] == [["pos"], []]


def test_start_that_is_no_mapping():
    with pytest.raises(InputError, match=r"pretrain\.start: must be a mapping, not 'bert'"):
        expand(study_of(**STARTED | {"grid": {"product": {"pretrain.start": ["bert"]}}}))


NAMES = [
    ("tasks", "a/b", "name of a task or probe 'a/b' must be 1 to 128 letters"),
    ("tasks", "x.y", "'x.y': a name of a task or probe has no dot"),
    ("probes", "a b", "name of a task or probe 'a b' must be"),
    ("probes", "x.y", "'x.y': a name of a task or probe has no dot"),
    ("probes", ALIGNMENT, "'alignment': that is what measures call the alignment of every run; give the probe"),
]


@pytest.mark.parametrize(("root", "name", "message"), NAMES)
def test_names_are_checked_wherever_they_stand(root, name, message):
    held = {"task": "pos"} if root == "tasks" else CKA
    refused(f"{root}: .*{message}", **{root: {name: held}})
    refused(f"cell .*: {root}: {message}", grid={"product": LANGUAGES | {root: [{name: held}]}})
    if "." not in name:
        refused(f"cell .*: {root}.{name}: {message}", grid={"product": LANGUAGES | {f"{root}.{name}": [held]}})


def test_a_task_may_be_called_alignment():
    assert list(one(tasks={ALIGNMENT: {"task": "pos"}}).tasks) == [ALIGNMENT]
