"""Run a study: whatever of its stages is not done, then results and report."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, cast

from pretrain.stopping import Stopped, watched
from probes.report.numbers import plural
from probes.study import measures
from probes.study.axis_columns import AxisColumns
from probes.study.cell import Cell
from probes.study.changes import told_changes
from probes.study.config import StudyConfig
from probes.study.environment import environment, machine_of
from probes.study.executors import Detached, Executor, Machine, Outcome, open_executor
from probes.study.finished import all_finished
from probes.study.gc import check_weights
from probes.study.index import entry_of, last_change
from probes.study.record import (
    FORMAT,
    STAGES,
    STUDY,
    CellRecord,
    check_can_write,
    check_folder,
    check_store,
    only_runner,
    registered,
    relative,
    write_logs,
)
from probes.study.report.files import newest_report
from probes.study.report.folder import ReportPaths, write_report
from probes.study.resolved import common_settings
from probes.study.results import write_results, write_table
from probes.study.schedule import Schedule
from probes.study.select import selected
from probes.study.tables import Tables, stage_keys
from probes.study.tasks import Graph, Task, graph
from probes.study.users import stages_read
from synthlang.files import remove_leftovers, write_json
from synthlang.progress import Report, Say, silent, unheard
from synthlang.store import Store

BETWEEN = 5.0
"""Seconds between two writings of study.json and the tables, at the least;"""
SHARE = 20
"""and so many times what the last one took, so that a large study spends its time on its cells."""
PATIENCE = 1.0
"""Seconds that the runner waits for an executor before it looks whether something is to be written."""


@dataclass(frozen=True)
class RunOptions:
    """How a study is run; nothing of it changes what comes out.

    store   where stages are (None: where they were, or ``stages`` in the study's folder)
    only    texts that choose cells (select.py); the others keep what they have
    retry   how often a task that failed is tried again
    wait    False: hand everything over to Slurm and leave
    """

    executor: str = "local"
    workers: int | None = None
    retry: int = 0
    only: tuple[str, ...] = ()
    store: Path | None = None
    slurm: tuple[str, ...] = ()
    wait: bool = True


class StudyRun:
    """A study in a folder: started, continued or already done.

    Making one checks the folder, the store, and every chosen cell that is not done (InputError); it writes nothing.
    ``changed`` says what of the study is other than in its folder, "" if nothing is.
    """

    def __init__(
        self, study: StudyConfig, cells: Sequence[Cell], folder: Path, options: RunOptions = RunOptions()
    ) -> None:
        self.study, self.folder, self.options = study, folder, options
        held = self._held = check_folder(folder, study) or {}
        root = options.store or folder / held.get("store", STAGES)
        check_store(root)
        self.store = Store(root)
        self.graph = graph(cells, study.seeds)
        self.chosen = selected(cells, options.only)
        self.cells = [
            CellRecord(cell.name, cell.labels, cell.overrides, stage_keys(self.graph.of_cell[cell.name], study.seeds))
            for cell in cells
        ]
        self.tables = Tables(cells, self.graph.of_cell, study.seeds, self.store)
        self._axes, self._expanded = AxisColumns(cells), cells
        self._before = {cell["name"]: cell for cell in held.get("cells", [])}
        self._gone = self._before.keys() - {cell.name for cell in cells}
        self.seconds: dict[str, float] = held.get("seconds", {})
        self._recall_errors()
        self.done: dict[str, str] = {}
        self.look()
        self._works = bool(self.to_do())
        self.changed = self._told_changes(held)
        left = {cell.name for cell in self.cells if cell.name in self.chosen and cell.status != "done"}
        if left:
            from probes.study.checks import check_cells  # with torch, which a finished study needs no more

            check_cells([cell for cell in cells if cell.name in left])
        check_weights(self.to_do(), self.done, self.store)

    def look(self) -> None:
        """See which stages are finished."""
        self._looked = last_change(self.store)
        self.done = all_finished(self.store, self.graph.tasks)
        self._fill_cells()

    def _told_changes(self, held: dict[str, Any]) -> str:
        if not held or held["fingerprint"] == self.study.fingerprint:
            return ""
        finished = sum(cell.status == "done" for cell in self.cells)
        gone = f"; {plural(len(self._gone), 'cell')} of before are left out of the results" if self._gone else ""
        what = told_changes(held["config"], self.study.model_dump(mode="json"))
        return f"{what}; {finished} of {plural(len(self.cells), 'cell')} are finished{gone}"

    def chosen_graph(self) -> Graph:
        """The tasks of the chosen cells."""
        of_cell = {name: held for name, held in self.graph.of_cell.items() if name in self.chosen}
        wanted = {key for held in of_cell.values() for key in held.keys}
        return Graph({key: task for key, task in self.graph.tasks.items() if key in wanted}, of_cell)

    def to_do(self) -> list[Task]:
        """The tasks of the chosen cells that are not done, parents first."""
        return [task for key, task in self.chosen_graph().tasks.items() if key not in self.done]

    def check_places(self) -> None:
        """InputError if the study's folder or its store cannot be written."""
        check_can_write(self.folder, "the study", "name another folder with --out")
        check_can_write(self.store.root, "the store", "name another one with --store")

    def run(self, report: Report = silent, say: Say = unheard) -> ReportPaths:
        """Run every stage of the chosen cells that is not done, then write the report.

        A failed task is recorded with its log and the rest go on. InputError if another process runs the study; Stopped
        after a SIGTERM inside ``pretrain.stopping.watching``.
        """
        with only_runner(self.folder):
            if self.changed:
                say(self.changed)
            remove_leftovers(self.folder)
            if (paths := self._nothing_new()) is not None:
                say("nothing is left to do, and the report is up to date")
                return paths
            with registered(self.store, self.folder):
                self._write_record()
            if self._looked != last_change(self.store):  # of 1,000 cells a look takes seconds
                self.look()
            for cell in self.cells:
                if cell.name in self.chosen:
                    cell.error, cell.log = None, ""
            try:
                self._drive(report, say)
            finally:
                self.save()
            return write_report(self.folder, say)

    def _nothing_new(self) -> ReportPaths | None:
        """The report as it is, if all is done, and record and report are what a start would write: of 1,000 cells that
        takes seconds."""
        if self._looked != last_change(self.store) or self.to_do():
            return None
        if json.loads(json.dumps(self._record())) != self._held:
            return None
        return newest_report(self.folder, self.study.model_dump(mode="json", include={"claims", "paper"}))

    def save(self) -> None:
        """Write study.json, the logs and the tables as things stand."""
        self._fill_cells()
        self._write_record()
        write_logs(self.folder, self.cells, self._gone)
        axes = self._axes
        write_results(self.folder, axes.of(self.tables.rows(self.done)), axes.types)
        columns = {**measures.COLUMNS, **axes.types}
        write_table(self.folder, "measures", columns, axes.of(self.tables.measures(self.done)))

    def _drive(self, report: Report, say: Say) -> None:
        tasks = self.to_do()
        if not tasks:
            return
        options = self.options
        executor = open_executor(options.executor, self.store, self.folder, self.machine, options.slurm)
        try:
            if not options.wait:
                cast(Detached, executor).submit_graph(tasks)
                say(f"{len(tasks)} tasks are handed over; start the study again to collect what they did")
                return
            keys = {task.key for task in tasks}
            wanted = {key: task for key, task in self.graph.tasks.items() if key in keys or key in self.done}
            chosen = [list(cell.keys.values()) for cell in self.cells if cell.name in self.chosen]
            schedule = Schedule(wanted, chosen, self.done, options.retry)
            self._follow(schedule, executor, len(tasks), report, say)
        finally:
            executor.close()

    def _follow(self, schedule: Schedule, executor: Executor, total: int, report: Report, say: Say) -> None:
        """Submit and wait until nothing is left; what is known is written now and then."""
        over, written, cost, news, stop = 0, time.monotonic(), 0.0, False, watched()
        names = {
            key: cell.name for cell in reversed(self.cells) if cell.name in self.chosen for key in cell.keys.values()
        }
        while not schedule.is_over:
            while executor.capacity() > 0 and (task := schedule.next()) is not None:
                executor.submit(task, names.get(task.key, ""))
            for outcome in executor.wait(report, PATIENCE):
                if stop.is_set and outcome.error is not None:
                    continue  # nothing is wrong with it: it was told to end
                ended = schedule.ended(outcome)
                if not ended:
                    say(f"{schedule.tasks[outcome.key].label} failed and is tried again: {outcome.error}")
                self._note(ended)
                over, news = over + len(ended), True
                report(f"study {self.study.name}", over, total, "")
            if stop.is_set:
                raise Stopped(self.study.name)
            if news and time.monotonic() - written >= max(BETWEEN, SHARE * cost):
                started = time.monotonic()
                self.save()
                written, news = time.monotonic(), False
                cost = written - started

    def _note(self, ended: Sequence[Outcome]) -> None:
        for outcome in ended:
            if outcome.fingerprint is not None:
                self.done[outcome.key] = outcome.fingerprint
        lost = {outcome.key: outcome for outcome in ended if outcome.fingerprint is None}
        for cell in self.cells if lost else []:
            if cell.name in self.chosen and cell.error is None:
                first = next((lost[key] for key in cell.keys.values() if key in lost), None)
                if first is not None:
                    cell.error, cell.log = first.error, first.log

    def _fill_cells(self) -> None:
        """Bring the stages of cells and the seconds of stages up to date."""
        for cell in self.cells:
            cell.stages = {stage: self.done[key] for stage, key in cell.keys.items() if key in self.done}
        before, self.seconds = self.seconds, {}
        for key, name in self.done.items():
            stage = f"{self.graph.tasks[key].kind}-{name}"
            known = before.get(stage)
            self.seconds[stage] = (entry_of(self.store, key) or {"seconds": 0.0})["seconds"] if known is None else known

    def _recall_errors(self) -> None:
        """What an earlier start said of cells that this one does not run."""
        for cell in self.cells:
            if (before := self._before.get(cell.name)) is not None:
                cell.error, cell.log = before["error"], before["log"]

    @cached_property
    def machine(self) -> Machine:
        """What the tasks may use; devices are counted, with torch, when somebody asks."""
        return machine_of(self.options.executor, self.options.workers, len(self.cells))

    @cached_property
    def _environment(self) -> dict[str, Any]:
        """Of the last start that had something to run: results that were there are not of this one."""
        held = None if self._works else self._held.get("environment")
        return held or environment(self.machine, self.options.executor)

    @cached_property
    def _settings(self) -> dict[str, Any]:
        return common_settings(self._expanded)

    @cached_property
    def _reads(self) -> list[str]:
        return stages_read(self._expanded)

    def _write_record(self) -> None:
        write_json(self.folder / STUDY, self._record())

    def _record(self) -> dict[str, Any]:
        study, store = self.study, relative(self.store.root, self.folder)
        return {
            "format": FORMAT,
            "name": study.name,
            "title": study.title,
            "fingerprint": study.fingerprint,
            "config": study.model_dump(mode="json"),
            "settings": self._settings,
            "reads": self._reads,
            "environment": self._environment,
            "axes": list(dict.fromkeys(axis for cell in self.cells for axis in cell.labels)),
            "store": store,
            "cells": [cell.to_json(store) for cell in self.cells],
            "seconds": self.seconds,
            "dropped": self.tables.dropped(self.done),
        }
