"""Models of a stage as their settings describe them, before the models are made."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from pretrain.config import PretrainConfig
from probes.models.names import CellModel, ModelLimits, derived_numbers, is_run, model_path, run_config
from probes.stages.base import ModelStage
from probes.stages.pretrain import PretrainStage, root_of
from probes.transfer.config import TransferConfig

if TYPE_CHECKING:
    from probes.stages.inputs import Inputs


class KnownModels:
    """Models of a stage, which need not be made yet.

    Attributes:
        root: The model before adjustment and fine-tuning: a run of the study, or the name of a model.
        target: The run whose model reads the target language, or None.
        identity: Key of the models for ``Inputs.once``.
    """

    def __init__(self, stage: ModelStage, inputs: Inputs) -> None:
        self._inputs = inputs
        self.root = root_of(stage.model)
        self.target: PretrainStage | None = getattr(stage, "target_model", None)
        self.identity = inputs.identity(stage.model), inputs.identity(self.target)

    @cached_property
    def run(self) -> PretrainConfig | None:
        """Settings of the pretraining run, or None if the model does not come from a run.

        Raises:
            InputError: The model is a folder that does not exist, or the record or the settings of its run cannot be
                read or are invalid.
        """
        return self.root.config if isinstance(self.root, PretrainStage) else run_config(self.root)

    @property
    def is_run(self) -> bool:
        """True if the model is a pretraining run, or was adjusted or fine-tuned from one.

        Raises:
            InputError: The model is a folder that does not exist, or the record of its run cannot be read.
        """
        return isinstance(self.root, PretrainStage) or is_run(model_path(self.root))

    @property
    def text(self) -> str | None:
        """Spec of the pretraining text of the source language, or None if it is not known.

        Raises:
            InputError: As in ``run``.
        """
        return None if self.run is None else self.run.all_languages[0].source

    def text_of(self, language: str | None) -> str | None:
        """Return the spec of the pretraining text in a language of the run, or None if it is not known.

        Raises:
            InputError: As in ``run``.
        """
        languages = () if self.run is None or self.target is not None else self.run.all_languages
        return next((one.source for one in languages if one.name == language), None)

    def limits(self, model: str | None = CellModel.ORIGINAL) -> ModelLimits | None:
        """Return the limits of a model, given by its name or a ``CellModel``, or None if they are not known.

        Raises:
            InputError: A folder does not exist or does not hold a model, the settings of a run cannot be read, or the
                model is not in the offline cache.
        """
        found: PretrainStage | str | None = model
        if model == CellModel.TARGET:
            found = self.target
        elif model in (CellModel.ORIGINAL, CellModel.ADJUSTED):
            found = self.root
        if isinstance(found, PretrainStage):
            return found.limits(self._inputs.limits)
        return None if found is None else self._inputs.limits(found)

    def all_limits(self, *models: str | None) -> list[ModelLimits]:
        """Return the known limits of some models, without the models whose limits are not known.

        Raises:
            InputError: As in ``limits``.
        """
        return [limits for limits in map(self.limits, models) if limits is not None]

    def length(self, config: TransferConfig) -> int:
        """Return the number of tokens that all models of a transfer can read in a row.

        If no limit is known, the result is the length of ``config``, or else the default READS.

        Raises:
            InputError: As in ``limits``.
        """
        from probes.transfer.tasks.base import READS  # with torch

        known = self.all_limits(CellModel.ORIGINAL, config.target_model)
        return min((limits.positions for limits in known), default=config.length or READS)

    def check_constructed(self, language: str | None, natural: bool) -> None:
        """Raise InputError if the languages have no sentence pairs by construction, so that settings must name some.

        Args:
            language: The target language (default: the first derived language of a run).
            natural: True if the settings describe a natural target language, with sentences of its own.
        """
        from probes.models.aligned import check_constructed  # with torch

        same = False
        if isinstance(self.root, PretrainStage):
            run = self.root.config
            names = [member.name for member in run.all_languages]
            if self.target is not None:
                other = self.target.config.all_languages[0]
                natural |= other.name == language and other.source != run.all_languages[0].source
            elif not natural:
                same = language == names[0]
                natural = not same and language in names and language not in derived_numbers(run)
        check_constructed(language, self.is_run, natural, same)
