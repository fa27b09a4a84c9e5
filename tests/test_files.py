"""Atomic writes: a full disk or a kill leaves what was there before, and says so in one line."""

import errno
import json
import os
import sys
from pathlib import Path

import pytest

from synthlang import files
from synthlang.catalogue import load_yaml
from synthlang.dictionary.word_dictionary import read_muse
from synthlang.errors import InputError
from synthlang.files import (
    LOCK,
    atomic_file,
    atomic_folder,
    claimed_folder,
    no_such,
    only_writer,
    read_json,
    read_lines,
    remove_leftovers,
    safe_name,
    write_json,
)
from synthlang.fingerprint import canonical_json, digest_files, fingerprint
from synthlang.sources import open_source
from synthlang.store import Store
from synthlang.tasks import open_task
from tests.refusals import refusal, refused


def listing(folder):
    return sorted(p.name for p in folder.iterdir())


def test_a_relative_path_that_is_not_there_has_the_place_where_it_was_looked_for(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    place = tmp_path / "a" / "b.txt"
    assert str(no_such("a/b.txt")) == f"a/b.txt: no such file (looked for {place}); correct the path"
    assert str(no_such(tmp_path / "b", "folder", "name one")) == f"{tmp_path / 'b'}: no such folder; name one"


@pytest.mark.parametrize(
    "read",
    [
        lambda name: open_source(f"text:{name}"),
        lambda name: open_task(f"nli:{name}"),
        lambda name: read_json(Path(name)),
        lambda name: list(read_lines(Path(name))),
        lambda name: load_yaml(f"{name}.yaml"),
        lambda name: read_muse(Path(name)),
    ],
)
def test_every_reader_tells_where_it_looked(tmp_path, monkeypatch, read):
    monkeypatch.chdir(tmp_path)
    assert f"(looked for {tmp_path / 'none'}" in refusal(read, "none").reason


def test_an_interrupted_write_leaves_the_old_file(tmp_path):
    path = tmp_path / "a.json"
    write_json(path, {"old": 1})

    def interrupted():
        with atomic_file(path, "w") as handle:
            handle.write('{"new"')
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert read_json(path) == {"old": 1}
    with pytest.raises(KeyboardInterrupt), atomic_folder(tmp_path / "d"):
        raise KeyboardInterrupt
    assert listing(tmp_path) == ["a.json"]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="the system has no device that is always full")
def test_no_space_left_for_real(tmp_path, monkeypatch):
    """Writing to a device that is always full ends in one clear line."""
    monkeypatch.setattr("synthlang.files._temporary", lambda path: type(path)("/dev/full"))
    monkeypatch.setattr(type(tmp_path), "unlink", lambda self, missing_ok=False: None)
    with pytest.raises(InputError, match="no space is left on the disk"), atomic_file(tmp_path / "a") as handle:
        handle.write(b"x" * 100_000)


def test_no_space_left_in_a_folder(tmp_path):
    match = "d: no space is left on the disk or in its quota; free some"
    with pytest.raises(InputError, match=match), atomic_folder(tmp_path / "d"):
        raise OSError(errno.ENOSPC, "No space left on device")
    assert listing(tmp_path) == []


def test_a_folder_is_replaced_as_a_whole(tmp_path):
    for text in ("one", "two"):
        with atomic_folder(tmp_path / "d", replace=True) as folder:
            (folder / text).write_text(text)
    assert listing(tmp_path / "d") == ["two"]
    with pytest.raises(InputError, match="exists already"), atomic_folder(tmp_path / "d"):
        pass
    (tmp_path / ".tmp-d-0").mkdir()
    (tmp_path / ".tmp-e").write_text("half")
    remove_leftovers(tmp_path)
    assert listing(tmp_path) == ["d"]


@pytest.mark.parametrize("name", ["", ".x", "a/b", "..", "a b", "x" * 200, "a\n", "-a"])
def test_unsafe_names(name):
    assert refused(safe_name, name) == ("", "format")


@pytest.mark.parametrize(
    ("content", "place", "code"),
    [
        (b"[" * 100_000, "a", "format"),
        (b"9" * 5000, "a", "format"),
        (None, "a", "missing"),
        (b"", "a:1", "format"),
        (b'{"a": 1', "a:1", "format"),
        (b"\xff", "a:1", "format"),
        ("{}".encode("utf-16"), "a", "unsupported"),
    ],
)
def test_bad_json(tmp_path, content, place, code):
    if content is not None:
        (tmp_path / "a").write_bytes(content)
    assert refused(read_json, tmp_path / "a") == (place, code)


def test_json_may_begin_with_a_byte_order_mark(tmp_path):
    (tmp_path / "a").write_bytes(b"\xef\xbb\xbf{}")
    assert read_json(tmp_path / "a") == {}


def test_lines_name_the_bad_one(tmp_path):
    (tmp_path / "a").write_bytes(b"\xef\xbb\xbfone\r\ntwo\n\xff")
    lines = read_lines(tmp_path / "a")
    assert [next(lines), next(lines)] == [(1, "one"), (2, "two")]
    assert refused(next, lines) == ("a:3", "format")
    assert refused(next, read_lines(tmp_path)) == (tmp_path.name, "failed")
    assert refusal(next, read_lines(tmp_path / "a" / "b")).hint == "correct the path"


def test_fingerprints(tmp_path):
    assert canonical_json({"b": 1, "a": [1.0, None, "é"]}) == '{"a":[1.0,null,"é"],"b":1}'
    # pinned: a fingerprint that moves would orphan every artifact on every disk
    assert fingerprint("corpus", a=1, b="x") == fingerprint("corpus", b="x", a=1) == PINNED
    assert fingerprint("other", a=1, b="x") != PINNED
    with pytest.raises(ValueError, match="JSON"):
        canonical_json(float("nan"))
    (tmp_path / "x").write_text("1")
    before = digest_files([tmp_path / "x"])
    (tmp_path / "x").write_text("2")
    assert digest_files([tmp_path / "x"]) != before


PINNED = "aac3e2714112ccb9"


def test_the_store_builds_once(tmp_path):
    built = []

    def build(path):
        built.append(path)
        path.mkdir()
        (path / "x").write_text(json.dumps(1))

    store = Store(tmp_path / "s")
    assert store.obtain("k", "f", build) == store.obtain("k", "f", build) == tmp_path / "s" / "k-f"
    assert len(built) == 1


def test_a_line_without_an_end_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "LONGEST_LINE", 1 << 20)
    (tmp_path / "a").write_bytes(b"ok\n" + b"x" * (1 << 20))
    assert refused(list, read_lines(tmp_path / "a")) == ("a:2", "range")


@pytest.mark.parametrize("place", ["", ".", "..", "a/.."])
def test_a_place_without_a_name_is_refused(place):
    with pytest.raises(InputError, match="cannot be an output, because"), atomic_file(Path(place)):
        pass


def test_only_the_leftovers_of_this_very_folder_go(tmp_path):
    mine, others = ".tmp-corpus-0123abcd", [".tmp-corpus-dev-0123abcd", ".tmp-corpus-xyz", ".tmp-a-corpus-0123abcd"]
    for name in (mine, *others):
        (tmp_path / name / "data").mkdir(parents=True)
    with claimed_folder(tmp_path / "corpus") as folder:
        (folder / "x").write_text("x")
        assert mine not in listing(tmp_path)
    assert listing(tmp_path) == sorted([*others, "corpus"])


def test_two_runs_to_one_folder(tmp_path):
    with claimed_folder(tmp_path / "d") as folder:
        (folder / "x").write_text("first")
        with pytest.raises(InputError, match="d: is being written by process"), claimed_folder(tmp_path / "d"):
            pass
        with claimed_folder(tmp_path / "d-dev"):
            pass
        assert (folder / "x").read_text() == "first"
    assert (tmp_path / "d" / "x").read_text() == "first"
    assert listing(tmp_path) == ["d", "d-dev"]
    with pytest.raises(InputError, match="d: exists already"), claimed_folder(tmp_path / "d"):
        pass


def test_a_failure_leaves_no_new_parents(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "file").write_text("x")
    with pytest.raises(InputError, match="cannot be written"), claimed_folder(tmp_path / "file" / "d"):
        pass
    with pytest.raises(InputError, match="wrong"), claimed_folder(tmp_path / "a" / "b" / "c" / "d"):
        raise InputError("wrong")
    assert listing(tmp_path / "a") == []
    (tmp_path / "a" / "b").mkdir()
    (tmp_path / "a" / "b" / f"{LOCK}d").touch()  # of a killed run: it holds nobody up
    with claimed_folder(tmp_path / "a" / "b" / "d"):
        pass
    assert listing(tmp_path / "a" / "b") == ["d"]


def test_what_others_put_into_a_new_parent_stays(tmp_path):
    def fail():
        with claimed_folder(tmp_path / "b" / "d"):
            (tmp_path / "b" / "theirs").write_text("x")
            raise InputError("wrong")

    assert refused(fail) == ("", "invalid")
    assert listing(tmp_path / "b") == ["theirs"]


def test_the_next_writer_removes_what_killed_ones_left(tmp_path):
    out = tmp_path / "out"
    left = [tmp_path / ".tmp-out-0123abcd", out / ".tmp-page.html-0123abcd", out / "a" / "export" / ".tmp-de-0123abcd"]
    kept = [
        tmp_path / ".tmp-other-0123abcd",  # of another output
        out / "stages" / ".tmp-x-0123abcd",  # of a store, which other processes write
        out / "b" / ".tmp-x-0123abcd",  # beside a lock of another process
        out / ".tmp-mine",  # no name of ours
    ]
    for folder in (*left, *kept, out / "stages" / ".locks", out / "b" / f"{LOCK}x"):
        folder.mkdir(parents=True)
    (left[1] / "half").write_text("x")
    with only_writer(out):
        assert [path.exists() for path in left] == [False] * 3
        assert all(path.exists() for path in kept)


def test_a_file_that_a_killed_writer_left(tmp_path):
    (tmp_path / ".tmp-r.json-0123abcd").write_text("x")
    with only_writer(tmp_path / "r.json"):
        assert listing(tmp_path) == [f"{LOCK}r.json"]


def test_a_path_that_is_no_utf_8(tmp_path, monkeypatch):
    name = os.fsdecode(b"caf\xe9")
    monkeypatch.setattr(sys, "argv", ["synthlang", name])
    with only_writer(tmp_path / "x"), pytest.raises(InputError, match=r"process .*caf"), only_writer(tmp_path / "x"):
        pass
    assert refused(write_json, tmp_path / "x.json", {"path": name}) == ("x.json", "format")
    assert listing(tmp_path) == []


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="there is no /proc")
def test_where_no_file_can_be_written_nobody_else_writes():
    def lock():
        with only_writer(Path("/proc/x")):
            pass

    assert refused(lock) == ("x", "failed")
