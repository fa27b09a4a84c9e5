"""The tiny study, run here or as a process, and readers of its folder."""

import csv
import json
import os
import shutil
import sys
import time
from dataclasses import dataclass
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

import pytest

from probes import cli
from probes.study import runner
from probes.study.cells import expand
from probes.study.config import StudyConfig
from probes.study.options import StudyOptions
from probes.study.runner import StudyRun
from synthlang.config import parse
from tests.runs import forked
from tests.tiny import STUDY, changed

TINY = changed(STUDY, pretrain__steps=20)  # so that a pretraining lasts long enough to be killed
CHECKPOINT = "stages/pretrain-*/checkpoints/step-*"


def opened(folder: Path, data: Any = None, **options: Any) -> StudyRun:
    """Open a study in its folder without writing anything. It runs in this process unless ``options`` differ."""
    study = parse(StudyConfig, data or TINY)
    cells = expand(study)
    return StudyRun(study, cells, folder, StudyOptions(**{"executor": "in-process", **options}))


def run_here(folder: Path, data: Any = None, **options: Any) -> StudyRun:
    """Start or continue a study."""
    run = opened(folder, data, **options)
    run.run()
    return run


def made_here(folder: Path, data: Any = None, **options: Any) -> StudyRun:
    """Start or continue a study, of which nothing reads the report, so that it has none."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runner, "write_report", lambda *_, **__: None)
        return run_here(folder, data, **options)


def command(monkeypatch: pytest.MonkeyPatch, *arguments: Any) -> int:
    """The exit code of ``synthlang …`` run in this process."""
    monkeypatch.setattr(sys, "argv", ["synthlang", *map(str, arguments)])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    return int(ended.value.code or 0)


@dataclass(frozen=True)
class Started:
    """A process whose standard error goes to a file."""

    process: ForkServerProcess
    errors: Path

    @property
    def pid(self) -> int:
        assert self.process.pid is not None
        return self.process.pid

    def ended(self) -> tuple[int | None, str]:
        """Wait for the process, and return its exit code and its output."""
        self.process.join(300)
        return self.process.exitcode, self.errors.read_text(encoding="utf-8")


def start(config: Path, out: Path, *options: str) -> Started:
    """Start ``synthlang study`` as a process in a separate session."""
    errors = out.parent / f"{out.name}.errors"
    return Started(forked(_command, errors, ["study", str(config), "--out", str(out), *options]), errors)


def _command(errors: Path, words: list[str]) -> None:
    os.setsid()
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    os.dup2(os.open(errors, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
    sys.argv = ["synthlang", *words]
    cli.main()


def wait_for(folder: Path, pattern: str, started: Started) -> None:
    """Wait until a path appears. It is an error if the process ends before."""
    deadline = time.monotonic() + 180
    while not any(folder.glob(pattern)):
        if not started.process.is_alive() and not any(folder.glob(pattern)):
            raise AssertionError(f"it ended before there was {pattern}: {started.ended()}")
        assert time.monotonic() < deadline, f"no {pattern} in {folder}"
        time.sleep(0.01)


def alive_in(session: int) -> list[int]:
    """The processes of a session that have not ended."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            state, _, _, of_session = (entry / "stat").read_text().rpartition(")")[2].split()[:4]
        except OSError:
            continue  # it ended while we looked
        if int(of_session) == session and state != "Z":
            found.append(int(entry.name))
    return found


def wait_for_the_end_of(session: int) -> None:
    """Wait until no process of a session is left. Workers stop when their study is gone."""
    deadline = time.monotonic() + 60
    while alive_in(session):
        assert time.monotonic() < deadline, f"still alive: {alive_in(session)}"
        time.sleep(0.1)


TABLES = ("results.csv", "results.parquet", "measures.csv", "measures.parquet")


def tables(folder: Path) -> dict[str, bytes]:
    """The bytes of all results."""
    return {name: (folder / name).read_bytes() for name in TABLES}


def rows_of(folder: Path, name: str = "results.csv") -> list[dict[str, str]]:
    with (folder / name).open(newline="", encoding="utf-8") as handle:
        return list(csv.DictReader(handle))


def cells_in(folder: Path) -> dict[str, dict[str, Any]]:
    return {cell["name"]: cell for cell in json.loads((folder / "study.json").read_text())["cells"]}


def stages_of(folder: Path, kind: str) -> list[Path]:
    return sorted((folder / "stages").glob(f"{kind}-*"))


def times(folder: Path) -> dict[Path, int]:
    """Return the time of change of each file, except locks, which every start touches."""
    return {p: p.stat().st_mtime_ns for p in folder.rglob("*") if ".locks" not in p.parts and p.is_file()}


def environment() -> dict[str, str]:
    return {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}


def own_copy(finished: Path, out: Path) -> Path:
    """A copy of a finished study at ``out``, which alone uses its store."""
    shutil.copytree(finished, out)
    (out / "stages" / "studies.json").write_text('{"format": 3, "studies": [".."]}')
    return out
