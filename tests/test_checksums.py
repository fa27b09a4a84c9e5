"""Damage of a recorded folder is found by size and time, or by reading all."""

import os

import pytest

from synthlang import checksums
from synthlang.checksums import RECORD, damaged_files, record_checksums
from synthlang.store import Store
from tests.refusals import refused


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "in").mkdir()
    for name in ("a", "in/b", "README.md", ".hidden", "left"):
        (tmp_path / name).write_text(name)
    record_checksums(tmp_path, ["left"])
    for path in tmp_path.rglob("*"):  # written long ago, since the clock of a file system is coarse
        os.utime(path, ns=(10**18, 10**18))
    return tmp_path


def test_what_counts(folder, monkeypatch):
    read: list[str] = []
    monkeypatch.setattr(checksums, "sha256_file", lambda path: read.append(path.name))
    assert damaged_files(folder) == [] and read == [], "no file is opened that is as it was"
    for name in ("README.md", ".hidden", "left"):
        (folder / name).unlink()
    assert damaged_files(folder) == []
    (folder / "in" / "b").write_text("other length")
    (folder / "a").unlink()
    assert damaged_files(folder) == ["a", "in/b"]


def test_a_younger_file_is_read(folder):
    os.utime(folder / "a")
    assert damaged_files(folder) == []
    (folder / "a").write_text("b")
    assert damaged_files(folder) == ["a"]


def test_reading_all_finds_what_kept_its_time_and_the_next_check_finds_it_too(folder):
    times = (folder / "a").stat()
    (folder / "a").write_text("b")
    os.utime(folder / "a", ns=(times.st_atime_ns, times.st_mtime_ns))
    assert damaged_files(folder) == []
    assert damaged_files(folder, thorough=True) == ["a"]
    assert damaged_files(folder) == ["a"]


def test_a_copy_with_other_times_is_read_once(folder, monkeypatch):
    os.utime(folder / "a")
    assert damaged_files(folder, thorough=True) == []
    monkeypatch.setattr(checksums, "sha256_file", None)
    assert damaged_files(folder) == damaged_files(folder, thorough=True) == []


def test_without_a_record_nothing_is_damaged(folder):
    (folder / RECORD).unlink()
    (folder / "a").unlink()
    assert damaged_files(folder, thorough=True) == []


@pytest.mark.parametrize("text", ["[]", '{"a": 1}'])
def test_a_record_of_something_else(text, folder):
    (folder / RECORD).write_text(text)
    assert refused(damaged_files, folder) == (RECORD, "damaged")


def test_a_store_builds_a_damaged_artifact_again(tmp_path):
    def build(path):
        path.mkdir()
        (path / "x").write_text("good")

    path = Store(tmp_path).obtain("k", "f", build)
    (path / "x").write_text("other")
    assert (Store(tmp_path).obtain("k", "f", build) / "x").read_text() == "good"
