"""The stage that runs the probes of one config on a model."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Annotated, Any, Literal

import pydantic
from pydantic import Field

from pretrain.folder import kept_steps
from probes.measures.table import FORMAT, ProbeConfig
from probes.measures.words import no_dictionary, no_rows
from probes.models.names import CellModel, derived_numbers, is_run, model_path, requested_language
from probes.stages.adjust import AdjustStage
from probes.stages.base import PROBES, ModelStage, StageKeys, short
from probes.stages.finetune import TuneStage
from probes.stages.known_models import KnownModels
from probes.stages.pretrain import PretrainStage, root_of
from synthlang import plugins
from synthlang.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from probes.stages.inputs import Inputs
    from probes.stages.making import Making


class ProbeStage(ModelStage):
    """Run of the probes of one config on a model, or on two.

    Attributes:
        config: Settings of the probes.
        model: The model, or the name of a model that the study does not make.
        target_model: The pretraining whose model reads the target language, or None.
        name: Name of the probe in the study.
        step: Step of the checkpoint of the pretraining ``model`` that is probed (None: the selected checkpoint).
    """

    format = FORMAT
    content = (PROBES,)
    kind: Literal["probe"] = "probe"
    config: ProbeConfig
    model: Annotated[PretrainStage | AdjustStage | TuneStage, Field(discriminator="kind")] | str
    target_model: PretrainStage | None = None
    name: str
    step: int | None = None

    @property
    def label(self) -> str:
        return f"probe {self.name} of {short(self.model)}" + ("" if self.step is None else f" step {self.step}")

    @property
    def configs(self) -> tuple[pydantic.BaseModel, ...]:
        return *super().configs, *(run.config.dictionary for run in self._words_of)

    @property
    def reads_checkpoints(self) -> bool:
        """True if the probes read other checkpoints of a run than the selected one."""
        return self.step is not None or ("words" in self.config.probes and self.config.words.checkpoints)

    @property
    def _words_of(self) -> tuple[PretrainStage, ...]:
        """The run whose dictionary defines the translations, if the probe ``words`` reads this dictionary.

        If the run itself is probed, the probe may also read the checkpoints of the run.
        """
        config, run = self.config, root_of(self.model)
        reads = "words" in config.probes and config.words.dictionary is None and config.model2 is None
        return (run,) if reads and isinstance(run, PretrainStage) else ()

    def settings(self, keys: StageKeys) -> Any:
        found: list[Any] = [keys.hash_of(self.config), keys.model_hash(self.model)]
        for run in self._words_of:  # runs with equal keys may differ in these settings
            of_steps = self.config.words.checkpoints and run is self.model
            steps = kept_steps(run.config.checkpoints, run.config.steps) if of_steps else None
            found += [keys.hash_of(run.config.dictionary), None if steps is None else list(steps)]
        found += [] if self.step is None else [{"step": self.step}]
        return [*found, *plugins.parts("probes", self.config.probes).values()]

    # --- the check ---

    def check(self, inputs: Inputs) -> None:
        """Check the settings of the probes, and the texts, models and packages that the probes read.

        Raises:
            InputError: A text, model, language, dictionary, layer, parser or package is missing, no sentence pairs are
                left to fit on, a model cannot read the sentences, or the config saves maps.
        """
        config, known = self.config, KnownModels(self, inputs)
        inputs.check_references(config, self.target_model is not None)
        inputs.check_pairs(config.pairs, config.data if config.fits else None)
        if config.maps.save is not None:
            reason = "cannot be set in a study, because all cells would write to one folder"
            hint = "remove this key, and save maps with synthlang probe"
            raise InputError(reason, keys="maps.save", hint=hint, code="conflict")
        is_one_run = known.is_run and self.target_model is None
        if "words" in config.probes and config.words.dictionary is None and not is_one_run:
            raise no_dictionary()
        if config.reads_sentences and not any(config.pairs.values()):
            known.check_constructed(config.language, config.natural)
        other = known.text_of(config.language) if config.natural else None
        checked = "texts", inputs.identity(config), known.text, other
        inputs.once(checked, lambda: config.check_text(known.text, other, config.natural))
        self._check_language(known)
        if config.reads_sentences:
            self._check_limits(known)
        config.check_installed()
        if "retrieval" in config.probes:
            inputs.check_parser(config.retrieval.parser, "retrieval")

    def _check_language(self, known: KnownModels) -> None:
        """Raise InputError if the model lacks the language, or word translations of the language are not known."""
        config, run = self.config, known.run
        if run is None and config.language is None:
            reason = "is required, because the languages of the model are not known"
            hint = "set this key to the language to compare with"
            raise InputError(reason, keys="language", hint=hint, code="missing")
        if run is None or config.model2 is not None:
            return
        found = requested_language(run, config.language, config.natural)
        if not isinstance(found, int):
            derived = [(number, run.all_languages[number].language) for number in derived_numbers(run).values()]
            found = next((n for n, language in derived if language.fingerprint == found.fingerprint), 0)
        is_run_itself = not isinstance(self.model, AdjustStage | TuneStage)
        if "words" in config.probes and not found and (is_run_itself or config.words.dictionary is None):
            raise no_rows(str(config.language), [language.name for language in run.all_languages])

    def _check_limits(self, known: KnownModels) -> None:
        """Raise InputError if layers, sentence lengths or the pooling of ``cka`` do not fit the models."""
        config = self.config
        others: list[str | None] = [config.cka.paraphrase] if "cka" in config.probes else []
        others += config.distances.before.values() if "distances" in config.probes else []
        without_layers = {"words"} | ({"retrieval"} if config.retrieval.static is not None else set())
        if set(config.probes) - without_layers:
            for limits in known.all_limits(CellModel.ORIGINAL, config.model2, *others):
                config.numbers(limits.layers)
        if "distances" in config.probes and (own := known.limits()) is not None:
            config.distances.drawn(sorted(config.numbers(own.layers)), own.layers)
        if read := known.all_limits(CellModel.ORIGINAL, config.model2):
            config.data.longest(min(limits.positions for limits in read))
            if "cka" in config.probes:
                config.cka.check_pooling(any(limits.causal for limits in read))

    # --- the work ---

    def run(self, making: Making) -> None:
        """Run the probes, and write their numbers, figures and page. Missing checkpoints are trained again first.

        Raises:
            InputError: A model cannot be opened, a probe cannot measure it, or a file has changed since the work began.
            Stopped: After SIGTERM while checkpoints are trained again. The progress has been saved.
        """
        from probes.measures.probe_command import measure
        from probes.measures.probe_input import ProbeInput
        from probes.stages.opened import open_models

        config = self.config

        def build(path: Path) -> None:
            if isinstance(self.model, PretrainStage) and self.reads_checkpoints:
                _make_checkpoints(self.model, making)
            opened, folders = open_models(making, config.language, config.natural, config.model2, step=self.step)
            folder = model_path(making.model_name(self.model))
            run = folder if is_run(folder) else None
            filled = _with_folders(config, folders)
            given = ProbeInput(opened, filled, run, making.store, making.report)
            try:
                measure(given, path, told=config)
            except InputError as error:
                if error.keys != ("model2",) or config.model2 != CellModel.TARGET:
                    raise
                placed = error.inside()
                placed.keys = ("target_model",)  # the study sets model2 from this key
                raise placed from error

        making.obtain(build)


def _with_folders(config: ProbeConfig, folders: Mapping[str, str]) -> ProbeConfig:
    """Return the config with folders in place of references to models of the cell."""

    def folder(name: str | None) -> str | None:
        return None if name is None else folders.get(name, name)

    cka = config.cka.model_copy(update={"paraphrase": folder(config.cka.paraphrase)})
    before = {name: folder(model) for name, model in config.distances.before.items()}
    distances = config.distances.model_copy(update={"before": before})
    return config.model_copy(update={"cka": cka, "distances": distances, "model2": folder(config.model2)})


def _make_checkpoints(stage: PretrainStage, making: Making) -> None:
    """Make the checkpoints that the config of a run keeps but its folder lacks.

    The run is trained again in a folder beside it, from which the missing checkpoints are moved.
    """
    from pretrain.run import pretrain
    from pretrain.stopping import on_sigterm

    run, config = making.done_folder(stage), stage.config_in(making)
    again = run.with_name(f"{run.name}.again")
    with making.store.lock(stage.kind, stage.key), on_sigterm() as stop:
        steps = kept_steps(config.checkpoints, config.steps)
        missing = [f"step-{step}" for step in steps if not (run / "checkpoints" / f"step-{step}").exists()]
        if missing:
            pretrain(config, again, making.store, making.report, stop=stop)
            for step in missing:
                (again / "checkpoints" / step).rename(run / "checkpoints" / step)
        if again.exists():
            shutil.rmtree(again)
