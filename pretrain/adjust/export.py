"""The adjusted model as a folder that AutoModelForMaskedLM and AutoTokenizer load without synthlang."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from safetensors.torch import load_file, save_file
from torch import Tensor
from transformers import PreTrainedModel

from pretrain.adjust.config import AdjustConfig
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


def adjusted_card(
    config: AdjustConfig, language: str, name: str, weights: str, sections: Sequence[tuple[str, str]] = ()
) -> str:
    """Return the card of an adjusted model as Markdown with a YAML header.

    Args:
        config: The settings.
        language: The language of the tokenizer beside the card, or "" for a card that names no tokenizer.
        name: The fingerprint of the adjustment.
        weights: The fingerprint of the weights before the adjustment.
        sections: Further sections as (heading, Markdown text).
    """
    loss = config.loss
    is_place = Path(config.model).is_absolute() or config.model.startswith((".", "~"))
    model = Path(config.model).name if is_place else config.model
    pulled = {"words": "linked words", "cls": "CLS", "cls_sep": "CLS and SEP", "all": "linked words, CLS and SEP"}
    held = {"other": "the other side is", "moving": "the same side is", "both": "both sides are", "none": "no side is"}
    tokenizer = f"The tokenizer in this folder is that of **{language}**.\n" if language else ""
    more = "".join(f"\n## {heading}\n\n{text.strip()}\n" for heading, text in sections)
    return f"""---
library_name: transformers
pipeline_tag: fill-mask
---

# {model}, adjusted

`{model}`, adjusted by synthlang: vectors of {pulled[loss.pulled]} in parallel sentences ({", ".join(config.pairs)})
were pulled together. The {loss.moves} side moves, {held[loss.held]} held (λ = {loss.hold:g}); target:
{loss.target}; layers: {", ".join(map(str, loss.layers))}; vector of a word: {loss.subword} of its subwords;
{config.epochs} epoch(s), learning rate {config.optimizer.learning_rate:g}, seed {config.seed}. The masked-LM head was
not trained, but weights that it shares with the word embedding moved with it.
{tokenizer}
Fingerprints: of this adjustment `{name}`, of the weights before `{weights}`.
{more}"""


def _carry(source: Path, folder: Path) -> None:
    """Add BERT's layers for sentence pairs from the original in ``source`` to the weights in ``folder``."""
    extra: dict[str, Tensor] = {}
    for path in sorted(source.glob("*.safetensors")):
        extra |= {key: tensor for key, tensor in load_file(path).items() if any(part in key for part in CARRIED)}
    if extra and (folder / WEIGHTS).is_file():
        save_file(load_file(folder / WEIGHTS) | extra, folder / WEIGHTS, metadata={"format": "pt"})
