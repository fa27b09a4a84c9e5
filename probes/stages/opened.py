"""Opening the models of a stage: models of the study by their folders, other models by their names."""

from __future__ import annotations

from dataclasses import replace

from pretrain.config import PretrainConfig
from probes.models.names import CellModel, run_config
from probes.models.opening import open_pretrained
from probes.models.pretrained import Pretrained
from probes.stages.base import ModelStage, short
from probes.stages.making import Making
from probes.stages.pretrain import PretrainStage, root_of
from synthlang.language import PARENT


def open_models(
    making: Making,
    language: str | None,
    natural: bool,
    target_model: str | None = None,
    before: str | None = None,
    *,
    source_only: bool = False,
    step: int | None = None,
) -> tuple[Pretrained, dict[str, str]]:
    """Open the model of a stage, the languages, and the model that reads the target language.

    Args:
        making: The stage.
        language: The target language. None stands for the first derived language of a run.
        natural: True if the target language is natural, with sentences of its own.
        target_model: Name of, or reference to, the model that reads the target language (default: the model of the
            stage).
        before: Name of, or reference to, the original model f⁰ of continual learning (default: the model before its
            adjustment).
        source_only: True if only the source language is read. It is then also the target language.
        step: Step of the checkpoint of a run (default: the checkpoint that the run selects).

    Returns:
        The model, or two models, with the two languages; and the folder or the name of each model of the cell, by the
        text of a ``CellModel`` such as ``cell:model``.

    Raises:
        InputError: A model of the study is not finished or is damaged, a model or the checkpoint of ``step`` cannot be
            opened, or a model cannot read the language.
    """
    assert isinstance(making.stage, ModelStage), "stages of other kinds open no model"
    model, other = making.stage.model, getattr(making.stage, "target_model", None)
    root, name = root_of(model), making.model_name(model)
    first = making.model_name(root)
    folders: dict[str, str] = {CellModel.ORIGINAL: first, CellModel.ADJUSTED: name}
    if other is not None:
        folders[CellModel.TARGET] = making.model_name(other)
    configs: dict[str, PretrainConfig] = {}
    for run in (root, other):
        if isinstance(run, PretrainStage):
            configs[making.model_name(run)] = run.config_in(making)
    if source_only:
        config = run_config(first, configs)
        language = PARENT.name if config is None else config.all_languages[0].name
    second = None if target_model is None else folders.get(target_model, target_model)
    root_folder = None if first == name else first
    opened = open_pretrained(name, language, natural, second, configs, root_folder, step)
    original = first if first != name else opened.original
    original = original if before is None else folders.get(before, before)
    called = " and ".join(short(each) for each in (model, other) if each is not None)
    called += "" if step is None else f" step {step}"
    return replace(opened, name=called, original=None if original == name else original), folders
