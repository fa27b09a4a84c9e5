"""What is refused before anything runs: what is not there, missing extras, models and settings that do not fit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

import pydantic

from pretrain.adjust.config import AdjustConfig
from pretrain.config import PretrainConfig
from pretrain.config.model import numbered
from pretrain.model.from_hf import check_start
from pretrain.parts import micro_batches, parts_of
from pretrain.trackers import check_trackers
from probes.report.numbers import plural
from probes.study.blame import in_study
from probes.study.cell import MODEL, Cell, Reach, reach_of
from probes.study.checks_probe import check_probe
from probes.study.checks_transfer import check_items, check_named, check_tuning
from probes.study.digest import digest_of
from probes.study.opened import Opened, check_files
from probes.transfer.model_names import is_run, model_path
from synthlang.errors import InputError
from synthlang.language import check_source
from synthlang.parallel.pairs import DerivedPair

M = TypeVar("M", bound=pydantic.BaseModel)
ITEMS = {*("task", "train", "dev", "test", "target", "parser", "length", "score", "language", "mixed", "target_model")}
"""What of a transfer its items depend on, and which columns they must have."""


def check_cells(cells: Sequence[Cell]) -> None:
    """Raise InputError, one line that names the cell and how many others have it, for what surely cannot run.

    Little is read, and each config is looked at once, whoever shares it.
    """
    checks = _Checks()
    for number, cell in enumerate(cells):
        if (problem := checks.problem(cell)) is not None:
            alike = sum(checks.problem(other) == problem for other in cells[number + 1 :])
            others = f" and {plural(alike, 'other cell')}" if alike else ""
            raise InputError(problem, f"{cell.name}{others}")


class _Checks:
    def __init__(self) -> None:
        self._found: dict[tuple[str, ...], str | None] = {}
        self._opened = Opened()

    def problem(self, cell: Cell) -> str | None:
        """What is wrong with a cell first; None if nothing is."""
        try:
            self.cell(cell)
        except InputError as error:
            return str(error)
        return None

    def cell(self, cell: Cell) -> None:
        text = None if cell.pretrain is None else cell.pretrain.all_languages[0].source
        known = cell.model is None or is_run(model_path(cell.model))
        models, opened = _models_of(cell), self._opened
        for root, config in (("start", cell.start), ("pretrain", cell.pretrain), ("second", cell.second)):
            if config is not None:
                start = cell.start if root == "pretrain" else None
                key = (digest_of(config), _digest(start))
                self._once(root, config, partial(self._pretraining, start), *key)
                self._once("", config, partial(self._member_sources, root), root, digest_of(config))
        if (adjust := cell.adjust) is not None:
            self._once("adjust", adjust, lambda held: self._adjustment(held, cell), digest_of(adjust), *models)
        if (tuned := cell.tuned) is not None:
            self._once("tuned", tuned, lambda held: check_tuning(opened, held, cell, known), digest_of(tuned), *models)
        for name, task in cell.tasks.items():
            where = "transfer" if list(cell.tasks) == [task.task] else f"tasks.{name}"
            items = task.model_dump_json(include=ITEMS)
            self._once(where, task, lambda held: check_items(opened, held, cell, text, known), items, *models)
            self._once(where, task, lambda held: check_named(opened, held, cell, known), digest_of(task), *models)
        for name, probe in cell.probes.items():
            key = digest_of(probe), f"{cell.adjust is None} {cell.tuned is None}"
            self._once(f"probes.{name}", probe, lambda held: check_probe(opened, held, cell, known), *key, *models)

    def _once(self, where: str, config: M, check: Callable[[M], None], *key: str) -> None:
        if (where, *key) not in self._found:
            try:
                check(config)
                self._found[where, *key] = None
            except InputError as error:
                self._found[where, *key] = in_study(str(error), where, type(config)) if where else str(error)
        if (problem := self._found[where, *key]) is not None:
            raise InputError(problem)

    def _pretraining(self, start: PretrainConfig | None, config: PretrainConfig) -> None:
        check_trackers(config.trackers)
        parts_of(config, 1)  # a stage is one process
        if start is not None:
            _check_start(config, start, reach_of(start))
        elif config.start is not None and self._opened.reach(config.start.model) is not None:
            check_start(config.start.model, config.batch.length, config.sharing.layers)
        check_files(config)

    def _member_sources(self, root: str, config: PretrainConfig) -> None:
        for number, member in enumerate(config.all_languages):
            try:
                check_source(member.language, self._opened.source(member.source), member.source)
            except InputError as error:
                key = "source" if member.source == config.source else f"{root}.languages.{number}.source"
                raise InputError(f"{key}: {error}") from error

    def _adjustment(self, config: AdjustConfig, cell: Cell) -> None:
        self._opened.check_pairs(config.texts.values())
        check_files(config)
        self._opened.check_texts("pairs", config.texts, config.data)
        micro_batches(config.rows, config.accumulation, 1)
        if (reach := self._opened.reach(MODEL, cell)) is not None:
            numbered(config.loss.layers, reach.layers, "loss.layers")
            config.data.longest(reach.positions)
        if (pretrain := cell.pretrain) is None:
            return
        if pretrain.sharing.separates or pretrain.objective.uses_language_ids:
            raise InputError("the languages of the run have weights of their own: there is no one model to adjust")
        names = [member.name for member in pretrain.all_languages]
        for name, pair in config.texts.items():
            read = pair.tokenizers or ((pair.left.name, pair.right.name) if isinstance(pair, DerivedPair) else ())
            unknown = [language for language in read if language not in names]
            if unknown or not read:
                found = f"no language {unknown[0]!r} in the run" if unknown else "which languages of the run it is of"
                raise InputError(
                    f"pairs.{name}: {found}; there is {', '.join(names)}: name two in pairs.{name}.tokenizers"
                )


def _digest(config: pydantic.BaseModel | None) -> str:
    return "" if config is None else digest_of(config)


def _models_of(cell: Cell) -> tuple[str, ...]:
    """What tells the models of cells apart."""
    return _digest(cell.pretrain), _digest(cell.second), _digest(cell.start), cell.model or ""


def _check_start(config: PretrainConfig, start: PretrainConfig, reach: Reach | None) -> None:
    """What opening the export of ``start`` would say: InputError for more layers or longer rows than it has."""
    layers = max(config.sharing.layers, default=0)
    if start.start is None and layers > start.model.layers:
        raise InputError(f"sharing.layers: there is no layer {layers}, start has {start.model.layers}")
    if reach is not None and config.batch.length > reach.positions:
        raise InputError(f"batch.length ({config.batch.length}) is over the {reach.positions} positions of start")
