"""Opening the models of a stage: those of the study by their folders, others by their names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from pretrain.config import PretrainConfig
from probes.models.names import CellModel, source_language
from probes.models.opening import open_pretrained
from probes.models.pretrained import Pretrained
from probes.stages.base import Stage, root_of, short
from probes.stages.making import Making


@dataclass(frozen=True)
class OpenedModels:
    """The models of a stage.

    Attributes:
        pretrained: The model, or both, with the two languages.
        folders: Reference to a model of the cell → its folder or name.
    """

    pretrained: Pretrained
    folders: Mapping[str, str]


def open_models(
    making: Making,
    model: Stage | str,
    language: str | None,
    natural: bool,
    *,
    other: Stage | None = None,
    target_model: str | None = None,
    before: str | None = None,
    source_only: bool = False,
) -> OpenedModels:
    """Open the model of a stage and, if there is one, the second model of the cell.

    Args:
        making: The stage that is made.
        model: Its model.
        language: Target language.
        natural: Whether the target language has sentences of its own.
        other: The second model of the cell.
        target_model: Name of, or reference to, the model that reads the target language.
        before: Name of, or reference to, f⁰ of continual learning. None: the model before its adjustment.
        source_only: Whether the source language is the target as well, since no other language is read.
    """
    root, name = root_of(model), making.model_name(model)
    first = making.model_name(root)
    folders: dict[str, str] = {CellModel.ORIGINAL: first, CellModel.ADJUSTED: name}
    if other is not None:
        folders[CellModel.TARGET] = making.model_name(other)
    configs: dict[str, PretrainConfig] = {}
    for run in (root, other):
        if isinstance(run, Stage) and (config := run.config_in(making)) is not None:
            configs[making.model_name(run)] = config
    if source_only:
        language = source_language(first, configs)
    second = None if target_model is None else folders.get(target_model, target_model)
    opened = open_pretrained(name, language, natural, second, configs, None if first == name else first)
    original = first if first != name else opened.original
    original = original if before is None else folders.get(before, before)
    called = " and ".join(short(each) for each in (model, other) if each is not None)
    opened = replace(opened, name=called, original=None if original == name else original)
    return OpenedModels(opened, folders)
