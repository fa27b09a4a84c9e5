"""What of a transfer, or of the fine-tuning of a body that probes read, is refused before anything runs."""

from __future__ import annotations

from pretrain.config import PretrainConfig
from probes.rotation.settings import RotationConfig
from probes.study.cell import MODEL, Cell
from probes.study.opened import Opened, check_constructed, check_files, check_models
from probes.transfer.config import ContinualConfig, TransferConfig, check_tried, combinations
from probes.transfer.model_names import asked_for, model_path
from probes.transfer.splits import check_columns, open_splits, open_training
from probes.transfer.tasks.base import task_of
from synthlang.config import load
from synthlang.errors import InputError
from synthlang.language import Language
from synthlang.parsing import open_engine


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
    _check_reach(opened, config, cell)
    for root, held in _aligned(config):
        opened.check_pairs(held.pairs.values())
        opened.check_texts(f"{root}.pairs", held.pairs, held.data)
    natural = config.target is not None
    if (continual := config.continual) is not None and continual.alpha and not any(continual.pairs.values()):
        check_constructed("continual.pairs", config.language, natural, cell, known)
    if (rotation := config.rotation) is not None and rotation.map is None and not any(rotation.pairs.values()):
        check_constructed("rotation.pairs", config.language, natural, cell, known)


def _check_reach(opened: Opened, config: TransferConfig, cell: Cell) -> None:
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
