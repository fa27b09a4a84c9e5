"""The stage that adjusts a model on aligned text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from pretrain.adjust.config import FORMAT, OF_WEIGHTS, AdjustConfig, check_adjusted, tokenizer_languages
from pretrain.config import PretrainConfig
from pretrain.config.model import numbered
from pretrain.config.training import micro_batches
from probes.models.names import has_own_parts
from probes.stages.base import DONE, ModelStage, StageKeys, short
from probes.stages.known_models import KnownModels
from probes.stages.pretrain import PretrainStage
from synthlang.errors import InputError

if TYPE_CHECKING:
    from probes.stages.inputs import Inputs
    from probes.stages.making import Making


class AdjustStage(ModelStage):
    """Adjustment of a model on aligned text.

    The output of an aligner differs from run to run. The key therefore covers the text that the aligner reads instead
    of the word alignments.

    Attributes:
        config: Settings of the adjustment.
        model: The pretraining of the model, or the name of a model that the study does not make.
    """

    format = FORMAT
    content = (DONE,)
    kind: Literal["adjust"] = "adjust"
    config: AdjustConfig
    model: PretrainStage | str

    @property
    def label(self) -> str:
        return f"adjust {short(self.model)} by {'+'.join(self.config.texts)}"

    @property
    def short(self) -> str:
        return f"{short(self.model)} adjusted"

    def settings(self, keys: StageKeys) -> Any:
        names = OF_WEIGHTS | {"pairs"}
        found = {name: value for name, value in keys.settings_of(self.config).items() if name in names}
        # the names of derived languages choose the tokenizers
        chosen = [[pair.left.name, pair.right.name] for pair in self.config.texts.values() if pair.kind == "derived"]
        return {**found, "model": keys.model_hash(self.model), "names": chosen}

    def check(self, inputs: Inputs) -> None:
        """Raise InputError if a file, model or text is missing, or settings do not fit the model or its languages."""
        config, known = self.config, KnownModels(self, inputs)
        inputs.check_references(config)
        inputs.check_pairs(config.texts, config.data)
        micro_batches(config.rows, config.accumulation, 1)
        if (limits := known.limits()) is not None:
            check_adjusted(limits.causal)
            numbered(config.loss.layers, limits.layers, "loss.layers")
            config.data.longest(limits.positions)
        if isinstance(self.model, PretrainStage):
            self._check_languages(self.model.config)

    def _check_languages(self, run: PretrainConfig) -> None:
        if has_own_parts(run):
            reason = (
                "the languages of the run have separate weights (separate embeddings or layers, or language ids), so "
                "they do not share one model to adjust"
            )
            hint = "adjust a run whose languages share all weights"
            raise InputError(reason, hint=hint, code="unsupported")
        names = [language.name for language in run.all_languages]
        for name, pair in self.config.texts.items():
            tokenizer_languages(name, pair, names)

    def run(self, making: Making) -> None:
        """Adjust the model, or continue an unfinished adjustment.

        Raises:
            InputError: The model is not finished or is damaged, an input cannot be read or has changed since the work
                began, or the adjustment fails.
            Stopped: After SIGTERM. The progress has been saved.
        """
        from pretrain.adjust.run import adjust
        from pretrain.stopping import on_sigterm
        from synthlang.config import dump_yaml
        from synthlang.files import atomic_file

        folder = making.folder
        config = self.config.model_copy(update={"model": making.model_name(self.model)})
        with making.lock, on_sigterm() as stop:
            if making.is_intact:
                return
            if (folder / "config.yaml").is_file():  # started by a config with other spellings of its files
                with atomic_file(folder / "config.yaml", "w") as handle:
                    handle.write(dump_yaml(config))
            making.reopen_run()
            adjust(config, folder, making.report, stop=stop)
            making.check_unchanged(folder)
