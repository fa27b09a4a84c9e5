"""The adjusted model as a folder that AutoModelForMaskedLM and AutoTokenizer load without synthlang."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from safetensors.torch import load_file, save_file
from torch import Tensor
from transformers import PreTrainedModel

from pretrain.adjust.config import AdjustConfig
from pretrain.card import adjusted_card
from pretrain.checkpoints import disk_errors
from pretrain.export import verify
from pretrain.hub import Base
from synthlang.files import atomic_folder
from synthlang.vocabularies.checkpoint import read_checkpoint

WEIGHTS = "model.safetensors"
TOKENIZER_FILES = (
    "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "vocab.txt",
    "vocab.json", "merges.txt", "sentencepiece.bpe.model", "spiece.model", "tokenizer.model",
)  # fmt: skip
# BERT's layers for sentence pairs. Masked language models do not use them, but classifiers start from them.
CARRIED = ("pooler.", "seq_relationship.")


def export_adjusted(
    model: PreTrainedModel, base: Base, config: AdjustConfig, run: Path, name: str, parents: Mapping[str, Any]
) -> None:
    """Write ``run/export``, with a folder for each language if the model is a pretraining run.

    Tokenizer files, and BERT's layers for sentence pairs, are copied from the original.

    Args:
        model: The adjusted model.
        base: The original model.
        config: The settings.
        run: The output folder of the adjustment.
        name: The fingerprint of the adjustment.
        parents: The fingerprints of the inputs, of which the card shows ``model``.

    Raises:
        AssertionError: The export does not load as the same model or tokenizer.
        DiskError: A file cannot be written, for example because the disk is full.
    """
    for language, source in base.folders.items():
        with atomic_folder(run / "export" / language if language else run / "export", replace=True) as folder:
            with disk_errors():
                model.save_pretrained(folder)
                _carry(source, folder)
            for file in TOKENIZER_FILES:
                if (source / file).is_file():
                    shutil.copyfile(source / file, folder / file)
            (folder / "README.md").write_text(
                adjusted_card(config, language, name, str(parents["model"])), encoding="utf-8"
            )
            verify(folder, model.state_dict(), carried=True)
            tokenizer = read_checkpoint(str(folder)).fingerprint
            assert tokenizer == base.checkpoints[language].fingerprint, "the export has another tokenizer"


def _carry(source: Path, folder: Path) -> None:
    """Add BERT's layers for sentence pairs from the original in ``source`` to the weights in ``folder``."""
    extra: dict[str, Tensor] = {}
    for path in sorted(source.glob("*.safetensors")):
        extra |= {key: tensor for key, tensor in load_file(path).items() if any(part in key for part in CARRIED)}
    if extra and (folder / WEIGHTS).is_file():
        save_file(load_file(folder / WEIGHTS) | extra, folder / WEIGHTS, metadata={"format": "pt"})
