"""Exports: for each language a plain masked language model with its tokenizer, loadable without us."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor

from pretrain.artifacts import Artifacts, RunLanguage
from pretrain.checkpoints import disk_errors
from pretrain.config import PretrainConfig
from pretrain.model.encoder import MaskedLM
from pretrain.model.to_hf import to_hf
from synthlang.files import atomic_folder, read_json, remove_leftovers, write_json


def export_model(model: MaskedLM, artifacts: Artifacts, config: PretrainConfig, run: Path, name: str) -> None:
    """Write ``run/export/<language>`` for each language; ``name`` is the run's fingerprint."""
    from transformers.utils import logging  # here, since a run starts sooner without

    logging.disable_progress_bar()  # the run shows its own
    remove_leftovers(run / "export")
    for number, language in enumerate(artifacts.languages):
        settings, weights = to_hf(model, number)
        with atomic_folder(run / "export" / language.name, replace=True) as folder:
            settings.save_pretrained(folder)
            with disk_errors():
                save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
            language.tokenizer.save(folder)
            _limit(folder, model.embeddings.length)
            (folder / "README.md").write_text(_card(language, config, name), encoding="utf-8")
            verify(folder, weights)


def _limit(folder: Path, positions: int) -> None:
    """Tell users of the tokenizer how many tokens the model can read, so that truncation=True cuts there."""
    path = folder / "tokenizer_config.json"
    write_json(path, {**read_json(path), "model_max_length": positions})


def verify(folder: Path, weights: Mapping[str, Tensor], carried: bool = False) -> None:
    """Load the export as a stranger would; every key must be there, and no other unless some are ``carried`` along."""
    from transformers import AutoModelForMaskedLM
    from transformers.utils import logging

    verbosity = logging.get_verbosity()
    logging.set_verbosity_error()
    loaded, info = AutoModelForMaskedLM.from_pretrained(folder, output_loading_info=True, local_files_only=True)
    logging.set_verbosity(verbosity)
    problems = {kind: keys for kind, keys in info.items() if keys and not (carried and kind == "unexpected_keys")}
    assert not problems, f"the export does not load cleanly: {problems}"
    theirs: dict[str, Any] = loaded.state_dict()
    assert all(torch.equal(tensor.cpu(), theirs[key]) for key, tensor in weights.items()), "other weights are exported"


def _card(own: RunLanguage, config: PretrainConfig, name: str) -> str:
    others = ", ".join(f"`{m.name}` from `{m.source}`" for m in config.all_languages)
    shared = "Every language has these weights; only the tokenizer differs."
    if config.sharing.separates or config.objective.uses_language_ids:
        shared = f"These are the weights as **{own.name}** uses them; parts of other languages are left out."
    terms = ", ".join(f"{term} × {weight:g}" for term, weight in config.objective.terms.items())
    return f"""---
library_name: transformers
pipeline_tag: fill-mask
---

# {own.name}

A masked language model pretrained by synthlang on {others} with the objective `{config.objective.kind}` ({terms}) for
{config.steps} steps of {config.batch.rows} × {config.batch.length} tokens (seed {config.seed}). {shared}
The tokenizer in this folder is that of **{own.name}**. It expects words with one space between each two, punctuation
standing apart.

Run fingerprint: `{name}`.
"""
