"""What is refused before anything runs: what is not there, missing extras, models and settings that do not fit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from importlib.util import find_spec
from typing import Any, TypeVar

import pydantic

from pretrain.adjust.config import AdjustConfig
from pretrain.adjust.pairs import AlignerLinks, DerivedPair, TextPair
from pretrain.config import PretrainConfig
from pretrain.trackers import check_trackers
from pretrain.weights import check_start
from probes.measure.config import ProbeConfig
from probes.measure.static_config import TrainedVectors
from probes.static.training import INSTALL
from probes.study.blame import in_study
from probes.study.cell import MODEL, SECOND, Cell, positions_of
from probes.study.digest import digest_of
from probes.study.inputs import named_in
from probes.study.models import positions_of_model
from probes.transfer.config import TransferConfig
from probes.transfer.continual_config import has_text
from probes.transfer.model import derived_members, first_derived, is_run, model_path
from probes.transfer.places import check_columns, open_places, open_training
from probes.transfer.search import combinations
from synthlang.alignments.aligner import find_aligner
from synthlang.config import load
from synthlang.errors import InputError
from synthlang.files import user_path
from synthlang.language import Language, check_source, parse_language
from synthlang.parsing import open_engine
from synthlang.sources import open_source
from synthlang.sources.base import Source

M = TypeVar("M", bound=pydantic.BaseModel)
ITEMS = {*("task", "train", "dev", "test", "target", "parser", "length", "score", "language", "mixed", "target_model")}
"""What of a transfer its items depend on, and which columns they must have."""


def check_cells(cells: Sequence[Cell]) -> None:
    """Raise InputError, one line that names the cell, for what surely cannot run; little is read.

    Each config is looked at once, whoever shares it.
    """
    checks = _Checks()
    for cell in cells:
        try:
            checks.cell(cell)
        except InputError as error:
            raise InputError(str(error), cell.name) from error


class _Checks:
    def __init__(self) -> None:
        self._done: set[tuple[str, ...]] = set()
        self._sources: dict[str, Source] = {}
        self._models: dict[str, int | None] = {}

    def cell(self, cell: Cell) -> None:
        text = None if cell.pretrain is None else cell.pretrain.members[0].source
        known = cell.model is None or is_run(model_path(cell.model))
        models = _models_of(cell)
        for root, config in (("start", cell.start), ("pretrain", cell.pretrain), ("second", cell.second)):
            if config is not None:
                start = cell.start if root == "pretrain" else None
                key = (digest_of(config), _digest(start))
                self._once(root, config, partial(self._pretraining, start), *key)
                self._once("", config, partial(self._member_sources, root), root, digest_of(config))
        if (adjust := cell.adjust) is not None:
            key = (digest_of(adjust), _digest(cell.pretrain))
            self._once("adjust", adjust, lambda held: self._adjustment(held, cell.pretrain), *key)
        if (tuned := cell.tuned) is not None:
            self._once("tuned", tuned, lambda held: self._tuning(held, cell, known), digest_of(tuned), *models)
        for name, task in cell.tasks.items():
            where = "transfer" if list(cell.tasks) == [task.task] else f"tasks.{name}"
            items = task.model_dump_json(include=ITEMS)
            self._once(where, task, lambda held: self._transfer(held, cell, text, known), items, *models)
            self._once(where, task, lambda held: self._named(held, cell, known), digest_of(task), *models)
        for name, probe in cell.probes.items():
            key = digest_of(probe), f"{cell.adjust is None} {cell.tuned is None}"
            self._once(f"probes.{name}", probe, lambda held: self._probe(held, cell, known), *key, *models)

    def _once(self, where: str, config: M, check: Callable[[M], None], *key: str) -> None:
        if (where, *key) in self._done:
            return
        try:
            check(config)
        except InputError as error:
            raise InputError(in_study(str(error), where, type(config)) if where else str(error)) from error
        self._done.add((where, *key))

    def _source(self, spec: str) -> Source:
        if spec not in self._sources:
            self._sources[spec] = open_source(spec)
        return self._sources[spec]

    def _positions(self, model: str | None) -> int | None:
        """Of a checkpoint, by its name."""
        if model is not None and model not in self._models:
            self._models[model] = positions_of_model(model)
        return None if model is None else self._models[model]

    def _pretraining(self, start: PretrainConfig | None, config: PretrainConfig) -> None:
        check_trackers(config.trackers)
        if start is not None:
            _check_start(config, start, positions_of(start))
        elif config.start is not None and self._positions(config.start.model) is not None:
            check_start(config.start.model, config.batch.length, config.sharing.layers)
        _check_files(config)

    def _member_sources(self, root: str, config: PretrainConfig) -> None:
        for number, member in enumerate(config.members):
            try:
                check_source(member.language, self._source(member.source), member.source)
            except InputError as error:
                key = "source" if member.source == config.source else f"{root}.languages.{number}.source"
                raise InputError(f"{key}: {error}") from error

    def _adjustment(self, config: AdjustConfig, pretrain: PretrainConfig | None) -> None:
        self._pairs(config.texts.values())
        _check_files(config)
        if pretrain is None:
            return
        if pretrain.sharing.separates or pretrain.objective.uses_language_ids:
            raise InputError("the languages of the run have weights of their own: there is no one model to adjust")
        names = [member.name for member in pretrain.members]
        for name, pair in config.texts.items():
            read = pair.tokenizers or ((pair.left.name, pair.right.name) if isinstance(pair, DerivedPair) else ())
            unknown = [language for language in read if language not in names]
            if unknown or not read:
                found = f"no language {unknown[0]!r} in the run" if unknown else "which languages of the run it is of"
                raise InputError(
                    f"pairs.{name}: {found}; there is {', '.join(names)}: name two in pairs.{name}.tokenizers"
                )

    def _pairs(self, pairs: Iterable[TextPair | DerivedPair | None]) -> None:
        for pair in pairs:
            if isinstance(pair, DerivedPair):
                for language in (pair.left, pair.right):
                    check_source(language, self._source(pair.source), pair.source)
            elif pair is not None and isinstance(pair.links, AlignerLinks):
                find_aligner(pair.links.program)

    def _transfer(self, config: TransferConfig, cell: Cell, text: str | None, known: bool) -> None:
        if config.language is None and (config.target is not None or not known):
            raise InputError("the language to transfer to needs a name: language")
        length = self._length(cell) or config.length
        if cell.pretrain is None:
            if not known or config.train is not None:
                open_places(config, None, length)
            return
        _, places, _ = open_places(config, text, length)
        if config.parser is not None:
            open_engine(config.parser)
        elif config.target is None and config.target_model is None:
            check_columns(_spoken(config.language, cell.pretrain), places)

    def _tuning(self, config: TransferConfig, cell: Cell, known: bool) -> None:
        """What ``check_keep`` and the fit would say."""
        if any(tried.features.tune == "none" for _, tried in combinations(config)):
            raise InputError("features.tune: with none no body is fine-tuned; probe the model without tuned")
        if config.rotation is not None:
            raise InputError(
                "rotation: a rotation is no part of the model that probes read; set tuned.rotation to null"
            )
        if config.best > 1:
            raise InputError("best: the probes read one model, that of the best setting; leave it at 1")
        run = cell.pretrain
        if run is None and known:
            run = load(PretrainConfig, model_path(str(cell.model)) / "config.yaml")
        if run is not None and (run.sharing.separates or run.objective.uses_language_ids):
            raise InputError("the languages of the run have weights of their own, which one tuned model cannot hold")
        if (continual := config.continual) is not None:
            if not any(continual.pairs.values()) and not known:
                raise InputError(
                    "continual.pairs: the text of a model of Hugging Face is not known: name sentence pairs"
                )
            if config.language is None and (not known or has_text(continual)):
                raise InputError("the language to align with needs a name: language")
        text = None if run is None else run.members[0].source
        open_training(config, text, self._length(cell) or config.length)
        if config.parser is not None:
            open_engine(config.parser)
        self._named(config, cell, known)

    def _length(self, cell: Cell) -> int | None:
        """How many tokens the cell's models read, as far as that is known."""
        run = cell.pretrain
        if run is None:
            return self._positions(cell.model)
        known = positions_of(run, cell.start)
        return self._positions(run.start.model) if known is None and run.start and cell.start is None else known

    def _named(self, config: TransferConfig, cell: Cell, known: bool) -> None:
        _check_files(config)
        _check_models(config, cell)
        for held in (config.continual, config.rotation):
            self._pairs(held.pairs.values() if held is not None else ())
        natural = config.target is not None
        if (continual := config.continual) is not None and continual.alpha and not any(continual.pairs.values()):
            _check_constructed("continual.pairs", config.language, natural, cell, known)
        if (rotation := config.rotation) is not None and rotation.map is None and not any(rotation.pairs.values()):
            _check_constructed("rotation.pairs", config.language, natural, cell, known)

    def _probe(self, config: ProbeConfig, cell: Cell, known: bool) -> None:
        _check_files(config)
        _check_models(config, cell)
        self._pairs(config.pairs.values())
        if config.maps.save is not None:
            raise InputError("maps.save: the cells of a study would write one folder; use synthlang probe for that")
        needs_words = not known or any(held is not None for held in (cell.adjust, cell.tuned, cell.second))
        if "words" in config.probes and needs_words and config.words.dictionary is None:
            raise InputError("words: which words are translations is known of runs alone; name words.dictionary")
        if config.reads_sentences and not any(config.pairs.values()):
            _check_constructed("pairs", config.language, config.natural, cell, known)
        for name, static in (("maps", config.maps.static), ("retrieval", config.retrieval.static)):
            trained = name in config.probes and isinstance(static, TrainedVectors) and static.vectors.needs_gensim
            if trained and find_spec("gensim") is None:
                raise InputError(f"{name}.static: training word vectors needs gensim: {INSTALL}, or vectors.kind: ppmi")
        if "distances" in config.probes and config.distances.picture == "tsne" and find_spec("sklearn") is None:
            raise InputError("distances.picture: tsne needs scikit-learn: pip install 'synthlang[probe]', or take pca")
        if "retrieval" in config.probes and config.retrieval.parser is not None:
            open_engine(config.retrieval.parser)


def _digest(config: pydantic.BaseModel | None) -> str:
    return "" if config is None else digest_of(config)


def _models_of(cell: Cell) -> tuple[str, ...]:
    """What tells the models of cells apart."""
    return _digest(cell.pretrain), _digest(cell.second), _digest(cell.start), cell.model or ""


def _check_constructed(where: str, language: str | None, natural: bool, cell: Cell, known: bool) -> None:
    """Raise InputError where sentence pairs have to be named, since none are aligned by construction.

    natural   whether the target has sentences of its own
    """
    if not known:
        raise InputError(f"{where}: the text of a model of Hugging Face is not known: name sentence pairs")
    if cell.pretrain is not None and cell.second is not None:
        first, other = cell.pretrain.members[0], cell.second.members[0]
        natural |= other.name == language and other.source != first.source
    elif cell.pretrain is not None and not natural:
        names = [member.name for member in cell.pretrain.members]
        if language == names[0]:
            raise InputError(f"{where}: {language} is the source language itself: there is nothing to align")
        natural = language in names and language not in derived_members(cell.pretrain)
    if natural:
        raise InputError(f"{where}: {language} is not derived from the source language: name sentence pairs")


def _check_start(config: PretrainConfig, start: PretrainConfig, positions: int | None) -> None:
    """What opening the export of ``start`` would say: InputError for more layers or longer rows than it has."""
    layers = max(config.sharing.layers, default=0)
    if start.start is None and layers > start.model.layers:
        raise InputError(f"sharing.layers: there is no layer {layers}, start has {start.model.layers}")
    if positions is not None and config.batch.length > positions:
        raise InputError(f"batch.length ({config.batch.length}) is over the {positions} positions of start")


def _check_files(config: Any) -> None:
    """Raise InputError for a file that a config names and that is not there."""
    for named in named_in(config):
        if named.kind == "file" and not user_path(str(named.name)).exists():
            raise InputError(f"{'.'.join(named.place)}: no such file {named.name}")


def _check_models(config: TransferConfig | ProbeConfig, cell: Cell) -> None:
    """Raise InputError for a second model that the cell does not have, and for a folder that is not there."""
    for named in named_in(config):
        if named.kind == "model" and named.name == SECOND and cell.second is None:
            raise InputError(f"{'.'.join(named.place)}: the cell has no second model")
        if named.kind == "model" and named.name not in (MODEL, SECOND):
            model_path(str(named.name))


def _spoken(language: str | None, run: PretrainConfig) -> Language:
    """The language that a transfer of a run goes to: one of the run's, by name, or any derived one, by spec."""
    if language is None:
        return run.members[first_derived(run)].language
    members = {member.name: member.language for member in run.members}
    return members[language] if language in members else parse_language(language)
