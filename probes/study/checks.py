"""What is refused before anything runs: what is not there, missing extras, models and settings that do not fit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from typing import Any, TypeVar

import pydantic

from pretrain.adjust.config import AdjustConfig
from pretrain.config import PretrainConfig
from pretrain.config.model import numbered
from pretrain.config.training import micro_batches
from pretrain.model.from_hf import check_start
from pretrain.trackers import check_trackers
from probes.measures import ProbeConfig
from probes.measures.words import no_rows
from probes.report.numbers import plural
from probes.rotation.settings import RotationConfig
from probes.static.settings import TrainedVectors
from probes.static.training import INSTALL
from probes.study.builder import in_study
from probes.study.cell import MODEL, SECOND, Cell, Reach, reach_of
from probes.study.models import reach_of_model
from probes.study.stage import Look
from probes.transfer.config import ContinualConfig, TransferConfig, check_tried, combinations
from probes.transfer.model_names import asked_for, derived_numbers, is_run, model_path
from probes.transfer.splits import check_columns, open_splits, open_training
from probes.transfer.tasks.base import task_of
from synthlang.config import load
from synthlang.errors import InputError
from synthlang.files import user_path
from synthlang.language import Language, check_source
from synthlang.parallel.aligners import find_aligner
from synthlang.parallel.pairs import AlignerLinks, DerivedPair, TextPair, count_text
from synthlang.parallel.prepare import DataConfig, check_left
from synthlang.parsing import open_engine
from synthlang.references import references
from synthlang.sources import open_source
from synthlang.sources.base import Source


class Opened:
    """Texts and models that cells name."""

    def __init__(self) -> None:
        self._sources: dict[str, Source] = {}
        self._models: dict[str, Reach | None] = {}
        self._pairs: dict[str, int | None] = {}

    def source(self, spec: str) -> Source:
        """The text of a spec; InputError for what cannot be read."""
        if spec not in self._sources:
            self._sources[spec] = open_source(spec)
        return self._sources[spec]

    def reach(self, model: str | None, cell: Cell | None = None) -> Reach | None:
        """What is known of a model by its name, or of one of the ``cell``'s own; None where nothing is."""
        if cell is not None and model == MODEL:
            return self.reach(cell.model) if cell.pretrain is None else self._of_run(cell.pretrain, cell.start)
        if cell is not None and model == SECOND:
            return None if cell.second is None else self._of_run(cell.second, None)
        if model is not None and model not in self._models:
            self._models[model] = reach_of_model(model)
        return None if model is None else self._models[model]

    def _of_run(self, run: PretrainConfig, start: PretrainConfig | None) -> Reach | None:
        known = reach_of(run, start)
        return self.reach(run.start.model) if known is None and run.start and start is None else known

    def length(self, cell: Cell) -> int | None:
        """How many tokens the cell's model reads, as far as that is known."""
        reach = self.reach(MODEL, cell)
        return None if reach is None else reach.positions

    def check_pairs(self, pairs: Iterable[TextPair | DerivedPair | None]) -> None:
        """Raise InputError for sentence pairs whose text or aligner is not there."""
        for pair in pairs:
            if isinstance(pair, DerivedPair):
                for language in (pair.left, pair.right):
                    check_source(language, self.source(pair.source), pair.source)
            elif pair is not None and isinstance(pair.links, AlignerLinks):
                find_aligner(pair.links.program)

    def check_texts(
        self, where: str, pairs: Mapping[str, TextPair | DerivedPair | None], data: DataConfig | None = None
    ) -> None:
        """Raise InputError for files of pairs that do not fit; with ``data``, if it leaves no pair to train on."""
        for name, pair in pairs.items():
            if not isinstance(pair, TextPair):
                continue
            key = pair.model_dump_json()
            if key not in self._pairs:
                try:
                    self._pairs[key] = count_text(pair)
                except InputError as error:
                    raise InputError(f"{where}.{name}: {error}") from error
            if data is not None and (count := self._pairs[key]) is not None:
                check_left(f"{where}.{name}", data.held_out(count)[0], count, data)


def check_constructed(where: str, language: str | None, natural: bool, cell: Cell, known: bool) -> None:
    """Raise InputError where sentence pairs have to be named, since none are aligned by construction.

    natural   whether the target has sentences of its own
    """
    if not known:
        raise InputError(f"{where}: the text of a model of Hugging Face is not known: name sentence pairs")
    if cell.pretrain is not None and cell.second is not None:
        first, other = cell.pretrain.all_languages[0], cell.second.all_languages[0]
        natural |= other.name == language and other.source != first.source
    elif cell.pretrain is not None and not natural:
        names = [member.name for member in cell.pretrain.all_languages]
        if language == names[0]:
            raise InputError(f"{where}: {language} is the source language itself: there is nothing to align")
        natural = language in names and language not in derived_numbers(cell.pretrain)
    if natural:
        raise InputError(f"{where}: {language} is not derived from the source language: name sentence pairs")


def check_files(config: Any) -> None:
    """Raise InputError for a file that a config names and that is not there."""
    for named in references(config):
        if named.kind == "file" and not user_path(str(named.name)).exists():
            raise InputError(f"{'.'.join(named.place)}: no such file {named.name}")


def check_models(config: TransferConfig | ProbeConfig, cell: Cell) -> None:
    """Raise InputError for a second model that the cell does not have, and for a folder that is not there."""
    for named in references(config):
        if named.kind == "model" and named.name == SECOND and cell.second is None:
            raise InputError(f"{'.'.join(named.place)}: the cell has no second model")
        if named.kind == "model" and named.name not in (MODEL, SECOND):
            model_path(str(named.name))


def check_probe(opened: Opened, config: ProbeConfig, cell: Cell, known: bool) -> None:
    """Its files, models, sentence pairs and extras; ``known``: whether the model is a run."""
    check_files(config)
    check_models(config, cell)
    opened.check_pairs(config.pairs.values())
    opened.check_texts("pairs", config.pairs, config.data if config.fits else None)
    if config.maps.save is not None:
        raise InputError("maps.save: the cells of a study would write one folder; use synthlang probe for that")
    needs_words = not known or any(held is not None for held in (cell.adjust, cell.tuned, cell.second))
    if "words" in config.probes and needs_words and config.words.dictionary is None:
        raise InputError("words: which words are translations is known of runs alone; name words.dictionary")
    if config.reads_sentences and not any(config.pairs.values()):
        check_constructed("pairs", config.language, config.natural, cell, known)
    _check_language(config, cell, known)
    if config.reads_sentences:
        _check_reach(opened, config, cell)
    for name, static in (("maps", config.maps.static), ("retrieval", config.retrieval.static)):
        trained = name in config.probes and isinstance(static, TrainedVectors) and static.vectors.needs_gensim
        if trained and find_spec("gensim") is None:
            raise InputError(f"{name}.static: training word vectors needs gensim: {INSTALL}, or vectors.kind: ppmi")
    if "distances" in config.probes and config.distances.picture == "tsne" and find_spec("sklearn") is None:
        raise InputError("distances.picture: tsne needs scikit-learn: pip install 'synthlang[probe]', or take pca")
    if "retrieval" in config.probes and config.retrieval.parser is not None:
        open_engine(config.retrieval.parser)


def _check_language(config: ProbeConfig, cell: Cell, known: bool) -> None:
    """Raise InputError for a language that the model cannot have, and for one whose words it does not know."""
    if not known and config.language is None:
        raise InputError("the language to compare with needs a name: language")
    if not known or config.model2 is not None:
        return
    run = cell.pretrain or load(PretrainConfig, model_path(str(cell.model)) / "config.yaml")
    asked = asked_for(run, config.language, config.natural)
    if not isinstance(asked, int):
        members = [(number, run.all_languages[number].language) for number in derived_numbers(run).values()]
        asked = next((n for n, language in members if language.fingerprint == asked.fingerprint), 0)
    if "words" in config.probes and cell.adjust is None and cell.tuned is None and not asked:
        raise no_rows(str(config.language), [member.name for member in run.all_languages])


def _check_reach(opened: Opened, config: ProbeConfig, cell: Cell) -> None:
    """The layers that are read of the models, and the longest sentence, as far as is known what they have."""
    others = [config.model2, *([config.cka.paraphrase] if "cka" in config.probes else [])]
    others += list(config.distances.before.values()) if "distances" in config.probes else []
    own, *more = (opened.reach(name, cell) for name in (MODEL, *others))
    static = {"retrieval"} if config.retrieval.static is not None else set()  # which reads no layer
    for reach in (own, *more) if set(config.probes) - {"words"} - static else ():
        if reach is not None:
            config.numbers(reach.layers)
    if own is not None and "distances" in config.probes:
        config.distances.drawn(sorted(config.numbers(own.layers)), own.layers)
    known = [reach.positions for reach in (own, *more[:1]) if reach is not None]
    if known:
        config.data.longest(min(known))


def check_items(opened: Opened, config: TransferConfig, cell: Cell, text: str | None, known: bool) -> None:
    """The items of a transfer: ``text`` is that of the pretraining, ``known`` whether the model is a run."""
    if config.language is None and (config.target is not None or not known):
        raise InputError("the language to transfer to needs a name: language")
    length = opened.length(cell) or config.length
    if cell.pretrain is None:
        if not known or config.train is not None:
            open_splits(config, None, length)
        return
    _, splits, _ = open_splits(config, text, length)
    if config.parser is not None:
        open_engine(config.parser)
    elif config.target is None and config.target_model is None:
        check_columns(language_of(config.language, cell.pretrain), splits)


def check_named(opened: Opened, config: TransferConfig, cell: Cell, known: bool) -> None:
    """The files, models and sentence pairs that it names."""
    check_files(config)
    check_models(config, cell)
    _check_layers(opened, config, cell)
    for root, held in _aligned(config):
        opened.check_pairs(held.pairs.values())
        opened.check_texts(f"{root}.pairs", held.pairs, held.data)
    natural = config.target is not None
    if (continual := config.continual) is not None and continual.alpha and not any(continual.pairs.values()):
        check_constructed("continual.pairs", config.language, natural, cell, known)
    if (rotation := config.rotation) is not None and rotation.map is None and not any(rotation.pairs.values()):
        check_constructed("rotation.pairs", config.language, natural, cell, known)


def _check_layers(opened: Opened, config: TransferConfig, cell: Cell) -> None:
    """What the layers of its models and how much they read tell, as far as these are known."""
    models = [opened.reach(name, cell) for name in (MODEL, config.target_model)]
    known = [reach for reach in models if reach is not None]
    check_tried(config, [reach.layers for reach in known])
    task_of(config).check_length(all(reach.bert for reach in known))
    for root, held in _aligned(config) if known else ():
        try:
            held.data.longest(min(reach.positions for reach in known))
        except InputError as error:
            raise InputError(f"{root}.{error}") from error


def _aligned(config: TransferConfig) -> list[tuple[str, ContinualConfig | RotationConfig]]:
    """Where sentence pairs are read."""
    found: list[tuple[str, ContinualConfig | RotationConfig]] = []
    if config.continual is not None and config.continual.alpha:
        found.append(("continual", config.continual))
    if config.rotation is not None and config.rotation.map is None:
        found.append(("rotation", config.rotation))
    return found


def check_tuning(opened: Opened, config: TransferConfig, cell: Cell, known: bool) -> None:
    """What ``check_keep`` and the fit would say."""
    if any(tried.features.tune == "none" for _, tried in combinations(config)):
        raise InputError("features.tune: with none no body is fine-tuned; probe the model without tuned")
    if config.rotation is not None:
        raise InputError("rotation: a rotation is no part of the model that probes read; set tuned.rotation to null")
    if config.best > 1:
        raise InputError("best: the probes read one model, that of the best setting; leave it at 1")
    run = cell.pretrain
    if run is None and known:
        run = load(PretrainConfig, model_path(str(cell.model)) / "config.yaml")
    if run is not None and (run.sharing.separates or run.objective.uses_language_ids):
        raise InputError("the languages of the run have weights of their own, which one tuned model cannot hold")
    if (continual := config.continual) is not None:
        if not any(continual.pairs.values()) and not known:
            raise InputError("continual.pairs: the text of a model of Hugging Face is not known: name sentence pairs")
        if config.language is None and (not known or continual.has_text):
            raise InputError("the language to align with needs a name: language")
    text = None if run is None else run.all_languages[0].source
    open_training(config, text, opened.length(cell) or config.length)
    if config.parser is not None:
        open_engine(config.parser)
    check_named(opened, config, cell, known)


def language_of(language: str | None, run: PretrainConfig) -> Language:
    """The language that a transfer of a run goes to: one of the run's, by name, or any derived one, by spec."""
    asked = asked_for(run, language, natural=False)
    return run.all_languages[asked].language if isinstance(asked, int) else asked


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
        self._opened, self._look = Opened(), Look()

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
        models, opened = self._models_of(cell), self._opened
        for root, config in (("start", cell.start), ("pretrain", cell.pretrain), ("second", cell.second)):
            if config is not None:
                start = cell.start if root == "pretrain" else None
                key = (self._look.whole(config), self._digest(start))
                self._once(root, config, partial(self._pretraining, start), *key)
                self._once("", config, partial(self._member_sources, root), root, self._look.whole(config))
        if (adjust := cell.adjust) is not None:
            self._once("adjust", adjust, lambda held: self._adjustment(held, cell), self._look.whole(adjust), *models)
        if (tuned := cell.tuned) is not None:
            self._once(
                "tuned", tuned, lambda held: check_tuning(opened, held, cell, known), self._look.whole(tuned), *models
            )
        for name, task in cell.tasks.items():
            where = "transfer" if list(cell.tasks) == [task.task] else f"tasks.{name}"
            items = task.model_dump_json(include=ITEMS)
            self._once(where, task, lambda held: check_items(opened, held, cell, text, known), items, *models)
            self._once(
                where, task, lambda held: check_named(opened, held, cell, known), self._look.whole(task), *models
            )
        for name, probe in cell.probes.items():
            key = self._look.whole(probe), f"{cell.adjust is None} {cell.tuned is None}"
            self._once(f"probes.{name}", probe, lambda held: check_probe(opened, held, cell, known), *key, *models)

    def _digest(self, config: pydantic.BaseModel | None) -> str:
        return "" if config is None else self._look.whole(config)

    def _models_of(self, cell: Cell) -> tuple[str, ...]:
        """What tells the models of cells apart."""
        return *map(self._digest, (cell.pretrain, cell.second, cell.start)), cell.model or ""

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
        config.micro_batches(1)  # a stage is one process
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


def _check_start(config: PretrainConfig, start: PretrainConfig, reach: Reach | None) -> None:
    """What opening the export of ``start`` would say: InputError for more layers or longer rows than it has."""
    layers = max(config.sharing.layers, default=0)
    if start.start is None and layers > start.model.layers:
        raise InputError(f"sharing.layers: there is no layer {layers}, start has {start.model.layers}")
    if reach is not None and config.batch.length > reach.positions:
        raise InputError(f"batch.length ({config.batch.length}) is over the {reach.positions} positions of start")
