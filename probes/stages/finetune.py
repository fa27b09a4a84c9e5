"""The stage that fine-tunes a model for probes, and its base class, which all stages with fine-tuning share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from probes.models.names import CellModel, adjusted_from, has_own_parts
from probes.stages import base
from probes.stages.adjust import AdjustStage
from probes.stages.base import DONE, ModelStage, StageKeys, short
from probes.stages.known_models import KnownModels
from probes.stages.pretrain import PretrainStage
from probes.transfer.config import FORMAT, TransferConfig
from synthlang import plugins
from synthlang.errors import InputError
from synthlang.fingerprint import fingerprint

if TYPE_CHECKING:
    from pathlib import Path

    from probes.models.pretrained import Role
    from probes.stages.inputs import Inputs
    from probes.stages.making import Making

Untuned = Annotated[PretrainStage | AdjustStage, Field(discriminator="kind")] | str
"""A model that a fine-tuning starts from."""


class FinetuneStage(ModelStage):
    """A stage that fine-tunes a model for one seed.

    Attributes:
        config: Settings of the fine-tuning and the test.
        model: The stage that makes the model, or the name of the model.
        seed: Seed of the fine-tuning.
    """

    format = FORMAT
    config: TransferConfig
    model: Untuned
    seed: int

    @property
    def before(self) -> str | None:
        """Name of the original model f⁰ of continual learning, or None if the settings do not name it."""
        return None if self.config.aligning is None else self.config.aligning.before

    @property
    def has_original(self) -> bool:
        """True if continual learning keeps words near their vectors in the model before its adjustment."""
        aligning = self.config.aligning
        if aligning is None or aligning.before not in (None, CellModel.ORIGINAL):
            return False
        if isinstance(self.model, str):
            return adjusted_from(self.model) is not None
        return isinstance(self.model, AdjustStage)

    def settings(self, keys: StageKeys) -> Any:
        return self._settings(self.config, keys)

    def _settings(self, config: TransferConfig, keys: StageKeys) -> list[Any]:
        found: list[Any] = [keys.hash_of(config), self.seed, keys.model_hash(self.model)]
        found += ["original"] if self.has_original else []
        return [*found, *plugins.parts("tasks", [config.task]).values()]

    def finetune_key(self, trained: Role, keys: StageKeys) -> str:
        """Return the key of the fine-tuning on a language. Stages with equal keys share the fine-tuning.

        Args:
            trained: Language of training: ``source`` or ``target``.
            keys: Cache of the keys of stages.
        """
        settings = self._settings(keys.of_fit(self.config, trained), keys)
        parents = [parent.key for parent in self.parents]
        formats = [FORMAT, *base.DATA_FORMATS]
        return fingerprint("fit", formats=formats, settings=settings, parents=parents, trained=trained)

    def check_finetuning(self, inputs: Inputs, known: KnownModels) -> None:
        """Raise InputError if files, models or aligned text are missing, or if settings do not fit the models.

        The settings are the search, the layers, the length of rows, and what a decoder can read.
        """
        from probes.transfer.config import check_decoder, check_tried
        from probes.transfer.tasks.base import task_of

        config = self.config
        inputs.check_references(config, known.target is not None)
        limits = known.all_limits(CellModel.ORIGINAL, config.target_model)
        check_tried(config, [limit.layers for limit in limits])
        check_decoder(config, any(limit.causal for limit in limits))
        task_of(config, known.length(config)).check_length(all(limit.bert for limit in limits))
        continual = config.continual if config.continual is not None and config.continual.alpha else None
        rotation = config.rotation if config.rotation is not None and config.rotation.map is None else None
        for section, aligned in (("continual", continual), ("rotation", rotation)):
            if aligned is None:
                continue
            try:
                if limits:
                    aligned.data.longest(min(limit.positions for limit in limits))
                inputs.check_pairs(aligned.pairs, aligned.data)
                if not any(aligned.pairs.values()):
                    known.check_constructed(config.language, config.target is not None)
            except InputError as error:
                raise error.inside(section) from error


class TuneStage(FinetuneStage):
    """Fine-tuning of the body of a model on the source language of a task. Probes read the result.

    Attributes:
        config: Settings that the body depends on (``TransferConfig.of_source``). Cells that differ only in the target
            language share the stage.
    """

    content = (DONE,)
    kind: Literal["tune"] = "tune"

    @property
    def label(self) -> str:
        return f"tune {short(self.model)} on {self._task} seed {self.seed}"

    @property
    def short(self) -> str:
        return f"{short(self.model)} tuned on {self._task}"

    @property
    def _task(self) -> str:
        return self.config.task if self.config.continual is None else f"{self.config.task}+continual"

    def finetune_keys(self, keys: StageKeys) -> dict[Role, str]:
        return {"source": self.finetune_key("source", keys)}

    def check(self, inputs: Inputs) -> None:
        """Raise InputError if the settings give more than one body, lack a language, or are wrong for a fine-tuning.

        The error is also raised for a training set, dev set, parser, file or model that cannot be opened.
        """
        from probes.transfer.saved import check_one_model
        from probes.transfer.splits import open_training

        config, known = self.config, KnownModels(self, inputs)
        check_one_model(config, known.run is not None and has_own_parts(known.run))
        if config.chosen_by != "source":
            reason = "must be source, because the model for probes is selected on the dev set of the source language"
            raise InputError(reason, keys="chosen_by", hint="set this key to source", code="conflict")
        if config.best > 1:
            reason = f"must be 1, not {config.best}, because probes read only the model of the best setting"
            raise InputError(reason, keys="best", hint="set this key to 1", code="conflict")
        continual = config.continual
        if continual is not None and config.language is None and (not known.is_run or continual.has_text):
            reason = "is required, because continual learning aligns with this language"
            raise InputError(reason, keys="language", hint="set this key to the target language", code="missing")
        open_training(config, known.text, known.length(config))
        inputs.check_parser(config.parser)
        self.check_finetuning(inputs, known)

    def run(self, making: Making) -> None:
        """Fine-tune on the source language for one seed. Unfinished fits are kept in the folder ``<stage>.work``.

        Raises:
            InputError: A model or the items cannot be opened or do not fit, or a file has changed since the work began.
        """
        from probes.models.opening import languages_of, write_model
        from probes.stages.opened import open_models
        from probes.stages.shared_finetunes import shared_places
        from probes.transfer.result import drops
        from probes.transfer.run import Transfer
        from probes.transfer.saved import check_one_model
        from probes.transfer.splits import load_training
        from synthlang.files import atomic_folder

        config = self.config
        continual = config.continual
        natural, source_only = continual is None or continual.has_text, continual is None
        model, _ = open_models(making, config.language, natural, before=self.before, source_only=source_only)
        try:
            check_one_model(config, model.has_own_parts, model.model.architecture)
        except InputError as error:
            raise error.inside("finetuned") from error
        data = load_training(config, model, making.report)
        transfer = Transfer(model, data, config, making.report, making.store, shared_places(self, making.store))

        def build(path: Path) -> None:
            transfer.check()
            body, fit = transfer.tune(self.seed, making.unfinished)
            aligned = transfer.aligned.get("aligned", {})
            texts = {f"aligned text {name}": text["counts"] for name, text in aligned.items()}
            counts = {**drops(transfer), **texts}
            record = {"model": model.name, "task": config.task, "seed": self.seed, "fit": fit, "counts": counts}
            with atomic_folder(path) as folder:
                write_model(body, languages_of(making.model_name(self.model), model), folder, record)

        making.obtain(build)
