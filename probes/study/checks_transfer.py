"""What of a transfer, or of the fine-tuning of a body that probes read, is refused before anything runs."""

from __future__ import annotations

from pretrain.config import PretrainConfig
from probes.study.cell import Cell
from probes.study.opened import Opened, check_constructed, check_files, check_models
from probes.transfer.config import TransferConfig
from probes.transfer.continual_config import has_text
from probes.transfer.model_names import first_derived, model_path
from probes.transfer.places import check_columns, open_places, open_training
from probes.transfer.search import combinations
from synthlang.config import load
from synthlang.errors import InputError
from synthlang.language import Language, parse_language
from synthlang.parsing import open_engine


def check_items(opened: Opened, config: TransferConfig, cell: Cell, text: str | None, known: bool) -> None:
    """The items of a transfer: ``text`` is that of the pretraining, ``known`` whether the model is a run."""
    if config.language is None and (config.target is not None or not known):
        raise InputError("the language to transfer to needs a name: language")
    length = opened.length(cell) or config.length
    if cell.pretrain is None:
        if not known or config.train is not None:
            open_places(config, None, length)
        return
    _, places, _ = open_places(config, text, length)
    if config.parser is not None:
        open_engine(config.parser)
    elif config.target is None and config.target_model is None:
        check_columns(language_of(config.language, cell.pretrain), places)


def check_named(opened: Opened, config: TransferConfig, cell: Cell, known: bool) -> None:
    """The files, models and sentence pairs that it names."""
    check_files(config)
    check_models(config, cell)
    for held in (config.continual, config.rotation):
        opened.check_pairs(held.pairs.values() if held is not None else ())
    natural = config.target is not None
    if (continual := config.continual) is not None and continual.alpha and not any(continual.pairs.values()):
        check_constructed("continual.pairs", config.language, natural, cell, known)
    if (rotation := config.rotation) is not None and rotation.map is None and not any(rotation.pairs.values()):
        check_constructed("rotation.pairs", config.language, natural, cell, known)


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
        if config.language is None and (not known or has_text(continual)):
            raise InputError("the language to align with needs a name: language")
    text = None if run is None else run.members[0].source
    open_training(config, text, opened.length(cell) or config.length)
    if config.parser is not None:
        open_engine(config.parser)
    check_named(opened, config, cell, known)


def language_of(language: str | None, run: PretrainConfig) -> Language:
    """The language that a transfer of a run goes to: one of the run's, by name, or any derived one, by spec."""
    if language is None:
        return run.members[first_derived(run)].language
    members = {member.name: member.language for member in run.members}
    return members[language] if language in members else parse_language(language)
