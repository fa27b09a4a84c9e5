"""The model of a run: new, or from a checkpoint of Hugging Face; and the one that a run has trained."""

from __future__ import annotations

from pathlib import Path

from pretrain.artifacts import Artifacts
from pretrain.checkpoints import load_weights, selected_checkpoint
from pretrain.config import PretrainConfig
from pretrain.model.encoder import MaskedLM
from pretrain.model.from_hf import from_hf


def new_model(config: PretrainConfig, artifacts: Artifacts) -> MaskedLM:
    """The model before its first step, a function of the config."""
    space = artifacts.id_space
    ids = tuple(language.ids for language in space.members)
    if config.start is not None:
        return from_hf(
            config.start.model,
            config.sharing,
            ids=ids,
            size=space.size,
            language_ids=config.objective.uses_language_ids,
            seed=config.seed,
            extension=artifacts.extension,
            initialise=config.start.extend.initialise if config.start.extend else "pieces",
            length=config.batch.length,
        )
    return MaskedLM(
        config.model,
        config.sharing,
        ids=ids,
        size=space.size,
        positions=config.model.positions or config.batch.length,
        pad=space.specials.pad,
        language_ids=config.objective.uses_language_ids,
        seed=config.seed,
    )


def trained_model(run: Path, config: PretrainConfig, artifacts: Artifacts) -> MaskedLM:
    """The model of a finished run, at the checkpoint that its config selects; InputError if that one is damaged."""
    path = selected_checkpoint(run / "checkpoints", config.steps)
    model = new_model(config, artifacts)
    load_weights(path / "model.safetensors", model)
    return model
