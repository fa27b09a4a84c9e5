"""Fine-tuned models that a transfer saves, which ``synthlang probe`` reads as folders."""

from __future__ import annotations

from pathlib import Path

from probes.transfer.config import TransferConfig, combinations
from synthlang.errors import InputError
from synthlang.vocabularies.xlm_tokenizer import XLM

TRANSFER = "transfer"
"""Key in ``done.json`` of a saved model: the fingerprint of the transfer that saved it."""


def model_folders(keep: Path, seed: int, number: int) -> list[Path]:
    """Return the folders of the models of one seed.

    Args:
        keep: The folder for all models.
        seed: The seed.
        number: Number of models. It is above 1 if a search keeps several settings.
    """
    return [keep / (f"seed-{seed}" + (f"-setting-{place}" if number > 1 else "")) for place in range(number)]


def check_one_model(config: TransferConfig, has_own_parts: bool, architecture: str = "") -> None:
    """Check that the fine-tuned model can be saved as one model for both languages.

    Args:
        config: The settings of the transfer.
        has_own_parts: True if the model has separate weights or embeddings for its languages.
        architecture: The architecture of the model, or "" if it is not known yet.

    Raises:
        InputError: The features are frozen, the config has a rotation, or the model is an XLM model or has separate
            parts. The error is also raised if a combination of the search is not allowed.
    """
    if any(tried.features.tune == "none" for _, tried in combinations(config)):
        key, reason = "features.tune", "the value none trains no model, so there is no fine-tuned model to save"
        if key in config.search:
            raise InputError(reason, keys=("search", key), hint="set this key to [all]", code="conflict")
        hint = "set this key to all" + ("" if config.target_model is None else ", and remove target_model")
        raise InputError(reason, keys=key, hint=hint, code="conflict")
    if config.rotation is not None:
        reason = "cannot be saved with a model, so the saved model would differ from the fine-tuned one"
        raise InputError(reason, keys="rotation", hint="set this key to null", code="conflict")
    if architecture == XLM:
        hint = "choose a model of another architecture"
        raise InputError("a fine-tuned XLM model cannot be saved", hint=hint, code="unsupported")
    if has_own_parts:
        parts = "separate weights for its languages (separate embeddings or layers, or language ids)"
        reason = f"a fine-tuned model with {parts} cannot be saved"
        raise InputError(reason, hint="choose a model whose languages share all weights", code="unsupported")
