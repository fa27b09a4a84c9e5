"""A search of a study's grid by Optuna: a trial is a cell, whose pretraining is a stage of the store like any other.

Cells are drawn at random, none twice, or by a tree-structured Parzen estimator (Bergstra et al. 2011). What counts is
the parent's perplexity. With halving (asynchronous successive halving, Li et al. 2020, "A System for Massively Parallel
Hyperparameter Tuning") a pretraining stops at the rungs r, r·η, r·η² … and goes on only if it is among the best 1/η of
those that came as far. Schedules know the full number of steps and resume is exact, so a model that goes to the end has
the bytes of one that was never stopped, and a study with this store finds it; one that was given up can go on later.
"""

from __future__ import annotations

import csv
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pretrain.folder import read_metrics
from pretrain.stopping import Flag, Stopped, watching
from probes.stages.base import StageKeys
from probes.stages.content_hashes import ContentHashes
from probes.stages.done import is_done, note
from probes.stages.pretrain import PretrainStage
from probes.study.builder import CellBuilder
from probes.study.cell import Cell
from probes.study.config import StudyConfig
from probes.study.grid import Point
from probes.study.record import check_store, registered
from synthlang.errors import InputError
from synthlang.files import atomic_file
from synthlang.fingerprint import fingerprint
from synthlang.progress import Report, Say
from synthlang.store import Store

if TYPE_CHECKING:
    import optuna

SAMPLERS = ("random", "tpe")
JOURNAL, TRIALS = "optuna.log", "trials.csv"
ERROR, CELL, STAGE = "error", "cell", "stage"  # of a trial


@dataclass(frozen=True)
class SearchOptions:
    """How a grid is searched.

    trials      how many cells are tried in all, those of earlier starts with them
    first_rung  steps after which the first are given up; None: every trial is trained to the end
    reduction   η: of those that come to a rung the best one in so many goes on
    sampler     ``random``, no cell twice, or ``tpe``, which learns from the trials before
    seed        of the sampler
    """

    trials: int = 20
    first_rung: int | None = None
    reduction: int = 3
    sampler: str = "random"
    seed: int = 0

    def check(self) -> None:
        """InputError for what is no number of trials, rung, reduction or sampler."""
        if self.sampler not in SAMPLERS:
            raise InputError(f"sampler must be {' or '.join(SAMPLERS)}, not {self.sampler!r}")
        if self.trials < 1 or self.reduction < 2 or (self.first_rung is not None and self.first_rung < 1):
            raise InputError("trials and first_rung must be 1 or more, reduction 2 or more")

    def rungs(self, steps: int) -> list[int]:
        """The steps of a run at which it is compared, before the last.

        >>> SearchOptions(first_rung=10, reduction=3).rungs(90)
        [10, 30]
        """
        found, rung = [], self.first_rung or steps
        while rung < steps:
            found.append(rung)
            rung *= self.reduction
        return found


class Search:
    """The search of a study in a folder; InputError for one that cannot be searched."""

    def __init__(self, study: StudyConfig, path: Path, folder: Path, store: Path, options: SearchOptions) -> None:
        options.check()
        check_store(store)
        self.study, self.folder, self.options, self.store = study, folder, options, Store(store)
        self._build = CellBuilder(study, path)
        if study.grid.zip:
            raise InputError("a search draws from grid.product; write the axes of grid.zip as one with labels", path)
        points = study.grid.model_copy(update={"sample": None, "include": []}).points()
        self._points = {tuple(sorted(point.labels.items())): point for point in points}
        labels = [point.labels for point in points]
        self.space = {axis: list(dict.fromkeys(found[axis] for found in labels)) for axis in labels[0]}
        if not self.space:
            raise InputError("there is no grid.product to search", path)
        self._pretraining(points[0])

    @property
    def points(self) -> list[Point]:
        """All that may be tried."""
        return list(self._points.values())

    def run(self, stop: Flag, report: Report, say: Say) -> optuna.Study:
        """Try cells until there are as many as asked for, also in several processes; Stopped after SIGTERM."""
        trials = self._opened()
        self.folder.mkdir(parents=True, exist_ok=True)
        with registered(self.store, self.folder):
            pass
        wanted = min(self.options.trials, len(self._points))
        while len(tried(trials)) < wanted:
            trials.optimize(lambda trial: self._try(trial, stop, report, say), n_trials=1, catch=(InputError,))
            self.write(trials)
        self.write(trials)
        return trials

    def _opened(self) -> optuna.Study:
        try:
            import optuna
            from optuna.storages import JournalStorage
            from optuna.storages.journal import JournalFileBackend
        except ImportError as error:
            raise InputError("search needs Optuna: pip install 'synthlang[search]'") from error
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        self.folder.mkdir(parents=True, exist_ok=True)
        options, rung = self.options, self.options.first_rung
        sampler: optuna.samplers.BaseSampler = optuna.samplers.GridSampler(self.space, seed=options.seed)
        if options.sampler == "tpe":
            sampler = optuna.samplers.TPESampler(seed=options.seed)
        pruner: optuna.pruners.BasePruner = optuna.pruners.NopPruner()
        if rung is not None:
            pruner = optuna.pruners.SuccessiveHalvingPruner(min_resource=rung, reduction_factor=options.reduction)
        searched = {"study": self.study.name, "space": self.space, "rung": rung, "reduction": options.reduction}
        return optuna.create_study(
            storage=JournalStorage(JournalFileBackend(str(self.folder / JOURNAL))),
            study_name=fingerprint("search", **searched, seed=options.seed, sampler=options.sampler),
            sampler=sampler,
            pruner=pruner,
            load_if_exists=True,
        )

    def _pretraining(self, point: Point) -> tuple[Cell, list[PretrainStage]]:
        """The cell of a point, and its pretraining; before that the one that it starts from."""
        cell = self._build.cell(point)
        if cell.pretrain is None:
            raise InputError(
                f"cell {cell.name} is not pretrained here, so there is nothing to search", self._build.path
            )
        every = cell.pretrain.validation.every
        wrong = [rung for rung in self.options.rungs(cell.pretrain.steps) if not every or rung % every]
        if wrong:
            raise InputError(
                f"cell {cell.name}: perplexity is not measured at step {wrong[0]}, a rung: set "
                f"pretrain.validation.every to {self.options.first_rung} or a part of it"
            )
        keys = StageKeys(ContentHashes(self.store))
        first = None if cell.init_from is None else keys.keyed(PretrainStage(config=cell.init_from))
        run = keys.keyed(PretrainStage(config=cell.pretrain, init_from=first))
        return cell, [run] if first is None else [first, run]

    def _try(self, trial: optuna.Trial, stop: Flag, report: Report, say: Say) -> float:
        """The perplexity of a cell at its last step; TrialPruned where it is given up before."""
        import optuna

        labels = {axis: trial.suggest_categorical(axis, found) for axis, found in self.space.items()}
        point = self._points.get(tuple(sorted(labels.items())))
        if point is None:  # excluded
            raise optuna.TrialPruned
        cell, runs = self._pretraining(point)
        trial.set_user_attr(CELL, cell.name)
        trial.set_user_attr(STAGE, f"pretrain-{runs[-1].key}")
        try:
            for run in runs[:-1]:
                self._train(run, None, stop, report)
            steps = runs[-1].config.steps
            for step in (*self.options.rungs(steps), steps):
                perplexity = self._train(runs[-1], step if step < steps else None, stop, report)
                say(f"trial {trial.number}, {cell.name}: perplexity {perplexity:.2f} at step {step} of {steps}")
                trial.report(perplexity, step)
                if step < steps and trial.should_prune():
                    raise optuna.TrialPruned
        except InputError as error:
            trial.set_user_attr(ERROR, str(error))
            say(f"trial {trial.number}, {cell.name}: {error}")
            raise
        except Stopped:
            trial.study.enqueue_trial(trial.params, skip_if_exists=False)  # and the next start takes it up
            raise
        return perplexity

    def _train(self, stage: PretrainStage, until: int | None, stop: Flag, report: Report) -> float:
        """Train a run to a step (None: the end), as far as it has not come yet; its perplexity there."""
        from probes.stages.making import make  # with torch

        parent = f"validation/{stage.config.all_languages[0].name}"
        log = self.store.path(stage.kind, stage.key) / "metrics.jsonl"
        at = until or stage.config.steps

        def found() -> float | None:
            return next((float(row[parent]) for row in read_metrics(log) if row["step"] == at and parent in row), None)

        if not is_done(self.store, stage) and (until is None or found() is None):
            stop.until, started = until, time.monotonic()
            try:
                with watching(stop):
                    make(stage.reread(self.store), self.store, report)
                note(self.store, stage, time.monotonic() - started)
            except Stopped:
                if stop.is_set:
                    raise
        value = found()
        if value is None or not math.isfinite(value):
            raise InputError(f"{stage.label}: no perplexity at step {at}; set pretrain.validation.every")
        return value

    def write(self, trials: optuna.Study) -> None:
        """trials.csv: a line for each trial, best first, those that came further before the others."""
        with atomic_file(self.folder / TRIALS, "w") as handle:
            rows = csv.writer(handle)
            rows.writerow(["trial", "state", "step", "perplexity", *self.space, STAGE, ERROR])
            for trial in ranked(tried(trials)):
                step = trial.last_step
                value = None if step is None else trial.intermediate_values[step]
                told = [trial.params[axis] for axis in self.space]
                rows.writerow([trial.number, trial.state.name.lower(), step, value, *told, *_attributes(trial)])


def _attributes(trial: optuna.trial.FrozenTrial) -> Sequence[str]:
    told: Mapping[str, Any] = trial.user_attrs
    return [told.get(STAGE, ""), told.get(ERROR, "")]


def tried(trials: optuna.Study) -> list[optuna.trial.FrozenTrial]:
    """The trials that were trained, to the end or not, or failed; not those of cells that the grid excludes."""
    known = [t for t in trials.trials if t.state.is_finished()]
    return [t for t in known if ERROR in t.user_attrs or (t.intermediate_values and t.state.name != "FAIL")]


def ranked(trials: Sequence[optuna.trial.FrozenTrial]) -> list[optuna.trial.FrozenTrial]:
    """Those that came furthest first, of these those with the lowest perplexity."""
    return sorted(trials, key=lambda t: (-(t.last_step or 0), t.intermediate_values.get(t.last_step or 0, math.inf)))
