"""Exports: for each language a plain RobertaForMaskedLM with its tokenizer, loadable without us."""

from __future__ import annotations

from pathlib import Path

import torch
from transformers import AutoModelForMaskedLM, RobertaForMaskedLM
from transformers.utils import logging

from pretrain.checkpoint import disk_errors
from pretrain.config import PretrainConfig
from pretrain.prepare import Artifacts
from synthlang.files import atomic_folder
from synthlang.language import Language


def export_model(model: RobertaForMaskedLM, artifacts: Artifacts, config: PretrainConfig, run: Path, name: str) -> None:
    """Write ``run/export/<language>`` for both languages; ``name`` is the run's fingerprint."""
    logging.disable_progress_bar()  # the run shows its own
    for language in artifacts.languages:
        with atomic_folder(run / "export" / language.name, replace=True) as folder:
            with disk_errors():
                model.save_pretrained(folder)
            artifacts.vocabulary.save(folder, language.script)
            (folder / "README.md").write_text(_card(language, config, name), encoding="utf-8")
            _verify(folder, model)


def _verify(folder: Path, model: RobertaForMaskedLM) -> None:
    """Load the export as a stranger would; every key must be there and no other."""
    verbosity = logging.get_verbosity()
    logging.set_verbosity_error()
    loaded, info = AutoModelForMaskedLM.from_pretrained(folder, output_loading_info=True)
    logging.set_verbosity(verbosity)
    problems = {kind: keys for kind, keys in info.items() if keys}
    assert not problems, f"the export does not load cleanly: {problems}"
    mine, theirs = model.state_dict(), loaded.state_dict()
    assert mine.keys() == theirs.keys(), "the export has other parameters"
    assert all(torch.equal(mine[k].cpu(), theirs[k]) for k in mine), "the export has other weights"


def _card(language: Language, config: PretrainConfig, name: str) -> str:
    return f"""---
library_name: transformers
pipeline_tag: fill-mask
---

# {language.name}

RoBERTa pretrained by synthlang on `{config.source}` and its derived language `{config.language.name}` with the
objective `{config.objective.kind}` for {config.steps} steps of {config.batch.rows} × {config.batch.length} tokens
(seed {config.seed}). The weights are the same for both languages; the tokenizer in this folder is that of
**{language.name}**. It expects words with one space between each two, punctuation standing apart.

Run fingerprint: `{name}`.
"""
