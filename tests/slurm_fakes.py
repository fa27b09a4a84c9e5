"""A fake Slurm of four scripts over a folder, with tasks for it. The test acts as the node."""

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pytest

from probes.study.executors.base import StageOutcome
from synthlang.progress import silent
from synthlang.store import Store

PROGRAMS = {
    "sbatch": r"""
cp "$1" "$FAKE/$(($(cat "$FAKE/count") + 1)).sh"
[ -e "$FAKE/refuse" ] && { cat "$FAKE/refuse" >&2; exit 1; }
id=$(($(cat "$FAKE/count") + 1))
echo "$id" >"$FAKE/count"
last=$(sed -n 's/^#SBATCH --array=0-\([0-9]*\).*/\1/p' "$1")
if [ -n "$last" ]; then
    for i in $(seq 0 "$last"); do echo "${id}_$i PENDING"; done >>"$FAKE/queue"
else
    echo "$id PENDING" >>"$FAKE/queue"
fi
echo "Submitted batch job $id"
""",
    "squeue": r"""
[ -e "$FAKE/away" ] && exit 1
cut -d' ' -f1,2 "$FAKE/queue"
""",
    "sacct": r"""
for word; do case $word in --jobs=*) cat "$FAKE/state-${word#--jobs=}" 2>/dev/null ;; esac; done
""",
    "srun": "exit 1\n",
}


class FakeSlurm:
    """A fake Slurm with the queue in a file. Jobs never start by themselves."""

    def __init__(self, folder: Path, monkeypatch: Any) -> None:
        self.folder = folder
        folder.mkdir()
        (folder / "count").write_text("0\n")
        (folder / "queue").write_text("")
        programs = folder / "bin"
        programs.mkdir()
        for name, text in PROGRAMS.items():
            (programs / name).write_text(f"#!/bin/bash\n{text}")
            (programs / name).chmod(0o755)
        monkeypatch.setenv("FAKE", str(folder))
        monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")

    @property
    def sent(self) -> int:
        """The number of scripts that sbatch accepted."""
        return int((self.folder / "count").read_text())

    def script(self, number: int) -> str:
        """The script of the n-th job or array."""
        return (self.folder / f"{number}.sh").read_text()

    def queue(self) -> dict[str, str]:
        """{job id: state}."""
        lines = (line.split() for line in (self.folder / "queue").read_text().splitlines())
        return {line[0]: line[1] for line in lines}

    def end(self, job: str, state: str | None) -> None:
        """Take a job out of the queue. ``state`` is its state in the accounting, or None without accounting."""
        lines = (self.folder / "queue").read_text().splitlines()
        (self.folder / "queue").write_text("".join(f"{line}\n" for line in lines if line.split()[0] != job))
        if state is not None:
            (self.folder / f"state-{job}").write_text(f"{state}\n")

    def go_away(self, away: bool = True) -> None:
        """The controller does not answer any more, or again."""
        path = self.folder / "away"
        path.touch() if away else path.unlink()

    def refuse(self, message: str | None) -> None:
        """Let sbatch fail, or no more."""
        if message is None:
            (self.folder / "refuse").unlink()
        else:
            (self.folder / "refuse").write_text(message)


@dataclass(frozen=True)
class PlainTask:
    """A task that is only submitted and never run."""

    key: str
    needs: tuple[str, ...] = ()
    kind: str = "pretrain"
    content: tuple[str, ...] = ("done.json",)

    @property
    def parents(self) -> "list[PlainTask]":
        return [PlainTask(key) for key in self.needs]

    @property
    def label(self) -> str:
        return f"plain {self.key}"

    def to_json(self) -> dict[str, Any]:
        return {"key": self.key}

    def make(self, store: Any, report: Any) -> None:
        raise AssertionError("never run here")


FAST = ["poll=1e-9"]


@pytest.fixture(name="slurm")
def fake_slurm(tmp_path, monkeypatch):
    monkeypatch.setattr("submitit.core.core.PicklingExecutor._throttle", lambda self: None)
    return FakeSlurm(tmp_path / "fake", monkeypatch)


@pytest.fixture(name="start")
def start_runner(tmp_path, slurm):
    """Return a function that starts the executor of a runner, each time of the same study."""
    from probes.study.executors.slurm import SlurmExecutor

    return lambda *options: SlurmExecutor(Store(tmp_path / "stages"), tmp_path / "out", [*FAST, *options])


def record(executor, key, job, error=None):
    """Write the record that the job of a task writes at its end."""
    outcome = StageOutcome(key, error, "its log" if error else "")
    executor.record(key).write_text(json.dumps({**asdict(outcome), "job": job}))


def wait(executor, timeout=0.0):
    return {outcome.key: outcome for outcome in executor.wait(silent, timeout)}
