"""Run a study: its cells' stages, then results and report."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

from probes.study.config import Cell, StudyConfig
from probes.study.pool import Outcome, run_in_process, run_in_processes
from probes.study.report import ReportPaths, write_report
from probes.study.results import result_row, write_results
from probes.study.stages import PretrainTask, ProbeTask, Task, TransferTask, read_result
from synthlang.errors import InputError
from synthlang.files import TEMPORARY, read_json, remove_leftovers, write_json
from synthlang.progress import Report, silent
from synthlang.store import Store

Executor = Literal["local", "in-process"]
STUDY = "study.json"


@dataclass
class CellState:
    """How far a cell has come: fingerprints of its finished stages, and its first error."""

    cell: Cell
    pretrain: str | None = None
    probe: str | None = None
    transfers: dict[int, str] = field(default_factory=dict)
    error: str | None = None
    log: str = ""

    def status(self, seeds: int) -> str:
        """``failed``, ``done`` or ``pending``."""
        if self.error:
            return "failed"
        return "done" if self.probe and len(self.transfers) == seeds else "pending"


class StudyRun:
    """A study in a folder: started, continued or already done."""

    def __init__(self, study: StudyConfig, cells: list[Cell], folder: Path) -> None:
        self.study = study
        self.folder = folder
        self.root = folder / "stages"
        self.store = Store(self.root)
        self.states = [CellState(cell) for cell in cells]
        self.seconds: dict[str, float] = {}
        self.environment: dict[str, Any] = {}

    def run(self, executor: Executor = "local", workers: int | None = None, report: Report = silent) -> ReportPaths:
        """Run every stage that is not done, then the report; a failed cell is recorded and the rest go on."""
        cores = os.cpu_count() or 1
        workers = min(workers or cores, len(self.states)) if executor == "local" else 1
        threads = max(1, cores // workers)
        self._claim(workers, threads)
        tasks: list[Task] = [PretrainTask(state.cell.pretrain) for state in self._distinct()]
        if executor == "local":
            run_in_processes(tasks, self._follow, self.root, workers, threads, report)
        else:
            run_in_process(tasks, self._follow, self.root, report)
        self._save()
        return write_report(self.folder)

    def rows(self) -> list[dict[str, Any]]:
        """The rows of all finished cells, in the order of the grid."""
        rows = []
        for state in self.states:
            if state.status(len(self.study.seeds)) != "done":
                continue
            assert state.pretrain and state.probe, "a cell is done when both are"
            probe = read_result(self.store, "probe", state.probe)
            for seed in self.study.seeds:
                stages = {"pretrain": state.pretrain, "transfer": state.transfers[seed], "probe": state.probe}
                scores = read_result(self.store, "transfer", state.transfers[seed])
                rows.append(result_row(state.cell.name, state.cell.pretrain, scores, probe, stages))
        return rows

    def check_folder(self) -> None:
        """Raise InputError if the folder holds anything but this study; writes nothing."""
        path = self.folder / STUDY
        if path.exists():
            held = _record(path)
            if held["fingerprint"] != self.study.fingerprint:
                raise InputError(
                    f"holds another study ({held['name']}, {held['fingerprint']}); choose another folder", self.folder
                )
        elif self.folder.exists() and not all(map(_is_ours, self.folder.iterdir())):
            raise InputError("is not empty and holds no study; choose another folder", self.folder)

    def _claim(self, workers: int, threads: int) -> None:
        """Make the folder this study's, or see that it is."""
        self.check_folder()
        if (self.folder / STUDY).exists():
            self._recall(_record(self.folder / STUDY))
        self.environment = environment(workers, threads)
        self.root.mkdir(parents=True, exist_ok=True)
        remove_leftovers(self.folder)
        self._save()

    def _recall(self, held: dict[str, Any]) -> None:
        """What an earlier start finished, so that a study stopped at once keeps its results."""
        self.seconds = held["seconds"]
        stages = {cell["name"]: cell["stages"] for cell in held["cells"]}
        for state in self.states:
            mine: dict[str, str] = stages.get(state.cell.name, {})
            if all(self.store.path(kind.split()[0], name).exists() for kind, name in mine.items()):
                state.pretrain, state.probe = mine.get("pretrain"), mine.get("probe")
                seeds = {seed: mine.get(f"transfer seed {seed}") for seed in self.study.seeds}
                state.transfers = {seed: name for seed, name in seeds.items() if name}

    def _distinct(self) -> list[CellState]:
        """One cell for each pretraining config: cells that share it share the stage."""
        seen: dict[str, CellState] = {}
        for state in self.states:
            seen.setdefault(state.cell.pretrain.model_dump_json(), state)
        return list(seen.values())

    def _follow(self, outcome: Outcome) -> Iterable[Task]:
        """Note what a task did; the tasks that can start now."""
        task = outcome.task
        mine = [
            s
            for s in self.states
            if s.cell.pretrain == task.config
            and (not isinstance(task, TransferTask) or s.cell.transfer == task.transfer)
        ]
        following: list[Task] = []
        if outcome.result is None:
            for state in mine:
                if state.error is None:
                    state.error, state.log = outcome.error, outcome.log
        elif isinstance(task, PretrainTask):
            name = outcome.result["pretrain"]
            for state in mine:
                if state.pretrain != name:
                    state.pretrain, state.probe, state.transfers = name, None, {}
            following.append(ProbeTask(task.config, name))
            wanted = {
                (s.cell.transfer.model_dump_json(), seed): s.cell.transfer for s in mine for seed in self.study.seeds
            }
            following += [
                TransferTask(task.config, held, seed, name)
                for (_, seed), held in sorted(wanted.items(), key=lambda item: item[0])
            ]
        for state in mine:
            self._note(state, outcome)
        self._save()
        return following

    def _note(self, state: CellState, outcome: Outcome) -> None:
        result = outcome.result or {}
        state.probe = result.get("probe", state.probe)
        if "transfer" in result:
            state.transfers[result["seed"]] = result["transfer"]
        for kind in ("pretrain", "probe", "transfer"):
            if kind in result:
                name = f"{kind}-{result[kind]}"
                # a stage found done takes no time; keep what it took when it ran
                self.seconds[name] = max(self.seconds.get(name, 0.0), round(outcome.seconds, 1))

    def _save(self) -> None:
        """Write study.json and the results so far, and the run folders' own copies."""
        cells = [self._cell_json(state) for state in self.states]
        write_json(
            self.folder / STUDY,
            {
                "name": self.study.name,
                "title": self.study.title,
                "fingerprint": self.study.fingerprint,
                "config": self.study.model_dump(mode="json"),
                "environment": self.environment,
                "cells": cells,
                "seconds": self.seconds,
            },
        )
        write_results(self.folder, self.rows())
        for state in self.states:
            if state.pretrain and state.status(len(self.study.seeds)) == "done":
                self._copy_into_run(state)

    def _copy_into_run(self, state: CellState) -> None:
        """probes.json and transfer.json of the run folder: {fingerprint: result}."""
        assert state.pretrain, "a finished cell has a run"
        assert state.probe, "a finished cell is probed"
        run = self.store.path("pretrain", state.pretrain)
        results = {
            "probes.json": {state.probe: read_result(self.store, "probe", state.probe)},
            "transfer.json": {n: read_result(self.store, "transfer", n) for n in state.transfers.values()},
        }
        for name, value in results.items():
            held = read_json(run / name) if (run / name).exists() else {}
            if held | value != held:
                write_json(run / name, held | value)

    def _cell_json(self, state: CellState) -> dict[str, Any]:
        stages = {"pretrain": state.pretrain, "probe": state.probe}
        stages |= {f"transfer seed {seed}": name for seed, name in sorted(state.transfers.items())}
        return {
            "name": state.cell.name,
            "overrides": state.cell.overrides,
            "status": state.status(len(self.study.seeds)),
            "error": state.error,
            "log": state.log,
            "stages": {kind: name for kind, name in stages.items() if name},
            "run": f"stages/pretrain-{state.pretrain}" if state.pretrain else None,
        }


def _is_ours(path: Path) -> bool:
    """Whether a study that was killed before it wrote study.json may have left this."""
    return path.name.startswith(TEMPORARY) or (path.name == "stages" and path.is_dir() and not any(path.iterdir()))


def _record(path: Path) -> dict[str, Any]:
    """study.json, or InputError if it is none."""
    held = read_json(path)
    if not isinstance(held, dict) or not {"name", "fingerprint", "seconds", "cells"} <= held.keys():
        raise InputError("is no record of a study; choose another folder", path)
    return held


def environment(workers: int, threads: int) -> dict[str, Any]:
    """Versions and sizes that the numbers may depend on."""
    packages = {name: version(name) for name in ("torch", "transformers", "tokenizers", "accelerate", "numpy")}
    machine = {"python": platform.python_version(), "platform": platform.platform(), "cores": os.cpu_count()}
    return {**machine, "workers": workers, "threads": threads, **packages}
