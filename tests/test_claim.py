"""An output folder is claimed by one process, rid of what killed runs left, and no trace of a failure stays."""

from __future__ import annotations

import pytest

from synthlang.claim import LOCK, claimed_folder
from synthlang.errors import InputError


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_only_the_leftovers_of_this_very_folder_go(tmp_path):
    mine, others = ".tmp-corpus-0123abcd", [".tmp-corpus-dev-0123abcd", ".tmp-corpus-xyz", ".tmp-a-corpus-0123abcd"]
    for name in (mine, *others):
        (tmp_path / name / "data").mkdir(parents=True)
    with claimed_folder(tmp_path / "corpus") as folder:
        (folder / "x").write_text("x")
        assert mine not in names(tmp_path)
    assert names(tmp_path) == sorted([*others, "corpus"])


def test_two_runs_to_one_folder(tmp_path):
    with claimed_folder(tmp_path / "d") as folder:
        (folder / "x").write_text("first")
        with pytest.raises(InputError, match="d: is being written by another process"), claimed_folder(tmp_path / "d"):
            pass
        with claimed_folder(tmp_path / "d-dev"):
            pass
        assert (folder / "x").read_text() == "first"
    assert (tmp_path / "d" / "x").read_text() == "first"
    assert names(tmp_path) == ["d", "d-dev"]
    with pytest.raises(InputError, match="d: exists already"), claimed_folder(tmp_path / "d"):
        pass


def test_a_failure_leaves_no_new_parents(tmp_path):
    (tmp_path / "a").mkdir()
    with pytest.raises(InputError, match="wrong"), claimed_folder(tmp_path / "a" / "b" / "c" / "d"):
        raise InputError("wrong")
    assert names(tmp_path / "a") == []
    with claimed_folder(tmp_path / "a" / "b" / "d"):
        pass
    assert names(tmp_path / "a" / "b") == ["d"]


def test_what_others_put_into_a_new_parent_stays(tmp_path):
    def fail():
        with claimed_folder(tmp_path / "b" / "d"):
            (tmp_path / "b" / "theirs").write_text("x")
            raise InputError("wrong")

    with pytest.raises(InputError, match="wrong"):
        fail()
    assert names(tmp_path / "b") == ["theirs"]


def test_the_lock_of_a_killed_run_holds_nobody_up(tmp_path):
    (tmp_path / f"{LOCK}d").touch()
    with claimed_folder(tmp_path / "d"):
        pass
    assert names(tmp_path) == ["d"]


def test_a_place_that_cannot_be(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(InputError, match="cannot write"), claimed_folder(tmp_path / "file" / "d"):
        pass
