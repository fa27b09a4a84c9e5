"""The stage that pretrains a model."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

import pydantic

from pretrain.config import PretrainConfig
from pretrain.config.run import FORMAT, OF_WEIGHTS
from probes.models.names import ModelLimits, limits_of_run
from probes.stages.base import DONE, ModelStage, Stage, StageKeys

if TYPE_CHECKING:
    from probes.stages.inputs import Inputs
    from probes.stages.making import Making

DATA = frozenset({"source", "language", "languages", "vocabulary", "dictionary", "start"})
"""Settings that determine the data of a pretraining and the translations of its words."""
BY_LANGUAGE = frozenset({"source", "language", "languages", "dictionary"})
"""Settings in ``DATA`` that the key covers as ``members``, or only if the objective reads them."""


class PretrainStage(Stage):
    """Pretraining of a model.

    Attributes:
        config: Settings of the pretraining.
        init_from: The run from whose export of the first language the model is initialised, or None.
    """

    format = FORMAT
    content = (DONE,)
    kind: Literal["pretrain"] = "pretrain"
    config: PretrainConfig
    init_from: PretrainStage | None = None

    @property
    def label(self) -> str:
        return f"pretrain {self.config.label}" + (f" seed {self.config.seed}" if self.config.seed else "")

    @property
    def configs(self) -> tuple[pydantic.BaseModel, ...]:
        return (self.config,)

    def settings(self, keys: StageKeys) -> Any:
        """Return the settings of the weights and the data, with the names of the languages, which name the exports."""
        config = self.config
        names = OF_WEIGHTS | DATA - BY_LANGUAGE
        names |= {"parallel"} if config.objective.needing("pairs") else set()
        names |= {"dictionary"} if config.objective.needing("dictionary") else set()
        names |= {"checkpoints", "validation"} if config.checkpoints.select == "best" else set()
        found = {name: value for name, value in keys.settings_of(config).items() if name in names}
        languages = [keys.settings_of(language) for language in config.all_languages]
        own = any(language.language.adds_forms for language in config.all_languages)
        if own and config.vocabulary.kind == "copied" and config.start is None:
            found["added_forms"] = 1  # increment when the vocabulary gets other tokens for them
        return {**found, "objective": config.objective.identity(), "members": languages}

    def limits(self, of_checkpoint: Callable[[str], ModelLimits | None]) -> ModelLimits | None:
        """Return the limits of the model, or None if they are not known.

        ``of_checkpoint`` returns the limits of the checkpoint from which a run may start.
        """
        if self.init_from is None and self.config.start is not None:
            return of_checkpoint(self.config.start.model)
        return limits_of_run(self.config, None if self.init_from is None else self.init_from.config)

    def check(self, inputs: Inputs) -> None:
        """Raise InputError if the run cannot start as one process.

        The error is raised for a key without effect, for a demand of several processes, and for a number of rows that
        is not a multiple of ``accumulation``. It is also raised for a missing tracker or input, and for an initial
        model that does not fit.
        """
        from pretrain.trackers import check_trackers
        from pretrain.unread import check_read

        config = self.config
        check_trackers(config.trackers)
        check_read(config)
        config.micro_batches(1)  # a stage is one process
        self._check_initial_model(inputs)
        inputs.check_references(config)
        for number, member in enumerate(config.all_languages):
            own = () if member.source == config.source else ("languages", str(number))
            inputs.check_source(member.language, member.source, *own)

    def _check_initial_model(self, inputs: Inputs) -> None:
        """Raise InputError if the initial model is missing, of another kind, or has too few layers or positions."""
        from pretrain.model.from_hf import check_kind, check_length, check_size, check_start

        config = self.config
        if self.init_from is not None:
            first = self.init_from.config
            if first.start is None:
                check_size("init_from", first.model.layers, config.sharing.layers)
                check_kind("init_from", first.objective.is_causal, config.objective.is_causal)
            if (limits := limits_of_run(first)) is not None:
                check_length("init_from", limits.positions, config.batch.length)
        elif config.start is not None and inputs.limits(config.start.model) is not None:
            check_start(config.start.model, config.batch.length, config.sharing.layers, config.objective.is_causal)

    def config_in(self, making: Making) -> PretrainConfig:
        """Return the settings of the run, with the folder of its initial model in place of a reference.

        Raises:
            InputError: The stage of the initial model is not finished, or one of its files is damaged.
        """
        if self.init_from is None:
            return self.config
        export = making.done_folder(self.init_from) / "export" / self.init_from.config.all_languages[0].name
        assert self.config.start is not None, "a run that is initialised from another has the section start"
        start = self.config.start.model_copy(update={"model": str(export)})
        return self.config.model_copy(update={"start": start})

    def run(self, making: Making) -> None:
        """Train the model, or continue an unfinished training.

        Raises:
            InputError: The initial model is not finished or is damaged, an input cannot be read or has changed since
                the work began, or training fails.
            Stopped: After SIGTERM. The progress has been saved.
        """
        from pretrain.prepare import prepare
        from pretrain.run import pretrain
        from pretrain.stopping import on_sigterm

        config = self.config_in(making)
        prepare(config, making.store, making.report)
        making.check_unchanged()  # training reads what was prepared
        with making.lock, on_sigterm() as stop:
            if not making.is_intact:
                making.reopen_run()
            pretrain(config, making.folder, making.store, making.report, stop=stop)


def root_of(model: Stage | str) -> PretrainStage | str:
    """Return the model from which ``model`` was adjusted or fine-tuned, or else ``model`` itself."""
    while isinstance(model, ModelStage):
        model = model.model
    assert isinstance(model, PretrainStage | str), "weights begin with a pretraining or a named model"
    return model
