"""Exports: a language model with its tokenizer for each language, which load without synthlang."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor

from pretrain.artifacts import Artifacts
from pretrain.card import language_card
from pretrain.checkpoints import disk_errors
from pretrain.config import PretrainConfig
from pretrain.folder import CARD
from pretrain.model.kinds import kind_of, to_hf
from pretrain.model.language_model import LanguageModel
from synthlang.files import atomic_folder, read_json, write_json
from synthlang.model_files import CONFIG
from synthlang.vocabularies import LanguageTokenizer


def export_model(model: LanguageModel, artifacts: Artifacts, config: PretrainConfig, run: Path, name: str) -> None:
    """Write ``run/export/<language>`` with model, tokenizer and card for each language.

    Args:
        model: The trained model.
        artifacts: The data of the run.
        config: The settings of the run.
        run: The run folder.
        name: The fingerprint of the run.

    Raises:
        AssertionError: transformers loads other weights than were exported.
        DiskError: A file cannot be written, for example because the disk is full.
    """
    from transformers.utils import logging  # imported here, so that a run starts sooner

    logging.disable_progress_bar()  # the run has a progress bar of its own
    for number, language in enumerate(artifacts.languages):
        with atomic_folder(run / "export" / language.name, replace=True) as folder:
            weights = save_model(model, number, language.tokenizer, folder)
            path = folder / "tokenizer_config.json"  # truncation=True cuts a text to model_max_length
            write_json(path, {**read_json(path), "model_max_length": model.embeddings.length})
            card = language_card(language.name, config, run, name, artifacts.parents)
            (folder / CARD).write_text(card, encoding="utf-8")
            verify(folder, weights)


def save_model(model: LanguageModel, language: int, tokenizer: LanguageTokenizer, folder: Path) -> dict[str, Tensor]:
    """Write the model of one language and its tokenizer to a folder, and return the weights.

    ``language`` is the number of the language in the model.

    Raises:
        OSError: A file of the model cannot be written, for example because the disk is full.
        DiskError: A file of the tokenizer cannot be written.
    """
    settings, weights = to_hf(model, language)
    settings.save_pretrained(folder)
    with disk_errors():
        save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    tokenizer.save(folder, model.causal)
    return weights


def verify(folder: Path, weights: Mapping[str, Tensor], carried: bool = False) -> None:
    """Check that transformers loads the exported ``weights`` from the ``folder`` unchanged.

    Weights in the folder that the class of transformers does not use are allowed only with ``carried``, for layers
    that were copied from the original model.

    Raises:
        AssertionError: Weights are missing, unused or changed.
    """
    from transformers.utils import logging

    verbosity = logging.get_verbosity()
    logging.set_verbosity_error()
    architecture = read_json(folder / CONFIG)["model_type"]
    loaded, info = kind_of(architecture).auto_class.from_pretrained(
        folder, output_loading_info=True, local_files_only=True, trust_remote_code=False
    )
    logging.set_verbosity(verbosity)
    problems = {kind: keys for kind, keys in info.items() if keys and not (carried and kind == "unexpected_keys")}
    assert not problems, f"the export does not load cleanly: {problems}"
    theirs: dict[str, Any] = loaded.state_dict()
    assert all(torch.equal(tensor.cpu(), theirs[key]) for key, tensor in weights.items()), "other weights are exported"
