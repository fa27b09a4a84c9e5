"""What is refused before anything runs: what is not there, missing extras, models and settings that do not fit.

Little is opened, each thing once, and nothing is trained: a model that the study will make is known by its settings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, partial
from importlib.util import find_spec
from typing import Any

import pydantic

from pretrain.adjust.config import AdjustConfig
from pretrain.config import PretrainConfig
from pretrain.config.model import numbered
from pretrain.config.training import micro_batches
from pretrain.hub import CONFIG, open_base
from pretrain.model.from_hf import check_start
from pretrain.model.hf_names import ARCHITECTURES
from pretrain.trackers import check_trackers
from probes.measures.table import ProbeConfig
from probes.measures.words import no_rows
from probes.model_names import asked_for, derived_numbers, is_run, model_path
from probes.report.numbers import plural
from probes.static.settings import TrainedVectors
from probes.static.training import INSTALL
from probes.study.builder import in_study
from probes.study.cell import ADJUSTED, MODEL, OF_CELL, SECOND, START, Cell, ModelLimits, limits_of
from probes.study.stage import StageKeys
from probes.transfer.config import TransferConfig, check_tried, combinations
from probes.transfer.splits import check_columns, open_splits, open_training
from probes.transfer.tasks.base import READS, task_of
from synthlang.config import load
from synthlang.errors import InputError
from synthlang.files import read_json, user_path
from synthlang.language import Language, check_source
from synthlang.parallel.aligners import find_aligner
from synthlang.parallel.pairs import AlignerLinks, DerivedPair, TextPair, count_text
from synthlang.parallel.prepare import DataConfig, check_left
from synthlang.parsing import open_engine
from synthlang.references import references
from synthlang.sources import open_source

Pairs = Mapping[str, TextPair | DerivedPair | None]
ITEMS = {
    *("task", "train", "dev", "test", "target", "parser", "length", "score", "language", "mixed", "target_model"),
    *("chosen_by", "dev_also"),
}
"""What of a transfer its items depend on, and which columns they must have."""
SEPARATE = "the languages of the run have weights of their own"


def check_cells(cells: Sequence[Cell]) -> None:
    """Raise InputError, one line that names the cell and how many others have it, for what surely cannot run."""
    opened = OpenedInputs()
    problems = (_CellChecks(cell, opened).problem() for cell in cells)
    for number, problem in enumerate(problems):
        if problem is not None:
            alike = sum(other == problem for other in problems)
            others = f" and {plural(alike, 'other cell')}" if alike else ""
            raise InputError(problem, f"{cells[number].name}{others}")


def check_names(config: pydantic.BaseModel, has_second: bool = False) -> None:
    """Raise InputError for a file or folder of a model that a config names and that is not there, for a second model
    where the cell has none, and for what a run starts from where something else than the run is to read it."""
    for named in references(config):
        where = ".".join(named.place)
        if named.kind == "file" and not user_path(str(named.name)).exists():
            raise InputError(f"{where}: no such file {named.name}")
        if named.kind == "model" and named.name == SECOND and not has_second:
            raise InputError(f"{where}: the cell has no second model")
        if named.kind == "model" and named.name == START and named.place[0] != "start":
            raise InputError(f"{where}: what a run starts from is read by that run only; name {MODEL} or {ADJUSTED}")
        if named.kind == "model" and named.name not in OF_CELL:
            model_path(str(named.name))


def language_of(language: str | None, run: PretrainConfig) -> Language:
    """The language that a transfer of a run goes to: one of the run's, by name, or any derived one, by spec."""
    asked = asked_for(run, language, natural=False)
    return run.all_languages[asked].language if isinstance(asked, int) else asked


def limits_of_model(model: str) -> ModelLimits | None:
    """The layers of a model and how many tokens a row can have, by its settings; None for one that is not here.

    InputError for a folder that holds no model, and offline for a name that is in no cache.
    """
    path = model_path(model)
    if is_run(path):
        config = load(PretrainConfig, path / "config.yaml")
        return limits_of_model(config.start.model) if config.start else limits_of(config)
    from huggingface_hub import constants

    if not path.is_dir() and not constants.HF_HUB_OFFLINE:
        return None
    settings = read_json(open_base(model).folder / CONFIG)
    names = ARCHITECTURES.get(settings.get("model_type"))
    layers, positions = settings.get("num_hidden_layers"), settings.get("max_position_embeddings")
    if names is None or not isinstance(layers, int) or not isinstance(positions, int):
        return None  # opening it says what is wrong
    before = settings.get("pad_token_id", 0) + 1 if names.counts_from_pad else 0
    return ModelLimits(layers, positions - before, bert=names.config == "BertConfig")


class OpenedInputs:
    """Texts and models that cells name, and what was wrong with the configs that were looked at, each once."""

    def __init__(self) -> None:
        self.source = cache(open_source)
        self.limits = cache(limits_of_model)
        self.stage_keys = StageKeys()
        self.problems: dict[tuple[str, ...], str | None] = {}
        self._counts: dict[str, int | None] = {}

    def check_pairs(self, where: str, pairs: Pairs, data: DataConfig | None) -> None:
        """Raise InputError for pairs whose text or aligner is not there; with ``data``, if it leaves none to train
        on."""
        for name, pair in pairs.items():
            if isinstance(pair, DerivedPair):
                for language in (pair.left, pair.right):
                    check_source(language, self.source(pair.source), pair.source)
            elif pair is not None and isinstance(pair.links, AlignerLinks):
                find_aligner(pair.links.program)
            if isinstance(pair, TextPair):
                count = self._count(pair, f"{where}.{name}")
                if data is not None and count is not None:
                    check_left(f"{where}.{name}", data.held_out(count)[0], count, data)

    def _count(self, pair: TextPair, where: str) -> int | None:
        key = pair.model_dump_json()
        if key not in self._counts:
            try:
                self._counts[key] = count_text(pair)
            except InputError as error:
                raise InputError(f"{where}: {error}") from error
        return self._counts[key]


class _CellChecks:
    """The checks of a cell; each raises InputError with the keys of the config that it is given."""

    def __init__(self, cell: Cell, opened: OpenedInputs) -> None:
        self.cell, self.opened = cell, opened

    def problem(self) -> str | None:
        """What is wrong with the cell first; None if nothing is."""
        try:
            self._check()
        except InputError as error:
            return str(error)
        return None

    def _check(self) -> None:
        cell, digest = self.cell, self._digest
        self.is_run = cell.model is None or is_run(model_path(cell.model))
        models = (*map(digest, (cell.pretrain, cell.second, cell.start)), cell.model or "")
        for root, run in (("start", cell.start), ("pretrain", cell.pretrain), ("second", cell.second)):
            start = cell.start if root == "pretrain" else None
            self._check_once(root, run, partial(self._pretraining, start), digest(run), digest(start))
            self._check_once("", run, partial(self._sources, root), root, digest(run))
        self._check_once("adjust", cell.adjust, self._adjustment, digest(cell.adjust), *models)
        self._check_once("tuned", cell.tuned, self._tuning, digest(cell.tuned), *models)
        for name, task in cell.tasks.items():
            where = "transfer" if list(cell.tasks) == [task.task] else f"tasks.{name}"
            self._check_once(where, task, self._items, task.model_dump_json(include=ITEMS), *models)
            self._check_once(where, task, self._transfer, digest(task), *models)
        for name, probe in cell.probes.items():
            unchanged = f"{cell.adjust is None} {cell.tuned is None}"
            self._check_once(f"probes.{name}", probe, self._probe, digest(probe), unchanged, *models)

    def _digest(self, config: pydantic.BaseModel | None) -> str:
        return "" if config is None else self.opened.stage_keys.digest(config)

    def _check_once(self, where: str, config: Any, check: Callable[[Any], None], *key: str) -> None:
        """Check a config, if there is one, unless one like it was checked for another cell."""
        found, place = self.opened.problems, (where, *key)
        if config is not None and place not in found:
            try:
                check(config)
                found[place] = None
            except InputError as error:
                found[place] = in_study(str(error), where, type(config)) if where else str(error)
        if (problem := found.get(place)) is not None:
            raise InputError(problem)

    # --- what is known of its models ---

    @property
    def _run(self) -> PretrainConfig | None:
        """The settings of the cell's model, or of what it is made of; None of a model of Hugging Face."""
        if self.cell.pretrain is None and self.is_run:
            return load(PretrainConfig, model_path(str(self.cell.model)) / "config.yaml")
        return self.cell.pretrain

    def _limits(self, model: str | None) -> ModelLimits | None:
        """What is known of a model by its name, also of the cell's own; None where nothing is."""
        cell = self.cell
        if model == SECOND:
            return None if cell.second is None else self._limits_of_run(cell.second, None)
        if model in (MODEL, ADJUSTED) and cell.pretrain is not None:
            return self._limits_of_run(cell.pretrain, cell.start)
        name = cell.model if model in (MODEL, ADJUSTED) else model
        return None if name is None else self.opened.limits(name)

    def _limits_of_run(self, run: PretrainConfig, start: PretrainConfig | None) -> ModelLimits | None:
        known = limits_of(run, start)
        return self._limits(run.start.model) if known is None and run.start and start is None else known

    def _known_limits(self, *models: str | None) -> list[ModelLimits]:
        return [limits for limits in map(self._limits, models) if limits is not None]

    def _length(self, config: TransferConfig) -> int:
        """How many tokens the cell's model reads, as far as it is known."""
        return next((limits.positions for limits in self._known_limits(MODEL)), config.length or READS)

    # --- the parts of a cell ---

    def _pretraining(self, start: PretrainConfig | None, config: PretrainConfig) -> None:
        check_trackers(config.trackers)
        config.micro_batches(1)  # a stage is one process
        if start is not None:
            _check_start(config, start)
        elif config.start is not None and self._known_limits(config.start.model):
            check_start(config.start.model, config.batch.length, config.sharing.layers)
        check_names(config)

    def _sources(self, root: str, config: PretrainConfig) -> None:
        for number, member in enumerate(config.all_languages):
            try:
                check_source(member.language, self.opened.source(member.source), member.source)
            except InputError as error:
                key = "source" if member.source == config.source else f"{root}.languages.{number}.source"
                raise InputError(f"{key}: {error}") from error

    def _adjustment(self, config: AdjustConfig) -> None:
        check_names(config)
        self.opened.check_pairs("pairs", config.texts, config.data)
        micro_batches(config.rows, config.accumulation, 1)
        for limits in self._known_limits(MODEL):
            numbered(config.loss.layers, limits.layers, "loss.layers")
            config.data.longest(limits.positions)
        if (run := self.cell.pretrain) is None:
            return
        if run.sharing.separates or run.objective.uses_language_ids:
            raise InputError(f"{SEPARATE}: there is no one model to adjust")
        names = [language.name for language in run.all_languages]
        for name, pair in config.texts.items():
            read = pair.tokenizers or ((pair.left.name, pair.right.name) if isinstance(pair, DerivedPair) else ())
            unknown = [language for language in read if language not in names]
            if unknown or not read:
                found = f"no language {unknown[0]!r} in the run" if unknown else "which languages of the run it is of"
                raise InputError(
                    f"pairs.{name}: {found}; there is {', '.join(names)}: name two in pairs.{name}.tokenizers"
                )

    def _tuning(self, config: TransferConfig) -> None:
        """What ``check_keep`` and the fit would say."""
        if any(tried.features.tune == "none" for _, tried in combinations(config)):
            raise InputError("features.tune: with none no body is fine-tuned; probe the model without tuned")
        if config.rotation is not None:
            raise InputError(
                "rotation: a rotation is no part of the model that probes read; set tuned.rotation to null"
            )
        if config.chosen_by != "source":
            raise InputError("chosen_by: the model that probes read is chosen on the source's dev set alone")
        if config.best > 1:
            raise InputError("best: the probes read one model, that of the best setting; leave it at 1")
        run = self._run
        if run is not None and (run.sharing.separates or run.objective.uses_language_ids):
            raise InputError(f"{SEPARATE}, which one tuned model cannot hold")
        if (continual := config.continual) is not None:
            if not any(continual.pairs.values()):
                self._check_text("continual.pairs")
            if config.language is None and (not self.is_run or continual.has_text):
                raise InputError("the language to align with needs a name: language")
        open_training(config, None if run is None else run.all_languages[0].source, self._length(config))
        if config.parser is not None:
            open_engine(config.parser)
        self._transfer(config)

    def _items(self, config: TransferConfig) -> None:
        run = self.cell.pretrain
        if config.language is None and (config.target is not None or not self.is_run):
            raise InputError("the language to transfer to needs a name: language")
        if run is None:
            if not self.is_run or config.train is not None:
                open_splits(config, None, self._length(config))
            return
        splits = open_splits(config, run.all_languages[0].source, self._length(config))[1].source
        if config.parser is not None:
            open_engine(config.parser)
        elif config.target is None and config.target_model is None:
            check_columns(language_of(config.language, run), splits)

    def _transfer(self, config: TransferConfig) -> None:
        """The files, models and sentence pairs that a transfer names, and the layers and rows that it reads."""
        check_names(config, self.cell.second is not None)
        known = self._known_limits(MODEL, config.target_model)
        check_tried(config, [limits.layers for limits in known])
        task_of(config, self._length(config)).check_length(all(limits.bert for limits in known))
        continual = config.continual if config.continual is not None and config.continual.alpha else None
        rotation = config.rotation if config.rotation is not None and config.rotation.map is None else None
        for root, aligned in (("continual", continual), ("rotation", rotation)):
            if aligned is None:
                continue
            for limit in [min(limits.positions for limits in known)] if known else ():
                try:
                    aligned.data.longest(limit)
                except InputError as error:
                    raise InputError(f"{root}.{error}") from error
            self.opened.check_pairs(f"{root}.pairs", aligned.pairs, aligned.data)
            if not any(aligned.pairs.values()):
                self._check_constructed(f"{root}.pairs", config.language, config.target is not None)

    def _probe(self, config: ProbeConfig) -> None:
        cell = self.cell
        check_names(config, cell.second is not None)
        self.opened.check_pairs("pairs", config.pairs, config.data if config.fits else None)
        if config.maps.save is not None:
            raise InputError("maps.save: the cells of a study would write one folder; use synthlang probe for that")
        needs_words = not self.is_run or cell.second is not None
        if "words" in config.probes and needs_words and config.words.dictionary is None:
            raise InputError("words: which words are translations is known of runs alone; name words.dictionary")
        if config.reads_sentences and not any(config.pairs.values()):
            self._check_constructed("pairs", config.language, config.natural)
        self._check_language(config)
        if config.reads_sentences:
            self._check_limits(config)
        for name, static in (("maps", config.maps.static), ("retrieval", config.retrieval.static)):
            trained = name in config.probes and isinstance(static, TrainedVectors) and static.vectors.needs_gensim
            if trained and find_spec("gensim") is None:
                raise InputError(f"{name}.static: training word vectors needs gensim: {INSTALL}, or vectors.kind: ppmi")
        if "distances" in config.probes and config.distances.picture == "tsne" and find_spec("sklearn") is None:
            raise InputError("distances.picture: tsne needs scikit-learn: pip install 'synthlang[probe]', or take pca")
        if "retrieval" in config.probes and config.retrieval.parser is not None:
            open_engine(config.retrieval.parser)

    def _check_language(self, config: ProbeConfig) -> None:
        """Raise InputError for a language that the model cannot have, and for one whose words it does not know."""
        run = self._run
        if run is None and config.language is None:
            raise InputError("the language to compare with needs a name: language")
        if run is None or config.model2 is not None:
            return
        asked = asked_for(run, config.language, config.natural)
        if not isinstance(asked, int):
            members = [(number, run.all_languages[number].language) for number in derived_numbers(run).values()]
            asked = next((n for n, language in members if language.fingerprint == asked.fingerprint), 0)
        is_run_itself = self.cell.adjust is None and self.cell.tuned is None
        if "words" in config.probes and not asked and (is_run_itself or config.words.dictionary is None):
            raise no_rows(str(config.language), [language.name for language in run.all_languages])

    def _check_limits(self, config: ProbeConfig) -> None:
        """The layers that are read of the models, and the longest sentence, as far as is known what they have."""
        others: Iterable[str | None] = [config.cka.paraphrase] if "cka" in config.probes else []
        before = config.distances.before.values() if "distances" in config.probes else []
        static = {"retrieval"} if config.retrieval.static is not None else set()  # which reads no layer
        if set(config.probes) - {"words"} - static:
            for limits in self._known_limits(MODEL, config.model2, *others, *before):
                config.numbers(limits.layers)
        for limits in self._known_limits(MODEL) if "distances" in config.probes else ():
            config.distances.drawn(sorted(config.numbers(limits.layers)), limits.layers)
        if known := self._known_limits(MODEL, config.model2):
            config.data.longest(min(limits.positions for limits in known))

    def _check_text(self, where: str) -> None:
        if not self.is_run:
            raise InputError(f"{where}: the text of a model of Hugging Face is not known: name sentence pairs")

    def _check_constructed(self, where: str, language: str | None, natural: bool) -> None:
        """Raise InputError where sentence pairs have to be named, since none are aligned by construction.

        natural   whether the target has sentences of its own
        """
        self._check_text(where)
        run, second = self.cell.pretrain, self.cell.second
        if run is not None and second is not None:
            other = second.all_languages[0]
            natural |= other.name == language and other.source != run.all_languages[0].source
        elif run is not None and not natural:
            names = [language.name for language in run.all_languages]
            if language == names[0]:
                raise InputError(f"{where}: {language} is the source language itself: there is nothing to align")
            natural = language in names and language not in derived_numbers(run)
        if natural:
            raise InputError(f"{where}: {language} is not derived from the source language: name sentence pairs")


def _check_start(config: PretrainConfig, start: PretrainConfig) -> None:
    """What opening the export of ``start`` would say: InputError for more layers or longer rows than it has."""
    layers, limits = max(config.sharing.layers, default=0), limits_of(start)
    if start.start is None and layers > start.model.layers:
        raise InputError(f"sharing.layers: there is no layer {layers}, start has {start.model.layers}")
    if limits is not None and config.batch.length > limits.positions:
        raise InputError(f"batch.length ({config.batch.length}) is over the {limits.positions} positions of start")
