"""Where a report may be written, and what of the folder it leaves alone."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from probes.study.report import files
from probes.study.report.folder import write_joined_report, write_report
from synthlang.errors import InputError
from tests.report_study import change, make_grid, write_rows

AXES = {"objective": ["ALIGN-MLM", "MLM"], "transform": ["trans", "trans+inv"]}


def held(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def study(tmp_path: Path) -> Path:
    return make_grid(tmp_path / "a", AXES, tasks=("pos", "ner"))


@pytest.mark.parametrize(
    "names",
    [
        ("figures/photo.svg", "tables/hand.tex", "report.md"),
        ("report.html",),
        ("report.json",),
        ("main.tex",),
    ],
)
def test_a_folder_that_is_not_of_a_report_is_left_alone(study: Path, tmp_path: Path, names: tuple[str, ...]) -> None:
    for name in names:
        path = tmp_path / "paper" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text('{"files": ["report.json"]}')
    before = held(tmp_path / "paper")
    with pytest.raises(InputError, match="is not empty and holds no report"):
        write_joined_report([study], tmp_path / "paper")
    assert held(tmp_path / "paper") == before


def test_a_file_and_another_study_are_no_places_for_a_joined_report(study: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(InputError, match="is a file"):
        write_joined_report([study], tmp_path / "file")
    other = make_grid(tmp_path / "b", AXES)
    write_report(other)
    before = held(other)
    with pytest.raises(InputError, match="is a study with a report of its own"):
        write_joined_report([study], other)
    assert held(other) == before


def test_an_empty_folder_gets_a_report_and_the_same_one_again(study: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    write_joined_report([study], tmp_path / "out")
    first = held(tmp_path / "out")
    write_joined_report([study], tmp_path / "out")
    assert held(tmp_path / "out") == first
    assert {*json.loads(first["report.json"])["files"], "report.json"} == first.keys()


@pytest.mark.parametrize("joined", [True, False])
def test_only_files_of_the_report_are_deleted(study: Path, tmp_path: Path, joined: bool) -> None:
    def write() -> Path:
        return (write_joined_report([study], tmp_path / "out") if joined else write_report(study)).html.parent

    folder = write()
    own = [folder / name for name in ("figures/photo.svg", "tables/hand.tex", "notes.txt")]
    for path in own:
        path.write_text("mine")
    assert (folder / "tables/scores-2-ner.tex").exists()
    make_grid(study, AXES, tasks=("pos",))
    write()
    assert not list(folder.glob("*/*-ner.*")), "what a former report had does not stay behind"
    assert [path.read_text() for path in own] == ["mine"] * 3


def test_a_report_of_an_earlier_version_is_replaced(study: Path, tmp_path: Path) -> None:
    folder = write_joined_report([study], tmp_path / "out").html.parent
    (folder / "report.json").unlink()
    (folder / "tables/notes.txt").write_text("mine")
    make_grid(study, AXES, tasks=("pos",))
    write_joined_report([study], folder)
    assert not list(folder.glob("*/*-ner.*")) and (folder / "tables/notes.txt").exists()


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


def test_a_file_in_the_place_of_a_folder_is_told(study: Path) -> None:
    write_rows(study, [])
    change(study, cells=[])
    (study / "figures").write_text("mine")
    with pytest.raises(InputError, match="is a file, where the report needs a folder"):
        write_report(study)


def test_libraries_are_loaded_when_a_report_is_written() -> None:
    """Not by a start of a study that has nothing to write."""
    code = "import sys, probes.commands; print([n for n in ('torch', 'pandas', 'matplotlib') if n in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[]"
