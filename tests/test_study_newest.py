"""A start that finds nothing to do writes nothing, unless something that the report is made of is newer than it."""

import os
from pathlib import Path

import pytest

from probes.study.report.files import newest_report
from probes.study.report.folder import write_report
from tests.report_study import make_grid

AXES = {"transform": ["trans", "inv"]}


def older(folder: Path, than: Path) -> None:
    """Everything in the folder is a second older than the report."""
    at = than.stat().st_mtime_ns - 10**9
    for path in folder.rglob("*"):
        if path.is_file() and path != than and "report" not in path.name:
            os.utime(path, ns=(at, at))


@pytest.fixture
def made(tmp_path, monkeypatch):
    make_grid(tmp_path / "s", AXES)
    (tmp_path / "s" / "results.csv").touch()
    (tmp_path / "s" / "measures.csv").touch()
    if not (tmp_path / "s" / "measures.parquet").exists():
        (tmp_path / "s" / "measures.parquet").touch()
    paths = write_report(tmp_path / "s")
    older(tmp_path / "s", tmp_path / "s" / "report.json")
    return tmp_path / "s", paths


def test_a_report_that_is_newest_stays(made):
    folder, paths = made
    assert newest_report(folder, {}) == paths


@pytest.mark.parametrize("name", ["study.json", "results.parquet", "measures.parquet", "results.csv"])
def test_a_newer_file_or_a_missing_one_has_it_written_again(made, name):
    folder, _ = made
    after = (folder / "report.json").stat().st_mtime_ns + 1
    os.utime(folder / name, ns=(after, after))
    assert newest_report(folder, {}) is None
    older(folder, folder / "report.json")
    assert newest_report(folder, {}) is not None
    (folder / name).unlink()
    assert newest_report(folder, {}) is None


@pytest.mark.parametrize("name", ["report.html", "report.md", "report.json"])
def test_a_report_that_is_not_whole_is_written_again(made, name):
    folder, _ = made
    (folder / name).unlink()
    assert newest_report(folder, {}) is None


def test_claims_of_the_user_and_the_program_count(made, tmp_path, monkeypatch):
    folder, paths = made
    claims = tmp_path / "own" / "mine.yaml"
    claims.parent.mkdir()
    claims.write_text("x: 1\n")
    written = (folder / "report.json").stat().st_mtime_ns
    for config in ({"claims": [str(claims)]}, {"paper": f"{claims}/table1"}):
        os.utime(claims, ns=(written - 1, written - 1))
        assert newest_report(folder, config) == paths
        os.utime(claims, ns=(written + 1, written + 1))
        assert newest_report(folder, config) is None
        assert newest_report(folder, {}) == paths
    (claims.parent / "far").mkdir()
    paper = claims.parent / "far" / "paper.yml"
    paper.write_text("y: 1\n")
    for number, name in enumerate(("mine.yaml", "mine.yml")):
        held = claims.parent / name
        held.write_text("paper: far/paper.yml\n")
        for newer in (held, paper):
            for path in (held, paper):
                os.utime(path, ns=(written - 1, written - 1))
            assert newest_report(folder, {"claims": str(held)}) == paths, number
            os.utime(newer, ns=(written + 1, written + 1))
            assert newest_report(folder, {"claims": str(held)}) is None
    program = tmp_path / "program"
    (program / "probes").mkdir(parents=True)
    monkeypatch.setattr("probes.study.report.files.PROGRAM", program)
    assert newest_report(folder, {}) == paths
    (program / "probes" / "new.py").write_text("")
    os.utime(program / "probes" / "new.py", ns=(written + 1, written + 1))
    assert newest_report(folder, {}) is None
