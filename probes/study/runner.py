"""Run of a study: make the unfinished stages, then write the results and the report."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from pretrain.stopping import Stopped, watched
from probes.models.names import CellModel
from probes.report.files import ReportPaths, newest_report
from probes.report.folder import write_report
from probes.report.terminal import cell_line
from probes.results.collect import Tables
from probes.results.views import AxisColumns, result_rows
from probes.results.write import write_measurements
from probes.stages.base import Stage, StageKeys
from probes.stages.content_hashes import ContentHashes
from probes.stages.done import damage, is_done, seconds_of
from probes.stages.shared_finetunes import SharedFinetunes
from probes.study.cell import Cell, in_cell
from probes.study.cells import selected
from probes.study.common_settings import common_settings, describe_changes
from probes.study.config import StudyConfig
from probes.study.examples import examples
from probes.study.executors import open_executor
from probes.study.executors.base import Executor, Machine, StageOutcome
from probes.study.executors.resources import environment, machine_of
from probes.study.gc import check_weights
from probes.study.graph import graph
from probes.study.options import StudyOptions
from probes.study.record import (
    FORMAT,
    STAGES,
    STUDY,
    CellRecord,
    check_folder,
    check_store,
    registered,
    relative,
    write_logs,
)
from probes.study.schedule import Schedule, TimeLeft
from probes.study.stage_folders import folder_name, stages_read
from synthlang.files import only_writer, write_json
from synthlang.progress import Report, Say, silent, unheard
from synthlang.store import Store
from synthlang.wording import plural

if TYPE_CHECKING:
    from probes.study.executors.slurm import SlurmExecutor

BETWEEN = 5.0
"""Minimum number of seconds between two writings of study.json and the tables."""
SHARE = 20
"""Minimum time between two writings, as a multiple of the duration of the last one.

A large study thus spends at most a twentieth of its time on writing.
"""
PATIENCE = 1.0
"""Maximum seconds to wait for an executor before the next check whether files have to be written."""


class StudyRun:
    """A study in a folder: new, unfinished or finished.

    The constructor checks the folder and the store. Except for a dry run, it also checks every chosen cell that is not
    finished. It writes nothing.

    Args:
        study: The study.
        cells: The settings of all cells.
        folder: The folder of the study.
        options: Options of the run. Their ``only`` chooses the cells.

    Attributes:
        cells: The state of each cell.
        store: The store of the stages.
        graph: The stages of all cells.
        digests: The content hashes of the store.
        tables: The measurements of the finished stages.
        seconds: Name of the folder of a finished stage → seconds that the stage took.
        chosen: Names of the chosen cells.
        done: Keys of the finished stages (see ``look``).
        changed: Description of the changes since the last start in this folder, or "" without changes.

    Raises:
        InputError: The folder holds another study, the folder or the store holds other files or has another format, no
            cell matches ``only``, a cell cannot run, or a record of a finished stage cannot be read.
    """

    def __init__(self, study: StudyConfig, cells: Sequence[Cell], folder: Path, options: StudyOptions) -> None:
        self.study, self.folder, self.options, self._expanded = study, folder, options, cells
        former = self._former = check_folder(folder, study) or {}
        root = options.store or folder / former.get("store", STAGES)
        check_store(root)
        self.store = Store(root)
        self.digests = ContentHashes(self.store)
        self.graph = graph(cells, study.seeds, StageKeys(self.digests))
        self.chosen = selected(cells, options.only)
        self.tables = Tables(cells, self.graph.of_cell, study.seeds, self.store)
        self._axes = AxisColumns(cells)
        before = {cell["name"]: cell for cell in former.get("cells", [])}
        self._gone = before.keys() - {cell.name for cell in cells}
        self.seconds: dict[str, float] = former.get("seconds", {})
        self._examples: list[dict[str, str]] = former.get("examples", [])
        self.cells = []
        for cell in cells:
            known = before.get(cell.name, {})
            error, log = known.get("error"), known.get("log", "")  # from an earlier start
            keys = self.graph.of_cell[cell.name]
            self.cells.append(CellRecord(cell.name, cell.labels, cell.overrides, keys, error=error, log=log))
            if cell.name not in self.chosen and known.get("stages"):
                self._check_left_alone(cell.name, keys.values())
        self.look()
        self._works = bool(self.to_do())
        self.changed = self._describe_changes()
        if not options.dry_run:
            self.check_cells()

    @property
    def inputs(self) -> list[str]:
        """The files and folders that the chosen cells read, whether they exist or not.

        Raises:
            InputError: A path begins with ``~USER``, and the user does not exist.
        """
        from probes.study.checks import inputs_of

        return inputs_of(cell for cell in self._expanded if cell.name in self.chosen)

    def check_cells(self) -> None:
        """Check every chosen cell that is not finished.

        Raises:
            InputError: A cell cannot run, for instance because it needs weights that ``synthlang gc`` deleted.
        """
        left = {cell.name for cell in self.cells if cell.name in self.chosen and cell.status != "done"}
        if left:
            from probes.study.checks import check_cells  # imports torch, which a finished study does not need

            check_cells([cell for cell in self._expanded if cell.name in left])
        check_weights(self.to_do(), self.done, self.store)

    def _check_left_alone(self, cell: str, keys: Iterable[str]) -> None:
        """Raise InputError if a cell that is not chosen has results, but one of its inputs cannot be read.

        Its stages would get other keys, so its results would no longer belong to a stage.
        """
        contents = (content for key in keys for content in self.graph.stages[key].contents(self.digests))
        if problem := next((content.error for content in contents if content.error), None):
            placed = in_cell(problem, f"cell {cell}")
            placed.reason = f"has results, but one of its inputs cannot be read: {placed.reason}"
            placed.hint = "restore the file or folder" if problem.absent else problem.hint
            raise placed

    def look(self) -> None:
        """Update the set of finished stages from the store.

        Raises:
            InputError: The record of the checksums of a stage, its note or its file ``dropped.json`` cannot be read.
        """
        self._looked = self._last_change()
        self.done = {key for key, stage in self.graph.stages.items() if is_done(self.store, stage)}
        self._fill_cells()

    def _last_change(self) -> int | None:
        """Return the time in ns when a folder of the store was last made or deleted, or None without a store."""
        return self.store.root.stat().st_mtime_ns if self.store.root.exists() else None

    def _describe_changes(self) -> str:
        if not self._former or self._former["fingerprint"] == self.study.fingerprint:
            return ""
        finished = sum(cell.status == "done" for cell in self.cells)
        gone = f"; {plural(len(self._gone), 'former cell')} left out of the results" if self._gone else ""
        what = describe_changes(self._former["config"], self.study.model_dump(mode="json"))
        return f"{what}; {finished} of {plural(len(self.cells), 'cell')} are finished{gone}"

    def to_do(self) -> list[Stage]:
        """Return the unfinished stages of the chosen cells, parents first."""
        return [stage for key, stage in self.graph.chosen(self.chosen).stages.items() if key not in self.done]

    def run(self, report: Report = silent, say: Say = unheard) -> ReportPaths:
        """Make every unfinished stage of the chosen cells, then write the report and return its paths.

        A failed stage is recorded with its log, and the stages that do not need it continue. If the option ``wait`` is
        false, the stages are only submitted. If nothing is left to do and the report is up to date, nothing is written.

        Args:
            report: Function that receives the progress.
            say: Function that receives a line of text for the user.

        Raises:
            InputError: Another process runs the study, the executor cannot make stages, or a record of the store or a
                result cannot be read.
            DiskError: A file of the study cannot be written.
            Stopped: After SIGTERM inside ``pretrain.stopping.watching``.
        """
        with only_writer(self.folder):
            if self.changed:
                say(self.changed)
            if (paths := self._nothing_new()) is not None:
                say("nothing is left to do, and the report is up to date")
                return paths
            with registered(self.store, self.folder):
                self._write_record()
            self.digests.save(self.store)
            if self._looked != self._last_change():  # For 1,000 cells, looking takes seconds.
                self.look()
            for stage in self.to_do():
                if files := damage(self.store.path(stage.kind, stage.key)):
                    say(f"{stage.label} is made again, because of damaged files: {', '.join(files)}")
            for cell in self.cells:
                if cell.name in self.chosen:
                    cell.error, cell.log = None, ""
            try:
                self._drive(report, say)
            finally:
                # Earlier examples stay, because garbage collection may have deleted the tokenizers.
                found = examples(self._expanded, self.graph.of_cell, self.done, self.store)
                self._examples = found or self._examples
                self.save()
            return write_report(self.folder, say, says_excluded=False)  # the command prints them

    def _nothing_new(self) -> ReportPaths | None:
        """Return the existing report if a start would change nothing, else None.

        In a large study, this check saves seconds of writing.
        """
        if self._looked != self._last_change() or self.to_do():
            return None
        if json.loads(json.dumps(self._record())) != self._former:
            return None
        return newest_report(self.folder, self.study.model_dump(mode="json", include={"claims", "paper"}))

    def save(self) -> None:
        """Write study.json, the logs of failed cells, and the tables of measurements.

        Raises:
            InputError: The result of a finished stage is missing or is not JSON.
            DiskError: A file cannot be written.
        """
        self._fill_cells()
        self._write_record()
        write_logs(self.folder, self.cells, self._gone)
        write_measurements(self.folder, self.tables.measurements(self.done), self._axes)

    def _drive(self, report: Report, say: Say) -> None:
        left = self.to_do()
        if not left:
            return
        options = self.options
        executor = open_executor(options.executor, self.store, self.folder, self.machine, options.slurm)
        try:
            if not options.wait:
                cast("SlurmExecutor", executor).submit_graph(left)
                say(f"submitted {plural(len(left), 'stage')}; start the study again to collect the results")
                return
            keys = {stage.key for stage in left} | self.done
            wanted = {key: stage for key, stage in self.graph.stages.items() if key in keys}
            schedule = Schedule(wanted, self.done, options.retry)
            fits = SharedFinetunes(left, self.store, StageKeys(self.digests))
            self._follow(schedule, executor, fits, len(left), report, say)
        finally:
            executor.close()

    def _follow(
        self, schedule: Schedule, executor: Executor, fits: SharedFinetunes, total: int, report: Report, say: Say
    ) -> None:
        """Run the stages until all have ended, and write the record and the tables from time to time."""
        over, written, cost, news, stop = 0, time.monotonic(), 0.0, False, watched()
        seconds = {f"{stage.kind}-{key}": stage for key, stage in self.graph.stages.items()}
        took = [(seconds[name], known) for name, known in self.seconds.items() if name in seconds and known]
        clock = TimeLeft(self.to_do(), took)
        names = {
            key: cell.name for cell in reversed(self.cells) if cell.name in self.chosen for key in cell.keys.values()
        }
        while not schedule.is_over:
            while executor.capacity() > 0 and (stage := schedule.next(fits.is_busy)) is not None:
                executor.submit(stage, names.get(stage.key, ""))
                fits.started(stage.key)
                clock.started(stage)
            for outcome in executor.wait(report, PATIENCE):
                if stop.is_set and outcome.error is not None:
                    continue  # The stage was stopped and has no fault of its own.
                ended = schedule.ended(outcome)
                if not ended:
                    say(f"{schedule.stages[outcome.key].label} failed and is tried again: {outcome.error}")
                self._note(ended)
                for one in ended:
                    clock.ended(one.key)
                    fits.ended(one.key)
                for rows in self._ended_cells(ended):
                    say(cell_line(rows))
                over, news = over + len(ended), True
                report(f"study {self.study.name}", over, total, clock.told())
            if stop.is_set:
                raise Stopped(self.study.name)
            if news and time.monotonic() - written >= max(BETWEEN, SHARE * cost):
                started = time.monotonic()
                self.save()
                written, news = time.monotonic(), False
                cost = written - started

    def _ended_cells(self, ended: Sequence[StageOutcome]) -> Iterator[list[dict[str, Any]]]:
        """Yield the result rows of each cell that the stages in ``ended`` complete."""
        new = {outcome.key for outcome in ended}
        for record, cell in zip(self.cells, self._expanded, strict=True):
            keys = record.keys.values()
            if new.isdisjoint(keys) or not self.done.issuperset(keys):
                continue
            if rows := list(result_rows(self.tables.scores(self.done, [cell]))):
                yield rows

    def _note(self, ended: Sequence[StageOutcome]) -> None:
        self.done |= {outcome.key for outcome in ended if outcome.error is None}
        lost = {outcome.key: outcome for outcome in ended if outcome.error is not None}
        for cell in self.cells if lost else ():
            first = next((lost[key] for key in cell.keys.values() if key in lost), None)
            if first is not None and cell.name in self.chosen and cell.error is None:
                cell.error, cell.log = first.error, first.log

    def _fill_cells(self) -> None:
        """Update the finished stages of the cells and the seconds of the stages."""
        for cell in self.cells:
            cell.stages = {stage: key for stage, key in cell.keys.items() if key in self.done}
        before, self.seconds = self.seconds, {}
        for key, stage in self.graph.stages.items():
            if key in self.done:
                folder = self.store.path(stage.kind, key)
                known = before.get(folder.name)
                self.seconds[folder.name] = seconds_of(folder) if known is None else known

    @cached_property
    def machine(self) -> Machine:
        """The resources for the stages, computed at the first use, because counting devices imports torch."""
        options = self.options
        return machine_of(options.executor, options.workers, len(self.cells), options.threads, self._hidden)

    @property
    def _hidden(self) -> int | None:
        """The hidden size of the widest model, or None if a checkpoint determines it."""
        runs = [
            run
            for cell in self._expanded
            for run in (cell.init_from, cell.pretrain, cell.target_model)
            if run is not None
        ]
        checkpoints = any(cell.model is not None for cell in self._expanded)
        known = [run.model.hidden for run in runs if run.start is None or run.start.model == CellModel.INIT]
        return None if checkpoints or len(known) < len(runs) else max(known, default=None)

    @cached_property
    def _described(self) -> dict[str, Any]:
        """The part of study.json that does not change while the study runs."""
        # Earlier results belong to the environment of the last start that had something to run.
        known = None if self._works else self._former.get("environment")
        return {
            "format": FORMAT,
            "name": self.study.name,
            "title": self.study.title,
            "fingerprint": self.study.fingerprint,
            "config": self.study.model_dump(mode="json"),
            "settings": common_settings(self._expanded),
            "reads": stages_read(self._expanded),
            "parents": {
                folder_name(stage): [folder_name(parent) for parent in stage.parents]
                for stage in self.graph.stages.values()
            },
            "environment": known or environment(self.machine, self.options.executor),
            "axes": list(dict.fromkeys(axis for cell in self.cells for axis in cell.labels)),
        }

    def _write_record(self) -> None:
        write_json(self.folder / STUDY, self._record())

    def _record(self) -> dict[str, Any]:
        store = relative(self.store.root, self.folder)
        return {
            **self._described,
            "store": store,
            "cells": [cell.to_json(store) for cell in self.cells],
            "seconds": self.seconds,
            "dropped": self.tables.dropped(self.done),
            "examples": self._examples,
        }
