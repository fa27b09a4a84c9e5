"""The index of a store: what is finished, and what a changed file makes unfinished."""

import os
import shutil
from pathlib import Path

import pytest

from probes.study.index import entry_of, entry_path, seen_now
from probes.study.tasks import finish, finished
from synthlang.errors import InputError
from synthlang.progress import silent
from synthlang.store import Store
from tests.study_graphs import FULL, graph_of, run_all, write_treebank
from tests.tiny import changed

SMALL = changed(FULL, seeds=[0], probes={}, tasks={"pos": {}})


@pytest.fixture(scope="module")
def full(tmp_path_factory):
    """A cell with a run, its alignment and a task of one seed, all of it made."""
    store = Store(tmp_path_factory.mktemp("full"))
    whole, _ = graph_of(SMALL)
    return store, whole, run_all(whole.tasks, store)


def test_an_entry_says_what_was_made(full):
    store, whole, made = full
    key, task = next(iter(whole.tasks.items()))
    entry = entry_of(store, key)
    assert entry is not None
    assert entry.pop("work") > 0
    assert entry == {
        "format": 1, "kind": "pretrain", "fingerprint": made[key], "label": task.label, "seconds": 0.0, "inputs": {},
        "parents": {},
    }  # fmt: skip


@pytest.fixture
def treebank(tmp_path):
    """A treebank of the user, with a study of its cell in ``tmp_path``."""
    return write_treebank(tmp_path / "bank")


def test_a_changed_file_of_the_user_is_seen_without_reading_it(treebank, tmp_path):
    data = changed(SMALL, source=f"conllu:{treebank}")
    whole, _ = graph_of(data)
    store = Store(tmp_path / "store")
    first = run_all(whole.tasks, store)
    key, pretrain = next(iter(whole.tasks.items()))
    entry = entry_of(store, key)
    assert entry is not None
    names = {Path(path).name for path in entry["inputs"]}
    assert names == {"bank", "x-ud-train.conllu", "x-ud-test.conllu"}
    assert all(finished(store, task) for task in whole.tasks.values())
    file = treebank / "x-ud-train.conllu"
    text = file.read_text()
    os.utime(file, ns=(1, 1))  # touched only: looked at again, and found to be the same
    assert [finished(store, task) for task in whole.tasks.values()] == [None] * len(whole.tasks)
    assert run_all(whole.tasks, store) == first
    file.write_text(text.replace("w1\t", "w31\t"))
    assert finished(store, pretrain) is None
    second = run_all(whole.tasks, store)
    assert not {*first.values()} & {*second.values()}
    assert {task.kind for task in whole.tasks.values()} == {"pretrain", "alignment", "transfer"}


def test_a_parent_that_made_another_stage_unmakes_its_dependents(full, tmp_path):
    store, whole, made = full
    other = Store(tmp_path / "copy")
    shutil.copytree(store.root, other.root)
    pretrain, *rest = whole.tasks.values()
    shutil.copytree(other.path("pretrain", made[pretrain.key]), other.path("pretrain", "f" * 16))
    finish(other, pretrain, "f" * 16, 1.0)
    assert finished(other, pretrain) == "f" * 16
    assert [finished(other, task) for task in rest] == [None] * len(rest)


def test_a_stage_that_is_gone_is_not_finished_and_what_is_made_of_it_is(full, tmp_path):
    store, whole, made = full
    other = Store(tmp_path / "copy")
    shutil.copytree(store.root, other.root)
    pretrain, *rest = whole.tasks.values()
    shutil.rmtree(other.path("pretrain", made[pretrain.key]))
    assert finished(other, pretrain) is None
    assert all(finished(other, task) for task in rest)
    with pytest.raises(InputError, match=r"pretrain mlm trans\+inv is not finished; start again"):
        rest[0].run(other, silent)


def test_a_file_changed_while_it_was_read_is_looked_at_again(treebank, tmp_path):
    data = changed(SMALL, source=f"conllu:{treebank}", tasks={})
    whole, _ = graph_of(data)
    store, task = Store(tmp_path / "store"), next(iter(whole.tasks.values()))
    before, name = seen_now(store, task), task.run(store, silent)
    (treebank / "x-ud-test.conllu").touch()
    finish(store, task, name, 3600.0, before)
    assert finished(store, task) is None
    finish(store, task, name, 0.0, seen_now(store, task))
    assert finished(store, task) == name
    entry = entry_of(store, task.key)
    assert entry is not None and entry["seconds"] == 3600.0  # what it took when it ran


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"format": 99}', "the store is of another version of synthlang"),
        ('{"format": 1}', "is no entry of an index"),
        ("[]", "the store is of another version"),
        ("{", "not JSON"),
    ],
)
def test_entries_of_another_kind_are_refused(tmp_path, text, message):
    task = next(iter(graph_of(FULL)[0].tasks.values()))
    path = entry_path(Store(tmp_path), task.key)
    path.parent.mkdir()
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        finished(Store(tmp_path), task)
