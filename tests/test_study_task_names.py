"""A setting of all tasks that a task hides, and a task that is called like none: said before anything runs."""

import pytest
import yaml

from probes.study.cells import load_study
from synthlang.errors import InputError
from tests.study_graphs import FULL
from tests.tiny import changed


def read(folder, assignments, **tasks):
    (folder / "own.yaml").write_text("task: pos\ntrain_items: 70\nfine_tune: {epochs: 3}\n")
    path = folder / "study.yaml"
    path.write_text(yaml.safe_dump(changed(FULL, tasks=tasks)))
    return load_study(path, assignments)[1]


def test_what_is_set_for_all_tasks_reaches_all_or_is_refused(tmp_path):
    (cell, *_) = read(tmp_path, ["transfer.train_items=30", "transfer.fine_tune.epochs=2"], pos={}, ner={})
    assert {(task.train_items, task.fine_tune.epochs) for task in cell.tasks.values()} == {(30, 2)}
    hidden = {"ner": {}, "pos": {"base": "own.yaml"}}
    for assignment, key in (
        ("transfer.train_items=30", "train_items"),
        ("transfer.fine_tune.epochs=2", "fine_tune.epochs"),
        ("transfer.fine_tune={epochs: 2, clip: 0.5}", "fine_tune.epochs"),
    ):
        text = rf"transfer\.{key} does not reach tasks\.pos, which has its own: set tasks\.pos\.{key}"
        with pytest.raises(InputError, match=text):
            read(tmp_path, [assignment], **hidden)
    # equal to its own, of another key, and set for the task as well
    read(tmp_path, ["transfer.train_items=70"], **hidden)
    read(tmp_path, ["transfer.test_items=20"], **hidden)
    (cell, *_) = read(tmp_path, ["transfer.train_items=30", "tasks.pos.train_items=30"], **hidden)
    assert {task.train_items for task in cell.tasks.values()} == {30}


def test_a_task_called_like_none_says_which_it_is(tmp_path):
    with pytest.raises(
        InputError, match=r"tasks\.poz: did you mean pos\? poz is none of .*ner.*; name one with tasks\.poz\.task"
    ):
        read(tmp_path, [], poz={})
    with pytest.raises(InputError, match=r"tasks\.mine: mine is none of"):
        read(tmp_path, [], mine={"train_items": 5})
    (cell, *_) = read(tmp_path, [], mine={"task": "ner"}, other={"base": "own.yaml"})
    assert {name: task.task for name, task in cell.tasks.items()} == {"mine": "ner", "other": "pos"}
