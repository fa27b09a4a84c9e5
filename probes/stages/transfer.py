"""The stage that measures transfer: a model is fine-tuned on one language and tested on another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from probes.stages.base import PREDICTIONS, RESULT, StageKeys, short
from probes.stages.finetune import FinetuneStage
from probes.stages.known_models import KnownModels
from probes.stages.pretrain import PretrainStage
from synthlang.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

    from probes.models.pretrained import Role
    from probes.stages.inputs import Inputs
    from probes.stages.making import Making

ITEM_SETTINGS = {
    *("task", "train", "dev", "test", "target", "parser", "length", "score", "language", "mixed", "target_model"),
    *("chosen_by", "dev_also", "train_language"),
}
"""Settings that determine the items of a transfer and the columns that these items must have."""


class TransferStage(FinetuneStage):
    """Fine-tuning and test of a model, or of two, for one seed.

    Attributes:
        target_model: The pretraining whose model reads the target language, or None.
        name: Name of the task in the study.
    """

    content = (RESULT, PREDICTIONS)
    kind: Literal["transfer"] = "transfer"
    target_model: PretrainStage | None = None
    name: str

    @property
    def label(self) -> str:
        return f"{self.name} seed {self.seed} of {short(self.model)}"

    def finetune_keys(self, keys: StageKeys) -> dict[Role, str]:
        roles: tuple[Role, ...] = ("source", "target") if self.config.sup else ("source",)
        return {role: self.finetune_key(role, keys) for role in roles}

    def check(self, inputs: Inputs) -> None:
        """Raise InputError for missing or unsuitable items, and for wrong settings of the fine-tuning."""
        known = KnownModels(self, inputs)
        items = self.config.model_dump_json(include=ITEM_SETTINGS)
        inputs.once(("items", items, *known.identity), lambda: self._check_items(inputs, known))
        self.check_finetuning(inputs, known)

    def _check_items(self, inputs: Inputs, known: KnownModels) -> None:
        from probes.models.names import language_of
        from probes.transfer.splits import check_columns, open_splits

        config, made = self.config, isinstance(known.root, PretrainStage)
        if config.language is None and (config.target is not None or not known.is_run):
            raise InputError("is required", keys="language", hint="set this key to the target language", code="missing")
        if not made and known.is_run and config.train is None:
            return  # the text of a run that is given by its name is opened later
        splits = open_splits(config, known.text if made else None, known.length(config))[1].source
        if not made or known.run is None:
            return
        inputs.check_parser(config.parser)
        if config.parser is None and config.target is None and config.target_model is None:
            check_columns(language_of(config.language, known.run), splits)
        if config.parser is None and config.train_language is not None:
            check_columns(config.train_language, splits, "train_language")

    def run(self, making: Making) -> None:
        """Fine-tune and test for one seed. Unfinished fits are kept in the folder ``<stage>.work``.

        Raises:
            InputError: A model or the items cannot be opened or do not fit, or a file has changed since the work began.
        """
        from probes.stages.opened import open_models
        from probes.stages.shared_finetunes import shared_places
        from probes.transfer import result as results
        from probes.transfer.run import Transfer
        from probes.transfer.splits import load_data
        from synthlang.files import atomic_folder, write_json

        config = self.config
        natural = config.target is not None
        model, _ = open_models(making, config.language, natural, config.target_model, self.before)
        data = load_data(config, model, making.report)
        transfer = Transfer(model, data, config, making.report, making.store, shared_places(self, making.store))

        def build(path: Path) -> None:
            transfer.check()
            found = transfer.run(self.seed, making.unfinished)
            record = {
                **results.facts(transfer),
                **results.seed_record(found, transfer.main.name),
                **results.of_sets(transfer),
            }
            with atomic_folder(path) as folder:
                write_json(folder / RESULT, record)
                results.write_predictions(folder / PREDICTIONS, found.predictions)

        making.obtain(build)
