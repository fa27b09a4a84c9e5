"""Search of a study's grid by Optuna. A trial is a cell, and its pretraining is an ordinary stage of the store.

Cells are sampled at random without replacement, or by a tree-structured Parzen estimator (Bergstra et al. 2011). The
search minimises the perplexity in the source language. With asynchronous successive halving (Li et al. 2020, "A System
for Massively Parallel Hyperparameter Tuning") a pretraining stops at the rungs r, r·η, r·η² … and continues only if it
is among the best 1/η of the trials that reached the rung.

Learning rates depend on the full number of steps, and resume is exact. A model that is trained to the end therefore has
the same bytes as a model that was never stopped, and a study with this store reuses it. A stopped trial can continue
later.
"""

from __future__ import annotations

import csv
import math
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from pretrain.folder import read_metrics
from pretrain.stopping import EXIT_CODE, Flag, Stopped, on_sigterm, watching
from probes.stages.base import StageKeys
from probes.stages.content_hashes import ContentHashes
from probes.stages.done import is_done, note
from probes.stages.pretrain import PretrainStage
from probes.study.builder import CellBuilder
from probes.study.cell import Cell
from probes.study.cells import check_not_hidden
from probes.study.config import StudyConfig
from probes.study.grid import GridPoint
from probes.study.inherited import read_study
from probes.study.options import SearchOptions, sized
from probes.study.record import STAGES, check_store, registered
from synthlang.catalogue import run_folder
from synthlang.distribution import install_command
from synthlang.errors import InputError
from synthlang.files import atomic_file
from synthlang.fingerprint import fingerprint
from synthlang.progress import Display, Report, Say
from synthlang.store import Store

if TYPE_CHECKING:
    import optuna

JOURNAL, TRIALS = "optuna.log", "trials.csv"
ERROR, CELL, STAGE = "error", "cell", "stage"
"""Names of the user attributes of a trial."""
SHOWN = 20
"""Maximum number of trials to print."""


class Search:
    """A search of the grid of a study, with its record in a folder.

    Args:
        study: The study. Its ``sample`` and ``include`` are not used.
        path: The file of the study, for errors. The names of base files are relative to its folder.
        folder: The folder of the search.
        options: Options of the search.

    Raises:
        InputError: An option or a setting is wrong, the store has another format or holds other files, or the study
            cannot be searched. Such a study has ``zip``, no axis, only excluded combinations, no pretraining, or no
            perplexity at a rung.

    Attributes:
        store: The store of the stages.
        points: The combinations of the grid that may be tried, by their sorted labels.
        space: Axis → labels that a trial may have.
    """

    def __init__(self, study: StudyConfig, path: Path, folder: Path, options: SearchOptions) -> None:
        options.check()
        self.study, self.folder, self.options = study, folder, options
        self.store = Store(options.store or folder / STAGES)
        check_store(self.store.root)
        self._build = CellBuilder(study, path)
        if study.grid.zip:
            hint = "write these axes as one axis of grid.product with labels"
            raise InputError("a search cannot draw from zip", path, keys="grid.zip", hint=hint, code="unsupported")
        try:
            points = study.grid.model_copy(update={"sample": None, "include": []}).points()
        except InputError as error:
            raise error.inside(path=path) from error
        if not points:
            hint = "change or remove an entry"
            raise InputError("every combination is excluded", path, keys="grid.exclude", hint=hint, code="empty")
        self.points = {tuple(sorted(point.labels.items())): point for point in points}
        labels = [point.labels for point in points]
        self.space = {axis: list(dict.fromkeys(found[axis] for found in labels)) for axis in labels[0]}
        if not self.space:
            raise InputError(
                "a search needs an axis",
                path,
                keys="grid.product",
                hint="add an axis, such as pretrain.optimizer.learning_rate: [1e-3, 2e-3]",
                code="empty",
            )
        self._pretraining(points[0])

    def run(self, stop: Flag, report: Report, say: Say) -> optuna.Study:
        """Try cells until the number of trials or of combinations is reached, and return the record of all trials.

        Several processes may share a search. A cell that fails with an InputError counts as a failed trial.

        Args:
            stop: Flag that is set to stop the search.
            report: Function that receives the progress.
            say: Function that receives a line of text for the user.

        Raises:
            InputError: Optuna is not installed, or the list of studies in the store cannot be read.
            DiskError: The list of studies or the table of trials cannot be written.
            Stopped: After ``stop`` was set, as by SIGTERM. The stopped trial is continued by the next start.
        """
        trials = self._opened()
        with registered(self.store, self.folder):
            pass
        wanted = min(self.options.trials, len(self.points))
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
            hint = f"run {install_command('search')}"
            raise InputError("a search needs Optuna, which is not installed", hint=hint, code="extra") from error
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

    def _pretraining(self, point: GridPoint) -> tuple[Cell, list[PretrainStage]]:
        """Return the cell of a combination, and its pretrainings, that of the initial model first.

        Raises:
            InputError: The cell is wrong or has no pretraining, or perplexity is not measured at a rung.
        """
        cell = self._build.cell(point)
        if cell.pretrain is None:
            reason = f"cell {cell.name} has no pretraining to search"
            raise InputError(
                reason,
                self._build.path,
                keys="pretrain",
                hint="search a study that pretrains its models",
                code="missing",
            )
        every = cell.pretrain.validation.every
        wrong = [rung for rung in self.options.rungs(cell.pretrain.steps) if not every or rung % every]
        if wrong:
            raise InputError(
                f"perplexity is not measured at step {wrong[0]}, which is a rung",
                f"{self._build.path} cell {cell.name}",
                keys="pretrain.validation.every",
                hint=f"set this key to {self.options.first_rung}, or to a divisor of this number",
                code="conflict",
            )
        keys = StageKeys(ContentHashes(self.store))
        first = None if cell.init_from is None else keys.keyed(PretrainStage(config=cell.init_from))
        run = keys.keyed(PretrainStage(config=cell.pretrain, init_from=first))
        return cell, [run] if first is None else [first, run]

    def _try(self, trial: optuna.Trial, stop: Flag, report: Report, say: Say) -> float:
        """Train the cell of a trial, and return the perplexity at its last step.

        Raises:
            TrialPruned: The cell is stopped at a rung, or the grid excludes it.
            InputError: The cell is wrong or cannot be trained, or its perplexity at a rung or at the end is not finite.
            Stopped: After ``stop`` was set.
        """
        import optuna

        labels = {axis: trial.suggest_categorical(axis, found) for axis, found in self.space.items()}
        point = self.points.get(tuple(sorted(labels.items())))
        if point is None:  # The grid excludes this combination.
            raise optuna.TrialPruned
        cell, runs = self._pretraining(point)
        trial.set_user_attr(CELL, cell.name)
        trial.set_user_attr(STAGE, f"pretrain-{runs[-1].key}")
        try:
            for run in runs[:-1]:
                self._train(run, None, stop, report)
            steps = runs[-1].config.steps
            for step in (*self.options.rungs(steps), steps):
                self._train(runs[-1], step if step < steps else None, stop, report)
                perplexity = self._perplexity(runs[-1], step)
                say(f"trial {trial.number}, {cell.name}: perplexity {perplexity:.2f} at step {step} of {steps}")
                trial.report(perplexity, step)
                if step < steps and trial.should_prune():
                    raise optuna.TrialPruned
        except InputError as error:
            trial.set_user_attr(ERROR, str(error))
            say(f"trial {trial.number}, {cell.name}: {error}")
            raise
        except Stopped:
            trial.study.enqueue_trial(trial.params, skip_if_exists=False)  # The next start continues it.
            raise
        return perplexity

    def _train(self, stage: PretrainStage, until: int | None, stop: Flag, report: Report) -> None:
        """Train a run up to the step ``until``, or to the end for None.

        Raises:
            InputError: The run cannot be trained.
            Stopped: After ``stop`` was set.
        """
        from probes.stages.making import make  # imports torch

        if is_done(self.store, stage) or (until is not None and self._measured(stage, until) is not None):
            return
        stop.until, started = until, time.monotonic()
        try:
            with watching(stop):
                make(stage.reread(self.store), self.store, report)
            note(self.store, stage, time.monotonic() - started)
        except Stopped:
            if stop.is_set:
                raise

    def _measured(self, stage: PretrainStage, step: int) -> float | None:
        """Return the perplexity of a run at a step, or None if its log has none."""
        name = f"validation/{stage.config.all_languages[0].name}"
        rows = read_metrics(self.store.path(stage.kind, stage.key) / "metrics.jsonl")
        return next((float(row[name]) for row in rows if row["step"] == step and name in row), None)

    def _perplexity(self, stage: PretrainStage, step: int) -> float:
        """Return the perplexity of a run at a step.

        Raises:
            InputError: The perplexity is missing or not finite.
        """
        value = self._measured(stage, step)
        if value is None:
            hint = "set pretrain.validation.every to a number above 0, and delete this folder"
            if stage.config.validation.every:  # without a dev split, or trained earlier without validation
                language = stage.config.all_languages[0].name
                hint = f"delete this folder, and give {language} a source with a dev split if it has none"
            run = self.store.path(stage.kind, stage.key)
            raise InputError(f"{stage.label} has no perplexity at step {step}", run, hint=hint, code="missing")
        if not math.isfinite(value):
            hint = "remove the cause from the study, for example a high pretrain.optimizer.learning_rate"
            raise InputError(f"{stage.label} has the perplexity {value} at step {step}", hint=hint, code="failed")
        return value

    def write(self, trials: optuna.Study) -> None:
        """Write trials.csv: one line for each trial that ``tried`` returns, in the order of ``ranked``."""
        with atomic_file(self.folder / TRIALS, "w") as handle:
            rows = csv.writer(handle)
            rows.writerow(["trial", "state", "step", "perplexity", *self.space, STAGE, ERROR])
            for trial in ranked(tried(trials)):
                step = trial.last_step
                value = None if step is None else trial.intermediate_values[step]
                told = [trial.params[axis] for axis in self.space]
                told += [trial.user_attrs.get(name, "") for name in (STAGE, ERROR)]
                rows.writerow([trial.number, trial.state.name.lower(), step, value, *told])


def tried(trials: optuna.Study) -> list[optuna.trial.FrozenTrial]:
    """Return the finished trials that were trained to a rung or to the end, or that failed with an InputError.

    Trials that SIGTERM stopped, and combinations that the grid excludes, are left out.
    """
    known = [t for t in trials.trials if t.state.is_finished()]
    return [t for t in known if ERROR in t.user_attrs or (t.intermediate_values and t.state.name != "FAIL")]


def ranked(trials: Sequence[optuna.trial.FrozenTrial]) -> list[optuna.trial.FrozenTrial]:
    """Sort trials by the last step that they reached, the latest first, then by perplexity, the lowest first."""
    return sorted(trials, key=lambda t: (-(t.last_step or 0), t.intermediate_values.get(t.last_step or 0, math.inf)))


def search_command(
    name: Path, out: Path | None, options: SearchOptions, overrides: list[str]
) -> list[optuna.trial.FrozenTrial]:
    """Search the grid of a study, print the best SHOWN trials and return all trials, the best first.

    Args:
        name: Name or file of the study.
        out: Folder of the search (default: ``runs/NAME-search``).
        options: Options of the search.
        overrides: Assignments ``KEY=VALUE`` that change the config of the study.

    Raises:
        InputError: The study or an option is wrong, an assignment changes nothing, or Optuna is not installed.
        SystemExit: The search was stopped by SIGTERM (code 143).
    """
    config = sized(name, options.size)
    out = out or run_folder(config).with_name(f"{run_folder(config).name}-search")
    study = read_study(config, overrides)
    search = Search(study, config, out, options)
    check_not_hidden([*search.points.values()], overrides)
    with Display() as display, on_sigterm() as stop:
        try:
            found = ranked(tried(search.run(stop, display.report, display.message)))
        except Stopped:
            display.message("stopped; run the same command again to continue")
            raise SystemExit(EXIT_CODE) from None
    console = Console()
    lines = [f"{_reached(trial)}: {', '.join(f'{a}={v}' for a, v in trial.params.items())}" for trial in found[:SHOWN]]
    lines += [f"trials: {out / TRIALS}", f"a study reuses the finished models with --store {search.store.root}"]
    for line in lines:
        console.print(line, soft_wrap=True, markup=False, emoji=False, highlight=False)
    return found


def _reached(trial: optuna.trial.FrozenTrial) -> str:
    step = trial.last_step
    if step is None or ERROR in trial.user_attrs:
        return "failed"
    return f"perplexity {trial.intermediate_values[step]:.2f} at step {step}"
