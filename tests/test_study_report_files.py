"""Where a report may be written, what of the folder it leaves alone, and when it need not be written again."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from probes.report import files
from probes.report.files import ReportPaths, newest_report
from probes.report.folder import write_joined_report, write_report
from tests.refusals import refused
from tests.report_study import make_grid

AXES = {"objective": ["ALIGN-MLM", "MLM"]}


def contents_of(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def study(tmp_path: Path) -> Path:
    return make_grid(tmp_path / "a", AXES, tasks=("pos", "ner"))


TAKEN = [
    (("figures/photo.svg", "tables/hand.tex", "report.md"), "exists"),
    (("report.html",), "exists"),
    (("report.json",), "exists"),
    (("main.tex",), "exists"),
    (("study.json",), "conflict"),
    (("",), "exists"),
]


@pytest.mark.parametrize(("names", "code"), TAKEN)
def test_a_place_that_is_not_of_a_report_is_left_alone(
    study: Path, tmp_path: Path, names: tuple[str, ...], code: str
) -> None:
    for name in names:
        path = tmp_path / "paper" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text('{"files": ["report.json"]}')
    before = contents_of(tmp_path)
    assert refused(write_joined_report, [study], tmp_path / "paper") == ("paper", code)
    assert contents_of(tmp_path) == before


def test_what_cannot_be_joined_is_refused(study: Path, tmp_path: Path) -> None:
    assert refused(write_joined_report, [], tmp_path / "out") == ("", "missing")
    assert refused(write_joined_report, [study], study) == (study.name, "conflict")


@pytest.mark.parametrize("joined", [True, False])
def test_only_files_of_the_report_are_deleted(study: Path, tmp_path: Path, joined: bool) -> None:
    """Nor is anything else when it is written again."""

    def write() -> Path:
        return (write_joined_report([study], tmp_path / "out") if joined else write_report(study)).folder

    (tmp_path / "out").mkdir()
    folder = write()
    first = contents_of(folder)
    listed = json.loads(first["report.json"])["files"]
    assert {*listed, "report.json"} == first.keys() - ({} if joined else {"study.json"}) - {
        name for name in first if name.split(".")[0] in ("results", "measures")
    }
    write()
    assert contents_of(folder) == first
    own = [folder / name for name in ("tables/notes.txt", "notes.txt", *(() if joined else ("figures/photo.svg",)))]
    for path in own:
        path.write_text("mine")
    make_grid(study, AXES, tasks=("pos",))
    write()
    assert "tables/scores-2-ner.tex" in first and not list(folder.glob("*/*-ner.*")), "nothing old stays behind"
    assert [path.read_text() for path in own] == ["mine"] * len(own)


def test_a_report_that_was_killed_is_still_known(study: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(files, "atomic_file", killed)
        with pytest.raises(KeyboardInterrupt):
            write_joined_report([study], tmp_path / "out")
    assert write_joined_report([study], tmp_path / "out").html.exists()


def test_a_list_names_nothing_outside_the_report(study: Path) -> None:
    write_report(study)
    path = study / "report.json"
    names = ["../x", "study.json", "figures/../study.json", "tables/..", "figures/", "figures", 3]
    path.write_text(json.dumps(json.loads(path.read_text()) | {"files": names}))
    write_report(study)
    assert (study / "study.json").exists() and (study / "tables/seeds.csv").exists()


# --- the newest report ---


def set_time(path: Path, to: Path, seconds: float) -> None:
    at = to.stat().st_mtime_ns + round(seconds * 10**9)
    os.utime(path, ns=(at, at))


def age(folder: Path) -> None:
    """Everything in the folder is a second older than the report."""
    for path in folder.rglob("*"):
        if path.is_file() and "report" not in path.name:
            set_time(path, folder / "report.json", -1)


@pytest.fixture
def made(study: Path) -> ReportPaths:
    paths = write_report(study)
    age(study)
    return paths


@pytest.mark.parametrize("name", ["study.json", "results.parquet", "measures.parquet", "results.csv"])
def test_a_newer_file_or_a_missing_one_has_it_written_again(made: ReportPaths, name: str) -> None:
    assert newest_report(made.folder, {}) == made, "nothing to do"
    set_time(made.folder / name, made.folder / "report.json", 0.001)
    assert newest_report(made.folder, {}) is None
    age(made.folder)
    assert newest_report(made.folder, {}) == made
    (made.folder / name).unlink()
    assert newest_report(made.folder, {}) is None


@pytest.mark.parametrize("name", ["report.html", "report.md", "report.json"])
def test_a_report_that_is_not_whole_is_written_again(made: ReportPaths, name: str) -> None:
    (made.folder / name).unlink()
    assert newest_report(made.folder, {}) is None


def test_claims_of_the_user_and_the_program_count(made: ReportPaths, tmp_path: Path, monkeypatch) -> None:
    own = tmp_path / "own"
    (own / "far").mkdir(parents=True)
    claims, paper = own / "mine.yaml", own / "far" / "paper.yml"
    claims.write_text("paper: far/paper.yml\n")
    paper.write_text("y: 1\n")
    written = made.folder / "report.json"
    for config, files_of in (({"claims": [str(claims)]}, (claims, paper)), ({"paper": f"{claims}/table1"}, (claims,))):
        for newer in files_of:
            for path in (claims, paper):
                set_time(path, written, -0.1)
            assert newest_report(made.folder, config) == made
            set_time(newer, written, 0.1)
            assert newest_report(made.folder, config) is None and newest_report(made.folder, {}) == made
    program = tmp_path / "program"
    (program / "probes").mkdir(parents=True)
    monkeypatch.setattr("probes.report.files.PROGRAM", program)
    assert newest_report(made.folder, {}) == made
    (program / "probes" / "new.py").write_text("")
    set_time(program / "probes" / "new.py", written, 0.1)
    assert newest_report(made.folder, {}) is None
