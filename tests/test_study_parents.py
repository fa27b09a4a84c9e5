"""A task is of the stages that it has read, whoever makes others of the same keys while it works."""

from dataclasses import dataclass

import pytest

from probes.study import work
from probes.study.executors import run_task
from probes.study.finished import finished
from probes.study.index import entry_of, finish, seen_now
from synthlang.errors import InputError
from synthlang.files import read_json, write_json
from synthlang.progress import silent
from synthlang.store import Store
from tests.study_fakes import RUN, FakeTask, fake

PARENT = fake("p")


@dataclass(frozen=True, eq=False)
class Child(FakeTask):
    """Reads what its parent has made, after ``others`` were made of the parent's key, one after another."""

    others: tuple[str, ...] = ()
    parent: FakeTask = PARENT

    @property
    def needs(self):
        return (self.parent,)

    def _ok(self, store):
        for name in self.others:
            make(Store(store.root), self.parent, name)

    def found(self, store):
        return {"read": work._stage(store, self.parent).name}


def make(store, task, name):
    """Another runner makes ``name`` of the same key: of another text of the same relative path."""
    write_json(store.path(task.kind, name) / "result.json", {"made": name})
    write_json(store.path(task.kind, name) / "predictions.parquet", {})
    finish(store, task, name, 0.0)


@pytest.mark.parametrize("others", [("of-b",), ("of-b", "of-p")])
def test_a_task_reads_and_notes_the_parents_of_its_start(others, tmp_path):
    store, child = Store(tmp_path), Child(RUN, "c", others=others)
    run_task(child.parent, store, silent)
    outcome = run_task(child, store, silent)
    assert (outcome.fingerprint, outcome.error) == ("of-c", None)
    assert read_json(store.path("alignment", "of-c") / "result.json") == {"read": "alignment-of-p"}
    entry = entry_of(store, "c")
    assert entry is not None and entry["parents"] == {"p": "of-p"}
    # the other runner must not take it for a task of its own parent
    assert finished(store, child) == ("of-c" if others[-1] == "of-p" else None)


def test_a_task_of_an_older_parent_is_made_again(tmp_path):
    store, child = Store(tmp_path), Child(RUN, "c", others=("of-b",))
    run_task(child.parent, store, silent)
    run_task(child, store, silent)
    assert finished(store, child) is None
    (store.path("alignment", "of-c") / "result.json").rename(tmp_path / "aside")
    store.path("alignment", "of-c").rmdir()
    run_task(child, store, silent)
    assert finished(store, child) == "of-c"
    assert read_json(store.path("alignment", "of-c") / "result.json") == {"read": "alignment-of-b"}


def test_the_files_of_the_parents_are_those_of_the_start(tmp_path):
    store, child = Store(tmp_path), Child(RUN, "c")
    run_task(child.parent, store, silent)
    path = store.root / "index" / "p.json"
    write_json(path, {**read_json(path), "inputs": {"/first/text": [1, 2]}})
    seen = seen_now(store, child)
    write_json(path, {**read_json(path), "inputs": {"/second/text": [1, 2]}})
    finish(store, child, "of-c", 0.0, seen)
    entry = entry_of(store, "c")
    assert entry is not None and entry["inputs"] == {"/first/text": [1, 2]}


def test_a_task_whose_forebear_was_made_again_alone_is_not_begun(tmp_path):
    """Its model was made of a run that the index does not have any more: it cannot read both."""
    store, middle = Store(tmp_path), Child(RUN, "m")
    child = Child(RUN, "c", parent=middle)
    run_task(middle.parent, store, silent)
    run_task(middle, store, silent)
    assert seen_now(store, child).entries.keys() == {"m", "p"}
    make(store, middle.parent, "of-b")
    with pytest.raises(InputError, match=r"^fake p is not finished; start again$"):
        seen_now(store, child)
    assert run_task(child, store, silent).error == "fake p is not finished; start again"
